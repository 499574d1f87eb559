"""An HTTP proxy that opens tunnels (CONNECT), and records where to and with which credentials."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

__all__ = ["Tunnels", "serving_tunnels"]


@dataclass
class Tunnels:
    """The port of a proxy, and its tunnels so far."""

    port: int = 0
    opened: list[tuple[str, str]] = field(default_factory=list)
    """The host and port of each, and its ``Proxy-Authorization``."""


class _Handler(BaseHTTPRequestHandler):
    tunnels: Tunnels

    def do_CONNECT(self) -> None:
        self.tunnels.opened.append((self.path, self.headers.get("Proxy-Authorization", "")))
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as far:
            self.wfile.write(b"HTTP/1.1 200 Established\r\n\r\n")
            back = threading.Thread(target=_copy, args=(far, self.connection), daemon=True)
            back.start()
            _copy(self.connection, far)
            back.join()

    def log_message(self, *args: Any) -> None:
        """Do not log."""


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


class _Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@contextmanager
def serving_tunnels() -> Iterator[Tunnels]:
    """A proxy on a free port of 127.0.0.1."""
    tunnels = Tunnels()
    with _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"tunnels": tunnels})) as server:
        tunnels.port = server.server_address[1]
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
        thread.start()
        yield tunnels
        server.shutdown()
        thread.join()
