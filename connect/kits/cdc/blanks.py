"""Values in place of those that a database has not sent, where the schema has no room for null.

The row before a deletion has the columns of the key alone, unless the database logs whole rows. Debezium fills the
others with null or the column's default, or else with the zero of their type.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from connect.data import Schema, Type
from connect.data.logical import EPOCH

__all__ = ["blank_fields"]

_ZEROS: Final[Mapping[Type, Any]] = MappingProxyType(
    {
        Type.BOOLEAN: False,
        Type.FLOAT32: 0.0,
        Type.FLOAT64: 0.0,
        Type.STRING: "",
        Type.BYTES: b"",
    }
)
_LOGICAL: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "org.apache.kafka.connect.data.Date": EPOCH.date(),
        "org.apache.kafka.connect.data.Time": dt.time(),
        "org.apache.kafka.connect.data.Timestamp": EPOCH,
        "io.debezium.time.ZonedTimestamp": "1970-01-01T00:00:00Z",
        "io.debezium.time.ZonedTime": "00:00:00Z",
    }
)
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"


def blank_fields(row: Schema) -> Mapping[str, Any]:
    """Return the value for each field of a row's schema that must not be null and has no default."""
    return MappingProxyType(
        {
            field.name: _blank(field.schema)
            for field in row.fields
            if not field.schema.optional and field.schema.default is None
        }
    )


def _blank(schema: Schema) -> Any:
    if schema.name is not None and schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.name == _DECIMAL:
        return Decimal((0, (0,), -int(schema.parameters.get("scale", "0"))))
    match schema.type:
        case Type.ARRAY:
            return []
        case Type.MAP:
            return {}
        case Type.STRUCT:
            return {field.name: _blank(field.schema) for field in schema.fields if not field.schema.optional}
    return _ZEROS.get(schema.type, 0)
