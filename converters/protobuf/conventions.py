"""The names by which Connect schemas represent what Protobuf has and they lack, and names that Protobuf allows."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_plus

from connect.data import Schema, Type
from connect.errors import SchemaError

__all__ = [
    "DECIMAL",
    "ENUM",
    "GENERALIZED_ENUM",
    "GENERALIZED_UNION",
    "LOGICAL_MESSAGES",
    "RECURSIVE",
    "TAG",
    "TYPE",
    "UNION",
    "UNKNOWN_SYMBOL",
    "WRAPPERS",
    "enum_name",
    "is_union",
    "proto_name",
    "split",
    "symbol_name",
    "union_name",
]

NAMESPACE: Final = "io.confluent.connect.protobuf"
TAG: Final = f"{NAMESPACE}.Tag"
TYPE: Final = f"{NAMESPACE}.Type"
ENUM: Final = f"{NAMESPACE}.Enum"
UNION: Final = f"{NAMESPACE}.Union"
GENERALIZED_UNION: Final = "org.apache.kafka.connect.data.Union"
GENERALIZED_ENUM: Final = "org.apache.kafka.connect.data.Enum"
UNKNOWN_SYMBOL: Final = "UNKNOWN_ENUM_VALUE_"

RECURSIVE: Final = "sluice.protobuf.message"
"""The parameter that marks bytes as a message of the name it gives, which contains itself."""

DECIMAL: Final = "confluent.type.Decimal"
LOGICAL_MESSAGES: Final = {
    DECIMAL: "confluent/type/decimal.proto",
    "google.type.Date": "google/type/date.proto",
    "google.type.TimeOfDay": "google/type/timeofday.proto",
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
}
"""The messages that are logical types, and where they are declared."""

WRAPPERS: Final = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}
"""The messages that hold one scalar, in the order of their file."""

_VALID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID: Final = re.compile(r"[^A-Za-z0-9_]")
_WORDS_OF_ENUMS: Final = ("option", "reserved")
"""What a line of an enum that is no symbol begins with."""


def is_union(schema: Schema) -> bool:
    """Return whether a schema represents a oneof: a struct in which at most one field is set."""
    if schema.type is not Type.STRUCT:
        return False
    name = schema.name or ""
    return name == UNION or name.startswith(f"{UNION}.") or GENERALIZED_UNION in schema.parameters


def union_name(schema: Schema) -> str | None:
    """Return the name of the oneof that a schema represents, if it has one."""
    name = schema.parameters.get(GENERALIZED_UNION) or (schema.name or "").removeprefix(UNION).removeprefix(".")
    return split(name)[1] or None


def enum_name(schema: Schema) -> tuple[str, str] | None:
    """Return the parameter that marks a schema as an enum, and the enum's name; ``None`` if there is none."""
    if schema.type not in (Type.STRING, Type.INT32):
        return None
    for name in (ENUM, GENERALIZED_ENUM):
        if name in schema.parameters:
            return name, schema.parameters[name] or schema.name or "Enum"
    return None


def split(full_name: str) -> tuple[str, str]:
    """Split a full name into the package, empty if there is none, and the simple name."""
    package, _, name = full_name.rpartition(".")
    return package, name


def proto_name(name: str, *, scrubs: bool) -> str:
    """Return the name that Protobuf allows for a name of Connect.

    Raises :class:`~connect.errors.SchemaError` if it has to be changed and ``scrubs`` is false.
    """
    if _VALID.fullmatch(name):
        return f"x{name}" if scrubs and name[0] == "_" else name
    if not scrubs:
        raise SchemaError(
            f"{name!r} is not a name that Protobuf allows: use letters, digits and _ (ReplaceField renames fields), or "
            "set scrub.invalid.names=true to have the other characters replaced."
        )
    encoded = quote_plus(name, safe="*-._")
    prefix = "x" if not encoded or encoded[0].isdigit() or encoded[0] == "_" else ""
    return prefix + _INVALID.sub("_", encoded)


def symbol_name(name: str, *, scrubs: bool) -> str:
    """Return the name that Protobuf allows for a symbol of an enum, or raise like :func:`proto_name`."""
    if name not in _WORDS_OF_ENUMS:
        return proto_name(name, scrubs=scrubs)
    if not scrubs:
        raise SchemaError(
            f"An enum has the symbol {name}, which is a word of Protobuf's language there: rename it at its source, "
            f"cast its field to string (Cast), or set scrub.invalid.names=true to have it called x{name}."
        )
    return f"x{name}"
