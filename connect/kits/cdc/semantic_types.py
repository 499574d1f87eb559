"""Schemas of Debezium's semantic types: named Connect schemas whose values are plain numbers, strings and structs.

Each function returns a required schema without a default; :mod:`connect.kits.cdc.table_schemas` adds both, and the
name of the column's type, if asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from connect.data import Schema, Type

__all__ = [
    "DATE",
    "DOUBLE_VECTOR",
    "FLOAT_VECTOR",
    "GEOGRAPHY",
    "GEOMETRY",
    "INTERVAL",
    "ISO_DATE",
    "ISO_TIME",
    "ISO_TIMESTAMP",
    "JSON",
    "LTREE",
    "MICRO_DURATION",
    "MICRO_TIME",
    "MICRO_TIMESTAMP",
    "NANO_TIME",
    "NANO_TIMESTAMP",
    "POINT",
    "TIME",
    "TIMESTAMP",
    "TSVECTOR",
    "UUID",
    "VARIABLE_SCALE_DECIMAL",
    "XML",
    "YEAR",
    "ZONED_TIME",
    "ZONED_TIMESTAMP",
    "bits",
    "enumeration",
    "set_of",
]


def _named(kind: Type, name: str, parameters: Mapping[str, str] | None = None) -> Schema:
    return Schema(kind, name=f"io.debezium.{name}", version=1, parameters=parameters)


DATE: Final = _named(Type.INT32, "time.Date")
TIME: Final = _named(Type.INT32, "time.Time")
MICRO_TIME: Final = _named(Type.INT64, "time.MicroTime")
NANO_TIME: Final = _named(Type.INT64, "time.NanoTime")
TIMESTAMP: Final = _named(Type.INT64, "time.Timestamp")
MICRO_TIMESTAMP: Final = _named(Type.INT64, "time.MicroTimestamp")
NANO_TIMESTAMP: Final = _named(Type.INT64, "time.NanoTimestamp")
ZONED_TIME: Final = _named(Type.STRING, "time.ZonedTime")
ZONED_TIMESTAMP: Final = _named(Type.STRING, "time.ZonedTimestamp")
ISO_DATE: Final = _named(Type.STRING, "time.IsoDate")
ISO_TIME: Final = _named(Type.STRING, "time.IsoTime")
ISO_TIMESTAMP: Final = _named(Type.STRING, "time.IsoTimestamp")
MICRO_DURATION: Final = _named(Type.INT64, "time.MicroDuration")
INTERVAL: Final = _named(Type.STRING, "time.Interval")
YEAR: Final = _named(Type.INT32, "time.Year")

JSON: Final = _named(Type.STRING, "data.Json")
XML: Final = _named(Type.STRING, "data.Xml")
UUID: Final = _named(Type.STRING, "data.Uuid")
LTREE: Final = _named(Type.STRING, "data.Ltree")
TSVECTOR: Final = _named(Type.STRING, "data.Tsvector")
VARIABLE_SCALE_DECIMAL: Final = Schema.struct(
    {"scale": Schema.int32(), "value": Schema.bytes()},
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
)
POINT: Final = Schema.struct(
    {
        "x": Schema.float64(),
        "y": Schema.float64(),
        "wkb": Schema.bytes(optional=True),
        "srid": Schema.int32(optional=True),
    },
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)


def _geometry(name: str) -> Schema:
    extensions = Schema.map(Schema.string(), Schema.string(), optional=True)
    return Schema.struct(
        {"wkb": Schema.bytes(), "srid": Schema.int32(optional=True), "extensions": extensions},
        name=f"io.debezium.data.geometry.{name}",
        version=2,
        doc=name,
    )


GEOMETRY: Final = _geometry("Geometry")
GEOGRAPHY: Final = _geometry("Geography")
DOUBLE_VECTOR: Final = Schema.array(Schema.float64(), name="io.debezium.data.DoubleVector", version=1)
FLOAT_VECTOR: Final = Schema.array(Schema.float32(), name="io.debezium.data.FloatVector", version=1)


def bits(length: int) -> Schema:
    """Return the schema of bit strings of up to ``length`` bits: bytes, the least significant first."""
    return _named(Type.BYTES, "data.Bits", {"length": str(length)})


def enumeration(values: Sequence[str]) -> Schema:
    """Return the schema of one of ``values``."""
    return _named(Type.STRING, "data.Enum", {"allowed": _joined(values)})


def set_of(values: Sequence[str]) -> Schema:
    """Return the schema of some of ``values``, separated by commas."""
    return _named(Type.STRING, "data.EnumSet", {"allowed": _joined(values)})


def _joined(values: Sequence[str]) -> str:
    return ",".join(value.replace(",", "\\,") for value in values)
