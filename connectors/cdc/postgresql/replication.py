"""A replication connection: PostgreSQL's streaming protocol over libpq's copy calls, which psycopg's ``pq`` offers."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError, RetriableError
from connectors.cdc.postgresql.offsets import ServerIdentity, format_lsn, parse_lsn
from connectors.cdc.postgresql.pgoutput import EPOCH_2000_US

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

__all__ = ["PAYLOAD", "CreatedSlot", "ReplicationConnection", "ReplicationError", "literal", "quoted"]

_FEEDBACK: Final = struct.Struct(">cQQQqB")
_WAL: Final = 119
_KEEPALIVE: Final = 107
_KEEPALIVE_FIELDS: Final = struct.Struct(">cQqB")
PAYLOAD: Final = 25
"""Where the plugin's message begins in one of the stream."""

_OPTIONS_FROM: Final = 150_000
_FAILOVER_FROM: Final = 170_000
_PASSING: Final = frozenset({"55006", "57P01", "57P02", "57P03", "53300", "08006", "08001", "08003", "08000"})
"""States that pass: the slot is in use, the server shuts down or starts, has too many connections, or is gone."""


@dataclass(frozen=True, slots=True)
class CreatedSlot:
    """A slot that was created: where it starts, and the snapshot of exactly what was committed before."""

    name: str
    consistent_lsn: int
    snapshot: str | None


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a literal."""
    return "'" + text.replace("'", "''") + "'"


class ReplicationConnection:
    """A connection with ``replication=database``. Used by one thread."""

    def __init__(self, conninfo: str) -> None:
        from psycopg import pq  # noqa: PLC0415 - psycopg is loaded only where it is used

        self._pq = pq
        self._connection: PGconn = pq.PGconn.connect(conninfo.encode())
        if self._connection.status != pq.ConnStatus.OK:
            message = self._connection.get_error_message().strip()
            self._connection.finish()
            raise RetriableError(f"The replication connection to PostgreSQL cannot be opened: {message}", retry_after=2)
        self.received_lsn = 0
        """How far the server has sent."""

        self.wants_reply = False
        self.is_streaming = False

    @property
    def version(self) -> int:
        """The server's version, such as 150004."""
        return self._connection.server_version

    @property
    def socket(self) -> int:
        """The descriptor that is readable when there may be a message."""
        return self._connection.socket

    def identify(self) -> ServerIdentity:
        """Return which cluster this is."""
        row = self._row("IDENTIFY_SYSTEM")
        return ServerIdentity(row["systemid"], int(row["timeline"]))

    def timeline_history(self, timeline: int) -> str:
        """Return the history of a timeline: a line for each earlier one, with the LSN at which it ended."""
        return str(self._row(f"TIMELINE_HISTORY {timeline}")["content"])

    def create_slot(
        self, name: str, *, exports: bool, is_temporary: bool = False, is_failover: bool = False
    ) -> CreatedSlot:
        """Create a slot for pgoutput. An exported snapshot is valid until the next command on this connection."""
        command = f"CREATE_REPLICATION_SLOT {quoted(name)}{' TEMPORARY' if is_temporary else ''} LOGICAL pgoutput"
        if self.version >= _OPTIONS_FROM:
            options = [f"SNAPSHOT {literal('export' if exports else 'nothing')}"]
            if is_failover and self.version >= _FAILOVER_FROM:
                options.append("FAILOVER true")
            command += f" ({', '.join(options)})"
        else:
            command += " EXPORT_SNAPSHOT" if exports else " NOEXPORT_SNAPSHOT"
        row = self._row(command)
        return CreatedSlot(name, parse_lsn(row["consistent_point"]), row["snapshot_name"] or None)

    def start(self, slot: str, lsn: int, options: Mapping[str, str]) -> None:
        """Start to stream from an LSN, or from the slot's own if that is later."""
        told = ", ".join(f"{quoted(name)} {literal(value)}" for name, value in options.items())
        command = f"START_REPLICATION SLOT {quoted(slot)} LOGICAL {format_lsn(lsn)} ({told})"
        self._connection.send_query(command.encode())
        result = self._next_result()
        if result is None or result.status != self._pq.ExecStatus.COPY_BOTH:
            raise self._error(result, f"Streaming from slot {slot} cannot start")
        self._connection.nonblocking = 1
        self.received_lsn = lsn
        self.is_streaming = True

    def receive(self) -> bytes | None:
        """Return the next message with the plugin's payload, or None if there is none yet; keepalives are noted."""
        get = self._connection.get_copy_data
        is_read = False
        while True:
            size, data = get(1)
            if size > 0:
                kind = data[0]
                if kind == _WAL:
                    return bytes(data)
                if kind == _KEEPALIVE:
                    _, end, _, reply = _KEEPALIVE_FIELDS.unpack_from(data)
                    self.received_lsn = max(self.received_lsn, end)
                    self.wants_reply = self.wants_reply or bool(reply)
            elif size < 0:
                raise self._ended()
            elif is_read:
                return None
            else:
                self._consume()
                is_read = True

    def confirm(self, flushed_lsn: int, *, asks: bool = False) -> None:
        """Tell the server how far it need not keep its log; ``asks`` has it tell how far it has sent."""
        now = time.time_ns() // 1000 - EPOCH_2000_US
        received = max(self.received_lsn, flushed_lsn)
        try:
            self._connection.put_copy_data(_FEEDBACK.pack(b"r", received, flushed_lsn, flushed_lsn, now, int(asks)))
            self._connection.flush()
        except self._pq_error() as error:
            raise self._lost(error) from error
        self.wants_reply = False

    def execute(self, command: str) -> None:
        """Run a command without a result."""
        result = self._connection.exec_(command.encode())
        if result.status not in (self._pq.ExecStatus.COMMAND_OK, self._pq.ExecStatus.TUPLES_OK):
            raise self._error(result, f"{command} failed")

    def cancel(self) -> None:
        """End the command that runs, if one does. May be called from another thread."""
        with suppress(self._pq_error()):
            self._connection.get_cancel().cancel()

    def close(self) -> None:
        """Close the connection."""
        self._connection.finish()

    def _consume(self) -> None:
        """Read what has arrived."""
        try:
            self._connection.consume_input()
        except self._pq_error() as error:
            raise self._lost(error) from error

    def _row(self, command: str) -> dict[str, Any]:
        result = self._connection.exec_(command.encode())
        if result.status != self._pq.ExecStatus.TUPLES_OK or result.ntuples < 1:
            raise self._error(result, f"{command.partition(' (')[0]} failed")
        return {
            (result.fname(place) or b"").decode(): None if value is None else value.decode()
            for place in range(result.nfields)
            for value in (result.get_value(0, place),)
        }

    def _next_result(self) -> PGresult | None:
        return self._connection.get_result()

    def _ended(self) -> Exception:
        return self._error(self._next_result(), "The stream of changes has ended")

    def _error(self, result: PGresult | None, what: str) -> Exception:
        message = self._connection.get_error_message().strip()
        state = None
        if result is not None:
            told = result.error_field(self._pq.DiagnosticField.MESSAGE_PRIMARY)
            code = result.error_field(self._pq.DiagnosticField.SQLSTATE)
            state = code.decode() if code else None
            message = told.decode() if told else message
        text = f"{what}: {message or 'the server closed the connection'}"
        is_gone = self._connection.status != self._pq.ConnStatus.OK
        if state in _PASSING or (state is None and is_gone) or not message:
            return RetriableError(text, retry_after=2)
        return ReplicationError(text, state)

    def _lost(self, error: Exception) -> RetriableError:
        return RetriableError(f"The replication connection is lost: {str(error).strip()}", retry_after=1)

    def _pq_error(self) -> type[Exception]:
        from psycopg import OperationalError  # noqa: PLC0415 - as above

        return OperationalError


class ReplicationError(ConnectError):
    """The server has refused a command; ``state`` is its SQLSTATE."""

    def __init__(self, message: str, state: str | None) -> None:
        super().__init__(message)
        self.state = state

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.state)
