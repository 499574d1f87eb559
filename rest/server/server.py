"""The web server of the REST API: Waitress, with one server per listener, TLS, deadlines and separate thread pools."""

from __future__ import annotations

import logging
import resource
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import Enum
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from flask import Flask
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer
from waitress.task import hop_by_hop

from connect.errors import ConnectError
from rest.server.channels import Channel, TlsChannel
from rest.server.limits import LIMITS, Limits
from rest.server.listeners import Address, Listener, advertised, parse_listeners
from rest.server.threads import RequestThreads
from rest.server.tls import TlsSettings
from worker.config.worker import WorkerConfig

__all__ = ["RestServer"]

logger = logging.getLogger(__name__)

_BACKLOG: Final = 128
"""How many new connections may wait to be accepted."""

_QUIET_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 5.0
_FLUSH_SECONDS: Final = 1.0
_NOT_READY: Final = "The worker is starting and is not ready to handle requests."
_STARTING: Final = b'{"error_code":503,"message":"%s"}' % _NOT_READY.encode()
_STARTING_ANSWERS: Final = {
    "/health": b'{"status":"starting","message":"%s"}' % _NOT_READY.encode(),
    "/health/live": b'{"status":"alive","reasons":[]}',
    "/health/ready": b'{"status":"not ready","reasons":["%s"]}' % _NOT_READY.encode(),
}


class _Stage(Enum):
    SERVING = 1
    CLOSING = 2
    CLOSED = 3


class RestServer:
    """Listens on the ``listeners`` from its creation, and answers 503 until it gets its app.

    ``key`` is the configuration key that names the listeners, and ``tls`` is for listeners that begin with
    ``https://``. Raises :class:`~connect.errors.ConfigError` for an invalid listener, and
    :class:`~connect.errors.ConnectError` for an address it cannot listen on.
    """

    def __init__(
        self,
        listeners: Sequence[str],
        tls: TlsSettings | None = None,
        *,
        key: str = "listeners",
        limits: Limits = LIMITS,
    ) -> None:
        self._app: Any = _starting
        limits = limits.within_open_files()
        self._listeners = parse_listeners(key, listeners)
        self._stage = _Stage.SERVING
        self._waking = threading.Lock()
        wants_tls = any(listener.scheme == "https" for listener in self._listeners)
        context = (tls or TlsSettings({})).server_context() if wants_tls else None
        self._request_threads = RequestThreads()
        self._map: dict[int, Any] = {}
        with ExitStack() as opened:
            bound = [opened.enter_context(_bind(listener, key)) for listener in self._listeners]
            self._servers = [
                _Server(
                    self._answer,
                    self._map,
                    sock,
                    self._request_threads,
                    limits,
                    context if url.scheme == "https" else None,
                )
                for url, sock in zip(self._listeners, bound, strict=True)
            ]
            opened.pop_all()
        self._thread = threading.Thread(target=self._serve, name="rest", daemon=True)
        self._thread.start()

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners with their actual ports."""
        bound = zip(self._listeners, self._servers, strict=True)
        return tuple(replace(listener, port=int(server.effective_port)) for listener, server in bound)

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self.listeners[0].port

    @property
    def host(self) -> str:
        """The host of the first listener, or this machine's name if it listens on all interfaces."""
        host = self._listeners[0].host
        return socket.getfqdn() if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - compared, not bound

    def advertised(self, config: WorkerConfig) -> Address:
        """Return the address for users and other workers; see :func:`rest.server.listeners.advertised`."""
        return advertised(config, self.listeners)

    def answer_with(self, app: Flask) -> None:
        """Answer requests with this app from now on."""
        self._app = app

    def close(self) -> None:
        """Stop listening, and wait a moment for the requests that are being answered.

        A request not answered within 5 s is abandoned with its thread, since it may be waiting for another worker. Its
        connection ends with the process, which such threads do not keep alive.
        """
        if self._stage is not _Stage.SERVING:
            return
        self._enter(_Stage.CLOSING)
        self._request_threads.shutdown(_CLOSE_SECONDS)
        self._enter(_Stage.CLOSED)
        self._thread.join(_FLUSH_SECONDS)

    def _enter(self, stage: _Stage) -> None:
        # A thread that sees the last stage must not close the trigger before it is pulled.
        with self._waking:
            self._stage = stage
            self._servers[0].pull_trigger()

    def _serve(self) -> None:
        """Read requests and write answers until the server is closed."""
        while self._stage is _Stage.SERVING:
            self._turn()
        for server in self._servers:
            server.listen_no_more()
        while self._stage is _Stage.CLOSING:
            self._turn()
        while any(server.is_busy() for server in self._servers):
            self._turn()
        with self._waking:
            wasyncore.close_all(self._map, ignore_all=True)

    def _turn(self) -> None:
        try:
            wasyncore.loop(timeout=1.0, use_poll=True, map=self._map, count=1)
        except Exception:
            # If this thread ended, no request would be answered any more.
            logger.exception("The REST server failed to handle a connection; other connections are not affected")

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        def start(status: str, headers: Iterable[tuple[str, str]], *rest: Any) -> Any:
            # Waitress sets hop-by-hop headers and refuses them from an app, but an operator may have configured one.
            own = [header for header in headers if header[0].lower() not in hop_by_hop]
            return start_response(_as_java_says(status), own, *rest)

        answered: Iterable[bytes] = self._app(environ, start)
        return answered


