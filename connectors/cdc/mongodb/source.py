"""The MongoDB connector of change data capture: a snapshot of documents, and then their changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from connect.data import Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.heartbeats import Heartbeat
from connect.kits.cdc.incremental_state import without_state
from connect.kits.cdc.measurements import CaptureLabels
from connect.kits.cdc.transactions import without_transaction
from connect.kits.mongodb.failures import failure, is_lost_position, too_large
from connect.kits.mongodb.reading import ReadAhead
from connect.measurement import Measurement
from connect.source import ExactlyOnceSupport, Signal, SourceConnector, SourceTask
from connectors.cdc.mongodb.config import MongoDbConfig, SnapshotMode

if TYPE_CHECKING:
    from connectors.cdc.mongodb.positions import Position
    from connectors.cdc.mongodb.stream import Item

__all__ = ["MongoDbConnector", "MongoDbTask"]

_log = logging.getLogger(__name__)
_IDLE_SECONDS: Final = 5.0
_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 30.0


class MongoDbTask(SourceTask[MongoDbConfig]):
    """Publishes the events of the change stream in its order.

    The offset of a record is the resume token of its event: reading continues with the next one. Kill -9 at any time:
    what was not committed is read again, and published again unless the worker publishes exactly once. A snapshot
    continues after its last committed document, and the stream from the token that was taken before the snapshot.
    """

    def start(self) -> None:
        from bson.raw_bson import RawBSONDocument  # noqa: PLC0415 - the driver is loaded only where it is used

        from connectors.cdc.mongodb.beside import BesideStream  # noqa: PLC0415
        from connectors.cdc.mongodb.events import DocumentEvents  # noqa: PLC0415
        from connectors.cdc.mongodb.positions import Position, position_of  # noqa: PLC0415

        config = self.config
        self._client = config.client(document_class=RawBSONDocument)
        self._partition: dict[str, Any] = {"server_id": config.topic_prefix}
        stored = self.context.offset_storage_reader.offset(self._partition)
        self._events = DocumentEvents(config, self._partition, stored or {})
        self._position: Position | None = None if stored is None else position_of(stored)
        if config.snapshot_mode is SnapshotMode.ALWAYS:
            self._position = Position(None, is_snapshot=True)
        self._offset: Offset = {} if stored is None else without_transaction(without_state(stored))
        self._beside = BesideStream(
            config, self._client, self._events, self._partition, stored or {}, self.context.wake
        )
        self._labels = CaptureLabels("mongodb", config.topic_prefix)
        self._reader: ReadAhead[Item] | None = None
        naming = config.naming()
        self._heartbeat = Heartbeat(
            naming.heartbeat_topic(), config.topic_prefix, self._partition, config.heartbeat_interval_ms
        )
        self._failures = 0
        self._is_at_end = False
        self._delay_s = config.snapshot_delay_ms / 1000 if stored is None else 0.0

    def poll(self) -> list[SourceRecord]:
        from connectors.cdc.mongodb.stream import StreamReader  # noqa: PLC0415

        if self._reader is None:
            if self._delay_s and not self.context.wait(self._delay_s):
                return []
            self._delay_s = 0.0
            stream = StreamReader(self._client, self.config, self._position)
            self._reader = ReadAhead(stream.read, self.context.wake)
        try:
            items = self._reader.take(self.config.max_batch_size)
        except Exception as error:
            self._reader = None
            raise self._told(error) from error
        records = self._records(items) if items else []
        now = time.monotonic()
        self._tend(records, now)
        if self._offset and "initsync" not in self._offset and self._heartbeat.is_due(now):
            records.append(self._heartbeat.record(time.time_ns() // 1_000_000, self._shown))
        if not records and not items:
            seconds = self._beside.seconds_left(now, self._heartbeat.seconds_left(now, _IDLE_SECONDS))
            self.context.poll_when_readable([], seconds)
        return records

    def take_signal(self, signal: Signal) -> None:
        """Take a signal that was sent by REST."""
        self._beside.take(signal, self._shown)

    def stored(self, offsets: Sequence[tuple[Offset, Offset]]) -> None:
        """Note that an offset is stored: signals of a file before it are done with."""
        for partition, offset in offsets:
            if partition == self._partition:
                self._beside.stored(offset)

    def remaining(self) -> Mapping[str, int]:
        """Return how many collections an incremental snapshot has still to read."""
        return self._beside.remaining()

    def measurements(self) -> Iterable[Measurement]:
        """Return how far the stream is behind, and how far a snapshot is."""
        is_connected = self._reader is not None and self._failures == 0
        return self._beside.measurements(self._labels, is_connected=is_connected)

    def drained(self) -> bool:
        """Return whether the last that was read of the stream is that there are no more changes."""
        return self._is_at_end and self._beside.is_done

    def stop(self) -> None:
        if (beside := getattr(self, "_beside", None)) is not None:
            beside.close()
        if (reader := getattr(self, "_reader", None)) is not None:
            reader.stop()
        if (client := getattr(self, "_client", None)) is not None:
            client.close()

    @property
    def _shown(self) -> Offset:
        """The offset with the state of incremental snapshots, and with the transaction at hand."""
        return self._events.with_transaction(self._beside.with_state(self._offset))

    def _tend(self, records: list[SourceRecord], now: float) -> None:
        """Do what is due beside reading: rows of incremental snapshots, signals and notifications."""
        if not self._offset:
            return
        if "initsync" not in self._offset:
            records += self._beside.due(self._offset)
        self._beside.look(now, self._offset)
        records += self._beside.told(self._offset)
        if self._beside.has_news:
            self.context.pass_offset(self._partition, self._shown)
            self._beside.has_news = False

    def _records(self, items: list[Item]) -> list[SourceRecord]:
        from connectors.cdc.mongodb.positions import position_of  # noqa: PLC0415

        self._failures = 0
        records: list[SourceRecord] = []
        is_passed = False
        for item in items:
            made = self._made(item)
            records += made
            is_passed = not made
            self._offset = item.offset
        if is_passed:
            self.context.pass_offset(self._partition, self._shown)
        self._position = position_of(self._offset)
        self._is_at_end = items[-1].is_end
        return records

    def _made(self, item: Item) -> list[SourceRecord]:
        beside = self._beside
        if item.event is None:
            beside.passed(item)
            return self._events.end_transaction(beside.with_state(item.offset)) if item.is_end else []
        if item.namespace is not None:
            beside.read_first(item)
            return [self._events.read(item.event, *item.namespace, item.marker, beside.with_state(item.offset))]
        due = beside.before(item, self._offset)
        previous = self._shown if self._offset else beside.with_state(item.offset)
        return due + self._events.changed(item.event, previous, beside.with_state(item.offset))

    def _told(self, error: Exception) -> Exception:
        """Return the error of the plugin API for one of the reader."""
        has_token = self._position is not None and self._position.token is not None
        if has_token and is_lost_position(error):
            return self._lost(error)
        if (told := too_large(error)) is not None:
            return told
        known = failure(error, "read the changes")
        if not isinstance(known, RetriableError):
            return known or error
        self._failures += 1
        wait = min(_FIRST_WAIT * 2 ** (self._failures - 1), _LONGEST_WAIT)
        return RetriableError(str(known), retry_after=wait)

    def _lost(self, error: Exception) -> Exception:
        from connectors.cdc.mongodb.positions import Position  # noqa: PLC0415

        told = (
            f"The server no longer has the changes after the stored position ({error}). Its oplog was too small for "
            "the time that the connector was stopped or behind, or the offset is of another cluster."
        )
        if self.config.snapshot_mode is not SnapshotMode.WHEN_NEEDED:
            return ConnectError(
                f"{told} Enlarge the oplog (replSetResizeOplog), and set snapshot.mode=when_needed to read the "
                "documents again and go on."
            )
        _log.error("%s The documents are read again, as snapshot.mode=when_needed asks for.", told)
        self._position = Position(None, is_snapshot=True)
        return RetriableError(f"{told} Reading the documents again.", retry_after=0.01)


class MongoDbConnector(SourceConnector[MongoDbConfig]):
    """Captures the changes of collections of MongoDB, as Debezium does."""

    task_class = MongoDbTask
    watches = False

    @classmethod
    def exactly_once_support(cls, config: MongoDbConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Return that reading resumes exactly."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: MongoDbConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Accept offsets with a resume token."""
        from connectors.cdc.mongodb.positions import position_of  # noqa: PLC0415

        for offset in offsets.values():
            if offset is not None:
                position_of(offset)
        return True
