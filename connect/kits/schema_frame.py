"""The frame of messages whose schema is in a registry: a zero byte and the schema's id. All formats share it."""

from __future__ import annotations

from typing import Final

from connect.errors import DataError

__all__ = ["HEADER", "header", "read_id"]

HEADER: Final = 5
"""The size of the header: a zero byte and a four-byte schema id."""


def header(schema_id: int) -> bytes:
    """Return the header of messages written with the schema of that id."""
    return b"\0" + schema_id.to_bytes(4, "big", signed=True)


def read_id(data: bytes, kind: str) -> int:
    """Return the id of the schema with which a message of that kind, such as "Avro", was written.

    Raises :class:`~connect.errors.DataError` if the message does not begin with a header.
    """
    if len(data) < HEADER:
        raise DataError(
            f"The message of {len(data)} bytes is too short: {kind} messages with a schema registry begin with 5 "
            "bytes. Use the converter with which it was written."
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
