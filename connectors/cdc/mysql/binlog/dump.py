"""A connection on which a server sends its log, as to a replica."""

from __future__ import annotations

import select
import ssl
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError, RetriableError
from connectors.cdc.mysql.gtids import GtidSet, MySqlGtidSet

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["BinlogDump", "LogPurgedError"]

_COM_BINLOG_DUMP: Final = 0x12
_COM_REGISTER_SLAVE: Final = 0x15
_COM_BINLOG_DUMP_GTID: Final = 0x1E
_NON_BLOCKING: Final = 0x01
_ANNOTATE_ROWS: Final = 0x02
"""Asks MariaDB for the statements that made the rows."""
_THROUGH_GTID: Final = 0x04
_MARIADB_GTID_CAPABILITY: Final = 4
_FIRST_POSITION: Final = 4
_LONGEST_NAME: Final = 60
_READ_BYTES: Final = 262_144
_HEAD_BYTES: Final = 4
_LONG_PACKET: Final = 0xFFFFFF
_OK, _EOF, _ERROR = 0x00, 0xFE, 0xFF
_SHORT_EOF: Final = 9
_LOG_LOST: Final = 1236
_NANOS_PER_SECOND: Final = 1_000_000_000


class LogPurgedError(ConnectError):
    """The server has no longer the part of its log that comes next."""


