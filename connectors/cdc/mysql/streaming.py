"""The stream of changes: the connection that brings the log, and what to do when it breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from connect.data import SourceRecord
from connect.errors import RetriableError
from connectors.cdc.mysql.binlog.dump import BinlogDump, LogPurgedError
from connectors.cdc.mysql.binlog.log import Began, Committed, Log, LogEvent
from connectors.cdc.mysql.changes import Changes
from connectors.cdc.mysql.checks import told_lost
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.gtids import GtidSet
from connectors.cdc.mysql.position import Position, PreparedPlace
from connectors.cdc.mysql.rereading import Rereading
from connectors.cdc.mysql.session import LogPlace, connected

__all__ = ["Stream", "StreamEnd"]

_HEARTBEAT_SECONDS: Final = 5.0
"""How often the server shows that it is there while it has nothing to send."""
_SILENT_SECONDS: Final = 30.0
"""After so long without a sign of the server, the connection counts as lost."""
_LONGEST_POLL_SECONDS: Final = 0.5
_LOOK_AT_CLOCK_EVENTS: Final = 256


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """A place of the log up to which it is read; ``gtids`` are the transactions before it, if the server has GTIDs."""

    place: LogPlace
    gtids: GtidSet | None

    def has(self, event: Began) -> bool:
        """Return whether a transaction is before the place."""
        if event.gtid is not None and self.gtids is not None:
            return event.gtid in self.gtids
        return not self.is_at(event.file, event.position)

    def is_at(self, file: str, position: int) -> bool:
        """Return whether a place is this one, or after it. The numbers of files may get longer."""
        return (len(file), file, position) >= (len(self.place.file), self.place.file, self.place.position)


class Stream:
    """Reads the log from a position on.

    ``changes`` makes the records; a lost connection leaves them where the last whole transaction ended, and
    a new stream begins there. ``due`` returns records of rows that are to be sent between two transactions.
    """

    def __init__(
        self,
        config: BinlogConfig,
        changes: Changes,
        position: Position,
        gtids: GtidSet | None,
        due: Callable[[], list[SourceRecord]],
    ) -> None:
        self.changes = changes
        self._config = config
        self._again: Rereading | None = None
        self._due = due
        session = connected(config)
        self._dump = BinlogDump(session.connection, is_mariadb=config.is_mariadb, heartbeat_seconds=_HEARTBEAT_SECONDS)
        try:
            self._dump.start(
                config.database_server_id,
                gtids=gtids,
                file=position.file,
                position=position.position,
                with_statements=config.include_query,
                name=config.replica_name,
            )
        except BaseException:
            self._dump.close()
            raise
        self._log = Log(position.file, position.position, is_mariadb=config.is_mariadb)
        self._heard_at = time.monotonic()
        self._events = self._arriving()
        self.is_at_end = False
        """Whether the last poll has read all that had arrived."""
        self.has_reached = False
        """Whether the last poll has come to the place up to which it was to read. There is no way beyond it."""
        self.bytes_read = 0

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when there is more."""
        again = None if self._again is None else self._again.fileno()
        return self._dump.fileno() if again is None else again

    @property
    def place(self) -> tuple[str, int]:
        """The file and the place up to which the log was read."""
        return self._log.file, self._log.position

    def poll(self, out: list[SourceRecord], limit: int, end: StreamEnd | None = None) -> None:
        """Add the next records, about ``limit`` of them and up to a place, or none if there are none yet.

        Raises :class:`~connect.errors.RetriableError` if the connection is lost, and
        :class:`~connect.errors.ConnectError` if the log is; what was added before remains right.
        """
        until = time.monotonic() + _LONGEST_POLL_SECONDS
        self.is_at_end = False
        take, due = self.changes.take, self._due
        for number, event in enumerate(self._events, 1):
            if event is None:
                self.is_at_end = True
                out += due()
                self.has_reached = end is not None and self._is_at(end)
                break
            if end is not None and type(event) is Began and not end.has(event):
                self.has_reached = True
                break
            take(event, out)
            if type(event) is Committed:
                out += due()
            if len(out) >= limit:
                break
            if number % _LOOK_AT_CLOCK_EVENTS == 0 and time.monotonic() > until:
                break
        self._check_alive()

    def _is_at(self, end: StreamEnd) -> bool:
        """Return whether nothing before a place is left to read, having read all that has arrived."""
        read = self.changes.gtids
        # A server that is asked for by GTIDs tells no position before the first transaction that it sends.
        is_counted = end.gtids is not None and read is not None and read.contains(end.gtids)  # type: ignore[arg-type]
        return self.changes.is_between_transactions and (is_counted or end.is_at(*self.place))

    def _arriving(self) -> Iterator[LogEvent | None]:
        """Yield what the log says; ``None`` when nothing more has arrived."""
        prepared = self.changes.prepared
        while True:
            for raw in self._arrived():
                self._heard_at = time.monotonic()
                self.bytes_read += len(raw)
                for event in self._log.read(raw):
                    if prepared.concern(event):
                        gtids = self.changes.gtids
                        yield from prepared.passed_on(event, str(gtids) if gtids else None, self._changed)
                    else:
                        yield event
            yield None

    def _arrived(self) -> Iterator[bytes]:
        try:
            yield from self._dump.events()
        except LogPurgedError as error:
            raise LogPurgedError(told_lost(f"the server answers: {error}")) from error

    def _changed(self, xid: str | None, place: PreparedPlace | None, position: int) -> Iterator[LogEvent | None]:
        """Yield the changes of a distributed transaction, read again; the rest of the log waits meanwhile."""
        self._again = Rereading(self._config, self.changes.gtids, (self._log.file, position))
        for event in self._again.changes(xid, place):
            self._heard_at = time.monotonic()
            yield event
        self._again = None

    def _check_alive(self) -> None:
        silent = time.monotonic() - self._heard_at
        if silent > _SILENT_SECONDS and not self._dump.wait(0):
            raise RetriableError(f"The database has sent no sign of life for {silent:.0f} s; connecting again.")

    def close(self) -> None:
        """Close the connections."""
        self._dump.close()
        if self._again is not None:
            self._again.close()
