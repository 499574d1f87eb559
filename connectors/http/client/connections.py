"""Connections to permitted addresses only, according to the worker's rules.

A name is resolved once, its addresses are checked, and the connection is made to one of those: a name that resolves to
another address the next time (DNS rebinding) gains nothing. Every connection passes through here, including redirects,
the token endpoint and the proxy, so that no spelling of an address evades the check.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias
from weakref import WeakSet

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.poolmanager import PoolManager, ProxyManager

from connect.hosts import HostRules

__all__ = ["CheckedAdapter", "Connections"]

Resolve: TypeAlias = Callable[..., Sequence[tuple[Any, ...]]]
"""Finds the addresses of a name, as :func:`socket.getaddrinfo` does."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Connections:
    """Opens sockets to permitted addresses, and keeps track of them so that another thread can abort them."""

    def __init__(self, rules: HostRules, resolve: Resolve = socket.getaddrinfo) -> None:
        self.rules = rules
        self._resolve = resolve
        self._lock = threading.Lock()
        self._open: WeakSet[HTTPConnection] = WeakSet()
        self._aborted = False

    def connect(self, connection: HTTPConnection, host: str, port: int, timeout: Any) -> socket.socket:
        """Return a socket to the first permitted address of the host that answers."""
        addresses = self._resolved(connection, host, port)
        failure: OSError = OSError("the name has no address")
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            made = socket.socket(family, socket.SOCK_STREAM)
            try:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if isinstance(timeout, (int, float)):
                    made.settimeout(timeout)
                made.connect((address, port))
            except OSError as error:
                made.close()
                failure = error
            else:
                return made
        if isinstance(failure, TimeoutError):
            raise ConnectTimeoutError(connection, "the connection timed out") from failure
        raise NewConnectionError(connection, failure.strerror or str(failure)) from failure

    def opened(self, connection: HTTPConnection) -> None:
        """Register a connection for :meth:`abort`; one that comes too late is aborted at once."""
        with self._lock:
            self._open.add(connection)
            late = self._aborted
        if late:
            _shut(connection)

    def abort(self) -> None:
        """Abort every connection: a thread that waits for an answer gets an error at once."""
        with self._lock:
            self._aborted = True
            connections = list(self._open)
        for connection in connections:
            _shut(connection)

    def check_target(self, host: str, port: int) -> None:
        """Check a host that a proxy is to connect to, by its name, and by its addresses if it resolves here."""
        self.rules.check_name(host)
        try:
            answers = self._resolve(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        self.rules.permitted(host, dict.fromkeys(str(answer[4][0]) for answer in answers))

    def _resolved(self, connection: HTTPConnection, host: str, port: int) -> list[str]:
        self.rules.check_name(host)
        try:
            answers = self._resolve(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except UnicodeError:
            raise NameResolutionError(host, connection, socket.gaierror("the name is invalid")) from None
        except socket.gaierror as error:
            raise NameResolutionError(host, connection, error) from error
        return self.rules.permitted(host, dict.fromkeys(str(answer[4][0]) for answer in answers))


class CheckedAdapter(HTTPAdapter):
    """Sends the requests of a session over checked connections."""

    def __init__(self, connections: Connections, context: ssl.SSLContext, most: int) -> None:
        self._connections = connections
        self._context = context
        self._pools = _pool_classes(connections)
        super().__init__(pool_maxsize=most)

    def get_connection_with_tls_context(
        self,
        request: PreparedRequest,
        verify: bool | str | None,  # noqa: ARG002
        proxies: Mapping[str, str] | None = None,
        cert: Any = None,  # noqa: ARG002
    ) -> HTTPConnectionPool:
        """Return the pool for a request. Only the context decides what is trusted; requests would add to it."""
        proxy = (proxies or {}).get("https")
        manager = self.proxy_manager_for(proxy) if proxy else self.poolmanager
        return manager.connection_from_url(request.url or "")

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Leave the pool unchanged, for the same reason."""

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        """Create the pools of direct connections."""
        self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, **self._tls(), **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> ProxyManager:
        """Return the pools of connections through a proxy."""
        made: ProxyManager = super().proxy_manager_for(proxy, **self._tls(), **kwargs)
        made.pool_classes_by_scheme = self._pools
        return made

    def _tls(self) -> dict[str, Any]:
        # urllib3 looks at the name itself where the context does not, unless it is told not to.
        unnamed = {} if self._context.check_hostname else {"assert_hostname": False}
        return {"ssl_context": self._context, **unnamed}


def _pool_classes(connections: Connections) -> dict[str, type[HTTPConnectionPool]]:
    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return connections.connect(self, self._dns_host, self.port or _DEFAULT_PORTS["http"], self.timeout)

        def connect(self) -> None:
            connections.opened(self)
            super().connect()
            connections.opened(self)

    class Encrypted(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return connections.connect(self, self._dns_host, self.port or _DEFAULT_PORTS["https"], self.timeout)

        def connect(self) -> None:
            connections.opened(self)
            super().connect()
            connections.opened(self)
            # The context says what is trusted; whoever trusts everybody is warned once, and not for each connection.
            self.is_verified = True

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = Encrypted

    return {"http": PlainPool, "https": EncryptedPool}


def _shut(connection: HTTPConnection) -> None:
    made = connection.sock
    if made is None:
        return
    try:
        # Not SSLSocket's own, which takes the state away that the other thread reads with.
        socket.socket.shutdown(made, socket.SHUT_RDWR)
    except OSError:
        return
