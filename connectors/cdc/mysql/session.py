"""Connections to the database, and the facts of the server that the connector goes by."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError, RetriableError
from connect.hosts import HostDeniedError
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.gtids import GtidSet, MariaDbGtidSet, MySqlGtidSet

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["LogPlace", "Server", "Session", "connected", "failure"]

_KEEP_ALIVE: Final = 1
_PASSING: Final = frozenset(
    {
        *(2002, 2003, 2006, 2012, 2013, 2055),  # the connection
        *(1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1203, 1226, 1927, 3169, 4031),  # cut, or too many
        *(1205, 1213, 1317, 1412, 3024),  # locks, interrupted, changed meanwhile
    }
)
"""The numbers of errors that pass by themselves."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """The end of the log at one moment."""

    file: str
    position: int
    gtids: str


@dataclass(frozen=True, slots=True)
class Server:
    """What the server is, and how it is set."""

    is_mariadb: bool
    version: str
    variables: Mapping[str, str] = field(repr=False)
    charsets: Mapping[int, str] = field(repr=False)
    """The character set of each collation, by its number."""

    @property
    def number(self) -> tuple[int, ...]:
        """The version as numbers."""
        parts = self.version.split("-")[0].split(".")
        return tuple(int(part) for part in parts if part.isdecimal())

    @property
    def has_gtids(self) -> bool:
        """Whether transactions have global ids: always with MariaDB."""
        return self.is_mariadb or self.variables.get("gtid_mode", "OFF").upper() == "ON"

    def gtid_set(self, text: str) -> GtidSet:
        """Read a set of transactions in the server's form. Raises ``ValueError`` if it is none."""
        return MariaDbGtidSet.parse(text) if self.is_mariadb else MySqlGtidSet.parse(text)


_VARIABLES: Final = (
    *("version", "version_comment", "log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata"),
    *("gtid_mode", "server_id", "binlog_rows_query_log_events", "binlog_annotate_row_events"),
    *("character_set_server", "collation_server"),
)

_LIMITS: Final = (
    "max_execution_time",
    *("max_statement_time", "idle_transaction_timeout", "idle_readonly_transaction_timeout"),
)
"""Limits of time, of MySQL and of MariaDB."""


