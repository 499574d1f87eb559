"""Open spans: files that are being written and end together."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from connect.data import ArrowColumn, Constant, Schema, SinkBatch
from connect.errors import DataError
from connect.kits.files.rotation import Reason, Rows, Span, due_by_clock
from connectors.objects.arrivals import Arrivals, Plan
from connectors.objects.open_files import FileGroup, KeyFile, Uploads
from connectors.objects.placing import TOMBSTONE
from connectors.objects.schema_changes import Change, projected

__all__ = ["OpenSpan"]

PathOf = Callable[[str, int], Callable[[str, str], str]]
"""Names the files of the same records by their place, and the offset of the first one; and each of them by the infix
and the extension of its kind."""


@dataclass(slots=True)
class OpenSpan:
    """A span, its files, and the schemas these have."""

    plan: Plan
    uploads: Uploads
    path_of: PathOf
    span: Span
    files: dict[tuple[Hashable, str], FileGroup | KeyFile] = field(default_factory=dict)
    schemas: dict[Hashable, Schema | None] = field(default_factory=dict)
    places: list[tuple[int, str]] = field(default_factory=list)
    """From which offset on records went to which place, by the clock."""
    held: int = 0
    """The bytes in memory."""
    ending: Reason | None = None

    def write(self, batch: SinkBatch, rows: Rows, first: int, arrivals: Arrivals) -> None:
        """Write records that were admitted, each file's together."""
        if isinstance(rows.places, Constant) and isinstance(rows.strands, Constant):
            self._write_file(rows.strands.value, rows.places.value, batch, arrivals)
            return
        chosen: dict[tuple[Hashable, str], list[int]] = {}
        stop = first + len(batch)
        for at, file in enumerate(zip(rows.strands[first:stop], rows.places[first:stop], strict=True)):
            chosen.setdefault(file, []).append(at)
        batch = self._converted(batch.take([at for indices in chosen.values() for at in indices]))
        stop = 0
        for (strand, place), indices in chosen.items():
            start, stop = stop, stop + len(indices)
            self._write_file(strand, place, batch.slice(start, stop), arrivals)

    def _converted(self, batch: SinkBatch) -> SinkBatch:
        """Return records that go to several files, converted together for formats of columns: of few records each time
        would cost far more.
        """
        if not self.plan.views[0].format.needs_struct or batch.value.schema is None:
            return batch
        try:
            return batch.replace(value=ArrowColumn.of(batch.value))
        except DataError:
            # Which records cannot be converted is found file by file.
            return batch

    def _write_file(self, strand: Hashable, place: str, batch: SinkBatch, arrivals: Arrivals) -> None:
        if self.plan.placing.by_clock and (not self.places or self.places[-1][1] != place):
            self.places.append((batch.original_offsets[0], place))
        try:
            self._write_rows(strand, place, batch)
        except DataError as error:
            if len(batch) == 1:
                (record,) = batch
                arrivals.report(record, error)
                # It does not count for flush.size.
                self.span.strands[strand].records -= 1
                return
            middle = len(batch) // 2
            self._write_file(strand, place, batch.slice(0, middle), arrivals)
            self._write_file(strand, place, batch.slice(middle, len(batch)), arrivals)

    def _write_rows(self, strand: Hashable, place: str, batch: SinkBatch) -> None:
        key = (strand, place)
        if strand != TOMBSTONE and not self.plan.is_enveloped:
            batch = self._in_schema(batch)
        group = self.files.get(key)
        is_new = group is None
        if group is None:
            group = self._new_group(strand, place, batch)
        before = group.held
        try:
            self.span.bytes += group.write(batch)
        except DataError:
            if is_new:
                group.discard()
            raise
        self.files[key] = group
        self.held += group.held - (0 if is_new else before)

    def _in_schema(self, batch: SinkBatch) -> SinkBatch:
        schema = batch.value.schema
        strand = self.plan.changes.strand(schema)
        current = self.schemas.setdefault(strand, schema)
        if self.plan.changes.change(current, schema) is Change.WRITE or current is None:
            return batch
        return batch.replace(value=projected(batch.value, current))

    def _new_group(self, strand: Hashable, place: str, batch: SinkBatch) -> FileGroup | KeyFile:
        views = self.plan.views[1:] if strand == TOMBSTONE else self.plan.views
        named = self.path_of(place, batch.original_offsets[0])
        paths = [named(view.infix, view.format.extension) for view in views]
        if self.plan.placing.by_key:
            return KeyFile(self.uploads, views[0], paths[0])
        return FileGroup(self.uploads, views, batch, paths)

    def rotates(self, batch: SinkBatch) -> bool:
        """Whether the schema of records ends these files; raises nothing: bad ones are found when written."""
        if self.plan.changes.compatibility == "NONE" or self.plan.is_enveloped:
            return False
        current = self.schemas.get(self.plan.changes.strand(batch.value.schema))
        try:
            change = self.plan.changes.change(current, batch.value.schema)
        except DataError:
            return False
        return change is Change.ROTATE and bool(self.files)

    def is_full(self) -> bool:
        """Whether a file has the records of flush.size, without those that were given up."""
        least = self.plan.rules.records or 0
        return any(strand.records >= least for strand in self.span.strands.values())

    def send_early(self, least: int) -> None:
        """Send what waits in memory, where it is enough for a part."""
        for group in self.files.values():
            if group.held >= least:
                group.send_early(least)
        self.held = sum(group.held for group in self.files.values())

    def due_ms(self) -> int | None:
        """Return when the clock next ends these files; ``None`` if it does not."""
        rules, span = self.plan.rules, self.span
        due = [] if span.scheduled_ms is None else [span.scheduled_ms]
        if rules.idle_ms is not None:
            due.append(span.last_ms + rules.idle_ms)
        if rules.time_ms is not None and self.plan.times.by_clock:
            due.append(span.opened_ms + rules.time_ms)
        if self.ending is not None:
            due.append(span.opened_ms)
        return min(due, default=None)

    def reason(self, now_ms: int) -> Reason | None:
        """Return why these files end now, whatever records come."""
        rules = self.plan.rules
        reason = self.ending or due_by_clock(rules, self.span, now_ms)
        if reason is None and self.plan.times.by_clock and rules.time_ms is not None:
            oldest = min((strand.first_time for strand in self.span.strands.values()), default=now_ms)
            reason = Reason.TIME if now_ms - oldest >= rules.time_ms else None
        return reason

    def discard(self) -> None:
        """Give the files up."""
        for group in self.files.values():
            group.discard()
