"""PostgreSQL's types as Connect's: what each column's text becomes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from connect.data import Schema
from connect.errors import DataError
from connect.kits.cdc import semantic_types as types
from connect.kits.cdc.conversion import Conversion
from connect.kits.cdc.numbers import (
    BinaryHandlingMode,
    DecimalHandlingMode,
    binary_conversion,
    decimal_conversion,
    variable_scale_conversion,
)
from connect.kits.cdc.tables import Column
from connect.kits.cdc.temporal import (
    TimePrecisionMode,
    date_conversion,
    iso_date,
    iso_timestamp,
    time_conversion,
    timestamp_conversion,
    zoned_timestamp,
)
from connectors.cdc.postgresql import text

__all__ = ["Native", "PgType", "PostgresDialect", "is_temporal", "type_length"]

_Read = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class PgType:
    """A type of the catalog. ``kind`` is its ``typtype``; arrays have an ``element``, domains are resolved."""

    oid: int
    name: str
    kind: str = "b"
    element: PgType | None = None
    delimiter: str = ","
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Native:
    """What the dialect must know of a column: its type, domains resolved, and what the type is limited by."""

    type: PgType
    typmod: int


_VARIABLE: Final = 2_147_483_647
_NUMERIC_HEADER: Final = 4
_MAX_DIGITS: Final = 6
_INFINITE_MS: Final = 9_223_372_036_825_200_000
_NEGATIVE_INFINITE_MS: Final = -9_223_372_036_832_400_000
"""What Java's driver has for the infinite timestamps."""

_PLAIN: Final[Mapping[str, tuple[Schema, _Read]]] = {
    "bool": (Schema.boolean(), b"t".__eq__),
    "int2": (Schema.int16(), int),
    "int4": (Schema.int32(), int),
    "int8": (Schema.int64(), int),
    "oid": (Schema.int64(), int),
    "float4": (Schema.float32(), float),
    "float8": (Schema.float64(), float),
    **dict.fromkeys(
        ("char", "bpchar", "varchar", "text", "citext", "name", "inet", "cidr", "macaddr", "macaddr8", "isbn"),
        (Schema.string(), bytes.decode),
    ),
    **dict.fromkeys(
        ("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"), (Schema.string(), bytes.decode)
    ),
    "json": (types.JSON, bytes.decode),
    "jsonb": (types.JSON, bytes.decode),
    "xml": (types.XML, bytes.decode),
    "uuid": (types.UUID, bytes.decode),
    "ltree": (types.LTREE, bytes.decode),
    "tsvector": (types.TSVECTOR, bytes.decode),
    "timetz": (types.ZONED_TIME, text.time_zoned),
    "point": (types.POINT, text.point),
    "box": (types.GEOMETRY, text.box),
    "vector": (types.DOUBLE_VECTOR, text.vector),
    "halfvec": (types.FLOAT_VECTOR, text.vector),
}


