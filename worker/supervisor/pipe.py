"""The worker's end of the pipe to a child process, and waiting for many. It never blocks in either direction (I7).

The child's end is a :class:`multiprocessing.connection.Connection`, which may block. This end has the same format, four
bytes of length before each message, and buffers incomplete messages. The buffers are bounded (invariant I9).
Children that are silent cost almost nothing: the kernel watches their descriptors.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
from collections.abc import Callable, Collection, Iterator
from functools import partial
from multiprocessing.connection import Connection
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from connect.errors import ConnectError
from worker.messages.messages import Command, Failed, Report, decode, encode

__all__ = ["ChildDescriptors", "Listener", "WorkerEnd"]

_LENGTH: Final = struct.Struct("!i")
_CHUNK_BYTES: Final = 64 * 1024
_MOST_BYTES: Final = 64 * 1024 * 1024


class WorkerEnd:
    """Sends commands and receives reports without ever blocking. Used by one thread.

    Without a ``connection``, for a child that could not be started, it is closed from the beginning.
    """

    def __init__(self, connection: Connection | None) -> None:
        if connection is not None:
            os.set_blocking(connection.fileno(), False)
        self.when_touched: Callable[[], None] = lambda: None
        """Called when there is something to send, and when nothing more will be received."""
        self._connection = connection
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self.closed = connection is None
        """Whether nothing more will be received: the child has closed its end, or sent an invalid message."""

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        if self._connection is None:
            raise OSError("there is no child at the other end")
        return self._connection.fileno()

    @property
    def waits_to_send(self) -> bool:
        """Whether commands wait because the pipe is full."""
        return bool(self._outgoing) and not self.closed

    def send(self, command: Command) -> None:
        """Send a command after those that wait; does nothing if the child has closed its end."""
        data = encode(command)
        self._outgoing += _LENGTH.pack(len(data)) + data
        self.flush()
        if len(self._outgoing) > _MOST_BYTES:
            self.closed = True
        if self._outgoing:
            self.when_touched()

    def is_cut(self) -> bool:
        """Return whether the child has closed its end, though some of its reports may not be received yet."""
        if self.closed:
            return True
        end = select.poll()
        end.register(self.fileno(), 0)
        return bool(end.poll(0))

    def flush(self) -> None:
        """Send as many of the waiting bytes as the pipe takes."""
        while self._outgoing:
            try:
                sent = os.write(self.fileno(), self._outgoing[:_CHUNK_BYTES])
            except BlockingIOError:
                return
            except OSError:
                self._outgoing.clear()
                return
            del self._outgoing[:sent]

    def receive(self) -> Iterator[Report]:
        """Yield the reports of one read; bytes that are not a message become a :class:`Failed`."""
        if not self.closed:
            self._read()
            yield from self._messages()

    def drain(self) -> Iterator[Report]:
        """Yield the remaining reports of a child that is gone, after which nothing more is received."""
        # Processes that the child has started may hold the pipe too, and write to it forever.
        for _ in range(_MOST_BYTES // _CHUNK_BYTES):
            if self.closed or not self._read():
                break
            yield from self._messages()
        self.closed = True

    def close(self) -> None:
        """Close this end."""
        self.closed = True
        self.when_touched()
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()

    def _read(self) -> bool:
        try:
            data = os.read(self.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self._incoming += data
        self.closed = not data
        return bool(data)

    def _messages(self) -> Iterator[Report]:
        try:
            while (data := self._take()) is not None:
                report: Report = decode(data)
                yield report
        except ConnectError as error:
            self.closed = True
            yield Failed(str(error))

    def _take(self) -> bytes | None:
        """Return the next message once it has arrived completely."""
        if len(self._incoming) < _LENGTH.size:
            return None
        length: int = _LENGTH.unpack_from(self._incoming)[0]
        if not 0 <= length <= _MOST_BYTES:
            raise ConnectError(
                f"A process of this worker sent a message of {length} bytes, and at most {_MOST_BYTES} are allowed. "
                "Check whether its plugin writes to file descriptors that it did not open"
            )
        end = _LENGTH.size + length
        if len(self._incoming) < end:
            return None
        data = bytes(self._incoming[_LENGTH.size : end])
        del self._incoming[:end]
        return data


_Interests: TypeAlias = tuple[tuple[int, int], ...]
"""Descriptors, each with the events to wait for."""
_SAYS: Final = select.EPOLLIN
_TAKES: Final = select.EPOLLOUT


class ChildDescriptors(Protocol):
    """The descriptors of a child that are waited for."""

    @property
    def pipe(self) -> WorkerEnd:
        """The pipe to the child."""

    @property
    def sentinel(self) -> int | None:
        """A descriptor that becomes readable when the child is gone."""

    @property
    def output(self) -> int | None:
        """A descriptor that becomes readable when the child prints."""


S = TypeVar("S", bound=ChildDescriptors)


class Listener(Generic[S]):
    """Has the kernel watch the descriptors of children (``epoll``), and tells it only what changes. For one thread.

    It takes its own descriptor at the start, since there may be none left later.
    """

    def __init__(self, wake: int | None = None) -> None:
        self._kernel = select.epoll()
        self._watched: dict[S, _Interests] = {}
        self._at: dict[int, S] = {}
        self._touched: set[S] = set()
        if wake is not None:
            self._kernel.register(wake, _SAYS)

    def ready(self, children: Collection[S], seconds: float | None) -> list[S]:
        """Wait until children report or end, or the descriptor ``wake`` becomes readable. Return those children.

        Sends pending commands meanwhile, as fast as the children read them.
        """
        self._follow(set(children))
        ready: dict[S, None] = {}
        for descriptor, events in self._kernel.poll(seconds):
            child = self._at.get(descriptor)
            if child is None:
                continue
            # The descriptors of a child change only when something is sent to it or received.
            self._touched.add(child)
            if events & ~_SAYS and child.pipe.waits_to_send:
                child.pipe.flush()
            if events & ~_TAKES:
                ready[child] = None
        return list(ready)

    def _follow(self, children: set[S]) -> None:
        """Have the kernel watch these children only. It forgets descriptors that are closed by itself."""
        known = self._watched.keys()
        added = children - known
        for child in added:
            child.pipe.when_touched = partial(self._touched.add, child)
        changed = {child: _interests(child) for child in (self._touched & children) | added}
        self._touched.clear()
        # Removed first, since a new descriptor may have the number of a closed one.
        for child in [*(known - children), *changed]:
            if child not in changed or self._watched.get(child) != changed[child]:
                self._ignore(child)
        for child, interests in changed.items():
            if child not in self._watched:
                self._watched[child] = interests
                for descriptor, events in interests:
                    self._kernel.register(descriptor, events)
                    self._at[descriptor] = child

    def _ignore(self, child: S) -> None:
        for descriptor, _ in self._watched.pop(child, ()):
            if self._at.get(descriptor) is child:
                del self._at[descriptor]
            with contextlib.suppress(OSError):
                self._kernel.unregister(descriptor)


def _interests(child: ChildDescriptors) -> _Interests:
    pipe = child.pipe
    own = () if pipe.closed else ((pipe.fileno(), _SAYS | _TAKES if pipe.waits_to_send else _SAYS),)
    others = tuple((each, _SAYS) for each in (child.sentinel, child.output) if each is not None)
    return own + others
