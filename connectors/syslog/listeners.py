"""The sockets that a task listens with."""

from __future__ import annotations

import errno
import logging
import socket
import time
from collections.abc import Callable
from typing import Final

from connect.errors import ConnectError
from connectors.syslog.datagrams import widen_receive_buffer

__all__ = ["listen"]

_log = logging.getLogger(__name__)

_BACKLOG: Final = 512
_PATIENCE_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.2
_REASONS: Final = {
    errno.EACCES: "the worker's user may not use ports below 1024: choose another, or allow it with `setcap "
    "cap_net_bind_service=+ep` on Python's program, or with sysctl net.ipv4.ip_unprivileged_port_start",
    errno.EADDRINUSE: "another program, or another connector, uses the port: `ss -lnptu` shows it; or choose another",
    errno.EADDRNOTAVAIL: "this machine has no such address: set syslog.listen.address to one that each worker has, "
    "such as 0.0.0.0",
}


def listen(
    address: str, port: int, *, is_datagram: bool, is_shared: bool, buffer_bytes: int, wait: Callable[[float], bool]
) -> socket.socket | None:
    """Return a socket that listens; ``None`` if the task is to stop before it can be had.

    A port that is in use is waited for some time: the task before this one may not have ended. With ``is_shared``
    several tasks of a machine listen to the port, and the kernel divides the senders among them.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return _listener(address, port, is_datagram=is_datagram, is_shared=is_shared, buffer_bytes=buffer_bytes)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
                raise ConnectError(
                    f"The task cannot listen on {address} port {port} (syslog.listen.address, syslog.port): {reason}."
                ) from error
        if not wait(_LOOK_SECONDS):
            return None


def _listener(address: str, port: int, *, is_datagram: bool, is_shared: bool, buffer_bytes: int) -> socket.socket:
    kind = socket.SOCK_DGRAM if is_datagram else socket.SOCK_STREAM
    family, _, _, _, place = socket.getaddrinfo(address, port, type=kind, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setblocking(False)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if is_datagram:
            _widen(listener, buffer_bytes)
            listener.bind(place)
        else:
            if buffer_bytes:
                # Connections inherit it.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            # Connections that were closed a moment ago do not matter.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _widen(listener: socket.socket, wanted: int) -> None:
    allowed = widen_receive_buffer(listener, wanted)
    if allowed < wanted:
        _log.warning(
            "The kernel keeps only %d bytes of datagrams, in place of %d of syslog.receive.buffer.bytes: raise it with "
            "`sysctl -w net.core.rmem_max=%d`, or peaks are lost sooner.",
            allowed,
            wanted,
            wanted,
        )
