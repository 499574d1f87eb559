"""The MongoDB source: it publishes the changes of documents, after a copy of those that exist if that is asked for."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from connect.data import Offset, Schema, SourceBatch, SourceRecord
from connect.errors import ConnectError, DataError, MissingError, RetriableError
from connect.kits.mongodb.failures import failure, is_lost_position, too_large
from connect.kits.mongodb.reading import ReadAhead
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.mongodb.source.config import LostToken, MongoSourceConfig, StartupMode

if TYPE_CHECKING:
    from connectors.mongodb.source.copying import CopiedBatch
    from connectors.mongodb.source.positions import Position
    from connectors.mongodb.source.stream import Item

__all__ = ["MongoSourceConnector", "MongoSourceTask"]

_log = logging.getLogger(__name__)
_IDLE_SECONDS: Final = 5.0
_FIRST_WAIT_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 30.0
_TEXT: Final = Schema.string()
_NO_VALUE: Final = Schema.bytes(optional=True)
_NO_NAMESPACE: Final = 26


class MongoSourceTask(SourceTask[MongoSourceConfig]):
    """Publishes events in the order of the change stream.

    The offset of a record is the resume token of its event: reading continues with the next one. Kill -9 at any time:
    what was not committed is read again, and published again unless the worker publishes exactly once. A copy
    continues after its last committed document, and the stream from the token that was taken before the copy.
    """

    def start(self) -> None:
        from bson.raw_bson import RawBSONDocument  # noqa: PLC0415 - the driver is loaded only where it is used

        from connectors.mongodb.source.positions import position_of, source_partition  # noqa: PLC0415
        from connectors.mongodb.source.records import RecordMaker  # noqa: PLC0415

        self._client = self.config.client(document_class=RawBSONDocument)
        self._partition = source_partition(self.config)
        self._maker = RecordMaker(self.config, self._partition)
        stored = self.context.offset_storage_reader.offset(self._partition)
        self._position: Position | None = None if stored is None else position_of(stored)
        self._offset: Offset | None = stored
        self._reader: ReadAhead[Item | CopiedBatch] | None = None
        self._taken: deque[Item | CopiedBatch] = deque()
        self._failures = 0
        self._beat_at = time.monotonic()
        self._beat: Offset | None = None
        self._is_at_end = False

    def poll(self) -> SourceBatch | list[SourceRecord]:
        from connectors.mongodb.source.copying import CopiedBatch  # noqa: PLC0415 - as above
        from connectors.mongodb.source.stream import StreamReader  # noqa: PLC0415

        if self._reader is None:
            stream = StreamReader(self._client, self.config, self._position)
            self._reader = ReadAhead(stream.read, self.context.wake)
        if not self._taken:
            try:
                self._taken.extend(self._reader.take(self.config.poll_max_batch_size))
            except Exception as error:
                self._reader = None
                raise self._told(error) from error
        if not self._taken:
            self.context.poll_when_readable([], _IDLE_SECONDS)
            return self._heartbeat()
        self._failures = 0
        items: list[Item] = []
        while self._taken:
            first = self._taken.popleft()
            if not isinstance(first, CopiedBatch):
                items.append(first)
            elif not items:
                return self._copied(first)
            else:
                self._taken.appendleft(first)
                break
        return self._records(items)

    def drained(self) -> bool:
        """Return whether the last that was read of the stream is that there are no more changes."""
        return self._is_at_end

    def stop(self) -> None:
        if (reader := getattr(self, "_reader", None)) is not None:
            reader.stop()
        if (client := getattr(self, "_client", None)) is not None:
            client.close()

    def _records(self, items: list[Item]) -> list[SourceRecord]:
        from connectors.mongodb.source.positions import position_of  # noqa: PLC0415

        records: list[SourceRecord] = []
        passed = None
        for item in items:
            record = self._record(item)
            if record is None:
                passed = item.offset
            else:
                records.append(record)
                passed = None
        if passed is not None:
            self.context.pass_offset(self._partition, passed)
        self._offset = items[-1].offset
        self._is_at_end = items[-1].is_end
        self._position = position_of(self._offset)
        if records:
            self._beat_at = time.monotonic()
            return records
        return self._heartbeat()

    def _copied(self, batch: CopiedBatch) -> SourceBatch | list[SourceRecord]:
        from connectors.mongodb.source.positions import position_of  # noqa: PLC0415
        from connectors.mongodb.source.stream import Item  # noqa: PLC0415

        try:
            made = self._maker.copied(batch)
        except DataError:
            made = None
        if made is None:
            # One by one, so that what does not fit concerns itself alone.
            count = len(batch.documents)
            return self._records([Item(batch.event_at(index), dict(batch.offset_at(index))) for index in range(count)])
        self._offset = batch.offset_at(-1)
        self._is_at_end = False
        self._position = position_of(self._offset)
        self._beat_at = time.monotonic()
        return made

    def _record(self, item: Item) -> SourceRecord | None:
        if item.event is None:
            return None
        try:
            return self._maker.record(item.event, item.offset)
        except DataError as error:
            return self._errant(item, item.event, error)

    def _errant(self, item: Item, event: bytes, error: DataError) -> SourceRecord | None:
        """Return the dead letter of an event that does not fit, if there is a topic for it; or raise."""
        if not self.config.is_tolerant:
            raise ConnectError(
                f"The event at {item.offset['_id']} cannot be published: {error} Set errors.tolerance=all to skip such "
                "events."
            ) from error
        if topic := self.config.dead_letter_topic:
            return self._maker.dead_letter(event, item.offset, topic)
        _log.error("Skipping the event at %s: %s", item.offset["_id"], error)
        return None

    def _heartbeat(self) -> list[SourceRecord]:
        """Return a heartbeat if it is time for one and the position has changed since the last."""
        interval = self.config.heartbeat_interval_ms
        now = time.monotonic()
        if not interval or self._offset is None or "copy" in self._offset or now - self._beat_at < interval / 1000:
            return []
        if self._beat is not None and self._beat["_id"] == self._offset["_id"]:
            return []
        self._beat_at, self._beat = now, self._offset
        token = self._offset["_id"]
        return [
            SourceRecord(
                self.config.heartbeat_topic_name,
                None,
                _NO_VALUE,
                token,
                _TEXT,
                source_partition=self._partition,
                source_offset={**self._offset, "HEARTBEAT": "true"},
            )
        ]

    # -- failures -------------------------------------------------------------------------------------------------

    def _told(self, error: Exception) -> Exception:
        """Return the error of the plugin API for one of the reader."""
        code = getattr(error, "code", None)
        if self._is_lost(error):
            return self._lost(error)
        if code == _NO_NAMESPACE:
            return MissingError(f"{self._watched} does not exist (yet): create it, or correct database and collection.")
        if (large := too_large(error)) is not None:
            return large
        told = failure(error, f"read the changes of {self._watched}")
        if isinstance(told, RetriableError):
            self._failures += 1
            wait = min(_FIRST_WAIT_SECONDS * 2 ** (self._failures - 1), _LONGEST_WAIT_SECONDS)
            return RetriableError(str(told), retry_after=wait)
        return told or error

    def _is_lost(self, error: Exception) -> bool:
        has_token = self._position is not None and self._position.token is not None
        return has_token and is_lost_position(error)

    def _lost(self, error: Exception) -> Exception:
        told = (
            f"The server no longer has the changes after the stored position ({error}). Its oplog was too small for "
            "the time that the connector was stopped or behind, or the offset is of another cluster."
        )
        if self.config.lost_token_action is LostToken.FAIL:
            return ConnectError(
                f"{told} The changes since then cannot be read any more. Enlarge the oplog (replSetResizeOplog), and "
                "set lost.token.action=copy_existing to copy the documents and go on, or lost.token.action=latest to "
                "go on with the next change."
            )
        self._start_over(told)
        return RetriableError(f"{told} Starting over, as lost.token.action asks for.", retry_after=0.01)

    def _start_over(self, told: str) -> None:
        from connectors.mongodb.source.positions import Position  # noqa: PLC0415

        is_copy = self.config.lost_token_action is LostToken.COPY_EXISTING
        _log.error("%s %s", told, "The documents are copied anew." if is_copy else "The changes since are lost.")
        self._position = Position(None, is_copying=is_copy)

    @property
    def _watched(self) -> str:
        config = self.config
        if not config.database:
            return "the deployment"
        return f"{config.database}.{config.collection}" if config.collection else f"the database {config.database}"


class MongoSourceConnector(SourceConnector[MongoSourceConfig]):
    """Publishes changes of documents in MongoDB."""

    task_class = MongoSourceTask
    watches = False

    @classmethod
    def exactly_once_support(cls, config: MongoSourceConfig) -> ExactlyOnceSupport:
        """Return whether reading resumes exactly: not within a copy whose pipeline changes the order of documents."""
        is_copied = config.mode is StartupMode.COPY_EXISTING or config.lost_token_action is LostToken.COPY_EXISTING
        if is_copied and not config.copies_in_order:
            return ExactlyOnceSupport.UNSUPPORTED
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: MongoSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Accept offsets with a resume token."""
        from connectors.mongodb.source.positions import position_of  # noqa: PLC0415

        for offset in offsets.values():
            if offset is not None:
                position_of(offset)
        return True