class Session:
    """A connection for questions. Not shared between threads."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        self._server: Server | None = None

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Ask, and return the rows by the names of their columns, in lower case."""
        with _told(), self.connection.cursor() as cursor:
            cursor.execute(sql, tuple(values) or None)
            names = [str(column[0]).lower() for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def texts(self, sql: str, values: Sequence[object] = ()) -> Sequence[Sequence[Any]]:
        """Ask, and return the rows as the server prints them: texts and bytes."""
        with _told(), self.connection.cursor() as cursor, self.undecoded():
            cursor.execute(sql, tuple(values))
            return list(cursor.fetchall())

    @contextmanager
    def undecoded(self) -> Iterator[None]:
        """Have answers come as texts and bytes."""
        decoders = self.connection.decoders
        self.connection.decoders = {}
        try:
            yield
        finally:
            self.connection.decoders = decoders

    def execute(self, sql: str) -> None:
        """Run a statement."""
        with _told(), self.connection.cursor() as cursor:
            cursor.execute(sql)

    def lift_limits(self) -> None:
        """Have the server end no statement and no view for the time that it takes: a snapshot takes its time."""
        wanted = ", ".join(f"'{name}'" for name in _LIMITS)
        found = self.rows(f"SHOW SESSION VARIABLES WHERE Variable_name IN ({wanted})")
        if found:
            self.execute("SET " + ", ".join(f"SESSION {row['variable_name']} = 0" for row in found))

    @property
    def server(self) -> Server:
        """The facts of the server, asked once."""
        if self._server is None:
            wanted = ", ".join(f"'{name}'" for name in _VARIABLES)
            found = self.rows(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({wanted})")
            variables = {str(row["variable_name"]).lower(): str(row["value"]) for row in found}
            version = variables["version"]
            is_mariadb = "mariadb" in (version + variables.get("version_comment", "")).lower()
            self._server = Server(is_mariadb, version, variables, self._charsets(is_mariadb=is_mariadb))
        return self._server

    def _charsets(self, *, is_mariadb: bool) -> dict[int, str]:
        table = "COLLATION_CHARACTER_SET_APPLICABILITY" if is_mariadb else "COLLATIONS"
        rows = self.rows(f"SELECT ID AS id, CHARACTER_SET_NAME AS name FROM information_schema.{table}")  # noqa: S608
        return {int(row["id"]): str(row["name"]).lower() for row in rows if row["id"] is not None}

    def end_of_log(self) -> LogPlace:
        """Return where the log ends now. Raises :class:`~connect.errors.ConnectError` if there is none."""
        new = not self.server.is_mariadb and self.server.number >= (8, 2)
        statement = "SHOW BINARY LOG STATUS" if new else "SHOW MASTER STATUS"
        found = self.rows(statement)
        if not found:
            raise ConnectError(
                "The server writes no binary log: add log_bin and server_id to its configuration, and restart it."
            )
        row = found[0]
        gtids = str(row.get("executed_gtid_set") or "").replace("\n", "")
        if self.server.is_mariadb:
            gtids = str(self.rows("SELECT @@GLOBAL.gtid_binlog_pos AS gtids")[0]["gtids"] or "")
        return LogPlace(str(row["file"]), int(row["position"]), gtids)

    def log_files(self) -> list[str]:
        """Return the names of the files of the log, the oldest first."""
        return [str(row["log_name"]) for row in self.rows("SHOW BINARY LOGS")]

    def purged(self) -> MySqlGtidSet:
        """Return the transactions that MySQL no longer has in its log."""
        return MySqlGtidSet.parse(str(self.rows("SELECT @@GLOBAL.gtid_purged AS gtids")[0]["gtids"] or ""))

    def executed(self) -> GtidSet:
        """Return all transactions that the server has."""
        name = "gtid_current_pos" if self.server.is_mariadb else "gtid_executed"
        return self.server.gtid_set(str(self.rows(f"SELECT @@GLOBAL.{name} AS gtids")[0]["gtids"] or ""))

    def interrupt(self) -> None:
        """Have a thread that waits for the server fail. Called from another thread."""
        sock = self.connection._sock  # type: ignore[attr-defined]
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection, without waiting for the server."""
        self.connection._force_close()  # type: ignore[attr-defined]


def connected(config: BinlogConfig, *, read_timeout: float | None = None) -> Session:
    """Connect as a configuration says. Raises :class:`~connect.errors.ConnectError` or its retriable kind."""
    import pymysql  # noqa: PLC0415 - loaded where a database is used

    host, port = config.database_hostname, config.database_port
    timeout = config.connect_timeout_ms / 1000
    with _told(f"{host}:{port}"):
        password = config.database_password.value if config.database_password else ""
        connection: Connection[Any] = pymysql.connect(
            host=host,
            port=port,
            user=config.database_user,
            password=password,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=max(1, int(timeout)),
            read_timeout=read_timeout,
            local_infile=False,
            program_name="sluice",
            defer_connect=True,
            **_tls(config),
        )
        try:
            connection.connect(_socket(config, host, port, timeout))
        except BaseException:
            connection._force_close()  # type: ignore[attr-defined]
            raise
        session = Session(connection)
        session.execute(
            "SET SESSION time_zone = '+00:00', SESSION wait_timeout = 86400, SESSION net_write_timeout = 600"
        )
        session.lift_limits()
        for statement in config.initial_statements():
            session.execute(statement)
    return session


def _socket(config: BinlogConfig, host: str, port: int, timeout: float) -> socket.socket:
    """A connection to the first permitted address that answers."""
    rules = config.host_rules
    failure_: OSError = OSError("the name has no address")
    for address in rules.reachable(host, port):
        try:
            made = socket.create_connection((address, port), timeout)
        except OSError as error:
            failure_ = error
            continue
        made.settimeout(None)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, _KEEP_ALIVE)
        return made
    raise failure_


def _tls(config: BinlogConfig) -> dict[str, Any]:
    mode = config.tls_mode
    if mode == "disabled":
        return {"ssl_disabled": True}
    if mode == "preferred":
        return {}
    context = config.tls_context()
    context.check_hostname = mode == "verify_identity"
    context.verify_mode = ssl.CERT_NONE if mode == "required" else ssl.CERT_REQUIRED
    return {"ssl": context}


@contextmanager
def _told(place: str = "") -> Iterator[None]:
    """Turn the driver's errors into those that say what to do."""
    import pymysql  # noqa: PLC0415 - as above

    try:
        yield
    except pymysql.MySQLError as error:
        raise failure(error, place) from error
    except HostDeniedError:
        raise
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise RetriableError(f"The database at {place or 'its address'} cannot be reached: {reason}.") from error


def failure(error: Exception, place: str = "") -> ConnectError:
    """Return what to raise for an error of the driver's: retriable if it passes by itself."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    said = f"The database{f' at {place}' if place else ''} answers: ({number}) {text}"
    if number in _PASSING or type(error).__name__ == "InterfaceError":
        return RetriableError(said)
    return ConnectError(said)