class PostgresDialect:
    """The conversions of PostgreSQL's types, as the configuration asks for them."""

    def __init__(
        self,
        *,
        decimals: DecimalHandlingMode,
        times: TimePrecisionMode,
        binary: BinaryHandlingMode,
        hstore: Literal["json", "map"],
        intervals: Literal["numeric", "string"],
        money_digits: int,
        has_unknown: bool,
    ) -> None:
        self._decimals = decimals
        self._times = times
        self._binary = binary
        self._hstore = hstore
        self._intervals = intervals
        self._money_digits = money_digits
        self._has_unknown = has_unknown
        self.database_money_digits: int | None = None
        """The digits after the point of the database's currency; None until they are known."""

    def conversion(self, column: Column) -> Conversion | None:
        """Return how values of the column are converted; None for types that are left out."""
        native: Native = column.native
        if native.type.element is not None:
            return self._array(native)
        known = self._scalar(native.type, native.typmod)
        if known is None and self._has_unknown:
            return Conversion(Schema.bytes(), bytes)
        return known

    def _array(self, native: Native) -> Conversion | None:
        element = native.type.element
        known = None if element is None else self._scalar(element, native.typmod)
        if element is None or known is None:
            return Conversion(Schema.bytes(), bytes) if self._has_unknown else None
        # Debezium's schema of an element that is an enum is required; all others are optional.
        is_enum = element.kind == "e"
        schema = known.schema if is_enum else known.schema.as_optional()
        read = text.list_of(known.convert, native.type.delimiter, allows_null=not is_enum)
        return Conversion(Schema.array(schema), read)

    def _scalar(self, kind: PgType, typmod: int) -> Conversion | None:
        if kind.kind == "e":
            return Conversion(types.enumeration(kind.labels), bytes.decode)
        if kind.name in _PLAIN:
            return Conversion(*_PLAIN[kind.name])
        made: dict[str, Callable[[int], Conversion]] = {
            "numeric": self._numeric,
            "money": lambda _: self._money(),
            "bytea": lambda _: binary_conversion(self._binary).after(text.bytea),
            "bit": _bits,
            "varbit": _bits,
            "date": lambda _: self._date(),
            "time": self._time,
            "timestamp": self._timestamp,
            "timestamptz": lambda _: _zoned(),
            "interval": lambda _: self._interval(),
            "hstore": lambda _: self._pairs(),
            "geometry": lambda _: Conversion(types.GEOMETRY, _geometry),
            "geography": lambda _: Conversion(types.GEOGRAPHY, _geometry),
        }
        make = made.get(kind.name)
        return None if make is None else make(typmod)

    def _numeric(self, typmod: int) -> Conversion:
        if typmod < _NUMERIC_HEADER:
            return variable_scale_conversion(self._decimals).after(bytes.decode)
        precision, scale = declared_precision(typmod), declared_scale(typmod)
        return decimal_conversion(self._decimals, precision, scale).after(bytes.decode)

    def _money(self) -> Conversion:
        digits = 2 if self.database_money_digits is None else self.database_money_digits
        scale = -digits
        if self._decimals is DecimalHandlingMode.STRING:
            # Debezium shows the currency's own digits here, whatever money.fraction.digits says.
            inner = decimal_conversion(self._decimals, None, digits)
        else:
            inner = decimal_conversion(self._decimals, None, self._money_digits)
        return inner.after(lambda raw: Decimal(text.money_units(raw)).scaleb(scale))

    def _date(self) -> Conversion:
        inner = date_conversion(self._times)
        if self._times is TimePrecisionMode.ISOSTRING:
            infinite: tuple[Any, Any] = (
                iso_date(_INFINITE_MS // 86_400_000) + "Z",
                iso_date(_NEGATIVE_INFINITE_MS // 86_400_000) + "Z",
            )
        else:
            infinite = (2**31 - 1, -(2**31))
        return _infinite(inner.after(text.date_days), infinite)

    def _time(self, typmod: int) -> Conversion:
        return time_conversion(self._times, _digits(typmod)).after(text.time_micros)

    def _timestamp(self, typmod: int) -> Conversion:
        inner = timestamp_conversion(self._times, _digits(typmod))
        if inner.schema is types.TIMESTAMP:
            infinite: tuple[Any, Any] = (_INFINITE_MS, _NEGATIVE_INFINITE_MS)
        elif self._times is TimePrecisionMode.ISOSTRING:
            infinite = (
                iso_timestamp(_INFINITE_MS * 1000) + "Z",
                iso_timestamp(_NEGATIVE_INFINITE_MS * 1000) + "Z",
            )
        else:
            infinite = (2**63 - 1, -(2**63))
        if inner.schema is types.MICRO_TIMESTAMP:
            return _infinite(Conversion(inner.schema, text.timestamp_micros), infinite)
        return _infinite(inner.after(text.timestamp_micros), infinite)

    def _interval(self) -> Conversion:
        if self._intervals == "string":
            return Conversion(types.INTERVAL, text.interval_iso)
        return Conversion(types.MICRO_DURATION, text.interval_micros)

    def _pairs(self) -> Conversion:
        if self._hstore == "json":
            return Conversion(types.JSON, text.hstore_json)
        return Conversion(Schema.map(Schema.string(), Schema.string(optional=True)), text.hstore)


def _infinite(conversion: Conversion, values: tuple[Any, Any]) -> Conversion:
    """Return the conversion that knows infinity; Connect's own types have no place for it."""
    convert = conversion.convert
    is_connect = (conversion.schema.name or "").startswith("org.apache.kafka")

    def read(raw: bytes) -> Any:
        try:
            return convert(raw)
        except ValueError:
            if raw not in (text.INFINITE, text.NEGATIVE_INFINITE):
                raise
            if is_connect:
                raise DataError(
                    f"{raw.decode()} has no place in {conversion.schema.name}: set time.precision.mode to another "
                    "value than connect."
                ) from None
            return values[raw == text.NEGATIVE_INFINITE]

    return Conversion(conversion.schema, read)


def _zoned() -> Conversion:
    write = zoned_timestamp(_MAX_DIGITS)

    def read(raw: bytes) -> str:
        # The usual form, 2024-01-02 03:04:05.123456+00, needs no arithmetic.
        if raw[-3:] == b"+00" and raw[4:5] == b"-" and raw[0] != 45:
            if len(raw) == 29:
                return f"{raw[:10].decode()}T{raw[11:26].decode()}Z"
            if len(raw) == 22:
                return f"{raw[:10].decode()}T{raw[11:19].decode()}.000000Z"
        if raw in (text.INFINITE, text.NEGATIVE_INFINITE):
            return raw.decode()
        return write(text.timestamp_micros(raw))

    return Conversion(types.ZONED_TIMESTAMP, read)


def _bits(typmod: int) -> Conversion:
    if typmod == 1:
        return Conversion(Schema.boolean(), b"1".__eq__)
    return Conversion(types.bits(typmod if typmod > 0 else _VARIABLE), text.bits)


_HAS_SRID: Final = 0x20000000


def _geometry(raw: bytes) -> dict[str, Any]:
    """Return the struct of a value of PostGIS, which its text is in hexadecimal."""
    wkb = bytes.fromhex(raw.decode())
    order = "<" if wkb[0] else ">"
    kind, srid = struct.unpack_from(f"{order}Ii", wkb, 1)
    return {"wkb": wkb, "srid": srid if kind & _HAS_SRID else None, "extensions": None}


def _digits(typmod: int) -> int:
    return typmod if 0 <= typmod <= _MAX_DIGITS else _MAX_DIGITS


def declared_precision(typmod: int) -> int:
    """Return the precision of a numeric with a declared one."""
    return ((typmod - _NUMERIC_HEADER) >> 16) & 0xFFFF


def declared_scale(typmod: int) -> int:
    """Return the scale of a numeric with a declared one; it may be negative."""
    return (((typmod - _NUMERIC_HEADER) & 0x7FF) ^ 1024) - 1024


_LENGTHS: Final = {
    "bool": 1,
    "int2": 5,
    "int4": 10,
    "int8": 19,
    "oid": 10,
    "float4": 8,
    "float8": 17,
    "date": 13,
    "uuid": 2_147_483_647,
    "interval": 49,
}
_TIME_LENGTHS: Final = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}


def type_length(kind: PgType, typmod: int) -> tuple[int, int]:
    """Return the length and the scale of a column, as Java's driver tells them."""
    kind = kind.element or kind
    if kind.name == "numeric" and typmod >= _NUMERIC_HEADER:
        return declared_precision(typmod), declared_scale(typmod)
    if kind.name in ("bpchar", "varchar") and typmod >= _NUMERIC_HEADER:
        return typmod - _NUMERIC_HEADER, 0
    if kind.name in ("bit", "varbit") and typmod > 0:
        return typmod, 0
    if kind.name in _TIME_LENGTHS:
        digits = _digits(typmod)
        fraction = digits + 1 if digits else 0
        return _TIME_LENGTHS[kind.name] + fraction, digits
    return _LENGTHS.get(kind.name, _VARIABLE), 0


def is_temporal(kind: PgType) -> bool:
    """Return whether values of the type are dates or times."""
    return kind.name in ("date", "time", "timetz", "timestamp", "timestamptz")
