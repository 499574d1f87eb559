"""Connections of the REST server: a request occupies a thread only after it has arrived completely.

Everything here runs in the single I/O thread, except for the parts that Waitress runs in a request's thread.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from waitress.channel import HTTPChannel
from waitress.task import WSGITask

from rest.server.limits import BoundedRequest, Limits, Refusal, is_late
from rest.server.tls import CLIENT_CERTIFICATE

__all__ = ["Channel", "TlsChannel"]

_LINGER_SECONDS: Final = 3.0
_UNREADY: Final = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection that is closed if its client is too slow."""

    parser_class = BoundedRequest
    error_task_class = Refusal
    request: Any
    requests: list[Any]
    close_when_flushed: bool
    total_outbufs_len: int
    _lingers_until: float | None = None

    def keep(self, limits: Limits, idle_seconds: float) -> None:
        """Refuse the request or close the connection if the client is too slow; called once a second."""
        with self.requests_lock:
            self._refuse_if_late(limits)
        idle = time.time() - self.last_activity > idle_seconds
        if (idle and (not self.requests or self.total_outbufs_len)) or self._has_lingered():
            self.will_close = True

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Refuse the request that is being received; ``requests_lock`` is held, and no other request is pending."""
        self.request.refuse(status, reason)
        self.requests.append(self.request)
        self.request = None
        self.server.add_task(self)

    def held_bytes(self) -> int:
        """Return the number of body bytes that this connection holds in memory."""
        requests = [*self.requests, self.request]
        return sum(request.body_bytes_received for request in requests if request is not None)

    def received(self, data: bytes) -> bool:
        """Process received bytes."""
        if self._lingers_until is not None:
            return False
        taken: bool = super().received(data)
        with self.requests_lock:
            if self.request is not None and not self.requests and self.server.is_full(self.request):
                self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "Too much is being sent to this worker. Ask again later.")
        return taken

    def handle_write(self) -> None:
        """Write pending answers.

        A refused client may still be sending: if its connection were closed at once, it would never read the reason.
        """
        if self.close_when_flushed and not self.total_outbufs_len and self._lingers_until is None:
            self.close_when_flushed = False
            self._lingers_until = time.monotonic() + _LINGER_SECONDS
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
            return
        super().handle_write()

    def del_channel(self, channels: dict[int, Any] | None = None) -> None:
        """Close the connection and drop a half-received request; a request that is being answered keeps its body."""
        if self.request is not None:
            self.request.close()
            self.request = None
        super().del_channel(channels)

    def cancel(self) -> None:
        """Drop all waiting requests; none is being answered."""
        for request in self.requests:
            request.close()
        super().cancel()

    def _refuse_if_late(self, limits: Limits) -> None:
        request = self.request
        if request is None:
            return
        if not self.readable():
            # Reading is suspended until the answer to the previous request has been sent.
            request.began = time.monotonic()
        elif is_late(time.monotonic() - request.began, request.body_bytes_received, limits):
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, "Send the request faster.")

    def _has_lingered(self) -> bool:
        return self._lingers_until is not None and time.monotonic() > self._lingers_until


class _TlsTask(WSGITask):  # type: ignore[misc]
    """Answers a request received over TLS."""

    def get_environment(self) -> Any:
        """Return the request's environment, including the client's certificate."""
        environ = super().get_environment()
        environ[CLIENT_CERTIFICATE] = self.channel.client_certificate()
        return environ


class TlsChannel(Channel):
    """A TLS connection. The handshake runs when the client starts it; a client that fails it is disconnected."""

    task_class = _TlsTask

    def __init__(self, context: ssl.SSLContext, server: Any, sock: socket.socket, *args: Any, **options: Any) -> None:
        # A request's thread writes its answer while the I/O thread may read.
        self._one_at_a_time = threading.Lock()
        sock.setblocking(False)
        wrapped = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        super().__init__(server, wrapped, *args, **options)

    def handle_read(self) -> None:
        """Read and decrypt received bytes, which may not contain any application data yet."""
        if data := self._decrypted():
            self.last_activity = time.time()
            self.received(data)

    def send(self, data: bytes, do_close: bool = True) -> int:
        """Write as much as the socket accepts now, and return the number of bytes written."""
        with self._one_at_a_time:
            try:
                sent: int = super().send(data, do_close)
            except _UNREADY:
                return 0
            return sent

    def client_certificate(self) -> Mapping[str, Any] | None:
        """Return the client's verified certificate, if it presented one."""
        with self._one_at_a_time:
            certificate: Mapping[str, Any] | None = self.socket.getpeercert()
        return certificate

    def _decrypted(self) -> bytes:
        """Return everything received so far: bytes buffered by TLS would not wake up the server again."""
        data = b""
        with self._one_at_a_time, suppress(*_UNREADY):
            try:
                data = self.socket.recv(self.adj.recv_bytes)
                while more := self.socket.pending():
                    data += self.socket.recv(more)
            except _UNREADY:
                return data
            except OSError:
                data = b""
            if not data:
                self.handle_close()
        return data
