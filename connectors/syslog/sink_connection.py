"""The connection to a receiver: sends, and knows what the receiver's machine has acknowledged."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable
from typing import Final

from connect.errors import ConnectError, os_reason
from connect.hosts import HostRules

__all__ = ["BrokenConnectionError", "ReceiverConnection"]

_SIOCOUTQ: Final = 0x5411
_LOOK_SECONDS: Final = 0.02
_MOST_READ: Final = 4096


class BrokenConnectionError(Exception):
    """The connection cannot be made, or has broken; the text says why."""


class ReceiverConnection:
    """A TCP connection, plain or encrypted. ``goes_on`` says whether the task may go on with what it does."""

    def __init__(
        self,
        host: str,
        port: int,
        rules: HostRules,
        tls: ssl.SSLContext | None,
        seconds: float,
        goes_on: Callable[[], bool],
    ) -> None:
        self._shown = f"{host} port {port}"
        self._seconds = seconds
        self._goes_on = goes_on
        self._socket = self._connected(host, port, rules, tls)

    def send(self, data: bytes) -> None:
        """Give all of it to the kernel; raise ``BrokenConnectionError`` if it does not go on."""
        self._check()
        view, deadline = memoryview(data), time.monotonic() + self._seconds
        while view:
            try:
                sent = self._socket.send(view)
            except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                self._wait_writable(deadline)
                continue
            except OSError as error:
                raise self._broken(os_reason(error)) from error
            view, deadline = view[sent:], time.monotonic() + self._seconds

    def settle(self) -> None:
        """Wait until the receiver's machine has acknowledged all that was sent.

        Raises ``BrokenConnectionError`` if it does not, or if the receiver has closed the connection. A task that stops
        waits for it too, for its last commit.
        """
        deadline = time.monotonic() + self._seconds
        while struct.unpack("i", fcntl.ioctl(self._socket.fileno(), _SIOCOUTQ, b"\0" * 4))[0]:
            self._check()
            if time.monotonic() > deadline:
                raise self._broken(f"it does not take what is sent within {self._seconds:g} s")
            time.sleep(_LOOK_SECONDS)
        self._check()

    def close(self) -> None:
        """Close the connection; what the kernel has is still sent."""
        self._socket.close()

    def _connected(self, host: str, port: int, rules: HostRules, tls: ssl.SSLContext | None) -> socket.socket:
        last: Exception | None = None
        try:
            addresses = rules.reachable(host, port)
        except (OSError, UnicodeError) as error:
            raise BrokenConnectionError(f"The host {host} cannot be found: {os_reason(error)}") from error
        for address in addresses:
            try:
                return self._connected_to(address, host, port, tls)
            except ssl.SSLCertVerificationError as error:
                raise ConnectError(
                    f"The certificate of {self._shown} is not trusted: {error.verify_message}. Check the keys "
                    "syslog.ssl, and that syslog.host is the name in the certificate."
                ) from error
            except OSError as error:
                last = error
        assert last is not None
        raise BrokenConnectionError(f"{self._shown} cannot be connected to: {os_reason(last)}") from last

    def _connected_to(self, address: str, host: str, port: int, tls: ssl.SSLContext | None) -> socket.socket:
        plain = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        deadline = time.monotonic() + self._seconds
        try:
            plain.setblocking(False)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self._seconds * 1000))
            if plain.connect_ex((address, port)) == errno.EINPROGRESS:
                self._wait_for(plain, select.POLLOUT, deadline)
            if failed := plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(failed, os.strerror(failed))
            return plain if tls is None else self._encrypted(plain, host, tls, deadline)
        except BaseException:
            plain.close()
            raise

    def _encrypted(self, plain: socket.socket, host: str, tls: ssl.SSLContext, deadline: float) -> socket.socket:
        connection = tls.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        try:
            while True:
                try:
                    connection.do_handshake()
                except ssl.SSLWantReadError:
                    self._wait_for(connection, select.POLLIN, deadline)
                except ssl.SSLWantWriteError:
                    self._wait_for(connection, select.POLLOUT, deadline)
                else:
                    return connection
        except BaseException:
            connection.close()
            raise

    def _wait_for(self, connection: socket.socket, event: int, deadline: float) -> None:
        """Wait until a socket is readable or writable. Raises ``TimeoutError``, or the error that ends all if the task
        is to stop.
        """
        waiting = select.poll()
        waiting.register(connection, event)
        while not waiting.poll(_LOOK_SECONDS * 1000):
            if not self._goes_on():
                raise self._broken("the task stops")
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    def _wait_writable(self, deadline: float) -> None:
        try:
            self._wait_for(self._socket, select.POLLOUT, deadline)
        except TimeoutError as error:
            raise self._broken(f"it does not take what is sent within {self._seconds:g} s") from error

    def _check(self) -> None:
        """Raise ``BrokenConnectionError`` if the receiver has closed or reset the connection."""
        try:
            while said := self._socket.recv(_MOST_READ):
                # A receiver has nothing to say; what it says does not matter.
                if len(said) < _MOST_READ:
                    return
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as error:
            raise self._broken(os_reason(error)) from error
        raise self._broken("the receiver has closed it")

    def _broken(self, reason: str) -> BrokenConnectionError:
        return BrokenConnectionError(f"The connection to {self._shown} has broken: {reason}")
