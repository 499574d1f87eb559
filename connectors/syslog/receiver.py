"""The thread that listens: it receives while there is room, and leaves what comes else to the kernel.

All sockets belong to it. What others want (a drain, an acknowledgement, room in the inbox) they leave in its own queue
and ring its bell. While the inbox is full nothing is read: over TCP the sender waits, over UDP the kernel's buffer
fills, and then the kernel drops datagrams and counts them.
"""

from __future__ import annotations

import logging
import os
import select
import selectors
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, Protocol

from connectors.syslog.datagrams import DatagramReader, dropped_datagrams
from connectors.syslog.inbox import Counts, Inbox, Messages
from connectors.syslog.streams import Receipt, StreamConnection, StreamLimits

__all__ = ["Receiver", "Transport"]

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
_WARNING_SECONDS: Final = 60.0
_QUIET_SECONDS: Final = 0.3
"""How long senders are listened to after they were told that the listener closes."""
_MOST_ACCEPTED: Final = 64


@dataclass(frozen=True, slots=True)
class Transport:
    """How messages come: by datagrams, or in streams, which may be encrypted."""

    sockets: Sequence[socket.socket]
    is_datagram: bool
    most_message_bytes: int
    limits: StreamLimits
    tls: ssl.SSLContext | None = None


class _Handler(Protocol):
    """What to do when a socket is readable."""

    def __call__(self) -> None: ...


