"""Many datagrams with one system call, and how many the kernel had to drop.

Python's ``recvfrom`` gives the interpreter's lock away for each datagram, and has to get it back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from dataclasses import dataclass
from typing import Final

__all__ = ["DatagramReader", "Datagrams", "dropped_datagrams", "widen_receive_buffer"]

_COUNT: Final = 512
_LONGEST_BYTES: Final = 65_535
_SO_RCVBUFFORCE: Final = 33
_SO_MEMINFO: Final = 55
_MEMINFO: Final = struct.Struct("9I")
_DROPS: Final = 8
_ADDRESS_BYTES: Final = 28
_MOST_KNOWN_SENDERS: Final = 10_000


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.POINTER(_Vector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("header", _Header), ("length", ctypes.c_uint32))


_WORD: Final = 4
_STRIDE: Final = ctypes.sizeof(_Slot) // _WORD
_LENGTH_WORD: Final = _Slot.length.offset // _WORD
_FLAGS_WORD: Final = (_Slot.header.offset + _Header.flags.offset) // _WORD


@dataclass(frozen=True, slots=True)
class Datagrams:
    """Datagrams with their senders; ``cut`` are the places of those that were longer than the reader's limit."""

    contents: list[bytes]
    senders: list[str]
    cut: set[int]


class DatagramReader:
    """Reads what a socket has, at most 512 datagrams at a time, into memory of its own."""

    def __init__(self, listener: socket.socket, most_bytes: int) -> None:
        self._socket = listener
        self._room = min(most_bytes, _LONGEST_BYTES)
        self._buffer = bytearray(_COUNT * self._room)
        self._view = memoryview(self._buffer)
        self._addresses = bytearray(_COUNT * _ADDRESS_BYTES)
        self._slots = (_Slot * _COUNT)()
        self._vectors = (_Vector * _COUNT)()
        self._senders: dict[bytes, str] = {}
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        names = ctypes.addressof(ctypes.c_char.from_buffer(self._addresses))
        for place in range(_COUNT):
            vector, header = self._vectors[place], self._slots[place].header
            vector.base, vector.length = start + place * self._room, self._room
            header.name, header.name_length = names + place * _ADDRESS_BYTES, _ADDRESS_BYTES
            header.vectors, header.vector_count = ctypes.pointer(vector), 1
        self._words = memoryview(self._slots).cast("B").cast("I")
        # PyDLL keeps the interpreter's lock, for a call that does not wait: to get it back from a thread that computes
        # takes 5 ms, and 250 datagrams may come meanwhile.
        self._call = ctypes.PyDLL(None, use_errno=True).recvmmsg

    def read(self) -> Datagrams | None:
        """Return what is there; ``None`` if there is nothing."""
        count = self._call(self._socket.fileno(), self._slots, _COUNT, socket.MSG_DONTWAIT, None)
        if count < 0:
            number = ctypes.get_errno()
            if number in (errno.EAGAIN, errno.EINTR, errno.ECONNREFUSED):
                return None
            raise OSError(number, os.strerror(number))
        lengths = self._words[_LENGTH_WORD::_STRIDE][:count].tolist()
        flags = self._words[_FLAGS_WORD::_STRIDE][:count].tolist()
        view, room = self._view, self._room
        contents = [bytes(view[place * room : place * room + length]) for place, length in enumerate(lengths)]
        cut = {place for place, flag in enumerate(flags) if flag & socket.MSG_TRUNC}
        return Datagrams(contents, [self._sender(place) for place in range(count)], cut)

    def _sender(self, place: int) -> str:
        start = place * _ADDRESS_BYTES
        # The family, then the port, which differs from datagram to datagram and does not matter.
        raw = bytes(self._addresses[start + 4 : start + 24])
        known = self._senders.get(raw)
        if known is None:
            if len(self._senders) >= _MOST_KNOWN_SENDERS:
                self._senders.clear()
            family = int.from_bytes(self._addresses[start : start + 2], "little")
            known = self._senders[raw] = _shown(family, raw)
        return known


def _shown(family: int, raw: bytes) -> str:
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, raw[:4])
    # Four bytes of flow information precede the address.
    return socket.inet_ntop(socket.AF_INET6, raw[4:20]).removeprefix("::ffff:")


def dropped_datagrams(listener: socket.socket) -> int:
    """Return how many datagrams the kernel dropped since the socket was made, because its buffer was full."""
    found = listener.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
    drops: int = _MEMINFO.unpack(found)[_DROPS]
    return drops


def widen_receive_buffer(listener: socket.socket, wanted: int) -> int:
    """Let the kernel keep up to ``wanted`` bytes for the socket, and return how many it allows."""
    try:
        listener.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, wanted)
    except OSError:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, wanted)
    # The kernel reports twice the size, for what it keeps itself.
    return listener.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
