"""Values without a schema, each written as a record with one field per kind of value, of which one is set."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from connect.data.numerals import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from connect.errors import DataError
from connect.kits.avro.wire_format import MalformedError, long_tail, varint

__all__ = ["read_schemaless", "write_schemaless"]

_KINDS: Final = 9
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")
_DEEPEST: Final = 300
"""The maximum nesting depth when reading and writing: Python itself allows some 1,000 nested calls."""
_TOO_DEEP: Final = f"it is nested too deeply, more than {_DEEPEST} levels"
_Read = Callable[[bytes, int], tuple[Any, int]]
_ReadNested = Callable[[bytes, int, int], tuple[Any, int]]


def read_schemaless(data: bytes, place: int, depth: int = 0) -> tuple[Any, int]:
    """Read the value at ``place``. Return it with the position after it."""
    if depth > _DEEPEST:
        raise MalformedError(_TOO_DEEP)
    found: Any = None
    is_found = False
    for kind in range(_KINDS):
        index = data[place]
        place += 1
        if index == 2:
            if kind < len(_READERS):
                value, place = _READERS[kind](data, place)
            else:
                value, place = _NESTED_READERS[kind - len(_READERS)](data, place, depth + 1)
            found, is_found = (found, True) if is_found else (value, True)
        elif index:
            raise MalformedError(f"a union of 2 has the member {index / 2:g}")
    return found, place


def _whole(data: bytes, place: int) -> tuple[int, int]:
    first = data[place]
    number, place = (first, place + 1) if first < 0x80 else long_tail(data, place + 1, first)
    return number >> 1 ^ -(number & 1), place


def _int(data: bytes, place: int) -> tuple[int, int]:
    number, place = _whole(data, place)
    if not INT32_MIN <= number <= INT32_MAX:
        raise MalformedError("a whole number has more than 32 bits")
    return number, place


def _boolean(data: bytes, place: int) -> tuple[bool, int]:
    if data[place] > 1:
        raise MalformedError(f"a boolean is {data[place]}")
    return data[place] == 1, place + 1


def _bytes(data: bytes, place: int) -> tuple[bytes, int]:
    size, place = _whole(data, place)
    if not 0 <= size <= len(data) - place:
        raise MalformedError(f"{size} bytes should follow where {len(data) - place} are left")
    return data[place : place + size], place + size


def _string(data: bytes, place: int) -> tuple[str, int]:
    text, place = _bytes(data, place)
    return text.decode(), place


def _double(data: bytes, place: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(data, place)[0], place + 8


def _float(data: bytes, place: int) -> tuple[float, int]:
    return _FLOAT.unpack_from(data, place)[0], place + 4


def _array(data: bytes, place: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while True:
        count, place = _count(data, place, _KINDS)
        if not count:
            return items, place
        for _ in range(count):
            item, place = read_schemaless(data, place, depth)
            items.append(item)


def _map(data: bytes, place: int, depth: int) -> tuple[dict[Any, Any], int]:
    items: dict[Any, Any] = {}
    while True:
        count, place = _count(data, place, 2 * _KINDS)
        if not count:
            return items, place
        for _ in range(count):
            key, place = read_schemaless(data, place, depth)
            items[key], place = read_schemaless(data, place, depth)


def _count(data: bytes, place: int, least: int) -> tuple[int, int]:
    count, place = _whole(data, place)
    if count < 0:
        count = -count
        _, place = _whole(data, place)
    if count > (len(data) - place) // least:
        raise MalformedError(f"{count} elements cannot be in the {len(data) - place} bytes that are left")
    return count, place


_READERS: Final[tuple[_Read, ...]] = (_boolean, _bytes, _double, _float, _int, _whole, _string)
_NESTED_READERS: Final[tuple[_ReadNested, ...]] = (_array, _map)


def write_schemaless(out: bytearray, value: Any, depth: int = 0) -> None:
    """Append the bytes of a value. Raises :class:`~connect.errors.DataError` if its type needs a schema.

    Integers are written as ``long``, other numbers as ``double``.
    """
    if depth > _DEEPEST:
        raise MalformedError(_TOO_DEEP)
    match value:
        case None:
            out += bytes(_KINDS)
        case bool():
            _set(out, 0, bytes([value]))
        case bytes() | bytearray() | memoryview():
            _set(out, 1, varint(2 * len(value)), bytes(value))
        case float():
            _set(out, 2, _DOUBLE.pack(value))
        case int():
            if not INT64_MIN <= value <= INT64_MAX:
                raise DataError(f"A whole number of {value.bit_length()} bits does not fit 64 bits.")
            _set(out, 5, varint(value << 1 ^ value >> 63))
        case str():
            text = value.encode()
            _set(out, 6, varint(2 * len(text)), text)
        case Mapping():
            _set_nested(out, 8, (part for pair in value.items() for part in pair), len(value), depth)
        case Sequence():
            _set_nested(out, 7, value, len(value), depth)
        case _:
            raise DataError(f"Unknown Python type for schemaless data: {type(value).__name__}; give it a schema.")


def _set(out: bytearray, kind: int, *body: bytes) -> None:
    out += bytes(kind)
    out.append(2)
    for part in body:
        out += part
    out += bytes(_KINDS - 1 - kind)


def _set_nested(out: bytearray, kind: int, values: Iterable[Any], count: int, depth: int) -> None:
    out += bytes(kind)
    out.append(2)
    if count:
        out += varint(2 * count)
    for value in values:
        write_schemaless(out, value, depth + 1)
    out.append(0)
    out += bytes(_KINDS - 1 - kind)
