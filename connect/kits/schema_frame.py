"""The frame of messages whose schema is in a registry, which all formats share: a byte that tells its kind, and what
names the schema, its id or its GUID.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from connect.errors import DataError

__all__ = ["HEADER", "frame_size", "guid_frame", "header", "key_of", "read_id", "read_key"]

HEADER: Final = 5
"""The size of the header: a zero byte and a four-byte schema id."""
_GUID_HEADER: Final = 17
"""The size of the header with a GUID: a byte that is 1, and the GUID."""


def header(schema_id: int) -> bytes:
    """Return the header of messages written with the schema of that id."""
    return b"\0" + schema_id.to_bytes(4, "big", signed=True)


def guid_frame(guid: str) -> bytes:
    """Return the header that names a schema by its GUID. Raises ``ValueError`` if it is none."""
    return b"\1" + UUID(guid).bytes


def frame_size(message: bytes) -> int:
    """Return the size of the header that a message begins with."""
    return _GUID_HEADER if message[:1] == b"\1" else HEADER


def read_key(data: bytes, kind: str) -> int | UUID:
    """Return the id or the GUID of the schema with which a message of that kind, such as "Avro", was written.

    Raises :class:`~connect.errors.DataError` if the message does not begin with a header.
    """
    if data[:1] != b"\1":
        return read_id(data, kind)
    if len(data) < _GUID_HEADER:
        raise DataError(
            f"The message of {len(data)} bytes is too short: {kind} messages that begin with 0x01 have the GUID of "
            "their schema in the next 16 bytes. Use the converter with which it was written."
        )
    return UUID(bytes=bytes(data[1:_GUID_HEADER]))


def key_of(message: bytes) -> str:
    """Return the name of the schema that a message names, for errors: "id 7" or "GUID ..."."""
    if message[:1] == b"\1":
        return f"GUID {UUID(bytes=bytes(message[1:_GUID_HEADER]))}"
    return f"id {int.from_bytes(message[1:HEADER], 'big', signed=True)}"


def read_id(data: bytes, kind: str) -> int:
    """Return the id of the schema with which a message of that kind, such as "Avro", was written.

    Raises :class:`~connect.errors.DataError` if the message does not begin with a header that has one.
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
