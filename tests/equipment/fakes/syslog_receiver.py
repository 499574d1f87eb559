"""A receiver of syslog over TCP or TLS, for tests: it keeps what it gets, and may be taken away."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from types import TracebackType

from worker.embedded.ports import HOST

__all__ = ["SyslogReceiver"]


class SyslogReceiver:
    """Takes counted messages. The connections that it had are reset when it closes, as by a kill."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.port = port
        self._tls = tls
        self._lock = threading.Lock()
        self._messages: list[bytes] = []
        self._connections: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.reads = threading.Event()
        self.reads.set()
        self.open()

    def __enter__(self) -> SyslogReceiver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def messages(self) -> list[str]:
        """What came so far."""
        with self._lock:
            return [message.decode() for message in self._messages]

    def open(self) -> None:
        """Listen, again."""
        self._listener = socket.create_server((HOST, self.port), reuse_port=False)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Listen no more, and reset all connections."""
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self._connections.append(connection)
            threading.Thread(target=self._receive, args=(connection,), daemon=True).start()

    def _receive(self, plain: socket.socket) -> None:
        try:
            with plain if self._tls is None else self._tls.wrap_socket(plain, server_side=True) as connection:
                self._take(connection)
        except OSError:
            return

    def _take(self, connection: socket.socket) -> None:
        data = b""
        while part := connection.recv(65536):
            self.reads.wait()
            data += part
            while b" " in data:
                length, _, rest = data.partition(b" ")
                if len(rest) < int(length):
                    break
                with self._lock:
                    self._messages.append(rest[: int(length)])
                data = rest[int(length) :]
