"""How MySQL and MariaDB are connected to, and which of their errors pass."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.kits.sql.driver import NUMBER, SECONDS, Change, Driver, milliseconds, one_of, same, when
from connect.kits.sql.hosts import HERE, SOCKET_OPTION, Address, HostGuard

if TYPE_CHECKING:
    from sqlalchemy import Dialect

__all__ = ["PymysqlDriver"]

_PORT: Final = 3306
_UNREACHABLE: Final = 2003
"""PyMySQL's number for a server that cannot be reached."""
_IGNORED: Final = frozenset({
    "allowPublicKeyRetrieval", "autoReconnect", "cachePrepStmts", "characterEncoding", "connectionTimeZone",
    "dontTrackOpenResources", "forceConnectionTimeZoneToSession", "jdbcCompliantTruncation", "maxReconnects",
    "noAccessToProcedureBodies", "nullCatalogMeansCurrent", "permitMysqlScheme", "prepStmtCacheSize",
    "prepStmtCacheSqlLimit", "rewriteBatchedStatements", "serverTimezone", "tcpKeepAlive", "tinyInt1isBit",
    "useCursorFetch", "defaultFetchSize", "useInformationSchema", "useJDBCCompliantTimezoneShift",
    "useLegacyDatetimeCode", "useServerPrepStmts", "useUnicode", "yearIsDateType", "zeroDateTimeBehavior",
})  # fmt: skip
_TRANSIENT: Final = frozenset(
    {
        *(2002, 2003, 2006, 2012, 2013, 2055),  # the connection
        *(1042, 1047, 1053, 1077, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031),  # it was cut
        *(1021, 1037, 1038, 1040, 1041, 1135, 1203, 1226, 1637),  # disk, memory, connections, limits per hour
        *(1205, 1206, 1213, 1613, 1614, 1689, 3058, 3572),  # locks
        *(1020, 1180, 1412, 1615, 3100, 3101),  # changed meanwhile, or rolled back at the commit
        *(1317, 1969, 3024),  # interrupted, or over its time
        *(1836, 3032, 3168),  # read-only or offline for now
    }
)
"""Of servers below 2000 and above 3000, of clients between. 1047 is a Galera node that is not ready."""
_READ_ONLY: Final = 1290
_OF_CONNECTIONS: Final = "08"
"""The class of SQLSTATEs of connections."""


class PymysqlDriver(Driver):
    """PyMySQL, for MySQL or MariaDB."""

    options: ClassVar[Mapping[str, Change]] = {
        "charset": same("charset", "utf8mb4|utf8mb3|utf8"),
        "connect_timeout": same("connect_timeout", NUMBER),
        "connectTimeout": milliseconds("connect_timeout"),
        "read_timeout": same("read_timeout", NUMBER),
        "socketTimeout": milliseconds("read_timeout"),
        "write_timeout": same("write_timeout", NUMBER),
        "useSSL": when({"ssl": "require"}, {"ssl": "disable"}),
        "requireSSL": when({"ssl": "require"}),
        "verifyServerCertificate": when({"ssl": "verify-ca"}),
        "sslMode": one_of(
            {
                **{key: {"ssl": "disable"} for key in ("disable", "disabled")},
                "preferred": {},
                **{key: {"ssl": "require"} for key in ("required", "trust")},
                **{key: {"ssl": "verify-ca"} for key in ("verify_ca", "verify-ca")},
                **{key: {"ssl": "verify-full"} for key in ("verify_identity", "verify-full")},
            }
        ),
        "ssl": one_of({"true": {"ssl": "require"}, "false": {"ssl": "disable"}}),
    }
    ignored: ClassVar[frozenset[str]] = _IGNORED
    modules: ClassVar[tuple[str, ...]] = ("pymysql",)

    def arguments(self, address: Address) -> dict[str, Any]:
        options = dict(address.options)
        mode = options.pop("ssl", None)
        return {
            "connect_timeout": int(SECONDS),
            "charset": "utf8mb4",
            "local_infile": False,
            **{name: int(value) if value.isdecimal() else value for name, value in options.items()},
            **_tls(mode),
        }

    def connect(self, guard: HostGuard, dialect: Dialect, arguments: Mapping[str, Any]) -> Any:
        """Connect a socket and let PyMySQL log in over it, because it takes no address beside the name."""
        if arguments.get(SOCKET_OPTION):
            return super().connect(guard, dialect, arguments)
        pymysql: Any = dialect.loaded_dbapi
        host = arguments.get("host") or HERE
        port = int(arguments.get("port") or _PORT)
        source = (arguments["bind_address"], 0) if arguments.get("bind_address") else None
        try:
            addresses = guard.reachable("host", host, port)
            made = _first(addresses, lambda each: _socket(each, port, arguments["connect_timeout"], source))
        except (OSError, UnicodeError) as error:
            message = f"Can't connect to MySQL server on {host!r} ({error})"
            raise pymysql.err.OperationalError(_UNREACHABLE, message) from error
        connection = pymysql.connect(**arguments, defer_connect=True)
        connection.connect(made)
        return connection

    def is_transient(self, error: BaseException) -> bool:
        number = error.args[0] if error.args else None
        if type(error).__name__ == "InterfaceError":
            # PyMySQL has no number for a connection that is closed.
            return number == 0
        return _passes(number, str(error))

    def is_transient_report(self, state: str, number: int, text: str) -> bool:
        # Connections that fail have no number of the server.
        return _passes(number, text) or state.startswith(_OF_CONNECTIONS)


def _passes(number: object, text: str) -> bool:
    return "read-only" in text if number == _READ_ONLY else number in _TRANSIENT


def _tls(mode: str | None) -> dict[str, Any]:
    if mode is None:
        return {}
    if mode == "disable":
        return {"ssl_disabled": True}
    context = ssl.create_default_context()
    context.check_hostname = mode == "verify-full"
    if mode == "require":
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}


def _first(addresses: Iterable[str], attempt: Callable[[str], socket.socket]) -> socket.socket:
    failure: OSError = OSError("the name has no address")
    for address in addresses:
        try:
            return attempt(address)
        except OSError as error:
            failure = error
    raise failure


def _socket(address: str, port: int, timeout: float, source: tuple[str, int] | None) -> socket.socket:
    made = socket.create_connection((address, port), timeout, source)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return made
