"""Java's ``hashCode`` of values."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from connect.data import Schema, Type
from connect.data.logical import days_from_date
from connect.errors import DataError
from connect.internals.java.date_text import milliseconds_of

__all__ = ["hash_code"]

_MASK: Final = 0xFFFF_FFFF
_LARGEST_INTEGER: Final = 0x7FFF_FFFF
_DAY_MS: Final = 86_400_000


def hash_code(value: Any, schema: Schema | None) -> int:
    """Return the hash code of a value; a whole number without a schema is one of 64 bits.

    Raises :class:`~connect.errors.DataError` for structs and maps, whose hash codes depend on more than their values.
    """
    compute = next((compute for kind, compute in _BY_TYPE.items() if isinstance(value, kind)), None)
    if compute is None:
        raise DataError(f"A value of type {type(value).__name__} has no hash code as in Java: name a field within it")
    return compute(value, schema)


def _boolean(value: Any, _schema: Schema | None) -> int:
    return 1231 if value else 1237


def _whole(value: Any, schema: Schema | None) -> int:
    is_long = schema is None or schema.type is Type.INT64
    return _folded(value) if is_long else int(value)


def _float(value: Any, schema: Schema | None) -> int:
    if schema is not None and schema.type is Type.FLOAT32:
        return int.from_bytes(struct.pack(">f", value), signed=True)
    return _folded(int.from_bytes(struct.pack(">d", value), signed=True))


def _text(value: Any, _schema: Schema | None) -> int:
    data = value.encode("utf-16-be", errors="surrogatepass")
    return _polynomial(struct.unpack(f">{len(data) // 2}H", data), 0)


def _decimal(value: Any, _schema: Schema | None) -> int:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise DataError(f"{value} has no hash code as in Java: it is no number")
    unscaled = int("".join(map(str, digits)))
    size = (unscaled.bit_length() + 31) // 32
    magnitude = _polynomial(struct.unpack(f">{size}I", unscaled.to_bytes(4 * size)), 0)
    return _int32(31 * (-magnitude if sign else magnitude) - exponent)


def _moment(value: Any, _schema: Schema | None) -> int:
    return _folded(milliseconds_of(value))


def _date(value: Any, _schema: Schema | None) -> int:
    return _folded(days_from_date(value) * _DAY_MS)


def _bytes(value: Any, _schema: Schema | None) -> int:
    return _polynomial(reversed(struct.unpack(f"{len(value)}b", value)), 1)


def _list(value: Any, schema: Schema | None) -> int:
    items = None if schema is None else schema.value_schema
    return _polynomial((0 if item is None else hash_code(item, items) for item in value), 1)


_BY_TYPE: Final[Mapping[Any, Callable[[Any, Schema | None], int]]] = {
    bool: _boolean,
    int: _whole,
    float: _float,
    str: _text,
    Decimal: _decimal,
    (dt.datetime, dt.time): _moment,
    dt.date: _date,
    (bytes, bytearray): _bytes,
    (list, tuple): _list,
}


def _polynomial(numbers: Iterable[int], first: int) -> int:
    total = first
    for number in numbers:
        total = (31 * total + number) & _MASK
    return _int32(total)


def _folded(number: int) -> int:
    """Return the hash of 64 bits: both halves together."""
    bits = number & 0xFFFF_FFFF_FFFF_FFFF
    return _int32(bits ^ bits >> 32)


def _int32(number: int) -> int:
    bits = number & _MASK
    return bits - (1 << 32) if bits > _LARGEST_INTEGER else bits
