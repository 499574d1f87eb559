"""What goes on beside the change stream: incremental snapshots, signals, notifications, and how far everything is.

=================================================  ==================================================================
kill -9 here                                       then
=================================================  ==================================================================
after a signal was taken, before an offset with    one of the collection, the topic or the file is taken again; one
it is stored                                       sent by REST is forgotten
between two rows of a chunk                        reading goes on after the last row whose offset is stored
between a chunk and the changes after it           the chunk is read again as of a later time
=================================================  ==================================================================
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from bson import Timestamp
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from connect.data import Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.incremental import IncrementalSnapshots
from connect.kits.cdc.incremental_state import IncrementalState
from connect.kits.cdc.measurements import CaptureLabels, SnapshotNumbers, StreamNumbers
from connect.kits.cdc.notifications import INITIAL, Notifications, SnapshotNotifications
from connect.kits.cdc.signals.actions import ExecuteSnapshot
from connect.kits.cdc.signals.signals import Signals
from connect.kits.mongodb.failures import failure
from connect.kits.mongodb.json_forms import json_format
from connect.measurement import Measurement
from connect.source import Signal
from connectors.cdc.mongodb.config import MongoDbConfig, SnapshotMode
from connectors.cdc.mongodb.incremental import DocumentChunks, before, table_of
from connectors.cdc.mongodb.positions import position_of
from connectors.cdc.mongodb.stream import captured_collections

if TYPE_CHECKING:
    from connectors.cdc.mongodb.events import DocumentEvents
    from connectors.cdc.mongodb.stream import Item

__all__ = ["BesideStream"]

_relaxed: Final = json_format("RelaxedJson")
_SOON_SECONDS: Final = 0.1
_INCREMENTAL: Final = "incremental"


class BesideStream:
    """Used by the task's thread alone; chunks are read in a thread of their own."""

    def __init__(
        self,
        config: MongoDbConfig,
        client: MongoClient[Any],
        events: DocumentEvents,
        partition: Offset,
        stored: Offset,
        wake: Callable[[], None],
    ) -> None:
        self._config = config
        self._client = client
        self._events = events
        self._notifications = Notifications(config, partition)
        self._chunks = DocumentChunks(client, lambda identity: events.key(identity)["id"], wake)
        self._snapshots = IncrementalSnapshots(
            IncrementalState.of(stored),
            self._chunks,
            config.incremental_snapshot_chunk_size,
            self._notifications.add,
            SnapshotNotifications(config.topic_prefix),
        )
        self._signals = Signals(config, config.topic_prefix, self._snapshots, self)
        self._kept = self._snapshots.state
        self._state = self._kept.to_offset()
        self._offset: Offset = stored
        self._signals_at: Offset | None = None
        self._position: Timestamp | None = None
        self._first = _FirstSnapshot(self._notifications, config)
        self._is_first = not stored
        self._numbers: dict[str, int] = dict.fromkeys(("insert", "update", "replace", "delete"), 0)
        self._transactions = 0
        self._last_ms = 0
        self._lag_s = -1.0
        self.has_news = False
        """Whether the state has changed since the task has asked: offsets without records have to carry it too."""

    # -- the target of signals --------------------------------------------------------------------------------------

    def captured_tables(self) -> Sequence[str]:
        """Return the names of the captured collections, for signals."""
        if self._config.snapshot_mode is SnapshotMode.INITIAL_ONLY:
            raise ConnectError(
                "With snapshot.mode=initial_only no changes are streamed, and a snapshot cannot be read beside them."
            )
        try:
            return [".".join(each) for each in captured_collections(self._client, self._config)]
        except PyMongoError as error:
            told = failure(error, "list the collections") or error
            raise RetriableError(f"{told} Send the signal again once the server answers.") from error

    def shown_offset(self) -> str:
        """Return the offset, for the log."""
        return str(dict(self.with_state(self._offset)))

    def read_blocking(self, signal_id: str, asked: ExecuteSnapshot) -> None:  # noqa: ARG002
        """Refuse snapshots for which the stream would wait."""
        raise ConnectError(
            "The stream does not wait for snapshots here: send the signal with the type incremental, which reads the "
            "same documents beside the stream."
        )

    # -- signals and notifications ----------------------------------------------------------------------------------

    def take(self, signal: Signal, offset: Offset) -> None:
        """Take a signal; raises ``ConnectError`` if it cannot be done."""
        self._offset = offset
        self._signals.take(signal)
        self._look_at_state()

    def look(self, now: float, offset: Offset) -> None:
        """Take the signals of topic and file, if it is time."""
        self._offset = offset
        if self._signals.look(now):
            self.has_news = True
            self._look_at_state()
            self._signals_at = self.with_state(offset)

    def stored(self, offset: Offset) -> None:
        """Note that an offset is stored, and with it the signals before it."""
        taken = self._signals_at
        if taken is not None and (offset == taken or _token(offset) > _token(taken)):
            self._signals_at = None
            self._signals.stored()

    def told(self, offset: Offset) -> list[SourceRecord]:
        """Return the records of the notifications since the last call."""
        if self._is_first and "initsync" not in offset:
            self._is_first = False
            if self._config.snapshot_mode in (SnapshotMode.NO_DATA, SnapshotMode.NEVER):
                self._first.skipped()
        return self._notifications.take(self._events.with_transaction(self.with_state(offset)))

    def close(self) -> None:
        """Read and take nothing more."""
        self._signals.close()
        self._chunks.close()

    # -- the stream ---------------------------------------------------------------------------------------------------

    def with_state(self, offset: Offset) -> Offset:
        """Return an offset with the state of incremental snapshots."""
        return {**offset, **self._state} if self._state else offset

    def read_first(self, item: Item) -> None:
        """Take note of a document of the first snapshot."""
        self._first.read(item, self.captured_tables)

    def passed(self, item: Item) -> None:
        """Take note of a position that was reached."""
        if item.marker == "last":
            self._first.read(item, self.captured_tables)
        if item.at is not None:
            self._position = item.at
            self._chunks.come_to(before(item.at))

    def before(self, item: Item, offset: Offset) -> list[SourceRecord]:
        """Return the rows that are due before an event, and take note of it."""
        assert item.event is not None
        assert item.at is not None
        event = RawBSONDocument(item.event)
        records = self._due(item.at, offset) if self._snapshots.state.is_running else []
        if item.at != self._position or not self._transactions:
            self._transactions += 1
            self._snapshots.began(item.at)
        self._position = item.at
        # A chunk as of this time sees all changes of the transaction.
        self._chunks.come_to(item.at)
        self._count(event["operationType"], item.at)
        namespace = f"{event['ns']['db']}.{event['ns']['coll']}"
        if namespace == self._snapshots.watched():
            self._snapshots.touched([self._events.key(event["documentKey"]["_id"])["id"]], item.at)
        if namespace == self._config.signal_data_collection and "source" in self._config.signal_enabled_channels:
            self._take_document(event, offset)
        return records

    def due(self, offset: Offset) -> list[SourceRecord]:
        """Return the rows that are due where the stream is now."""
        if self._position is None or not self._snapshots.state.is_running:
            return []
        return self._due(self._position, offset)

    def _due(self, position: Timestamp, offset: Offset) -> list[SourceRecord]:
        ready = self._snapshots.due(position)
        records = []
        for row in ready:
            name, data = row.raw
            state = self._events.with_transaction({**offset, **row.state.to_offset()})
            table = table_of(name)
            records.append(self._events.read(data, table.catalog, table.table, _INCREMENTAL, state))
        self._look_at_state()
        return records

    def _take_document(self, event: RawBSONDocument, offset: Offset) -> None:
        """Take a signal of a document that was inserted into the signal collection."""
        if event["operationType"] != "insert":
            return
        self._offset = offset
        document = _relaxed.decoded(event["fullDocument"].raw)
        data = document.get("data")
        text = data if isinstance(data, str) or data is None else json.dumps(data)
        identity = document.get("id", document.get("_id"))
        kind = document.get("type")
        self._signals.take_row([str(identity), kind if isinstance(kind, str) else None, text])
        self._look_at_state()

    def _look_at_state(self) -> None:
        state = self._snapshots.state
        if state is not self._kept:
            self._kept, self._state, self.has_news = state, state.to_offset(), True

    # -- how far everything is ----------------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be read beside the stream."""
        return not self._snapshots.state.is_running or self._snapshots.state.paused

    def seconds_left(self, now: float, seconds: float) -> float:
        """Return how long the task may rest, at most so many seconds."""
        seconds = self._signals.seconds_left(now, seconds)
        return min(seconds, _SOON_SECONDS) if self._snapshots.is_idle_until_later else seconds

    def remaining(self) -> dict[str, int]:
        """Return how many collections are left to read."""
        state = self._snapshots.state
        return {"collections": len({each.table for each in state.collections})} if state.is_running else {}

    def measurements(self, labels: CaptureLabels, *, is_connected: bool) -> Iterable[Measurement]:
        """Yield how far the stream is behind, and how far a snapshot is."""
        counted = self._numbers
        since = -1.0 if not self._last_ms else max(0.0, time.time() - self._last_ms / 1000)
        yield from StreamNumbers(
            is_connected=is_connected,
            lag_seconds=self._lag_s,
            since_last_event_seconds=since,
            creates=counted["insert"],
            updates=counted["update"] + counted["replace"],
            deletes=counted["delete"],
            transactions=self._transactions,
        ).measurements(labels)
        yield from self._snapshot_numbers().measurements(labels)

    def _snapshot_numbers(self) -> SnapshotNumbers:
        state = self._snapshots.state
        if not state.is_running:
            return self._first.numbers()
        tables = {each.table for each in state.collections}
        rows = {state.collections[0].table: self._snapshots.rows_sent}
        return SnapshotNumbers(True, state.paused, False, len(tables), len(tables), rows=rows)

    def _count(self, operation: str, at: Timestamp) -> None:
        if operation in self._numbers:
            self._numbers[operation] += 1
        now = time.time()
        self._last_ms = at.time * 1000
        self._lag_s = max(0.0, now - at.time)


