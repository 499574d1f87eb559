"""Arrivals: the records of a topic partition as they come, and where each of them belongs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from connect.data import Constant, SinkBatch, SinkRecord
from connect.errors import DataError
from connect.kits.files.record_time import RecordTimes
from connect.kits.files.rotation import RotationRules, Rows
from connectors.objects.open_files import Uploads
from connectors.objects.placing import Placing, strands_of
from connectors.objects.record_views import RecordView
from connectors.objects.schema_changes import SchemaChanges

__all__ = ["Arrivals", "Plan"]

Report = Callable[[SinkRecord, DataError], None]
Places = Sequence[str | DataError]


@dataclass(frozen=True, slots=True)
class Plan:
    """What all writers of a task have in common."""

    rules: RotationRules
    placing: Placing
    times: RecordTimes
    changes: SchemaChanges
    views: Sequence[RecordView]
    uploads: Uploads
    publishers: Executor
    on_null: str
    """``write``, ``ignore`` or ``fail``; ``keep`` where records without a value are as good as others."""
    patience: float
    """For how many seconds a put may wait for files to be published."""
    report: Report
    flush_reports: Callable[[], None]
    """Waits until all reports are durable."""
    skip_null: Callable[[SinkRecord], None]

    @property
    def is_enveloped(self) -> bool:
        """Whether files have whole records, of whatever schema."""
        return self.on_null == "keep"


class Arrivals:
    """Gives the records of one partition, which come in order, their places; what is bad is given up once."""

    def __init__(self, plan: Plan, partition: int) -> None:
        self._plan = plan
        self._partition = partition
        self._passed = 0
        """Up to this offset, all records were seen, and bad ones given up."""
        self._given_up: set[int] = set()
        """The offsets of bad records from there on, which are not found in their order."""

    def placed(
        self, batch: SinkBatch, now_ms: int, revised: Callable[[SinkBatch, Places], Places] | None = None
    ) -> tuple[SinkBatch, Rows]:
        """Return the records that are to be written, and where. ``revised`` changes places that depend on the clock."""
        batch = self._with_values(batch)
        return (batch, Rows((), (), (), ())) if not len(batch) else self._placed(batch, now_ms, revised)

    def report(self, record: SinkRecord, error: DataError) -> None:
        """Give a record up, unless that was done before."""
        if self._is_new(record):
            self._plan.report(record, error)
            self._given_up.add(record.original_offset)

    def passed(self, offset: int) -> None:
        """Remember that all records before an offset were written or given up."""
        self._passed = max(self._passed, offset)
        self._given_up = {at for at in self._given_up if at >= self._passed}

    def _is_new(self, record: SinkRecord) -> bool:
        return record.original_offset >= self._passed and record.original_offset not in self._given_up

    def _with_values(self, batch: SinkBatch) -> SinkBatch:
        """Return the records without those that have no value and are not written."""
        if self._plan.on_null in ("write", "keep") or not batch.value.has_nulls():
            return batch
        empty = [at for at, value in enumerate(batch.value.values()) if value is None]
        for at in empty:
            (record,) = batch.slice(at, at + 1)
            if self._plan.on_null == "fail":
                self.report(
                    record,
                    DataError("The record has no value: behavior.on.null.values says whether to ignore or write such."),
                )
            elif self._is_new(record):
                self._plan.skip_null(record)
                self._given_up.add(record.original_offset)
        missing = set(empty)
        return batch.take([at for at in range(len(batch)) if at not in missing])

    def _placed(
        self, batch: SinkBatch, now_ms: int, revised: Callable[[SinkBatch, Places], Places] | None
    ) -> tuple[SinkBatch, Rows]:
        """Return the records that have a place, and their places; the others are given up."""
        times = self._times(batch, now_ms)
        places = self._plan.placing.places(batch, self._partition, times)
        if revised is not None and self._plan.placing.by_clock:
            places = revised(batch, places)
        if bad := self._refused(places, times):
            for at, reason in sorted(bad.items()):
                (record,) = batch.slice(at, at + 1)
                self.report(record, reason)
            kept = [at for at in range(len(batch)) if at not in bad]
            batch = batch.take(kept)
            places, times = [places[at] for at in kept], [times[at] for at in kept]
        return batch, Rows(batch.original_offsets, self._strands(batch), places, times)  # type: ignore[arg-type]

    def _refused(self, places: Places, times: Sequence[Any]) -> dict[int, DataError]:
        """Return what is wrong with records that have no place, or no time where that is needed."""
        found: dict[int, DataError] = {}
        if self._plan.rules.time_ms is not None and not self._plan.times.by_clock:
            found = {at: time for at, time in enumerate(times) if isinstance(time, DataError)}
        if isinstance(places, Constant) and not isinstance(places.value, DataError):
            return found
        return found | {at: place for at, place in enumerate(places) if isinstance(place, DataError)}

    def _strands(self, batch: SinkBatch) -> Sequence[Hashable]:
        """Return what tells apart records that cannot share a file: their schemas."""
        plan = self._plan
        if plan.placing.by_key:
            # The last record of a key counts, whatever its schema is.
            return Constant(None, len(batch))
        first, *beside = plan.views
        own = first.schema_key(batch) if plan.is_enveloped else plan.changes.strand(batch.value.schema)
        key = (own, *(view.schema_key(batch) for view in beside))
        return strands_of(batch, key, splits_nulls=plan.on_null == "write")

    def _times(self, batch: SinkBatch, now_ms: int) -> Sequence[Any]:
        times = self._plan.times
        if times.by_clock:
            return Constant(now_ms, len(batch))
        needed = self._plan.rules.time_ms is not None or self._plan.placing.by_time
        if not needed:
            return Constant(0, len(batch))
        values = batch.value.values()
        found: list[Any] = times.of(values, batch.timestamps)
        if self._plan.on_null == "write":
            # A record without a value has no field that tells its time.
            for at, value in enumerate(values):
                found[at] = (batch.timestamps[at] or 0) if value is None else found[at]
        return found