class Receiver:
    """Receives in a thread of its own, from :meth:`start` to :meth:`close`."""

    def __init__(self, transport: Transport, inbox: Inbox, counts: Counts) -> None:
        self._transport = transport
        self._inbox = inbox
        self._counts = counts
        self._selector = selectors.DefaultSelector()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._wishes: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._ready: deque[_Handler] = deque()
        self._connections: dict[int, StreamConnection] = {}
        self._readers: list[DatagramReader] = []
        self._dropped: dict[socket.socket, int] = {}
        self._told = (0, 0, 0)
        self._deaf_until = 0.0
        """When nothing could be received last, because the inbox was full."""
        self._next_look = self._next_warning = 0.0
        self._is_closing = False
        self._drain_until: float | None = None
        self._quiet_since = 0.0
        self._drained = threading.Event()
        self._is_over = threading.Event()
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="syslog receiver", daemon=True)

    # -- for others ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to receive."""
        self._thread.start()

    def ring(self) -> None:
        """Make the thread look at what others want. From any thread."""
        if not self._is_over.is_set():
            os.eventfd_write(self._bell, 1)

    def acknowledge(self, receipts: Sequence[Receipt]) -> None:
        """Tell the senders that these messages are safe."""
        self._wish(lambda: self._acknowledge(receipts))

    def drain(self, seconds: float) -> None:
        """Take no new connections, tell the senders to stop, and receive what is on its way, for so long at most."""
        self._wish(lambda: self._begin_drain(seconds))

    @property
    def is_drained(self) -> bool:
        """Whether all that was on its way is in the inbox."""
        return self._drained.is_set() or self._is_over.is_set()

    def close(self) -> None:
        """End the thread, and close all connections."""
        if self._thread.ident is None:
            self._close_all()
        else:
            self._wish(self._begin_closing)
            self._thread.join()
        self._is_over.set()
        if self._bell >= 0:
            os.close(self._bell)
            self._bell = -1

    def _wish(self, wish: Callable[[], None]) -> None:
        self._wishes.put(wish)
        self.ring()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._open()
            while not self._is_closing:
                self._turn()
        except Exception as error:
            self.failure = error
            self._inbox.arrived()
        finally:
            self._is_over.set()
            self._close_all()

    def _open(self) -> None:
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        for listener in self._transport.sockets:
            if self._transport.is_datagram:
                reader = DatagramReader(listener, self._transport.most_message_bytes)
                self._dropped[listener] = 0
                self._register(listener, partial(self._read_datagrams, reader))
                self._readers.append(reader)
            else:
                self._register(listener, partial(self._accept, listener))

    def _register(self, readable: socket.socket, handler: _Handler) -> None:
        self._selector.register(readable, selectors.EVENT_READ, handler)

    def _turn(self) -> None:
        """Receive from one socket, or wait for one."""
        if self._inbox.is_full:
            self._wait_for_bell()
            self._deaf_until = time.monotonic()
        elif self._ready:
            self._ready.popleft()()
        else:
            self._select()
        self._grant_wishes()
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            self._look(now)
        if self._drain_until is not None:
            self._look_at_drain(now)

    def _wait_for_bell(self) -> None:
        bell = select.poll()
        bell.register(self._bell, select.POLLIN)
        if bell.poll(self._patience() * 1000):
            self._quieten()

    def _select(self) -> None:
        for key, _ in self._selector.select(self._patience()):
            if key.data is None:
                self._quieten()
            else:
                self._quiet_since = time.monotonic()
                self._ready.append(key.data)

    def _patience(self) -> float:
        return 0.02 if self._drain_until is not None else _LOOK_SECONDS

    def _quieten(self) -> None:
        try:
            os.eventfd_read(self._bell)
        except BlockingIOError:
            return

    def _grant_wishes(self) -> None:
        while True:
            try:
                wish = self._wishes.get_nowait()
            except Empty:
                return
            wish()

    # -- datagrams -----------------------------------------------------------------------------------------------------

    def _read_datagrams(self, reader: DatagramReader) -> None:
        found = reader.read()
        if found is None:
            return
        lines = [content.rstrip(b"\r\n\0") for content in found.contents]
        senders, cut = found.senders, found.cut
        if not all(lines):
            kept = [place for place, line in enumerate(lines) if line]
            lines, senders = [lines[place] for place in kept], [senders[place] for place in kept]
            cut = {new for new, old in enumerate(kept) if old in cut}
        self._deliver(Messages(lines, senders, time.time(), cut))

    def _deliver(self, messages: Messages) -> None:
        if messages.lines:
            self._counts.messages += len(messages.lines)
            self._counts.octets += sum(map(len, messages.lines))
            self._counts.cut += len(messages.cut)
            self._inbox.put(messages)

    # -- streams -------------------------------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        if listener.fileno() < 0:
            return
        for _ in range(_MOST_ACCEPTED):
            try:
                accepted, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                # No descriptor is left: those who wait are taken when others have gone.
                self._transport.limits.complain(
                    f"A connection cannot be accepted: {error.strerror}. Raise the limit of open files."
                )
                time.sleep(0.05)
                return
            if len(self._connections) >= self._transport.limits.most_connections:
                self._counts.refused_connections += 1
                accepted.close()
                continue
            self._take_connection(accepted, str(address[0]).removeprefix("::ffff:"))

    def _take_connection(self, accepted: socket.socket, sender: str) -> None:
        try:
            connection = StreamConnection(accepted, sender, self._transport.limits, self._transport.tls)
        except OSError:
            accepted.close()
            return
        self._connections[connection.descriptor] = connection
        self._counts.connections = len(self._connections)
        connection.interest = selectors.EVENT_READ
        self._register(connection.socket, lambda: self._serve(connection))

    def _serve(self, connection: StreamConnection) -> None:
        if connection.is_closed:
            return
        self._follow(connection, lambda: self._deliver_all(connection.receive()))

    def _deliver_all(self, messages: Messages | None) -> None:
        if messages is not None:
            self._deliver(messages)

    def _follow(self, connection: StreamConnection, step: Callable[[], None]) -> None:
        """Take a step with a connection, then close it or wait for what it waits for."""
        step()
        if connection.is_at_end:
            self._end(connection)
            return
        wanted = connection.wanted_events()
        if wanted != connection.interest:
            connection.interest = wanted
            self._selector.modify(connection.socket, wanted, self._selector.get_key(connection.socket).data)

    def _end(self, connection: StreamConnection) -> None:
        self._deliver_all(connection.last_messages())
        if connection.complaint:
            self._counts.broken_connections += 1
            connection.limits.complain(f"The connection from {connection.sender} was closed: {connection.complaint}.")
        self._selector.unregister(connection.socket)
        del self._connections[connection.descriptor]
        self._counts.connections = len(self._connections)
        connection.close()

    def _acknowledge(self, receipts: Sequence[Receipt]) -> None:
        for connection in {receipt.connection for receipt in receipts}:
            if not connection.is_closed:
                own = [receipt.transaction for receipt in receipts if receipt.connection is connection]
                self._follow(connection, partial(connection.acknowledge, own))

    # -- what is due ---------------------------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        """Count what the kernel dropped, warn of what was lost or refused, and end connections that hang."""
        for listener in self._dropped:
            self._dropped[listener] = dropped_datagrams(listener)
        self._counts.dropped = sum(self._dropped.values())
        for connection in [each for each in self._connections.values() if each.is_late(now, self._deaf_until)]:
            self._end(connection)
        lost = (self._counts.dropped, self._counts.refused_connections, self._counts.cut)
        if lost != self._told and now >= self._next_warning:
            self._next_warning = now + _WARNING_SECONDS
            self._warn(*(after - before for after, before in zip(lost, self._told, strict=True)))
            self._told = lost

    def _warn(self, dropped: int, refused: int, cut: int) -> None:
        if dropped:
            _log.warning(
                "The kernel dropped %d datagrams, because they came faster than they were published. Raise "
                "syslog.receive.buffer.bytes (and net.core.rmem_max) for peaks, tasks.max for more at all times, or "
                "have the senders use TCP, which waits.",
                dropped,
            )
        if refused:
            _log.warning("%d connections were refused: raise syslog.max.connections if they are meant to be.", refused)
        if cut:
            _log.warning("%d messages were cut: see the header syslog.truncated, and syslog.message.max.bytes.", cut)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _begin_drain(self, seconds: float) -> None:
        now = time.monotonic()
        self._drain_until, self._quiet_since = now + seconds, now
        if not self._transport.is_datagram:
            for listener in self._transport.sockets:
                self._accept(listener)
                self._selector.unregister(listener)
                listener.close()
        for connection in list(self._connections.values()):
            connection.say_goodbye()

    def _look_at_drain(self, now: float) -> None:
        assert self._drain_until is not None
        if self._inbox.is_full and now < self._drain_until:
            self._quiet_since = now
            return
        is_quiet = not self._ready and now - self._quiet_since >= _QUIET_SECONDS
        is_empty = not self._transport.is_datagram and not self._connections
        if is_quiet or is_empty or now >= self._drain_until:
            for connection in list(self._connections.values()):
                self._deliver_all(connection.last_messages())
            self._drain_until = None
            self._drained.set()
            # Nothing is received from now on: what was is all that is published.
            for key in list(self._selector.get_map().values()):
                if key.data is not None:
                    self._selector.unregister(key.fileobj)
            self._ready.clear()

    def _begin_closing(self) -> None:
        self._is_closing = True

    def _close_all(self) -> None:
        for connection in self._connections.values():
            connection.close()
        for listener in self._transport.sockets:
            listener.close()
        self._selector.close()