class _FirstSnapshot:
    """What is told of the first snapshot, document by document."""

    def __init__(self, notifications: Notifications, config: MongoDbConfig) -> None:
        self._notifications = notifications
        self._told = SnapshotNotifications(config.topic_prefix, INITIAL)
        self._tables: Sequence[str] = ()
        self._table = ""
        self._rows: dict[str, int] = {}
        self._began = 0.0
        self._seconds = 0.0
        self._is_running = self._is_completed = False

    def skipped(self) -> None:
        """Tell that there is no snapshot."""
        self._notifications.add(self._told.skipped())

    def read(self, item: Item, tables: Callable[[], Sequence[str]]) -> None:
        """Take note of a document, or that there is none."""
        if not self._is_running:
            self._is_running, self._is_completed, self._began = True, False, time.monotonic()
            self._tables = _listed(tables)
            self._notifications.add(self._told.started(None, ",".join(self._tables)))
        if item.namespace is not None:
            self._come_to(".".join(item.namespace))
            self._rows[self._table] += 1
        self._seconds = time.monotonic() - self._began
        if item.marker == "last":
            self._leave()
            self._is_running, self._is_completed = False, True
            self._notifications.add(self._told.completed(None))

    def numbers(self) -> SnapshotNumbers:
        """Return how far it is."""
        left = 0 if self._is_completed else len([name for name in self._tables if name >= self._table])
        return SnapshotNumbers(
            self._is_running, False, self._is_completed, len(self._tables), left, self._seconds, self._rows
        )

    def _come_to(self, table: str) -> None:
        if table == self._table:
            return
        self._leave()
        self._table = table
        self._rows[table] = 0
        self._notifications.add(self._told.in_progress(None, table, ",".join(self._tables)))

    def _leave(self) -> None:
        if self._table:
            told = self._told.scan_completed(None, self._table, self._rows[self._table], "SUCCEEDED")
            self._notifications.add(told)
            self._table = ""


def _listed(tables: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Return the collections, or none if they cannot be listed now: a snapshot does not fail of that."""
    try:
        return tables()
    except ConnectError:
        return ()


def _token(offset: Offset) -> str:
    """Return what orders offsets."""
    token = position_of(offset).token
    return "" if token is None else str(token.get("_data"))
