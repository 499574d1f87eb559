"""Avro's variable-length integers."""

from __future__ import annotations

from typing import Final

__all__ = ["SMALL", "MalformedError", "long_tail", "varint"]

_MOST_BYTES: Final = 10


class MalformedError(Exception):
    """Raised when bytes do not match the schema. The message gives the reason."""


def varint(number: int) -> bytes:
    """Encode a non-negative integer in groups of seven bits, lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


SMALL: Final = tuple(varint(number) for number in range(1 << 14))
"""The results of :func:`varint` for the most frequent numbers."""


def long_tail(data: bytes, place: int, first: int) -> tuple[int, int]:
    """Read the rest of an integer that starts with ``first``, from ``place`` on; return it and its end position."""
    number, shift = first & 0x7F, 7
    for _ in range(_MOST_BYTES - 1):
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> 64:
                raise MalformedError("a whole number has more than 64 bits")
            return number, place
        shift += 7
    raise MalformedError(f"a whole number has more than {_MOST_BYTES} bytes")
