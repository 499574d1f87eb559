"""The contract of source connectors, as a test class to inherit."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import pytest

from connect.data import SourceBatch, SourceRecord, validate
from connect.plugin import Plugin
from connect.source import SHARE_KEYS, ExactlyOnceSupport, SourceConnector, SourceTask
from connect.testing.contexts import ConnectorTestContext
from connect.testing.offsets import StoredOffsets
from connect.testing.plugin_contract import PluginTests
from connect.testing.props import connector_props, task_props
from connect.testing.source_run import run_source, run_splits, running_source
from connect.testing.strict_equality import exact_record
from connect.testing.watchdog import run_watched

__all__ = ["SourceConnectorTests"]


class SourceConnectorTests(PluginTests):
    """Tests of a source connector. Set its class, and the fixture ``props`` for a source of about a dozen records::

        class TestLines(SourceConnectorTests):
            connector_class = LinesConnector

            @pytest.fixture
            def props(self, tmp_path):
                (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
                return {"file": str(tmp_path / "in.txt"), "topic": "lines"}

    The source must return the same records each time it is read from the beginning. For a source that never ends, set
    ``record_count`` to the number of records to read.
    """

    connector_class: ClassVar[type[SourceConnector[Any]]]

    record_count: ClassVar[int | None] = None
    """The number of records to read; ``None`` reads to the end."""

    resumes_exactly: ClassVar[bool] = True
    """Whether reading resumes exactly after any record. If not, records may come twice, but none may be lost."""

    idle_seconds: ClassVar[float] = 1.0
    """The longest time of a poll when there is nothing to read; waits in the context are cut short."""

    patience_seconds: ClassVar[float] = 30.0
    """How many seconds a poll may take before it counts as hung, or a source's records before they count as lost."""

    @pytest.fixture
    def plugin_class(self) -> type[Plugin[Any]]:
        """The connector."""
        return self.connector_class

    def identity(self, record: SourceRecord) -> object:
        """Return the part of a record that must be the same when it is read again: by default all but the timestamp."""
        return exact_record(record.replace(timestamp=None))

    def read(
        self, props: Mapping[str, str], *, offsets: StoredOffsets | None = None, after: int = 0, max_tasks: int = 1
    ) -> list[SourceRecord]:
        """Read to the end, or until there are ``record_count`` records including the ``after`` read before."""
        if self.record_count is None:
            return self._read(props, offsets, max_tasks=max_tasks)
        count = self.record_count - after
        return self._read(props, offsets, lambda records: len(records) >= count, max_tasks=max_tasks)[:count]

    def _read(
        self,
        props: Mapping[str, str],
        offsets: StoredOffsets | None,
        until: Callable[[Sequence[SourceRecord]], bool] | None = None,
        *,
        max_tasks: int = 1,
    ) -> list[SourceRecord]:
        """Read in a watched thread, to the end or until ``until(records)`` is true."""

        def read(alive: Callable[[], None]) -> list[SourceRecord]:
            return run_source(
                self.connector_class,
                props,
                offsets=offsets,
                until=until,
                max_tasks=max_tasks,
                timeout=self.patience_seconds,
                before_poll=alive,
            )

        return run_watched(read, self.patience_seconds)

    def test_records_are_well_formed(self, props: Mapping[str, str]) -> None:
        """Every record has a topic, matches its schemas and has a source partition and offset."""
        records = self.read(props)
        assert records, "The source gave no record; props must name one with some in it."
        for record in records:
            assert record.topic, f"{record} has no topic."
            validate(record.key_schema, record.key, "key")
            validate(record.value_schema, record.value, "value")
            assert record.source_partition, f"{record} has no source partition, so reading cannot resume after it."
            assert record.timestamp is None or record.timestamp >= 0
        StoredOffsets().keep(records)

    def test_resumes_after_every_offset(self, props: Mapping[str, str]) -> None:
        """Started with the offset of any record, the source continues after that record without loss or duplicates."""
        records = self.read(props)
        for count in range(1, len(records) + 1):
            offsets = StoredOffsets()
            offsets.keep(records[:count])
            offset = dict(records[count - 1].source_offset)
            found = self._read_rest(props, offsets, records[count:])
            where = f"after offset {offset}, that of record {count} of {len(records)}"
            self._check_none_lost(found, records[count:], where)
            if self.resumes_exactly:
                self._check_none_again(found, records[count:], where)
            rest, expected = self._by_partition(found), self._by_partition(records[count:])
            if self.resumes_exactly:
                assert rest == expected, f"The records came in another order {where}."
                continue
            for partition, wanted in expected.items():
                assert _is_within(wanted, rest.get(partition, [])), f"Records out of order after offset {offset}."

    def test_goes_on_from_its_own_offsets(self, props: Mapping[str, str]) -> None:
        """Read to the end and restarted, the source returns nothing twice."""
        if self.record_count is not None:
            pytest.skip("The source never ends.")
        offsets = StoredOffsets()
        records = self.read(props, offsets=offsets)
        assert records
        if self.resumes_exactly:
            where = f"after offset {dict(records[-1].source_offset)}, that of the last record"
            self._check_none_again(self.read(props, offsets=offsets), [], where)

    def test_an_idle_poll_gives_nothing_and_returns(self, props: Mapping[str, str]) -> None:
        """Without new data a poll soon returns nothing, so that the task can be paused and stopped.

        A source with a ``record_count`` may always have more data; its polls must return soon nevertheless.
        """
        offsets = StoredOffsets()
        self.read(props, offsets=offsets)
        run_watched(lambda alive: self._poll_idly(props, offsets, alive), self.patience_seconds)

    def _poll_idly(self, props: Mapping[str, str], offsets: StoredOffsets, alive: Callable[[], None]) -> None:
        ends = self.record_count is None
        with running_source(self.connector_class, props, offsets) as tasks:
            for task in tasks:
                if ends:
                    self._poll_until_idle(task.poll, alive)
                for _ in range(3):
                    alive()
                    started = time.monotonic()
                    found = task.poll()
                    assert found == [] or not ends
                    if not found:
                        self._check_short(time.monotonic() - started)

    def test_waits_end_when_the_task_is_stopped(self, props: Mapping[str, str]) -> None:
        """A poll returns soon when the task must stop, whatever it is waiting for."""
        with running_source(self.connector_class, props, StoredOffsets()) as tasks:
            for task in tasks:
                task.context.stop()
                started = time.monotonic()
                task.poll()
                self._check_short(time.monotonic() - started)

    def test_stop_may_be_called_again(self, props: Mapping[str, str]) -> None:
        """Calling ``stop`` twice has the same effect as calling it once, before the first poll and after it."""
        for polls in (0, 1):
            with running_source(self.connector_class, props, StoredOffsets()) as tasks:
                for task in tasks:
                    for _ in range(polls):
                        task.poll()
                    task.task.stop()
                    task.task.stop()

    def test_a_polled_batch_is_the_same_by_row_and_by_column(self, props: Mapping[str, str]) -> None:
        """If polls return batches, the batches' slices and elements agree with their rows."""
        with running_source(self.connector_class, props, StoredOffsets()) as tasks:
            for polled in (task.task.poll() for task in tasks):
                if isinstance(polled, SourceBatch) and len(polled):
                    rows = list(polled)
                    middle = len(rows) // 2
                    assert [*polled.slice(0, middle), *polled.slice(middle, len(rows))] == rows
                    assert [polled.source_offsets[index] for index in range(len(rows))] == [
                        row.source_offset for row in rows
                    ]
                    assert polled.source_offsets[-1] == rows[-1].source_offset

    @pytest.mark.parametrize("max_tasks", [1, 2, 5])
    def test_task_configs_keep_to_max_tasks(self, props: Mapping[str, str], max_tasks: int) -> None:
        """There are at most ``max_tasks`` task configs, and the task accepts each of them."""
        given = connector_props(self.connector_class, props, max_tasks)
        connector = self.connector_class(self.connector_class.config_class.parse(given), ConnectorTestContext())
        connector.start()
        try:
            configs = task_props(connector, max_tasks)
        finally:
            connector.stop()
        assert configs, "There are records to read, so there must be a task."
        for config in configs:
            self.connector_class.task_class.config_class.parse(config)

    def test_shares_that_may_grow_belong_to_one_task_each(self, props: Mapping[str, str]) -> None:
        """If tasks accept larger shares while running, each task config names its share's keys, and none overlap."""
        own = getattr(self.connector_class.task_class, "reconfigure", SourceTask.reconfigure)
        takes = own is not SourceTask.reconfigure
        given = connector_props(self.connector_class, props, 3)
        connector = self.connector_class(self.connector_class.config_class.parse(given), ConnectorTestContext())
        connector.start()
        try:
            configs = task_props(connector, 3)
        finally:
            connector.stop()
        shares: Counter[str] = Counter()
        for config in configs:
            keys = [key.strip() for key in config.get(SHARE_KEYS, "").split(",") if key.strip()]
            assert bool(keys) == takes, (
                f"A task that overrides reconfigure, and no other, has {SHARE_KEYS} in its config."
            )
            assert all(key in config for key in keys), f"{SHARE_KEYS} names a key that the task config has not."
            shares.update(config[key] for key in keys[:1])
        items = [item.strip() for share in shares.elements() for item in share.split(",")]
        assert len(items) == len(set(items)), "The same item is in the shares of two tasks."

    def test_tasks_share_the_work(self, props: Mapping[str, str]) -> None:
        """Several tasks together read what one task reads alone, each record once."""
        if self.record_count is not None:
            pytest.skip("The source never ends.")
        alone, shared = self.read(props), self.read(props, max_tasks=3)
        assert Counter(map(self.identity, shared)) == Counter(map(self.identity, alone))

    @pytest.mark.parametrize("max_splits", [1, 3])
    def test_splits_are_the_same_work_in_bounded_pieces(self, props: Mapping[str, str], max_splits: int) -> None:
        """The splits together return what as many tasks return, each record once, and each split ends."""
        found = self._read_splits(props, StoredOffsets(), max_splits)
        alone = self.read(props, max_tasks=max_splits)
        assert Counter(map(self.identity, found)) == Counter(map(self.identity, alone))

    def test_splits_leave_out_what_is_read(self, props: Mapping[str, str]) -> None:
        """Data that is stored as read is in no split, and data that a task has read is read by no split."""
        offsets = StoredOffsets()
        assert self._read_splits(props, offsets)
        if self.resumes_exactly:
            self._check_none_again(self._read_splits(props, offsets), [], "in new splits, after splits had read all")
        offsets = StoredOffsets()
        self.read(props, offsets=offsets, max_tasks=3)
        if self.resumes_exactly:
            self._check_none_again(self._read_splits(props, offsets), [], "in new splits, after tasks had read all")

    def test_splits_resume_after_an_offset(self, props: Mapping[str, str]) -> None:
        """Interrupted after the first, a middle or the last record, the splits continue after it."""
        records = self._read_splits(props, StoredOffsets())
        for count in sorted({1, len(records) // 2, len(records) - 1} - {0}):
            offsets = StoredOffsets()
            offsets.keep(records[:count])
            found = self._read_splits(props, offsets)
            offset = dict(records[count - 1].source_offset)
            where = f"in new splits after offset {offset}, that of record {count} of {len(records)}"
            self._check_none_lost(found, records[count:], where)
            rest, expected = self._by_partition(found), self._by_partition(records[count:])
            if self.resumes_exactly:
                self._check_none_again(found, records[count:], where)
                assert rest == expected, f"The records came in another order {where}."
            for partition, wanted in expected.items():
                assert _is_within(wanted, rest.get(partition, [])), f"Records out of order {where}."

    def _read_splits(self, props: Mapping[str, str], offsets: StoredOffsets, max_splits: int = 3) -> list[SourceRecord]:
        """Read the splits that the source makes now; skip the test if it makes none."""

        def read(alive: Callable[[], None]) -> list[SourceRecord] | None:
            return run_splits(
                self.connector_class,
                props,
                offsets=offsets,
                max_splits=max_splits,
                timeout=self.patience_seconds,
                before_poll=alive,
            )

        if type(self).connector_class.splits is SourceConnector.splits:
            pytest.skip("The source cannot be divided.")
        found = run_watched(read, self.patience_seconds)
        if found is None:
            pytest.skip("The source cannot be divided with these props.")
        return found

    def test_its_own_offsets_may_be_altered(self, props: Mapping[str, str]) -> None:
        """A user may set any offset that the source produced, and reset it."""
        config = self.connector_class.config_class.parse(connector_props(self.connector_class, props))
        offsets = StoredOffsets()
        offsets.keep(self.read(props))
        for partition, offset in offsets.items():
            assert self.connector_class.alter_offsets(config, {json.dumps(partition): offset}) in (True, False)
            assert self.connector_class.alter_offsets(config, {json.dumps(partition): None}) in (True, False)

    def test_says_whether_it_resumes_exactly(self, props: Mapping[str, str]) -> None:
        """A source that is not tested for resuming exactly does not claim to."""
        config = self.connector_class.config_class.parse(connector_props(self.connector_class, props))
        support = self.connector_class.exactly_once_support(config)
        assert support is None or isinstance(support, ExactlyOnceSupport)
        assert self.resumes_exactly or support is not ExactlyOnceSupport.SUPPORTED

    def _check_none_lost(self, found: Sequence[SourceRecord], wanted: Sequence[SourceRecord], where: str) -> None:
        lost = Counter(map(self.identity, wanted)) - Counter(map(self.identity, found))
        assert not lost, (
            f"{_counted(lost)} lost {where}. Restarted there, the source must go on with the next record; the first "
            f"that is missing: {next(record for record in wanted if self.identity(record) in lost)}"
        )

    def _check_none_again(self, found: Sequence[SourceRecord], wanted: Sequence[SourceRecord], where: str) -> None:
        again = Counter(map(self.identity, found)) - Counter(map(self.identity, wanted))
        assert not again, (
            f"{_counted(again)} too many {where}. Restarted there, the source must not give again what it gave before; "
            f"the first that came twice: {next(record for record in found if self.identity(record) in again)}"
        )

    def _by_partition(self, records: Sequence[SourceRecord]) -> dict[str, list[object]]:
        """Group records by source partition: only the order within each matters."""
        found: dict[str, list[object]] = {}
        for record in records:
            found.setdefault(json.dumps(dict(record.source_partition)), []).append(self.identity(record))
        return found

    def _read_rest(
        self, props: Mapping[str, str], offsets: StoredOffsets, wanted: Sequence[SourceRecord]
    ) -> list[SourceRecord]:
        """Return the remaining records; for an endless source, those that arrived in time."""
        if self.record_count is None:
            return self.read(props, offsets=offsets)
        came: list[SourceRecord] = []
        count = len(wanted)
        missing = Counter(map(self.identity, wanted))

        def enough(records: Sequence[SourceRecord]) -> bool:
            came[:] = records[:count] if self.resumes_exactly else records
            if self.resumes_exactly:
                return len(records) >= count
            # What was read before may come again first.
            return not missing - Counter(map(self.identity, records))

        # Lost records do not arrive however long one waits; it is up to the caller to report them.
        with suppress(TimeoutError):
            self._read(props, offsets, enough)
        return came

    def _poll_until_idle(self, poll: Callable[[], object], alive: Callable[[], None]) -> None:
        deadline = time.monotonic() + 30
        while poll():
            alive()
            assert time.monotonic() < deadline, "Read to its end, the source still gives records."

    def _check_short(self, seconds: float) -> None:
        assert seconds < self.idle_seconds, (
            f"A poll without records took {seconds:.1f} s; wait with self.context.wait(seconds), which ends early."
        )


def _is_within(wanted: Sequence[object], found: Sequence[object]) -> bool:
    """Return whether ``found`` contains all of ``wanted`` in this order, possibly with others in between."""
    left: Iterator[object] = iter(found)
    return all(item in left for item in wanted)


def _counted(records: Counter[object]) -> str:
    return f"{records.total()} record{'' if records.total() == 1 else 's'}"
