"""Single requests over connections to permitted addresses only, according to the worker's rules.

A name is resolved once, its addresses are checked, and the connection is made to one of those: a name that resolves to
another address the next time (DNS rebinding) gains nothing. Every connection passes through here, including redirects,
the token endpoint and the proxy, so that no spelling of an address evades the check.
"""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakSet

import urllib3
from requests import PreparedRequest, RequestException, Response, Timeout
from requests.adapters import HTTPAdapter
from requests.exceptions import InvalidURL, MissingSchema, SSLError
from requests.structures import CaseInsensitiveDict
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.poolmanager import PoolManager, ProxyManager

from connect.hosts import HostDeniedError, HostRules, Resolve
from connect.kits.http.content_encoding import BodyDecoder, BrokenBodyError, UnknownEncodingError
from connect.kits.http.messages import (
    HttpError,
    InvalidUrlError,
    NoAnswerError,
    RejectedError,
    Request,
    TimedOutError,
    UnreadableBodyError,
    UntrustedError,
    origin,
    shown_address,
)
from connect.kits.http.settings import ClientSettings, Remedies

__all__ = ["Connections", "Stream", "Transport"]

_PART_BYTES: Final = 1 << 16
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD"})


class Stream:
    """A response whose body is still arriving; closing it ends the connection."""

    def __init__(self, response: Response, url: str, remedies: Remedies) -> None:
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self.url = url
        self._response = response
        self._remedies = remedies
        self._decoder: BodyDecoder | None = None
        self._decoded: Iterator[bytes] = iter(())

    def read(self) -> bytes:
        """Return the next bytes as soon as there are some; empty at the end.

        Raises :class:`~connect.kits.http.messages.NoAnswerError` if the body ends too early, its compressed data
        included.
        """
        if self._decoder is None:
            self._decoder = self._decoder_of_body()
        try:
            while not (part := next(self._decoded, b"")) and (received := self._received()):
                self._decoded = self._decoder.decode(received)
            if not part:
                self._decoder.check_end()
        except BrokenBodyError as error:
            raise NoAnswerError(
                f"{shown_address(self.url)} did not send its complete answer: {error}.",
                f"its answer is unusable: {error}",
            ) from None
        return part

    def close(self) -> None:
        """Close the connection, whatever is left of the body."""
        self._response.close()

    def finish(self) -> None:
        """Return the connection to the pool, after the body has been read to its end."""
        self._response.raw.release_conn()

    def _received(self) -> bytes:
        with _translated_errors(self.url, self._remedies, "its answer is cut off"):
            part: bytes = self._response.raw.read1(_PART_BYTES, decode_content=False)
            return part

    def _decoder_of_body(self) -> BodyDecoder:
        try:
            return BodyDecoder(self.headers.get("content-encoding"))
        except UnknownEncodingError as error:
            raise UnreadableBodyError(
                f"{shown_address(self.url)} is not understood: {error}. {self._remedies.unreadable}",
                f"its answer is unusable: {error}",
            ) from None


