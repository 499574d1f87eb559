"""A part of the log that is read again, beside the stream: the changes of a distributed transaction."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Final

from connect.errors import RetriableError
from connectors.cdc.mysql.binlog.dump import BinlogDump, LogPurgedError
from connectors.cdc.mysql.binlog.log import Began, Committed, Log, LogEvent, Resolved
from connectors.cdc.mysql.checks import told_lost
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.gtids import GtidSet, MariaDbGtidSet, MySqlGtidSet
from connectors.cdc.mysql.position import PreparedPlace
from connectors.cdc.mysql.session import connected

__all__ = ["Rereading"]

_NO_SERVER_ID: Final = 0
"""A reader without a number ends no other."""
_FIRST_POSITION: Final = 4
_HEARTBEAT_SECONDS: Final = 5.0
_SILENT_SECONDS: Final = 30.0


class Rereading:
    """Reads one transaction again. Used by the task's thread alone; call :meth:`close` in any case.

    ``read`` are all transactions that the stream has read, if it goes by GTIDs: those hold on another server too, where
    the log has other files. ``end`` is the file and the position at which the
    transaction is committed.
    """

    def __init__(self, config: BinlogConfig, read: GtidSet | None, end: tuple[str, int]) -> None:
        self._config = config
        self._read = read
        self._end = end
        self._dump: BinlogDump | None = None

    def fileno(self) -> int | None:
        """Return the descriptor that becomes readable when there is more, if something is being read."""
        return None if self._dump is None else self._dump.fileno()

    def close(self) -> None:
        """Close the connection."""
        if self._dump is not None:
            self._dump.close()
            self._dump = None

    def changes(self, xid: str | None, place: PreparedPlace | None) -> Iterator[LogEvent | None]:
        """Yield the events of a transaction between its beginning and its end; ``None`` while there is nothing yet.

        Raises :class:`LogPurgedError` if the log does not have them any more.
        """
        try:
            if place is None:
                place = yield from self._found(xid)
            before, is_inside = self._before(place), False
            for event in self._events(place, before):
                if isinstance(event, Began):
                    # Where a file is read, the first one is it; read by GTIDs, others may come before.
                    is_inside = event.is_distributed and (before is None or event.gtid == place.gtid)
                elif is_inside and isinstance(event, Committed):
                    return
                elif event is None or is_inside:
                    yield event
        except LogPurgedError as error:
            raise self._lost(xid) from error
        finally:
            self.close()
        raise self._lost(xid)

    def _lost(self, xid: str | None) -> LogPurgedError:
        file, position = self._end
        return LogPurgedError(
            told_lost(
                f"the distributed transaction {xid or ''} is committed at {file}:{position}, and its changes, which "
                "were logged when it was prepared, are purged"
            )
        )

    def _found(self, xid: str | None) -> Generator[None, None, PreparedPlace]:
        """Look for the place at which a transaction was prepared, in the files of the log from the last one back."""
        session = connected(self._config)
        try:
            files = session.log_files()
        finally:
            session.close()
        last, end = self._end
        for file in reversed(files[: files.index(last) + 1] if last in files else files):
            found, is_over = yield from self._found_in(file, xid, end if file == last else None)
            if found is not None:
                return found
            if is_over:
                break
        raise LogPurgedError(f"none of {len(files)} files has it")

    def _found_in(
        self, file: str, xid: str | None, end: int | None
    ) -> Generator[None, None, tuple[PreparedPlace | None, bool]]:
        """Return where a file has the transaction last, and whether it ended an earlier one of the same id instead."""
        began: Began | None = None
        found, is_over = None, False
        for event in self._events(PreparedPlace("", file, _FIRST_POSITION, None, None), None):
            if event is None:
                yield None
            elif isinstance(event, Began):
                if event.file != file or (end is not None and event.position >= end):
                    break
                began = event
            elif isinstance(event, Resolved) and event.xid == xid:
                found, is_over = None, True
            elif isinstance(event, Committed) and event.prepared == xid and began is not None:
                found = PreparedPlace(event.prepared or "", began.file, began.position, began.gtid, None)
        self.close()
        return found, is_over

    def _events(self, place: PreparedPlace, before: GtidSet | None) -> Iterator[LogEvent | None]:
        config = self._config
        dump = BinlogDump(
            connected(config).connection, is_mariadb=config.is_mariadb, heartbeat_seconds=_HEARTBEAT_SECONDS
        )
        self._dump = dump
        dump.start(
            _NO_SERVER_ID,
            gtids=before,
            file=place.file,
            position=place.position,
            with_statements=config.include_query,
            follow=False,
        )
        log = Log(place.file, place.position, is_mariadb=config.is_mariadb)
        heard_at = time.monotonic()
        while not dump.ended:
            for raw in dump.events():
                heard_at = time.monotonic()
                yield from log.read(raw)
            if not dump.ended:
                if time.monotonic() - heard_at > _SILENT_SECONDS:
                    raise RetriableError("The database has stopped sending a part of its log that is read again.")
                yield None

    def _before(self, place: PreparedPlace) -> GtidSet | None:
        """Return the transactions after which the server is asked for the place's, if it is asked by GTIDs."""
        if place.gtid is None or self._read is None:
            return None
        if isinstance(self._read, MySqlGtidSet):
            return self._read.minus(MySqlGtidSet.parse(place.gtid))
        return None if place.gtids is None else MariaDbGtidSet.parse(place.gtids)
