"""The sockets of https listeners, as Cheroot wants them."""

from __future__ import annotations

import socket
import ssl
from typing import Any, Final

from cheroot.errors import FatalSSLAlert
from cheroot.makefile import StreamReader, StreamWriter
from cheroot.ssl import Adapter

__all__ = ["TlsAdapter"]

_ENVIRONMENT: Final = {"wsgi.url_scheme": "https", "HTTPS": "on"}


class TlsAdapter(Adapter):
    """Wraps what a listener accepts; the handshake is left to the thread that answers.

    Cheroot's own adapter makes it in the thread that accepts, where a client that is silent keeps all others out.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        context.sslsocket_class = _TlsSocket

    def bind(self, sock: socket.socket) -> socket.socket:
        """The listening socket as it is."""
        return sock

    def wrap(self, sock: socket.socket) -> tuple[ssl.SSLSocket, dict[str, str]]:
        """An accepted socket, and what a request over it is told of it."""
        try:
            wrapped = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError as error:
            raise FatalSSLAlert(*error.args) from error
        return wrapped, dict(_ENVIRONMENT)

    def get_environ(self) -> dict[str, str]:
        """What every request is told."""
        return dict(_ENVIRONMENT)

    def makefile(self, sock: ssl.SSLSocket, mode: str = "r", bufsize: int = -1) -> Any:
        """The file through which Cheroot reads or writes."""
        return (StreamReader if "r" in mode else StreamWriter)(sock, mode, bufsize)


class _TlsSocket(ssl.SSLSocket):
    """Makes the handshake before the first read; who fails it is dropped without an answer."""

    def recv_into(self, *args: Any, **options: Any) -> int:
        if self.version() is None:
            try:
                self.do_handshake()
            except OSError as error:
                raise FatalSSLAlert(*error.args) from error
        try:
            return super().recv_into(*args, **options)
        except ssl.SSLError as error:
            raise FatalSSLAlert(*error.args) from error
