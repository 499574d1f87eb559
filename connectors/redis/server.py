"""Where a server is, and clients of it: one server, the master that sentinels know, or a cluster."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, Protocol, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from connect.errors import ConnectError
from connect.hosts import HostDeniedError, HostRules
from connectors.redis.failures import told

__all__ = ["Client", "Layout", "Line", "Server", "UnusableUriError", "connected", "host_problems", "place", "server_of"]


DEFAULT_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379
_SCHEMES: Final = ("redis", "rediss", "redis-sentinel", "rediss-sentinel", "redis-socket")
_LONGEST_CONNECT_SECONDS: Final = 10.0
_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "ns": 1e-9}


class Client(Protocol):
    """What the connectors need of the library's clients."""

    def execute_command(self, *command: Any) -> Any:
        """Send a command, and return the answer."""

    def pipeline(self, transaction: bool) -> Any:
        """Return a pipeline, or a transaction."""

    def set_response_callback(self, command: str, callback: Callable[..., Any]) -> None:
        """Set what reads the answers to a command."""

    def close(self) -> None:
        """Close the connection."""


class Line:
    """The connection of a client, which reconnects by itself if the server has closed it, except while it is held.

    What a server that was restarted does not have any more is seen by its offsets. They would be moved on without it if
    the server were another one by then than the one that was written to.
    """

    def __init__(self) -> None:
        self._is_held = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Refuse to reconnect until the end of this block."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def connect(self, connection: Any) -> None:
        """Sign in by a new connection; the client calls it."""
        from redis.exceptions import ConnectionError as BrokenConnectionError  # noqa: PLC0415

        if self._is_held:
            raise BrokenConnectionError("The connection has broken")
        connection.on_connect()


class UnusableUriError(Exception):
    """A URI is not one of Redis. The text says why, without secrets."""


class Layout(Enum):
    """How a database is spread over servers."""

    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Server:
    """Where a database is, and how to sign in. ``hosts`` are the sentinels if there are any."""

    hosts: tuple[tuple[str, int], ...]
    layout: Layout = Layout.SINGLE
    master: str = ""
    socket: str = ""
    database: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    uses_tls: bool = False
    verifies: bool = True
    timeout_seconds: float = 60.0
    connect_seconds: float = _LONGEST_CONNECT_SECONDS
    keepalive: bool = True
    client_name: str | None = None

    @property
    def shown(self) -> str:
        """Return the hosts and the database, as source partitions show them."""
        place = self.socket or ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"{place}/{self.database}"


def server_of(uri: str) -> Server:
    """Return what a URI in Lettuce's syntax says: ``redis://[[user:]password@]host[:port][/database][?options]``.

    ``rediss`` uses TLS, ``redis-sentinel`` lists sentinels and names the master after ``#``, ``redis-socket`` is
    followed by the path of a socket. Raises :class:`UnusableUriError`.
    """
    try:
        parts = urlsplit(uri)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise UnusableUriError("it cannot be parsed") from error
    if parts.scheme not in _SCHEMES:
        raise UnusableUriError(f"it begins with none of {', '.join(f'{scheme}://' for scheme in _SCHEMES)}")
    unknown = sorted(
        options.keys() - {"timeout", "database", "clientName", "libraryName", "libraryVersion", "verifyPeer"}
    )
    if unknown:
        raise UnusableUriError(f"it has options that are unknown: {', '.join(unknown)}")
    username, password, hosts = _authority(parts.netloc, parts.scheme)
    is_socket = parts.scheme == "redis-socket"
    if not hosts and not is_socket:
        raise UnusableUriError("it names no host")
    is_sentinel = parts.scheme.endswith("-sentinel")
    if is_sentinel and not parts.fragment:
        raise UnusableUriError("it does not name the master that the sentinels know: add #NAME")
    found = Server(
        hosts=hosts,
        layout=Layout.SENTINEL if is_sentinel else Layout.SINGLE,
        master=unquote(parts.fragment),
        socket=unquote(parts.path) if is_socket else "",
        database=_database(options.get("database", "") or ("" if is_socket else parts.path.strip("/"))),
        username=username,
        password=password,
        uses_tls=parts.scheme.startswith("rediss"),
        verifies=options.get("verifyPeer", "").lower() not in ("none", "false"),
        client_name=options.get("clientName") or None,
    )
    return replace(found, timeout_seconds=_seconds(options["timeout"])) if "timeout" in options else found


