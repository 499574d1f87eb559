"""Incremental snapshots: tables are read in chunks by their keys while the stream of changes goes on.

A chunk is read in a transaction of its own that writes nothing, together with two marks: which transactions it *sees*,
and a position in the log that all of these are before. Its rows wait until the stream has passed that position; a row
that a change has touched which the chunk does not see is dropped, because the stream has told of it, newer. What is
left is sent between two transactions. So neither a row nor its latest state is missed, and no older state follows a
newer one.

Between reading the chunk and its position the stream cannot be told apart from it by positions alone: a database may
stream a transaction before others see it. A chunk that does not see a transaction which the stream had told of before
the chunk was asked for is read again.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Collection as Container
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.incremental_state import BlockingRequest, Collection, IncrementalState
from connect.kits.cdc.java_keys import Key
from connect.kits.cdc.measurements import SnapshotNumbers
from connect.kits.cdc.notifications import Notification, SnapshotNotifications, SnapshotProgress

__all__ = ["Chunk", "ChunkRow", "IncrementalSnapshots", "ReadyRow"]

logger = logging.getLogger(__name__)
_REMEMBERED_TRANSACTIONS: Final = 10_000
_MOST_TOUCHED_KEYS: Final = 200_000
_RETRY_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A row of a chunk: as the database has delivered it, its key in the order of the table, and what identifies it.

    ``identity`` equals that of each change of the row in the stream.
    """

    raw: Sequence[Any]
    key: Key
    identity: Hashable


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a table, read at one moment.

    ``schema`` says what the rows are to those who make their records. ``until`` is the greatest key to read,
    ``is_last`` whether no rows follow. ``sees`` returns whether the rows have the changes of a transaction of the
    stream, and ``is_passed`` whether the stream has come to a position after all of the transactions that they see.
    """

    schema: Any
    rows: Sequence[ChunkRow]
    until: Key | None
    is_last: bool
    sees: Callable[[Hashable], bool]
    is_passed: Callable[[Any], bool]
    expected_rows: int = 0
    """How many rows the table has, as the database estimates; 0 if that is not known."""


@dataclass(frozen=True, slots=True)
class ReadyRow:
    """A row to be sent, and the state that the offset of its record has to carry."""

    schema: Any
    raw: Sequence[Any]
    state: IncrementalState


class ChunkReader(Protocol):
    """Reads chunks in the background."""

    def read(self, collection: Collection, rows: int) -> Future[Chunk]:
        """Read the next rows of a collection; raises ``ConnectError`` if the table can never be read."""


class IncrementalSnapshots:
    """Runs incremental snapshots beside a stream. Used by the task's thread alone; the reader has threads of its own.

    ``state`` is what offsets have to carry. The stream calls :meth:`began` for each transaction, :meth:`touched` for
    each change of a table that is :meth:`watched`, and between two transactions :meth:`due` with its position.
    """

    def __init__(
        self,
        state: IncrementalState,
        reader: ChunkReader,
        rows: int,
        notify: Callable[[Notification], None],
        notifications: SnapshotNotifications,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        self.state = state
        self._reader = reader
        self._rows = rows
        self._notify = notify
        self._told = notifications
        self._retry_seconds = retry_seconds
        self._recent: deque[Hashable] = deque(maxlen=_REMEMBERED_TRANSACTIONS)
        self._asked: Future[Chunk] | None = None
        self._collection: Collection | None = None
        self._before: tuple[Hashable, ...] = ()
        self._touched: dict[Hashable, list[Hashable]] = {}
        self._too_many = False
        self._chunk: Chunk | None = None
        self._waiting: dict[Hashable, ChunkRow] = {}
        self._wait_until = 0.0
        self._scanned = 0
        self._sent = 0
        self._expected = 0
        self._chunks = 0

    # -- signals ------------------------------------------------------------------------------------------------

    def add(self, collections: Sequence[Collection], correlation_id: str) -> None:
        """Read these tables too, after those that are still to be read."""
        names = ",".join(each.table for each in collections)
        known = {(each.table, each.condition) for each in self.state.collections}
        new = tuple(each for each in collections if (each.table, each.condition) not in known)
        self.state = replace(self.state, collections=(*self.state.collections, *new), correlation_id=correlation_id)
        self._notify(self._told.started(correlation_id, names))
        self._notify(self._told.resolved(correlation_id, names))
        logger.info("Incremental snapshot %s reads %s.", correlation_id, names or "no table")
        if not self.state.is_running:
            self._notify(self._told.completed(correlation_id))

    def stop(self, is_meant: Callable[[str], bool]) -> list[str]:
        """Stop reading the tables that are meant; return their names."""
        stopped = [each.table for each in self.state.collections if is_meant(each.table)]
        if self._collection is not None and is_meant(self._collection.table):
            self._forget_chunk()
        kept = tuple(each for each in self.state.collections if not is_meant(each.table))
        self.state = replace(self.state, collections=kept)
        identity = self.state.correlation_id
        for table in stopped:
            self._notify(self._told.scan_completed(identity, table, self._sent, "STOPPED"))
        if stopped and not kept:
            self._notify(self._told.aborted(identity))
            self.state = replace(self.state, correlation_id=None, paused=False)
        return stopped

    def pause(self) -> None:
        """Read no more chunks; the one that was read is still sent."""
        if self.state.is_running and not self.state.paused:
            self.state = replace(self.state, paused=True)
            self._notify(self._told.paused(self.state.correlation_id, self._names()))

    def resume(self) -> None:
        """Go on reading chunks."""
        if self.state.paused:
            self.state = replace(self.state, paused=False)
            self._notify(self._told.resumed(self.state.correlation_id, self._names()))

    def ask_blocking(self, signal_id: str, collections: Iterable[Collection]) -> None:
        """Have tables read while the stream waits, after what was asked for before."""
        request = BlockingRequest(signal_id, tuple(collections))
        logger.info("Blocking snapshot %s will read %s.", request.signal_id, _names(request.collections))
        self.state = replace(self.state, blocking=(*self.state.blocking, request))

    @property
    def blocking(self) -> BlockingRequest | None:
        """The blocking snapshot that is being read, or will be next."""
        return self.state.blocking[0] if self.state.blocking else None

    def leave_of_blocking(self, collections: Sequence[Collection]) -> None:
        """Note what is left of the first blocking snapshot; it is over if nothing is."""
        first, *rest = self.state.blocking
        left = [replace(first, collections=tuple(collections))] if collections else []
        self.state = replace(self.state, blocking=(*left, *rest))

    def take_signal_offset(self, offset: int) -> None:
        """Note the offset after the last signal of the Kafka topic."""
        self.state = replace(self.state, signal_offset=offset)

    # -- the stream ---------------------------------------------------------------------------------------------

    def began(self, transaction: Hashable) -> None:
        """Note that the stream has come to a transaction."""
        self._recent.append(transaction)

    def watched(self) -> str | None:
        """Return the table whose changes have to be told, if one is being read."""
        return None if self._collection is None else self._collection.table

    def touched(self, identities: Iterable[Hashable], transaction: Hashable) -> None:
        """Note that a change of the watched table has touched these rows: that before, and that after it."""
        chunk = self._chunk
        if chunk is not None:
            if not chunk.sees(transaction):
                for identity in identities:
                    self._waiting.pop(identity, None)
            return
        if len(self._touched) >= _MOST_TOUCHED_KEYS:
            self._too_many = True
            return
        for identity in identities:
            self._touched.setdefault(identity, []).append(transaction)

    def truncated(self, transaction: Hashable) -> None:
        """Note that the watched table was emptied."""
        if self._chunk is None:
            self._too_many = self._collection is not None
        elif not self._chunk.sees(transaction):
            self._waiting.clear()

    def due(self, position: Any) -> list[ReadyRow]:
        """Return the rows that are to be sent now, at a position between two transactions; begin the next chunk."""
        self._take_chunk()
        ready: list[ReadyRow] = []
        if self._chunk is not None and self._chunk.is_passed(position):
            ready = self._ready(self._chunk)
        if self._collection is None:
            self._begin_chunk()
        return ready

    @property
    def surrogate(self) -> str:
        """The column that the table being read goes by, in place of its key."""
        return "" if self._collection is None else self._collection.surrogate

    def clear(self) -> None:
        """Read nothing that the offset has asked for: a snapshot of all tables begins."""
        self._forget_chunk()
        if self.state.is_running or self.state.blocking:
            logger.warning("A snapshot of all tables begins: those that signals have asked for are given up.")
        self.state = IncrementalState(signal_offset=self.state.signal_offset)

    def break_off(self) -> None:
        """Forget the chunk that is being read: the stream begins anew at the last position that was sent."""
        self._forget_chunk()
        self._recent.clear()

    @property
    def is_idle_until_later(self) -> bool:
        """Whether the next chunk is to be asked for when some time has passed."""
        return self.state.is_running and not self.state.paused and self._collection is None

    @property
    def is_reading(self) -> bool:
        """Whether chunks are read, or will be as soon as the stream has moved on."""
        return self.state.is_running and not self.state.paused

    @property
    def waits_for_position(self) -> bool:
        """Whether a chunk waits only for the stream to pass its position."""
        return self._chunk is not None

    @property
    def rows_sent(self) -> int:
        """The number of rows of the current table that were sent."""
        return self._sent

    def numbers(self, *, is_completed: bool) -> SnapshotNumbers:
        """Return how far it is; ``is_completed`` if another snapshot was read before."""
        tables = {each.table for each in self.state.collections}
        current = self.state.collections[0].table if tables else ""
        return SnapshotNumbers(
            self.state.is_running,
            self.state.paused,
            is_completed,
            len(tables),
            len(tables),
            rows={current: self.rows_sent} if tables else {},
            estimated_rows={current: self._expected} if self._expected else {},
            pieces_read=self._chunks,
        )

    def _begin_chunk(self) -> None:
        if self.state.paused or not self.state.is_running or time.monotonic() < self._wait_until:
            return
        self._collection = self.state.collections[0]
        self._before = tuple(self._recent)
        self._touched, self._too_many = {}, False
        self._asked = self._reader.read(self._collection, self._rows)

    def _take_chunk(self) -> None:
        """Take the chunk over once it is read, without the rows that changes have touched meanwhile."""
        asked = self._asked
        if asked is None or not asked.done():
            return
        self._asked = None
        try:
            chunk = asked.result()
        except RetriableError as error:
            logger.warning("A chunk of %s is read again later: %s", self._collection and self._collection.table, error)
            self._forget_chunk(self._retry_seconds)
            return
        except ConnectError as error:
            self._give_up_table(error)
            return
        if self._too_many or not all(map(chunk.sees, self._before)):
            # The stream is ahead of what other transactions see, or has touched too much to remember.
            self._forget_chunk(self._retry_seconds / 10)
            return
        if collection := self._collection:
            is_from_start = collection.after is None and not collection.condition
            self._expected = max(0, chunk.expected_rows) if is_from_start else self._expected
        self._chunk = chunk
        self._chunks += 1
        self._waiting = {row.identity: row for row in chunk.rows if not self._is_stale(row, chunk)}
        self._touched = {}
        self._scanned += len(chunk.rows)

    def _is_stale(self, row: ChunkRow, chunk: Chunk) -> bool:
        return any(not chunk.sees(transaction) for transaction in self._touched.get(row.identity, ()))

    def _forget_chunk(self, seconds: float = 0.0) -> None:
        self._asked = self._chunk = self._collection = None
        self._touched, self._waiting = {}, {}
        self._wait_until = time.monotonic() + seconds

    def _give_up_table(self, error: ConnectError) -> None:
        table = self.state.collections[0].table
        logger.error("Table %s is left out of the incremental snapshot: %s", table, error)
        status = "UNKNOWN_SCHEMA" if isinstance(error, UnknownTableError) else "NO_PRIMARY_KEY"
        self._notify(self._told.scan_completed(self.state.correlation_id, table, self._sent, status))
        self._forget_chunk()
        self._finish_table()

    def _ready(self, chunk: Chunk) -> list[ReadyRow]:
        """Return the rows of a chunk with the states after each, and step to the next chunk or table."""
        collection = replace(self.state.collections[0], until=chunk.until)
        ready: list[ReadyRow] = []
        for row in self._waiting.values():
            state = self.state.with_first(replace(collection, after=row.key))
            ready.append(ReadyRow(chunk.schema, row.raw, state))
        if chunk.rows:
            collection = replace(collection, after=chunk.rows[-1].key)
        self.state = self.state.with_first(collection)
        self._sent += len(ready)
        table = collection.table
        self._forget_chunk()
        if chunk.rows:
            told = self._told.in_progress(
                self.state.correlation_id,
                table,
                self._names(),
                collection.after,
                chunk.until,
                progress=SnapshotProgress(self._scanned, self._expected, self._chunks, is_read=chunk.is_last),
            )
            self._notify(told)
        if chunk.is_last:
            status = "SUCCEEDED" if self._scanned else "EMPTY"
            self._notify(self._told.scan_completed(self.state.correlation_id, table, self._sent, status))
            self._finish_table()
        if ready:
            ready[-1] = replace(ready[-1], state=self.state)
        return ready

    def _finish_table(self) -> None:
        identity = self.state.correlation_id
        self.state = self.state.without_first()
        self._scanned = self._sent = self._expected = self._chunks = 0
        if not self.state.is_running:
            logger.info("Incremental snapshot %s is completed.", identity)
            self._notify(self._told.completed(identity))

    def _names(self) -> str:
        return _names(self.state.collections)


def _names(collections: Iterable[Collection]) -> str:
    return ",".join(dict.fromkeys(each.table for each in collections))


class UnknownTableError(ConnectError):
    """A table of a signal is not there, or is not captured."""


def meant(names: Container[str]) -> Callable[[str], bool]:
    """Return the function that tells the named tables, or any if there are no names."""
    return (lambda table: table in names) if names else (lambda _: True)