class BinlogDump:
    """Reads events as they arrive, and never waits for them."""

    def __init__(self, connection: Connection[Any], *, is_mariadb: bool, heartbeat_seconds: float) -> None:
        self._connection = connection
        self._is_mariadb = is_mariadb
        self._heartbeat_seconds = heartbeat_seconds
        self._buffer = bytearray()
        self._at = 0
        self._needed = _HEAD_BYTES
        """How many bytes after ``_at`` the next packet takes at least."""
        self._ended = False

    def start(
        self,
        server_id: int,
        *,
        gtids: GtidSet | None = None,
        file: str = "",
        position: int = _FIRST_POSITION,
        with_statements: bool = False,
        follow: bool = True,
        name: str = "",
    ) -> None:
        """Ask for the log after ``gtids`` or, without them, from a place in a file.

        ``server_id`` is what the server knows this reader by: a second one with the same number ends the first. With a
        ``name`` it is shown in the server's list of replicas. Without ``follow`` the log ends where it ends now.
        """
        self._prepare(gtids)
        if name:
            self._register(server_id, name)
        flags = (0 if follow else _NON_BLOCKING) | (_ANNOTATE_ROWS if with_statements and self._is_mariadb else 0)
        if isinstance(gtids, MySqlGtidSet):
            command, body = _COM_BINLOG_DUMP_GTID, _gtid_request(flags | _THROUGH_GTID, server_id, gtids)
        else:
            first = "" if gtids is not None else file
            place = _FIRST_POSITION if gtids is not None else position
            command, body = _COM_BINLOG_DUMP, struct.pack("<IHI", place, flags, server_id) + first.encode("utf-8")
        self._connection._execute_command(command, body)  # type: ignore[attr-defined]
        self._socket.setblocking(False)

    def _register(self, server_id: int, name: str) -> None:
        host = name.encode("utf-8")[:_LONGEST_NAME]
        body = struct.pack("<I", server_id) + bytes([len(host)]) + host + struct.pack("<BBHII", 0, 0, 0, 0, 0)
        self._connection._execute_command(_COM_REGISTER_SLAVE, body)  # type: ignore[attr-defined]
        self._connection._read_ok_packet()  # type: ignore[attr-defined]

    def _prepare(self, gtids: GtidSet | None) -> None:
        """Tell the server what this reader can do."""
        nanos = int(self._heartbeat_seconds * _NANOS_PER_SECOND)
        statements = [
            "SET @master_binlog_checksum = @@global.binlog_checksum",
            "SET @source_binlog_checksum = @@global.binlog_checksum",
            f"SET @master_heartbeat_period = {nanos}, @source_heartbeat_period = {nanos}",
        ]
        if self._is_mariadb:
            statements.append(f"SET @mariadb_slave_capability = {_MARIADB_GTID_CAPABILITY}")
            if gtids is not None:
                # The text has digits, dashes and commas only.
                statements.append(f"SET @slave_connect_state = '{gtids}'")
                statements.append("SET @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0")
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    @property
    def _socket(self) -> Any:
        return self._connection._sock  # type: ignore[attr-defined]

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when events arrive."""
        return int(self._socket.fileno())

    @property
    def ended(self) -> bool:
        """Whether the log has ended; one that is followed does not end."""
        return self._ended

    def events(self) -> Iterator[bytes]:
        """Yield the events that have arrived, without waiting for more.

        Raises :class:`LogPurgedError` if the server no longer has what comes next, and
        :class:`~connect.errors.RetriableError` if the connection is lost.
        """
        while True:
            yield from self._complete()
            if self._ended or not self._receive():
                return

    def wait(self, seconds: float) -> bool:
        """Wait until something arrives; return whether it did."""
        if self._has_pending():
            return True
        return bool(select.select([self._socket], [], [], seconds)[0])

    def _has_pending(self) -> bool:
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _receive(self) -> bool:
        """Take what has arrived; return whether there was anything."""
        try:
            piece = self._socket.recv(_READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError as error:
            raise RetriableError(f"The connection to the database was lost: {error}.") from error
        if not piece:
            raise RetriableError("The database has closed the connection on which it sends its log.")
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += piece
        return True

    def _complete(self) -> Iterator[bytes]:
        """Yield the events that are whole in the buffer."""
        while (packet := self._packet()) is not None:
            first = packet[0] if packet else _ERROR
            if first == _OK:
                yield packet[1:]
            elif first == _EOF and len(packet) < _SHORT_EOF:
                self._ended = True
                return
            else:
                raise _failure(packet)

    def _packet(self) -> bytes | None:
        """Take the next packet, once it is whole; long ones come in several parts."""
        buffer, first = self._buffer, self._at
        if len(buffer) - first < self._needed:
            return None
        parts: list[tuple[int, int]] = []
        at = first
        while True:
            if len(buffer) < at + _HEAD_BYTES:
                self._needed = at + _HEAD_BYTES - first
                return None
            size = buffer[at] | buffer[at + 1] << 8 | buffer[at + 2] << 16
            start, at = at + _HEAD_BYTES, at + _HEAD_BYTES + size
            if len(buffer) < at:
                # Nothing is copied before all is there: a large packet would be copied again for each piece of it.
                self._needed = at - first
                return None
            parts.append((start, at))
            if size < _LONG_PACKET:
                break
        self._at, self._needed = at, _HEAD_BYTES
        return b"".join(bytes(buffer[start:end]) for start, end in parts)

    def close(self) -> None:
        """Close the connection."""
        self._connection._force_close()  # type: ignore[attr-defined]


def _gtid_request(flags: int, server_id: int, gtids: MySqlGtidSet) -> bytes:
    encoded = gtids.encode()
    return struct.pack("<HIIQI", flags, server_id, 0, _FIRST_POSITION, len(encoded)) + encoded


def _failure(packet: bytes) -> ConnectError:
    if len(packet) < 3 or packet[0] != _ERROR:
        return ConnectError("The database sent something that is no event of its log.")
    number = int.from_bytes(packet[1:3], "little")
    text = packet[3:].decode("utf-8", "replace")
    if text.startswith("#"):
        text = text[6:]
    if "same server_uuid/server_id" in text:
        return ConnectError(
            "Another reader of the log, or a replica, has connected with the same database.server.id, and the server "
            "has ended this one. Give each its own number."
        )
    if number == _LOG_LOST:
        return LogPurgedError(text)
    return ConnectError(f"The database refuses to send its log: ({number}) {text}")