class _Server(TcpWSGIServer):  # type: ignore[misc]
    """The server of one listener."""

    def __init__(
        self,
        app: Any,
        channels: dict[int, Any],
        sock: socket.socket,
        threads: RequestThreads,
        limits: Limits,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._limits = limits
        self._quiet_until = 0.0
        self.channel_class = Channel if tls is None else partial(TlsChannel, tls)
        sockinfo = (sock.family, sock.type, sock.proto, sock.getsockname())
        adjustments = _adjustments(limits, "http" if tls is None else "https")
        super().__init__(
            app, channels, _sock=sock, dispatcher=threads, adj=adjustments, sockinfo=sockinfo, bind_socket=False
        )

    def handle_accept(self) -> None:
        """Accept a new connection."""
        try:
            super().handle_accept()
        except OSError as error:
            logger.info("A client disconnected before it was accepted: %s", error)

    def maintenance(self, now: float) -> None:  # noqa: ARG002 - Waitress gives it
        """Refuse or disconnect slow clients (called once a second)."""
        limits = self._limits
        self._tell_of_overflow()
        idle = limits.idle_seconds_when_full if self.in_connection_overflow else limits.idle_seconds
        for channel in tuple(self.active_channels.values()):
            channel.keep(limits, idle)

    def _tell_of_overflow(self) -> None:
        """Log that there are as many connections as allowed, once a minute while that lasts."""
        now = time.monotonic()
        if not self.in_connection_overflow or now < self._quiet_until:
            return
        self._quiet_until = now + _QUIET_SECONDS
        logger.warning(
            "The REST API has as many connections as it may have (%s): further clients wait until one is closed. "
            "Look for clients that leave connections open, or raise rest.max.connections, and the number of files that "
            "the worker may open (ulimit -n, now %s), of which connections take half at most.",
            self._limits.connections,
            resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )

    def is_full(self, request: Any) -> bool:
        """Return whether the body being received would exceed the memory limit of all bodies together."""
        if request.body_bytes_received <= self._limits.body_bytes_in_memory:
            return False
        held: int = sum(channel.held_bytes() for channel in tuple(self.active_channels.values()))
        return held > self._limits.all_bodies_bytes

    def listen_no_more(self) -> None:
        """Stop listening, and close the idle connections."""
        wasyncore.dispatcher.close(self)
        for channel in tuple(self.active_channels.values()):
            if not channel.requests:
                channel.close_when_flushed = True

    def is_busy(self) -> bool:
        """Return whether any request is still being answered."""
        channels = tuple(self.active_channels.values())
        return any(channel.requests or channel.total_outbufs_len for channel in channels)


def _adjustments(limits: Limits, scheme: str) -> Adjustments:
    # Waitress refuses values equal to a limit.
    return Adjustments(
        ident="sluice",
        server_name="sluice",
        url_scheme=scheme,
        backlog=_BACKLOG,
        max_request_header_size=limits.head_bytes + 1,
        max_request_body_size=limits.body_bytes + 1,
        inbuf_overflow=limits.body_bytes_in_memory,
        connection_limit=limits.connections,
        cleanup_interval=1,
        asyncore_use_poll=True,
        log_socket_errors=False,
        clear_untrusted_proxy_headers=False,
    )


def _bind(listener: Listener, key: str) -> socket.socket:
    try:
        if not listener.host and socket.has_dualstack_ipv6():
            return socket.create_server(("", listener.port), family=socket.AF_INET6, dualstack_ipv6=True)
        host = listener.host or None
        family, _, _, _, address = socket.getaddrinfo(host, listener.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        raise ConnectError(
            f"The REST API cannot listen on {listener.url}: {error}. Set another address or port in {key}."
        ) from error


def _as_java_says(status: str) -> str:
    """Return a status line with the reason phrases of Kafka Connect's server, which some clients display."""
    code = int(status.partition(" ")[0])
    return f"{code} {'Server Error' if code == HTTPStatus.INTERNAL_SERVER_ERROR else HTTPStatus(code).phrase}"


def _starting(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer while the worker starts: it is alive but not ready."""
    path = environ["PATH_INFO"].rstrip("/")
    status = "200 OK" if path == "/health/live" else "503 Service Unavailable"
    start_response(status, [("Content-Type", "application/json")])
    return [_STARTING_ANSWERS.get(path, _STARTING)]
