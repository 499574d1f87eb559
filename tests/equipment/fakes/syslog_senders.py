"""Senders of syslog for tests."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import closing
from types import TracebackType
from typing import Final

from worker.embedded.ports import HOST

__all__ = ["RelpClient", "RepeatingSender"]

_PAUSE: Final = 0.02
_TIMEOUT: Final = 5.0


class RelpClient:
    """A client of RELP that says which messages were acknowledged."""

    def __init__(self, port: int, *, encrypted: bool = False) -> None:
        self._socket = socket.create_connection((HOST, port), _TIMEOUT)
        if encrypted:
            self._socket = _any_certificate().wrap_socket(self._socket)
        self._transaction = 0
        self._kept = b""
        try:
            self._command(b"open", b"relp_version=0\nrelp_software=test\ncommands=syslog")
            self.answer()
        except BaseException:
            self.close()
            raise

    def send(self, line: bytes) -> int:
        """Send a message, and return its transaction."""
        return self._command(b"syslog", line)

    def answer(self) -> tuple[int, bytes]:
        """Return the next answer: its transaction, and what it says."""
        head, _, rest = self._read_until(b" rsp ")
        size, _, rest = rest.partition(b" ")
        while len(rest) < int(size) + 1:
            rest += self._read()
        self._kept = rest[int(size) + 1 :]
        return int(head), rest[: int(size)]

    def has_answer(self, seconds: float) -> bool:
        """Whether there is an answer within so many seconds."""
        return bool(self._kept) or bool(select.select([self._socket], [], [], seconds)[0])

    def close(self) -> None:
        """Close the connection as a kill does."""
        self._socket.close()

    def _command(self, name: bytes, data: bytes) -> int:
        self._transaction += 1
        self._socket.sendall(b"%d %b %d %b\n" % (self._transaction, name, len(data), data))
        return self._transaction

    def _read_until(self, mark: bytes) -> tuple[bytes, bytes, bytes]:
        data = self._kept
        while b" " not in data.partition(mark)[2]:
            data += self._read()
        return data.partition(mark)

    def _read(self) -> bytes:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionError("The listener has closed the connection.")
        return data


class RepeatingSender:
    """Sends the same lines in order for as long as it runs: once over each connection, or datagrams again and again."""

    def __init__(self, kind: str, port: int, lines: Sequence[bytes]) -> None:
        self._kind, self._port, self._lines = kind, port, lines
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> RepeatingSender:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_PAUSE):
            try:
                self._send()
            except OSError:
                continue

    def _send(self) -> None:
        match self._kind:
            case "UDP":
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                    for line in self._lines:
                        sender.sendto(line, (HOST, self._port))
            case "RELP":
                with closing(RelpClient(self._port)) as client:
                    for line in self._lines:
                        client.send(line)
                    self._stopped.wait(_PAUSE)
            case _:
                with socket.create_connection((HOST, self._port), _TIMEOUT) as plain:
                    self._send_stream(plain)

    def _send_stream(self, plain: socket.socket) -> None:
        data = b"".join(b"%d %b" % (len(line), line) for line in self._lines)
        if self._kind == "TCPSSL":
            with _any_certificate().wrap_socket(plain) as encrypted:
                encrypted.sendall(data)
        else:
            plain.sendall(data)


def _any_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
