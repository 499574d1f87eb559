"""The web server of the REST API: Cheroot, one server a listener."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from cheroot.wsgi import Server
from flask import Flask

from connect.errors import ConfigError, ConnectError

__all__ = ["RestServer"]

_THREADS: Final = 8
_NOT_READY: Final = "The worker is starting and is not ready to handle requests."
_STARTING: Final = b'{"error_code":503,"message":"%s"}' % _NOT_READY.encode()
_STARTING_HEALTH: Final = b'{"status":"starting","message":"%s"}' % _NOT_READY.encode()


class RestServer:
    """Listens at the ``listeners`` as soon as it is made, answers 503 until it is given its app, and then with that.

    Raises :class:`~connect.errors.ConfigError` for a listener it cannot serve, and
    :class:`~connect.errors.ConnectError` for an address it cannot have.
    """

    def __init__(self, listeners: Sequence[str]) -> None:
        self._app: Any = _starting
        self._addresses = [_address(listener) for listener in listeners]
        self._servers = [self._server(listener, at) for listener, at in zip(listeners, self._addresses, strict=True)]
        self._threads = [threading.Thread(target=server.serve, name="rest") for server in self._servers]
        for thread in self._threads:
            thread.start()

    @property
    def port(self) -> int:
        """The port of the first listener."""
        port: int = self._servers[0].bind_addr[1]
        return port

    @property
    def host(self) -> str:
        """The host of the first listener; this machine's name if it listens on every interface."""
        host = self._addresses[0][0]
        return socket.getfqdn() if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - compared, not bound

    def answer_with(self, app: Flask) -> None:
        """Answer requests with this app from now on."""
        self._app = app

    def close(self) -> None:
        """Finish the requests that are being answered and listen no more."""
        for server in self._servers:
            server.stop()
        for thread in self._threads:
            thread.join()

    def _server(self, listener: str, address: tuple[str, int]) -> Server:
        server = Server(address, self._answer, numthreads=_THREADS, server_name="sluice")
        try:
            server.prepare()
        except OSError as error:
            raise ConnectError(
                f"The REST API cannot listen at {listener}: {error}. Name another address or port in listeners."
            ) from error
        return server

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        answered: Iterable[bytes] = self._app(environ, start_response)
        return answered


def _starting(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("503 Service Unavailable", [("Content-Type", "application/json")])
    return [_STARTING_HEALTH if environ["PATH_INFO"].rstrip("/") == "/health" else _STARTING]


def _address(listener: str) -> tuple[str, int]:
    url = urlsplit(listener)
    if url.scheme != "http":
        raise ConfigError("listeners", listener, "Only http:// is served; put a proxy in front of it for https")
    try:
        port = url.port
    except ValueError:
        port = None
    if port is None:
        raise ConfigError("listeners", listener, "A listener names its port, as in http://localhost:8083")
    return url.hostname or "", port
