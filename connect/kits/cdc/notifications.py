"""Notifications about snapshots: records of a topic, lines of the log, and how far they are."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from connect.config import MEDIUM, Config, ConfigRuleError, option
from connect.data import Offset, Schema, SourceRecord
from connect.errors import ConfigError
from connect.kits.cdc.java_keys import Key

__all__ = [
    "INITIAL",
    "Notification",
    "NotificationOptions",
    "Notifications",
    "SnapshotNotifications",
    "SnapshotProgress",
]

logger = logging.getLogger(__name__)
INITIAL: Final = "Initial Snapshot"
INCREMENTAL: Final = "Incremental Snapshot"
_MOST_KEY_CHARACTERS: Final = 200

_KEY: Final = Schema.struct({"id": Schema.string()}, name="io.debezium.connector.common.NotificationKey", version=1)
_VALUE: Final = Schema.struct(
    {
        "id": Schema.string(),
        "type": Schema.string(),
        "aggregate_type": Schema.string(),
        "additional_data": Schema.map(Schema.string(), Schema.string(), optional=True),
        "timestamp": Schema.int64(),
    },
    name="io.debezium.connector.common.Notification",
    version=1,
)


class NotificationOptions(Config):
    """Where notifications go."""

    notification_enabled_channels: tuple[Literal["sink", "log", "jmx"], ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Where the beginning, the progress and the end of snapshots are told: sink publishes them to "
        "notification.sink.topic.name, log logs them. jmx has no effect; metrics and the status tell them always.",
    )
    notification_sink_topic_name: str = option(
        default="", importance=MEDIUM, doc="The topic of the channel sink of notification.enabled.channels."
    )

    def check(self) -> Iterable[ConfigError]:
        """Require the topic of the channel sink."""
        if "sink" in self.notification_enabled_channels and not self.notification_sink_topic_name.strip():
            yield ConfigRuleError(
                "notification.enabled.channels has sink: name its topic in notification.sink.topic.name.",
                "notification.sink.topic.name",
            )


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification. All values of ``additional_data`` are text."""

    id: str
    type: str
    aggregate_type: str
    additional_data: dict[str, str]
    timestamp: int = field(default_factory=lambda: time.time_ns() // 1_000_000)


@dataclass(frozen=True, slots=True)
class SnapshotProgress:
    """How far a table is read: rows, of about how many (0 if that is not known), and chunks, of how many."""

    rows: int
    total_rows: int = 0
    chunks_read: int = 0
    chunks: int = 0
    is_read: bool = False

    @property
    def percent(self) -> int | None:
        """How much is read, at most 99 before the end; ``None`` if it is not known how much there is."""
        if self.is_read:
            return 100
        return min(99, 100 * self.rows // self.total_rows) if self.total_rows else None

    def told(self) -> dict[str, str]:
        """Return what notifications have of it beside Debezium's own keys."""
        told = {"rows_scanned": self.rows, "total_rows": self.total_rows or None, "progress_percent": self.percent}
        told |= {"chunk_index": self.chunks_read, "total_chunks": self.chunks or None}
        return {name: str(number) for name, number in told.items() if number is not None}


@dataclass(frozen=True, slots=True)
class SnapshotNotifications:
    """Makes the notifications of one kind of snapshot. ``connector`` is ``topic.prefix``."""

    connector: str
    kind: str = INCREMENTAL

    def started(self, identity: str | None, tables: str = "") -> Notification:
        """Return that a snapshot begins."""
        return self._made(identity, "STARTED", {"data_collections": tables} if tables else {})

    def resolved(self, identity: str | None, tables: str) -> Notification:
        """Return which tables it reads."""
        return self._made(identity, "DATA_COLLECTIONS_RESOLVED", {"data_collections": tables})

    def in_progress(
        self,
        identity: str | None,
        table: str,
        tables: str,
        last: Key | None = None,
        maximum: Key | None = None,
        *,
        progress: SnapshotProgress | None = None,
    ) -> Notification:
        """Return which table is being read, up to which of its keys, and how far that is, if it is known."""
        keys = {"last_processed_key": _text(last), "maximum_key": _text(maximum)} if last is not None else {}
        told = {"current_collection_in_progress": table, "data_collections": tables, **keys}
        told |= progress.told() if progress is not None else {}
        return self._made(identity, "IN_PROGRESS", told)

    def scan_completed(
        self, identity: str | None, table: str, rows: int, status: str, tables: str = ""
    ) -> Notification:
        """Return that a table was read, or why it was not."""
        told = {"scanned_collection": table, "total_rows_scanned": str(rows), "status": status}
        return self._made(identity, "TABLE_SCAN_COMPLETED", told | ({"data_collections": tables} if tables else {}))

    def paused(self, identity: str | None, tables: str) -> Notification:
        """Return that the snapshot was paused."""
        return self._made(identity, "PAUSED", {"data_collections": tables})

    def resumed(self, identity: str | None, tables: str) -> Notification:
        """Return that the snapshot goes on."""
        return self._made(identity, "RESUMED", {"data_collections": tables})

    def aborted(self, identity: str | None) -> Notification:
        """Return that the snapshot was stopped."""
        return self._made(identity, "ABORTED", {})

    def skipped(self, identity: str | None = None) -> Notification:
        """Return that there is no snapshot."""
        return self._made(identity, "SKIPPED", {})

    def completed(self, identity: str | None) -> Notification:
        """Return that all tables were read."""
        return self._made(identity, "COMPLETED", {})

    def _made(self, identity: str | None, kind: str, told: dict[str, str]) -> Notification:
        return Notification(identity or str(uuid.uuid4()), kind, self.kind, {**told, "connector_name": self.connector})


class Notifications:
    """Collects notifications, logs them, and makes records of them."""

    def __init__(self, options: NotificationOptions, partition: Offset) -> None:
        self._topic = options.notification_sink_topic_name.strip()
        self._publishes = "sink" in options.notification_enabled_channels
        self._logs = "log" in options.notification_enabled_channels
        self._partition = partition
        self._collected: list[Notification] = []

    def add(self, notification: Notification) -> None:
        """Take a notification over."""
        if self._logs:
            logger.info("%s: %s %s", notification.aggregate_type, notification.type, notification.additional_data)
        if self._publishes:
            self._collected.append(notification)

    def take(self, offset: Offset) -> list[SourceRecord]:
        """Return the records of the notifications since the last call, with the offset that is current."""
        collected, self._collected = self._collected, []
        return [self._record(notification, offset) for notification in collected]

    def _record(self, notification: Notification, offset: Offset) -> SourceRecord:
        value = {
            "id": notification.id,
            "type": notification.type,
            "aggregate_type": notification.aggregate_type,
            "additional_data": notification.additional_data,
            "timestamp": notification.timestamp,
        }
        record = SourceRecord(self._topic, value, _VALUE, {"id": notification.id}, _KEY)
        return record.replace(source_partition=self._partition, source_offset=offset)


def _text(key: Key | None) -> str:
    """Return a key as text. I8: a key is no secret of the connector's, but it is cut."""
    return ", ".join(map(str, key or ()))[:_MOST_KEY_CHARACTERS]
