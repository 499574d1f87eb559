"""What a capture measures of itself, in the form in which the worker exports it under Debezium's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from connect.measurement import Measurement

__all__ = ["CaptureLabels", "SnapshotNumbers", "StreamNumbers"]


@dataclass(frozen=True, slots=True)
class CaptureLabels:
    """The labels of all measurements: the database as Debezium calls it, and ``topic.prefix``."""

    plugin: str
    prefix: str

    def of(self, context: str, table: str | None = None) -> tuple[tuple[str, str], ...]:
        """Return the labels of a part of the work, and of a table."""
        labels = (("plugin", self.plugin), ("name", self.prefix), ("context", context))
        return labels if table is None else (*labels, ("table", table))


@dataclass(frozen=True, slots=True)
class StreamNumbers:
    """How the stream is doing. A time that is not known yet is -1; what is ``None`` is not measured.

    ``log_position`` is the place after the last whole transaction in the log's file, if the log has files.
    """

    is_connected: bool
    lag_seconds: float = -1.0
    lag_bytes: int | None = None
    since_last_event_seconds: float = -1.0
    creates: int = 0
    updates: int = 0
    deletes: int = 0
    others: int = 0
    transactions: int = 0
    captured_tables: int | None = None
    log_position: int | None = None

    def measurements(self, labels: CaptureLabels) -> Iterator[Measurement]:
        """Yield the measurements."""
        own = labels.of("streaming")
        events = self.creates + self.updates + self.deletes + self.others
        yield Measurement("cdc_connected", int(self.is_connected), "Whether changes are streamed.", own)
        yield Measurement("cdc_lag_seconds", self.lag_seconds, "From the commit of the last change until it came.", own)
        if self.lag_bytes is not None:
            yield Measurement("cdc_lag_bytes", self.lag_bytes, "Log that is not passed on yet.", own)
        since = self.since_last_event_seconds
        yield Measurement("cdc_since_last_event_seconds", since, "Since the commit of the last change.", own)
        yield Measurement("cdc_events_total", events, "Changes that were streamed.", own)
        yield Measurement("cdc_creates_total", self.creates, "Insertions that were streamed.", own)
        yield Measurement("cdc_updates_total", self.updates, "Updates that were streamed.", own)
        yield Measurement("cdc_deletes_total", self.deletes, "Deletions that were streamed.", own)
        yield Measurement("cdc_transactions_total", self.transactions, "Transactions that were streamed.", own)
        if self.captured_tables is not None:
            yield Measurement("cdc_captured_tables", self.captured_tables, "Tables that are captured.", own)
        if self.log_position is not None:
            yield Measurement("cdc_log_position", self.log_position, "Place in the log's file.", own)


@dataclass(frozen=True, slots=True)
class SnapshotNumbers:
    """How the snapshot is doing, the first one or an incremental one."""

    is_running: bool = False
    is_paused: bool = False
    is_completed: bool = False
    tables: int = 0
    remaining_tables: int = 0
    seconds: float = 0.0
    rows: Mapping[str, int] = field(default_factory=dict)
    estimated_rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows the tables have, as far as the database knows; 0 or less if it does not."""
    pieces: int = 0
    pieces_read: int = 0

    @property
    def progress(self) -> float:
        """The share of the rows that was read, at most 0.99 before the end; -1 if their number is not known."""
        if not self.is_running:
            return 1.0 if self.is_completed else -1.0
        known = [table for table, count in self.estimated_rows.items() if count > 0]
        if not known:
            return -1.0
        total = sum(self.estimated_rows[table] for table in known)
        return min(0.99, sum(min(self.rows.get(table, 0), self.estimated_rows[table]) for table in known) / total)

    def measurements(self, labels: CaptureLabels) -> Iterator[Measurement]:
        """Yield the measurements."""
        own = labels.of("snapshot")
        yield Measurement("cdc_snapshot_running", int(self.is_running), "Whether a snapshot is being read.", own)
        yield Measurement("cdc_snapshot_paused", int(self.is_paused), "Whether it is paused.", own)
        yield Measurement("cdc_snapshot_completed", int(self.is_completed), "Whether it was read whole.", own)
        yield Measurement("cdc_snapshot_tables", self.tables, "Tables of the snapshot.", own)
        remaining = self.remaining_tables
        yield Measurement("cdc_snapshot_remaining_tables", remaining, "Tables that are not read whole.", own)
        yield Measurement("cdc_snapshot_seconds", self.seconds, "How long it has taken so far.", own)
        yield Measurement("cdc_snapshot_progress_ratio", self.progress, "Share of the rows read; -1 if unknown.", own)
        yield Measurement("cdc_snapshot_chunks", self.pieces, "Chunks into which the tables are divided.", own)
        yield Measurement("cdc_snapshot_chunks_read", self.pieces_read, "Chunks that were read whole.", own)
        for table, count in self.estimated_rows.items():
            told = labels.of("snapshot", table)
            yield Measurement(
                "cdc_snapshot_estimated_rows", count, "Rows of the table, as the database estimates.", told
            )
        for table, count in self.rows.items():
            told = labels.of("snapshot", table)
            yield Measurement("cdc_snapshot_rows_total", count, "Rows of the table that were read.", told)
