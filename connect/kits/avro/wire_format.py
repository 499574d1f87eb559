"""The wire format around an Avro value, and Avro's variable-length integers."""

from __future__ import annotations

from typing import Final

from connect.errors import DataError

__all__ = ["HEADER", "SMALL", "MalformedError", "header", "long_tail", "read_id", "varint"]

HEADER: Final = 5
"""The size of the header: a zero byte and a four-byte schema id."""

_MOST_BYTES: Final = 10


class MalformedError(Exception):
    """Raised when bytes do not match the schema. The message gives the reason."""


def header(schema_id: int) -> bytes:
    """Return the header of messages written with the schema of that id."""
    return b"\0" + schema_id.to_bytes(4, "big", signed=True)


def read_id(data: bytes) -> int:
    """Return the id of the schema with which a message was written.

    Raises :class:`~connect.errors.DataError` if the message does not begin with a header.
    """
    if len(data) < HEADER:
        raise DataError(
            f"The message of {len(data)} bytes is too short: Avro messages with a schema registry begin with 5 bytes. "
            "Use the converter with which it was written."
        )
    if data[0] != 0:
        raise DataError(
            f"Unknown magic byte! The message begins with {data[0]:#04x} instead of 0x00: it was not written for a "
            "schema registry. Use the converter with which it was written."
        )
    number = int.from_bytes(data[1:HEADER], "big", signed=True)
    if number < 0:
        raise DataError(f"The message has the schema id {number}, which no registry assigns: it is damaged.")
    return number


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