def _authority(text: str, scheme: str) -> tuple[str | None, str | None, tuple[tuple[str, int], ...]]:
    credentials, _, places = text.rpartition("@")
    username, colon, password = credentials.partition(":")
    if not colon:
        username, password = "", credentials
    port = _SENTINEL_PORT if scheme.endswith("-sentinel") else DEFAULT_PORT
    hosts = tuple(place(text.strip(), port) for text in places.split(",") if text.strip())
    return unquote(username) or None, unquote(password) or None, hosts


def place(text: str, default: int = DEFAULT_PORT) -> tuple[str, int]:
    """Return the host and the port of ``HOST:PORT``; raise :class:`UnusableUriError` if it is malformed."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host:
        raise UnusableUriError("a host is malformed: write HOST:PORT")
    return host, port or default


def _database(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise UnusableUriError("the database is no number")
    return int(text)


def _seconds(text: str) -> float:
    unit = text.lstrip("0123456789")
    number = text.removesuffix(unit)
    if not number or (unit and unit not in _UNITS):
        raise UnusableUriError("the timeout is no number with a unit such as 30s")
    # Lettuce reads a number without a unit as milliseconds.
    return int(number) * _UNITS[unit or "ms"]


def host_problems(server: Server, rules: HostRules) -> Iterator[str]:
    """Yield why a host may not be reached."""
    for host, _ in server.hosts:
        try:
            rules.check_name(host)
        except HostDeniedError as error:
            yield str(error)


def connected(server: Server, rules: HostRules, tls: Callable[[], dict[str, Any]], line: Line | None = None) -> Client:
    """Return a client of one connection. That of a cluster connects at once, others when they are first used.

    ``tls`` returns the client's options for certificates, and is only asked where TLS is used. The client never repeats
    a command on its own: whether one that was cut off has happened is unknown. ``line`` is of no use in a cluster, each
    node of which has its own connections.
    """
    for host, port in server.hosts:
        rules.check_all(host, port)
    options = _options(server) | (_tls(server, tls) if server.uses_tls else {})
    if line is not None and server.layout is not Layout.CLUSTER:
        options["redis_connect_func"] = line.connect
    with told("connect to Redis"):
        match server.layout:
            case Layout.CLUSTER:
                return _cluster(server, rules, options)
            case Layout.SENTINEL:
                return _master(server, rules, options)
            case _:
                return _single(server, options)


def _options(server: Server) -> dict[str, Any]:
    from redis.backoff import NoBackoff  # noqa: PLC0415 - the client is loaded only where it is used
    from redis.retry import Retry  # noqa: PLC0415

    return {
        "username": server.username,
        "password": server.password,
        "socket_timeout": server.timeout_seconds,
        "socket_connect_timeout": min(server.connect_seconds, server.timeout_seconds),
        "socket_keepalive": server.keepalive,
        "client_name": server.client_name or "sluice",
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }


def _tls(server: Server, files: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return {
        "ssl": True,
        "ssl_cert_reqs": ssl.CERT_REQUIRED if server.verifies else ssl.CERT_NONE,
        "ssl_check_hostname": server.verifies,
        **files(),
    }


def _single(server: Server, options: dict[str, Any]) -> Client:
    from redis import Redis  # noqa: PLC0415

    place: dict[str, Any] = {"unix_socket_path": server.socket}
    if not server.socket:
        place = {"host": server.hosts[0][0], "port": server.hosts[0][1]}
    return cast("Client", Redis(**place, db=server.database, max_connections=1, **options))


def _master(server: Server, rules: HostRules, options: dict[str, Any]) -> Client:
    from redis.sentinel import Sentinel  # noqa: PLC0415

    kept = ("socket_timeout", "socket_connect_timeout", "retry", "protocol")
    own = {key: options[key] for key in kept} | {key: value for key, value in options.items() if key.startswith("ssl")}
    sentinels: Any = Sentinel(  # type: ignore[no-untyped-call]
        list(server.hosts), sentinel_kwargs=own, db=server.database, **options
    )
    host, port = sentinels.discover_master(server.master)
    # Sentinels may name any host.
    rules.check_all(str(host), int(port))
    return _single(replace(server, hosts=((str(host), int(port)),)), options)


def _cluster(server: Server, rules: HostRules, options: dict[str, Any]) -> Client:
    from redis.cluster import ClusterNode, RedisCluster  # noqa: PLC0415

    if server.database:
        raise ConnectError("A cluster has no databases but 0: remove the database from redis.uri (redis.database=0).")

    def checked(address: tuple[str, int]) -> tuple[str, int]:
        rules.check_all(*address)
        return address

    nodes = [ClusterNode(host, port) for host, port in server.hosts]  # type: ignore[no-untyped-call]
    return cast("Client", RedisCluster(startup_nodes=nodes, address_remap=checked, **options))
