"""The web server of the REST API: Cheroot, one server a listener."""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from cheroot.wsgi import Server
from flask import Flask

from connect.errors import ConnectError
from rest.listeners import Address, Listener, advertised, parse_listeners
from rest.tls import TlsSettings
from rest.tls_sockets import TlsAdapter
from worker.config import WorkerConfig

__all__ = ["THREADS", "RestServer"]

logger = logging.getLogger(__name__)

THREADS: Final = 32
"""How many requests a listener answers at once. One that waits for the herder, a plugin or another worker takes a
thread for up to 90 s; :mod:`rest.forwarding` takes no more than half of them, so that reads are answered meanwhile."""

_KEPT_CONNECTIONS: Final = 128
_BACKLOG: Final = 128
"""So many clients may come at once; of more than Cheroot's five some would wait for a second."""

_CLOSE_SECONDS: Final = 5
_MARGIN_SECONDS: Final = 1.0
_NOT_READY: Final = "The worker is starting and is not ready to handle requests."
_STARTING: Final = b'{"error_code":503,"message":"%s"}' % _NOT_READY.encode()
_STARTING_HEALTH: Final = b'{"status":"starting","message":"%s"}' % _NOT_READY.encode()


class RestServer:
    """Listens at the ``listeners`` as soon as it is made, answers 503 until it is given its app, and then with that.

    ``key`` is the key of the configuration that names them, and ``tls`` is for those that begin with ``https://``.
    Raises :class:`~connect.errors.ConfigError` for a listener it cannot serve, and
    :class:`~connect.errors.ConnectError` for an address it cannot have.
    """

    def __init__(self, listeners: Sequence[str], tls: TlsSettings | None = None, *, key: str = "listeners") -> None:
        self._app: Any = _starting
        self._listeners = parse_listeners(key, listeners)
        wants_tls = any(listener.scheme == "https" for listener in self._listeners)
        self._context = (tls or TlsSettings({})).server_context() if wants_tls else None
        self._servers: list[_Server] = []
        try:
            for listener in self._listeners:
                self._servers.append(self._server(listener, key))
        except ConnectError:
            for server in self._servers:
                server.stop()
            raise
        self._threads = [threading.Thread(target=server.serve, name="rest", daemon=True) for server in self._servers]
        for thread in self._threads:
            thread.start()

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners with the ports they have."""
        bound = zip(self._listeners, self._servers, strict=True)
        return tuple(replace(listener, port=server.bind_addr[1]) for listener, server in bound)

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self.listeners[0].port

    @property
    def host(self) -> str:
        """The host of the first listener; this machine's name if it listens on every interface."""
        host = self._listeners[0].host
        return socket.getfqdn() if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - compared, not bound

    def advertised(self, config: WorkerConfig) -> Address:
        """Where users and other workers reach this one; see :func:`rest.listeners.advertised`."""
        return advertised(config, self.listeners)

    def answer_with(self, app: Flask) -> None:
        """Answer requests with this app from now on."""
        self._app = app

    def close(self) -> None:
        """Listen no more, and wait a moment for the requests that are being answered.

        One that is not answered within 5 s is left behind with its thread, for it may wait for another worker yet, and
        its connection ends with the process: such threads do not keep it.
        """
        stops = [threading.Thread(target=server.stop, name="rest-stop", daemon=True) for server in self._servers]
        for stop in stops:
            stop.start()
        deadline = time.monotonic() + _CLOSE_SECONDS + _MARGIN_SECONDS
        for thread in (*stops, *self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _server(self, listener: Listener, key: str) -> _Server:
        host = listener.host or _every_interface()
        server = _Server((host, listener.port), self._answer, numthreads=THREADS, server_name="sluice")
        server.keep_alive_conn_limit = _KEPT_CONNECTIONS
        server.request_queue_size = _BACKLOG
        server.shutdown_timeout = _CLOSE_SECONDS
        server.error_log = _log  # type: ignore[method-assign,assignment]
        if listener.scheme == "https" and self._context is not None:
            server.ssl_adapter = TlsAdapter(self._context)
        try:
            _as_daemon(server.prepare)
        except OSError as error:
            raise ConnectError(
                f"The REST API cannot listen at {listener.url}: {error}. Name another address or port in {key}."
            ) from error
        return server

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        def start(status: str, *rest: Any) -> Any:
            return start_response(_as_java_says(status), *rest)

        answered: Iterable[bytes] = self._app(environ, start)
        return answered


class _Server(Server):
    """Cheroot's server, for which a connection takes a thread only when something has come over it.

    Browsers and load balancers open connections in advance: as many as there are threads kept everybody out.
    """

    def process_conn(self, conn: Any) -> None:
        """Have a thread answer what has come, or wait for it among the connections that are kept."""
        if conn.rfile.has_data() or _has_come(conn.socket):
            super().process_conn(conn)
        else:
            self.put_conn(conn)


def _as_java_says(status: str) -> str:
    """A status line's code with the words that Kafka Connect's server has for it, for clients that show them."""
    code = int(status.partition(" ")[0])
    return f"{code} {'Server Error' if code == HTTPStatus.INTERNAL_SERVER_ERROR else HTTPStatus(code).phrase}"


def _has_come(connection: socket.socket) -> bool:
    looked = select.poll()
    looked.register(connection, select.POLLIN)
    return bool(looked.poll(0))


def _every_interface() -> str:
    """The address that stands for all of IPv4 and, where the machine has it, IPv6; Cheroot takes no empty host."""
    return "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - what a listener without a host asks for


def _as_daemon(action: Callable[[], None]) -> None:
    """Do this in a thread that the process does not wait for; the threads that it starts are such threads as well."""
    outcome: Future[None] = Future()

    def act() -> None:
        try:
            action()
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=act, name="rest-prepare", daemon=True).start()
    outcome.result()


def _log(message: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
    """What Cheroot has to say of connections and of its own errors."""
    logger.log(level, "The REST server: %s", message, exc_info=traceback)


def _starting(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("503 Service Unavailable", [("Content-Type", "application/json")])
    return [_STARTING_HEALTH if environ["PATH_INFO"].rstrip("/") == "/health" else _STARTING]
