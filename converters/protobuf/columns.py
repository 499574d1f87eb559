"""Decodes Protobuf messages straight into Arrow arrays, many at a time. Importing this needs numpy and pyarrow.

What :func:`~converters.protobuf.to_connect.reading_of` makes of a message is the specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connect.data import Schema, Type, logical
from connect.data.arrow import arrow_type
from connect.data.schema import INTEGER_RANGES
from connect.kits.columns.decoder import ColumnDecoder, Root
from converters.protobuf.column_fields import (
    Entries,
    Items,
    Packed,
    Record,
    RootStruct,
    RootValue,
    Single,
    Step,
    Struct,
    Tag,
)
from converters.protobuf.column_values import (
    LENGTH_DELIMITED,
    Boolean,
    Bytes,
    Dates,
    Decimals,
    Enum,
    Fixed,
    Times,
    Timestamps,
    Value,
    Whole,
    Wrapped,
)
from converters.protobuf.config import ProtobufConverterConfig
from converters.protobuf.conventions import DECIMAL, RECURSIVE, WRAPPERS
from converters.protobuf.to_connect import KINDS, is_map_entry, is_proto2, is_synthetic
from converters.registry.codecs import Decode

__all__ = ["column_decoder"]

_MOST_PARTS: Final = 2000
"""The number of fields in a message and those within it."""
_FIXED: Final = {
    "float": ("<f4", 5),
    "fixed32": ("<u4", 5),
    "sfixed32": ("<i4", 5),
    "double": ("<f8", 1),
    "fixed64": ("<u8", 1),
    "sfixed64": ("<i8", 1),
}
_SHORT: Final = frozenset({"int32", "uint32", "sint32"})
_TEMPORAL: Final[dict[str, type[Timestamps | Dates | Times]]] = {
    "google.protobuf.Timestamp": Timestamps,
    "google.type.Date": Dates,
    "google.type.TimeOfDay": Times,
}
_KEYS: Final = frozenset({Type.STRING, Type.BOOLEAN, Type.INT8, Type.INT16, Type.INT32, Type.INT64})


class _UnsupportedError(Exception):
    """Raised for a schema that is left to the other decoder."""


def column_decoder(
    message: Any, schema: Schema, config: ProtobufConverterConfig, decode: Decode, header: int
) -> ColumnDecoder:
    """Compile the decoder for messages of a type, by its descriptor, behind a header of so many bytes.

    ``schema`` is the Connect schema of the message, and ``decode`` the decoder by row.
    """
    try:
        root = _Compiler(config).root(message, schema)
    except _UnsupportedError:
        root = None
    return ColumnDecoder(root, schema, decode, header)


class _Compiler:
    """Makes the parts that read a message."""

    def __init__(self, config: ProtobufConverterConfig) -> None:
        self._config = config
        self._parts = 0

    def root(self, message: Any, schema: Schema) -> Root:
        if message.full_name in WRAPPERS and self._config.wrapper_for_raw_primitives:
            return RootValue(_plain(message, self._single(message.fields_by_name["value"], schema, is_null=False)))
        return RootStruct(self._struct(message, schema))

    # -- messages ------------------------------------------------------------------------------------------------

    def _struct(self, message: Any, schema: Schema) -> Struct:
        self._parts += len(schema.fields)
        if self._parts > _MOST_PARTS:
            raise _UnsupportedError
        steps: dict[int, Step] = {}
        fields = iter(schema.fields)
        oneofs = [oneof for oneof in message.oneofs if not is_synthetic(oneof)]
        for oneof in oneofs:
            schemas = self._member_schemas(oneof, fields)
            steps |= {field.number: self._single(field, part, is_null=True) for field, part in schemas}
        inner = {field.name for oneof in oneofs for field in oneof.fields}
        for field in message.fields:
            if field.name not in inner:
                steps[field.number] = self._field(field, next(fields).schema)
        return Struct(self._record(message, schema, steps, oneofs), arrow_type(schema))

    def _member_schemas(self, oneof: Any, fields: Iterator[Any]) -> list[tuple[Any, Schema]]:
        if self._config.flatten_unions:
            return [(field, next(fields).schema) for field in oneof.fields]
        union = next(fields).schema
        return [(field, part.schema) for field, part in zip(oneof.fields, union.fields, strict=True)]

    def _record(self, message: Any, schema: Schema, steps: dict[int, Step], oneofs: list[Any]) -> Record:
        places = {number: place for place, number in enumerate(sorted(steps))}
        members = [tuple(places[field.number] for field in oneof.fields) for oneof in oneofs]
        columns: list[int | tuple[tuple[int, ...], Any]] = []
        for place, each in enumerate(members):
            if self._config.flatten_unions:
                columns += each
            else:
                columns.append((each, arrow_type(schema.fields[place].schema)))
        inside = {place for each in members for place in each}
        columns += [places[field.number] for field in message.fields if places[field.number] not in inside]
        return Record(tuple(steps[number] for number in sorted(steps)), tuple(columns), tuple(members))

    # -- fields --------------------------------------------------------------------------------------------------

    def _field(self, field: Any, schema: Schema) -> Step:
        if field.is_repeated:
            return self._repeated(field, schema)
        if field.message_type is not None:
            makes_struct = (
                self._config.generate_struct_for_nulls
                and schema.type is Type.STRUCT
                and field.message_type.full_name not in WRAPPERS
            )
            return self._single(field, schema, is_null=not makes_struct)
        tells = field.has_presence and (self._config.optional_for_proto2 or not is_proto2(field.file))
        return self._single(field, schema, is_null=tells)

    def _single(self, field: Any, schema: Schema, *, is_null: bool, is_required: bool = False) -> Single:
        if not is_null and field.message_type is None and field.default_value:
            raise _UnsupportedError
        value = self._value(field, schema)
        return Single(Tag(field.number, value.wire_type), value, arrow_type(schema), is_null, is_required)

    def _repeated(self, field: Any, schema: Schema) -> Step:
        if field.message_type is not None and is_map_entry(field):
            return self._entries(field, schema)
        assert schema.value_schema is not None
        value, data_type = self._value(field, schema.value_schema), arrow_type(schema)
        if not field.is_packed:
            return Items(Tag(field.number, value.wire_type), value, data_type)
        size = np.dtype(value.written).itemsize if isinstance(value, Fixed) else None
        return Packed(Tag(field.number, LENGTH_DELIMITED), value, data_type, size)

    def _entries(self, field: Any, schema: Schema) -> Step:
        entry, key_schema, value_schema = field.message_type, schema.key_schema, schema.value_schema
        assert key_schema is not None
        assert value_schema is not None
        if key_schema.type not in _KEYS or key_schema.name in logical.LOGICAL_NAMES:
            raise _UnsupportedError
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        if entry.GetOptions().map_entry:
            steps: tuple[Step, ...] = (
                self._single(key, key_schema, is_null=False),
                # A message that is not there is an empty one, of which the other decoder knows what it stands for.
                self._single(value, value_schema, is_null=False, is_required=value.message_type is not None),
            )
        else:
            steps = (self._field(key, key_schema), self._field(value, value_schema))
        order = (0, 1) if key.number < value.number else (1, 0)
        record = Record(tuple(steps[place] for place in order), order)
        return Entries(Tag(field.number, LENGTH_DELIMITED), Struct(record, None), arrow_type(schema))

    # -- values --------------------------------------------------------------------------------------------------

    def _value(self, field: Any, schema: Schema) -> Value:
        message = field.message_type
        if message is None:
            return self._scalar(field, schema)
        if message.full_name in WRAPPERS and self._config.wrapper_for_nullables:
            return Wrapped(_plain(message, self._single(message.fields_by_name["value"], schema, is_null=False)))
        if message.full_name == DECIMAL:
            return Decimals(_numbers(message), arrow_type(schema))
        temporal = _TEMPORAL.get(message.full_name)
        if temporal is not None:
            return temporal(_numbers(message), arrow_type(schema))
        if RECURSIVE in schema.parameters:
            raise _UnsupportedError
        return self._struct(message, schema)

    def _scalar(self, field: Any, schema: Schema) -> Value:
        kind = KINDS[field.type]
        if kind in ("string", "bytes"):
            return Bytes(is_text=kind == "string")
        if kind == "bool":
            return Boolean()
        if kind == "enum":
            return _enum(field.enum_type, schema)
        if schema.name in logical.LOGICAL_NAMES or schema.type is Type.STRING:
            # Numbers without sign that are decimals or text.
            raise _UnsupportedError
        if kind in _FIXED:
            return Fixed(arrow_type(schema), *_FIXED[kind])
        limits = INTEGER_RANGES[schema.type] if schema.type in (Type.INT8, Type.INT16) else None
        return Whole(arrow_type(schema), kind in _SHORT, kind.startswith("sint"), kind.startswith("uint"), limits)


def _plain(message: Any, *steps: Step) -> Record:
    return Record(steps, tuple(range(len(message.fields))))


def _numbers(message: Any) -> Record:
    """Return the fields of a message of a logical type as they are: whole numbers, or bytes."""
    steps = [
        Single(Tag(field.number, value.wire_type), value, None, is_null=False)
        for field in message.fields
        for value in [_plain_value(KINDS[field.type])]
    ]
    return _plain(message, *steps)


def _plain_value(kind: str) -> Value:
    if kind == "bytes":
        return Bytes(is_text=False)
    return Whole(pa.int64(), kind in _SHORT, is_unsigned=kind == "uint32")


def _enum(enum: Any, schema: Schema) -> Value:
    symbols: dict[int, str] = {}
    for value in enum.values:
        symbols.setdefault(value.number, value.name)
    known = sorted(symbols)
    texts = None if schema.type is Type.INT32 else pa.array([symbols[number] for number in known], pa.string())
    return Enum(np.array(known, np.int32), texts, accepts_all=texts is None and not enum.is_closed)
