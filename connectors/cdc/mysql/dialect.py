"""The conversions of the types of MySQL and MariaDB.

Stream and snapshot read a value into one form: numbers as numbers, dates as days, times as microseconds, texts as text,
bytes and shapes as bytes. From there each value takes the way through here.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from connect.data import Schema
from connect.errors import DataError
from connect.kits.cdc import semantic_types as types
from connect.kits.cdc.conversion import Conversion
from connect.kits.cdc.numbers import (
    BinaryHandlingMode,
    DecimalHandlingMode,
    binary_conversion,
    decimal_conversion,
)
from connect.kits.cdc.tables import Column
from connect.kits.cdc.temporal import (
    DAY_US,
    TimePrecisionMode,
    date_conversion,
    time_conversion,
    timestamp_conversion,
    zoned_timestamp,
)
from connectors.cdc.mysql.column_types import ColumnType

__all__ = ["MySqlDialect", "UnsignedBigintMode"]

_UNSIGNED_BIGINT_DIGITS: Final = 20
_DEFAULT_DECIMAL: Final = 10
_LONG_MAX: Final = 2**63 - 1
_SRID_BYTES: Final = 4
_POINT: Final = struct.Struct("<dd")
_BIG_POINT: Final = struct.Struct(">dd")
_WKB_POINT_BYTES: Final = 21

_GEOMETRY: Final = Schema.struct(
    {"wkb": Schema.bytes(), "srid": Schema.int32(optional=True)},
    name="io.debezium.data.geometry.Geometry",
    version=1,
    doc="Geometry",
)
_INTEGERS: Final[Mapping[tuple[str, bool], Schema]] = {
    ("tinyint", False): Schema.int16(),
    ("tinyint", True): Schema.int16(),
    ("smallint", False): Schema.int16(),
    ("smallint", True): Schema.int32(),
    ("mediumint", False): Schema.int32(),
    ("mediumint", True): Schema.int32(),
    ("int", False): Schema.int32(),
    ("int", True): Schema.int64(),
    ("bigint", False): Schema.int64(),
}


class UnsignedBigintMode(StrEnum):
    """The values of ``bigint.unsigned.handling.mode``."""

    LONG = "long"
    PRECISE = "precise"


@dataclass(frozen=True, slots=True)
class MySqlDialect:
    """Converts columns as a connector's configuration asks for it."""

    times: TimePrecisionMode
    decimals: DecimalHandlingMode
    binary: BinaryHandlingMode
    unsigned_bigint: UnsignedBigintMode

    def conversion(self, column: Column) -> Conversion:  # noqa: PLR0911 - one for each kind
        """Return how values of the column are converted."""
        kind: ColumnType = column.native
        name = kind.kind
        if schema := _INTEGERS.get((name, kind.is_unsigned)):
            return Conversion(schema, int)
        if name == "bigint":
            return self._unsigned_bigint()
        if name == "decimal":
            return decimal_conversion(self.decimals, kind.length or _DEFAULT_DECIMAL, kind.scale or 0)
        if kind.is_binary:
            return binary_conversion(self.binary)
        if name in ("date", "time", "datetime", "timestamp"):
            return self._temporal(kind)
        if name in ("enum", "set"):
            return Conversion((types.enumeration if name == "enum" else types.set_of)(kind.values), str)
        if name == "bit":
            return _bits(kind.length or 1)
        if name == "float" and kind.scale is not None:
            return Conversion(Schema.float64(), float)
        if kind.is_geometry:
            return Conversion(types.POINT, _point) if name == "point" else Conversion(_GEOMETRY, _geometry)
        return _OTHERS.get(name, Conversion(Schema.string(), str))

    def _unsigned_bigint(self) -> Conversion:
        if self.unsigned_bigint is UnsignedBigintMode.PRECISE:
            return decimal_conversion(DecimalHandlingMode.PRECISE, _UNSIGNED_BIGINT_DIGITS, 0)
        # As in Debezium, the upper half of the numbers is below zero.
        return Conversion(Schema.int64(), lambda value: value if value <= _LONG_MAX else value - 2**64)

    def _temporal(self, kind: ColumnType) -> Conversion:
        if kind.kind == "date":
            return date_conversion(self.times)
        if kind.kind == "timestamp":
            return Conversion(types.ZONED_TIMESTAMP, zoned_timestamp(kind.precision))
        if kind.kind == "datetime":
            return timestamp_conversion(self.times, kind.precision)
        conversion = time_conversion(self.times, kind.precision)
        if self.times in (TimePrecisionMode.CONNECT, TimePrecisionMode.ISOSTRING):
            return conversion.after(_time_of_day)
        return conversion


def _time_of_day(micros: int) -> int:
    if not 0 <= micros < DAY_US:
        hours = micros / (DAY_US / 24)
        raise DataError(
            f"A time of {hours:.2f} hours is no time of a day: set time.precision.mode=adaptive_time_microseconds."
        )
    return micros


def _bits(length: int) -> Conversion:
    if length == 1:
        return Conversion(Schema.boolean(), bool)
    size = (length + 7) // 8
    return Conversion(types.bits(length), lambda value: value.to_bytes(size, "little"))


def _srid(raw: bytes) -> int | None:
    return int.from_bytes(raw[:_SRID_BYTES], "little") or None


def _geometry(raw: bytes) -> dict[str, Any]:
    return {"wkb": raw[_SRID_BYTES:], "srid": _srid(raw)}


def _point(raw: bytes) -> dict[str, Any]:
    wkb = raw[_SRID_BYTES:]
    if len(wkb) < _WKB_POINT_BYTES:
        raise DataError(f"A point of {len(wkb)} bytes is too short.")
    x, y = (_POINT if wkb[0] else _BIG_POINT).unpack_from(wkb, 5)
    return {"x": x, "y": y, "wkb": wkb, "srid": _srid(raw)}


def _same(value: Any) -> Any:
    return value


_OTHERS: Final[Mapping[str, Conversion]] = {
    "float": Conversion(Schema.float32(), float),
    "double": Conversion(Schema.float64(), float),
    "year": Conversion(types.YEAR, int),
    "json": Conversion(types.JSON, str),
    "uuid": Conversion(types.UUID, str),
    "vector": Conversion(types.FLOAT_VECTOR, _same),
}
