"""The contract of sink connectors, as a test class to inherit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import pytest

from connect.data import SinkBatch, SinkRecord
from connect.errors import RetriableError
from connect.plugin import Plugin
from connect.sink import SinkConnector
from connect.testing.plugin_contract import PluginTests
from connect.testing.props import connector_props
from connect.testing.samples import sink_records
from connect.testing.sink_kill import KillMoment, run_sink_until_killed
from connect.testing.sink_run import SinkTaskRun, TopicLog, run_sink, sink_task_class, sink_task_configs

__all__ = ["SinkConnectorTests"]

_BATCH = 3


class SinkConnectorTests(PluginTests):
    """Tests of a sink connector. Set its class, and the fixtures ``props`` and ``written``, which reads the target::

        class TestLines(SinkConnectorTests):
            connector_class = LinesSinkConnector

            @pytest.fixture
            def props(self, tmp_path):
                return {"file": str(tmp_path / "out.txt")}

            @pytest.fixture
            def written(self, props):
                return lambda: Path(props["file"]).read_text().splitlines()

    Every test starts with an empty target. By default a dozen texts are written and expected back unchanged; override
    ``records`` and :meth:`expected` for a sink of other values. Define the connector in a module, not in a function,
    because it also runs in another process, which is killed.
    """

    connector_class: ClassVar[type[SinkConnector[Any]]]

    exactly_once: ClassVar[bool] = False
    """Whether each record is in the target exactly once, even after a kill; if not, it may be there more often."""

    @pytest.fixture
    def plugin_class(self) -> type[Plugin[Any]]:
        """The connector."""
        return self.connector_class

    @pytest.fixture
    def written(self) -> Callable[[], Iterable[Any]]:
        """A function that returns the content of the target, one item per record. Override it.

        An item is what :meth:`expected` returns for the record: a text, a row as a tuple, an object as a dict and so
        on.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `written` that reads the target.")

    @pytest.fixture
    def records(self) -> Sequence[SinkRecord]:
        """The records to write. They must be distinguishable in the target."""
        return sink_records([f"record {number}" for number in range(12)], partitions=2)

    @pytest.fixture
    def outage(self) -> AbstractContextManager[object] | None:
        """A context manager during which the target is unreachable, so that ``put`` must ask to be called again."""
        return None

    def expected(self, record: SinkRecord) -> object:
        """Return the item in ``written`` for a record: by default its value."""
        return record.value

    def test_everything_put_is_written_and_committed(
        self, props: Mapping[str, str], records: Sequence[SinkRecord], written: Callable[[], Iterable[Any]]
    ) -> None:
        """After an ordinary run the target has every record once, and all offsets are committed."""
        log = TopicLog(records)
        run_sink(self.connector_class, props, log, batch_size=_BATCH)
        assert _counted(written()) == self._wanted(records)
        assert log.committed == _ends(records)

    def test_what_may_be_committed_is_durable(
        self, props: Mapping[str, str], records: Sequence[SinkRecord], written: Callable[[], Iterable[Any]]
    ) -> None:
        """As soon as ``pre_commit`` allows an offset, the records before it are in the target."""
        run = self._started(props, TopicLog(records))
        try:
            while run.put(_BATCH):
                committed = run.commit()
                durable = [item for item in records if item.original_offset < committed.get(item.origin, 0)]
                missing = self._wanted(durable) - _counted(written())
                assert not missing, f"{_shown(missing)} are committed and not in the target."
        finally:
            run.stop()

    def test_a_commit_without_records_is_harmless(
        self, props: Mapping[str, str], records: Sequence[SinkRecord], written: Callable[[], Iterable[Any]]
    ) -> None:
        """Offsets are committed on a schedule; if nothing was put, there is nothing to commit."""
        run = self._started(props, TopicLog(records))
        assert run.commit() == {}
        run.put(len(records))
        run.commit()
        run.commit()
        run.stop()
        self._check(written(), records)

    def test_an_empty_put_writes_nothing(
        self, props: Mapping[str, str], records: Sequence[SinkRecord], written: Callable[[], Iterable[Any]]
    ) -> None:
        """The runtime puts an empty batch when only time has passed."""
        run = self._started(props, TopicLog(records))
        run.put_nothing()
        run.put(_BATCH)
        run.put_nothing()
        run.commit()
        before = _counted(written())
        run.put_nothing()
        run.commit()
        assert _counted(written()) == before
        run.stop()

    def test_partitions_come_and_go(
        self, props: Mapping[str, str], records: Sequence[SinkRecord], written: Callable[[], Iterable[Any]]
    ) -> None:
        """In a rebalance some partitions are closed and opened while the others continue."""
        log = TopicLog(records)
        run = self._started(props, log)
        run.put(_BATCH)
        for partition in log.partitions:
            run.close([partition])
            run.put(_BATCH)
            run.open([partition])
        while run.put(_BATCH):
            run.commit()
        run.close(log.partitions)
        run.open(log.partitions)
        run.stop()
        self._check(written(), records)

    @pytest.mark.parametrize("moment", KillMoment)
    def test_nothing_is_lost_when_it_is_killed(
        self,
        props: Mapping[str, str],
        records: Sequence[SinkRecord],
        written: Callable[[], Iterable[Any]],
        moment: KillMoment,
    ) -> None:
        """Tasks are killed with SIGKILL at later and later moments; then a last one runs to completion."""
        log = TopicLog(records)
        for batches in range(1, len(records) // _BATCH + 1):
            run_sink_until_killed(self.connector_class, props, log, moment, batches=batches, batch_size=_BATCH)
        run_sink(self.connector_class, props, log, batch_size=_BATCH)
        self._check(written(), records)

    def test_a_task_may_be_given_records_again(
        self, props: Mapping[str, str], records: Sequence[SinkRecord], written: Callable[[], Iterable[Any]]
    ) -> None:
        """A successor that receives everything again loses nothing; an exactly-once sink duplicates nothing either."""
        run_sink(self.connector_class, props, records)
        run_sink(self.connector_class, props, records, batch_size=_BATCH)
        self._check(written(), records)

    def test_a_batch_is_put_again_after_an_outage(
        self,
        props: Mapping[str, str],
        records: Sequence[SinkRecord],
        written: Callable[[], Iterable[Any]],
        outage: AbstractContextManager[object] | None,
    ) -> None:
        """During an outage ``put`` raises ``RetriableError``; afterwards it accepts the same batch."""
        if outage is None:
            pytest.skip("There is no fixture `outage` that takes the target away.")
        log = TopicLog(records)
        run = self._started(props, log)
        batch = SinkBatch.from_records(records)[0]
        with outage:
            for _ in range(2):
                with pytest.raises(RetriableError):
                    run.task.put(batch)
        while run.put(_BATCH):
            run.commit()
        run.stop()
        self._check(written(), records)

    @pytest.mark.parametrize("max_tasks", [1, 2])
    def test_tasks_divide_the_partitions(
        self,
        props: Mapping[str, str],
        records: Sequence[SinkRecord],
        written: Callable[[], Iterable[Any]],
        max_tasks: int,
    ) -> None:
        """Task configs respect ``max_tasks``, and tasks with one partition each write everything together."""
        log = TopicLog(records)
        assert 1 <= len(sink_task_configs(self.connector_class, props, log, max_tasks)) <= max_tasks
        run_sink(self.connector_class, props, log, max_tasks=max_tasks)
        self._check(written(), records)

    def test_stop_may_be_called_again(self, props: Mapping[str, str], records: Sequence[SinkRecord]) -> None:
        """Calling ``stop`` twice has the same effect as calling it once."""
        run = self._started(props, TopicLog(records))
        run.put(_BATCH)
        run.stop()
        run.task.stop()

    def test_its_offsets_may_be_altered(self, props: Mapping[str, str], records: Sequence[SinkRecord]) -> None:
        """A user may set or reset the offset of any partition."""
        given = connector_props(self.connector_class, {"topics": records[0].original_topic, **props})
        config = self.connector_class.config_class.parse(given)
        for partition in TopicLog(records).partitions:
            for offset in (0, 1, None):
                assert self.connector_class.alter_offsets(config, {partition: offset}) in (True, False)

    def _started(self, props: Mapping[str, str], log: TopicLog) -> SinkTaskRun:
        config, *_ = sink_task_configs(self.connector_class, props, log)
        run = SinkTaskRun(sink_task_class(self.connector_class), config, log)
        run.start(log.partitions)
        return run

    def _check(self, found: Iterable[Any], records: Sequence[SinkRecord]) -> None:
        in_target, wanted = _counted(found), self._wanted(records)
        assert not wanted - in_target, f"Lost: {_shown(wanted - in_target)}"
        strange = in_target.keys() - wanted.keys()
        assert not strange, f"In the target, though no record is expected to look so: {_shown(strange)}"
        if self.exactly_once:
            assert in_target == wanted, f"Doubled: {_shown(in_target - wanted)}"

    def _wanted(self, records: Iterable[SinkRecord]) -> Counter[_Item]:
        return _counted(map(self.expected, records))


class _Item:
    """A countable item of the target, such as a dict; equal if Python finds the values equal."""

    def __init__(self, value: object) -> None:
        self.value = value
        self._frozen = _frozen(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Item) and self._frozen == other._frozen

    def __hash__(self) -> int:
        return hash(self._frozen)

    def __repr__(self) -> str:
        return repr(self.value)


def _frozen(value: object) -> object:
    match value:
        case Mapping():
            return "map", frozenset((_frozen(key), _frozen(item)) for key, item in value.items())
        case list() | tuple():
            return "array", tuple(map(_frozen, value))
        case set() | frozenset():
            return "set", frozenset(map(_frozen, value))
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value


def _counted(items: Iterable[object]) -> Counter[_Item]:
    return Counter(map(_Item, items))


def _shown(items: Iterable[_Item]) -> str:
    return ", ".join(sorted(map(repr, items)))


def _ends(records: Sequence[SinkRecord]) -> dict[Any, int]:
    return {
        record.origin: record.original_offset + 1
        for record in sorted(records, key=lambda record: record.original_offset)
    }
