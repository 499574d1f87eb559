"""The bytes around an Avro body, and Avro's whole numbers in it."""

from __future__ import annotations

from typing import Final

from connect.errors import DataError

__all__ = ["HEADER", "SMALL", "MalformedError", "header", "long_tail", "read_id", "varint"]

HEADER: Final = 5
"""The size of what precedes the body: a zero byte, and the id of the schema in four."""

_LONGEST: Final = 10


class MalformedError(Exception):
    """Bytes do not match the schema; the text says how."""


def header(schema_id: int) -> bytes:
    """The bytes before a body written in the schema of that id."""
    return b"\0" + schema_id.to_bytes(4, "big", signed=True)


def read_id(data: bytes) -> int:
    """The id of the schema that a message was written in.

    Raises :class:`~connect.errors.DataError` when it does not begin with such an id.
    """
    if len(data) < HEADER:
        raise DataError(
            f"The message of {len(data)} bytes is too short for Avro with a registry, which begins with 5 bytes; "
            "use the converter it was written with."
        )
    if data[0] != 0:
        raise DataError(
            f"Unknown magic byte! The message begins with {data[0]:#04x} instead of 0x00: it was not written for a "
            "schema registry; use the converter it was written with."
        )
    number = int.from_bytes(data[1:HEADER], "big", signed=True)
    if number < 0:
        raise DataError(f"The message names a schema with the id {number}, which no registry gives: it is damaged.")
    return number


def varint(number: int) -> bytes:
    """A whole number from 0 in groups of seven bits, the lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


SMALL: Final = tuple(varint(number) for number in range(1 << 14))
"""The results of :func:`varint` for the most frequent numbers."""


def long_tail(data: bytes, place: int, first: int) -> tuple[int, int]:
    """The number that begins with the byte ``first``, before ``place``, and continues after it; and where it ends."""
    number, shift = first & 0x7F, 7
    for _ in range(_LONGEST - 1):
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> 64:
                raise MalformedError("a whole number has more than 64 bits")
            return number, place
        shift += 7
    raise MalformedError(f"a whole number has more than {_LONGEST} bytes")