class Transport:
    """Makes single requests. Thread-safe; :meth:`abort` ends all waiting."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._connections = Connections(settings.rules)
        self._adapter = _CheckedAdapter(self._connections, settings.tls, settings.max_connections)
        proxy = settings.proxy
        self._proxies = {} if proxy is None else {"http": proxy.value, "https": proxy.value}

    def send(self, request: Request) -> Stream:
        """Send a request, headers and all, as it is."""
        prepared, remedies = PreparedRequest(), self._settings.remedies
        with _translated_errors(request.url, remedies, "no connection"):
            prepared.prepare_method(request.method)
            prepared.prepare_url(request.url, None)
            # Encode as UTF-8; requests would fail for characters outside Latin-1.
            encoded: Any = {name: value.encode() for name, value in request.headers.items()}
            prepared.headers = CaseInsensitiveDict(encoded)
            prepared.body = request.body
            if request.body is not None or request.method not in _WITHOUT_BODY:
                prepared.headers["Content-Length"] = str(len(request.body or b""))
            if self._proxies:
                _, host, port = origin(request.url)
                self._connections.check_target(host, port)
            response = self._adapter.send(
                prepared, stream=True, timeout=self._settings.timeouts, verify=True, proxies=self._proxies
            )
        return Stream(response, request.url, remedies)

    def abort(self) -> None:
        """Abort every exchange under way; no other can be made."""
        self._connections.abort()

    def close(self) -> None:
        """Close the connections."""
        self._connections.abort()
        self._adapter.close()


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
        try:
            return self.rules.reachable(host, port, self._resolve)
        except UnicodeError:
            raise NameResolutionError(host, connection, socket.gaierror("the name is invalid")) from None
        except socket.gaierror as error:
            raise NameResolutionError(host, connection, error) from error


class _CheckedAdapter(HTTPAdapter):
    """Sends the requests of a session over checked connections."""

    def __init__(self, connections: Connections, context: ssl.SSLContext, most: int) -> None:
        self._connections = connections
        self._context = context
        self._pools = _checked_pools(connections)
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
        # urllib3 verifies the name itself if the context does not, unless disabled.
        unnamed = {} if self._context.check_hostname else {"assert_hostname": False}
        return {"ssl_context": self._context, **unnamed}


def _checked_pools(connections: Connections) -> dict[str, type[HTTPConnectionPool]]:
    """Return the classes of pools, by scheme, whose connections are checked."""

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return connections.connect(self, self._dns_host, self.port or self.default_port, self.timeout)

        def connect(self) -> None:
            connections.opened(self)
            super().connect()
            connections.opened(self)

    class Encrypted(Plain, HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            # The context decides what is trusted; trusting everybody gives one warning, not one per connection.
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
        # Not SSLSocket's own method, which removes the state that the other thread is reading with.
        socket.socket.shutdown(made, socket.SHUT_RDWR)
    except OSError:
        return


@contextmanager
def _translated_errors(url: str, remedies: Remedies, failure: str) -> Iterator[None]:
    """Turn the library's errors, which show whole URLs, into errors without secrets; ``failure`` says what they mean.

    They are not chained, for the same reason.
    """
    place, handled = shown_address(url), sys.exception()
    try:
        yield
    except HostDeniedError:
        raise
    except (InvalidURL, MissingSchema, UnicodeError, ValueError) as error:
        if isinstance(error, (RequestException, UnicodeError)):
            raise InvalidUrlError(f"{place} is not a valid URL: correct it.") from None
        name = type(error).__name__
        raise NoAnswerError(f"{place} does not answer: {name}.", f"{failure} ({name})") from None
    except (RequestException, urllib3.exceptions.HTTPError, OSError, AttributeError) as error:
        # AttributeError: another thread has closed the connection.
        raise _translated(error, list(_parts(error, handled)), place, remedies, failure) from None


def _translated(
    error: Exception, parts: list[BaseException], place: str, remedies: Remedies, failure: str
) -> HttpError:
    reasons = [part.strerror for part in parts if isinstance(part, OSError) and part.strerror]
    said = reasons[-1] if reasons else None
    cause = said or type(parts[-1]).__name__
    for part in parts:
        distrust: type[UntrustedError] | None = None
        if isinstance(part, ssl.SSLCertVerificationError):
            distrust, why = UntrustedError, part.verify_message or part.reason
        elif isinstance(part, ssl.SSLError) and "ALERT" in (part.reason or "").upper():
            distrust, why = RejectedError, part.reason
        if distrust is not None:
            return distrust(
                f"{place} is not trusted, or does not trust the client: {why}. {remedies.untrusted}",
                f"TLS fails ({cause})",
            )
    if isinstance(error, (Timeout, urllib3.exceptions.TimeoutError, TimeoutError)):
        return TimedOutError(f"{place} does not answer in time.", "no answer in time")
    if isinstance(error, SSLError):
        failure = "TLS fails"
    return NoAnswerError(f"{place} does not answer: {said or type(error).__name__}.", f"{failure} ({cause})")


def _parts(error: BaseException, handled: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, without ``handled``, to which Python chains what is raised meanwhile."""
    waiting, seen = [error], {id(handled)}
    while waiting:
        part = waiting.pop(0)
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        reason = getattr(part, "reason", None)
        inner = (part.__cause__, part.__context__, reason, *part.args)
        waiting += [each for each in inner if isinstance(each, BaseException)]
