"""The format of stored source offsets: the same bytes as Kafka Connect's, in a file or on a topic."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import orjson

from connect.data import Offset
from connect.errors import DataError

__all__ = ["OffsetKey", "check_offset", "offset_key", "offset_value", "parse_offset", "parse_offset_key"]

OffsetKey: TypeAlias = bytes
"""A connector and one of its source partitions, as the bytes of a key: ``["name",{"filename":"x"}]``."""


def check_offset(offset: Offset) -> None:
    """Raise :class:`~connect.errors.DataError` unless this source partition or offset can be stored unchanged.

    JSON can hold more than Kafka Connect allows here, but it would be read back as a different value.
    """
    for key, value in offset.items():
        if not isinstance(key, str):
            raise DataError(
                f"Offsets may only use String keys, but {key!r} of {dict(offset)!r} is {type(key).__name__}"
            )
        if not (value is None or isinstance(value, (bool, int, float, str))):
            raise DataError(
                f"Offsets may only contain primitive types as values, but field {key} contains {type(value).__name__}: "
                "make it a string or a number"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise DataError(f"Offsets may only contain finite numbers, but field {key} contains {value}")


def offset_key(connector: str, partition: Offset) -> OffsetKey:
    """Return the key of a source partition as Kafka Connect's bytes, keeping the order of the partition's keys."""
    return _dump([connector, dict(partition)], partition)


def offset_value(offset: Offset | None) -> bytes | None:
    """Return the bytes of an offset; ``None`` deletes it."""
    return None if offset is None else _dump(dict(offset), offset)


def parse_offset(data: bytes | None) -> dict[str, Any] | None:
    """Return the offset in a value; the inverse of :func:`offset_value`."""
    if data is None:
        return None
    offset: dict[str, Any] = orjson.loads(data)
    return offset


def parse_offset_key(data: OffsetKey) -> tuple[str, dict[str, Any]]:
    """Return the connector and the source partition in a key."""
    connector, partition = orjson.loads(data)
    return connector, partition


def _dump(document: object, shown: Offset) -> bytes:
    check_offset(shown)
    try:
        return orjson.dumps(document)
    except TypeError as error:
        raise DataError(
            f"Source partition or offset {dict(shown)!r} holds {error}: only strings, numbers, booleans and nulls "
            "are kept."
        ) from error
