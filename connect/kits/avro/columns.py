"""Decodes Avro messages straight into Arrow arrays, many at a time. Importing this needs numpy and pyarrow.

The decoder of :mod:`connect.kits.avro.decode`, which reads one message after the other, is the specification. What this
module does not read itself, single unusual messages or whole schemas, it leaves to that decoder, which also decides
what is wrong with a message. So both give the same values and the same errors.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from connect.data import Schema, Type, logical
from connect.data.arrow import arrow_type, to_array
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import NO_DEFAULT, AvroField, AvroSchema, is_null
from connect.kits.avro.column_leaves import (
    Absent,
    Boolean,
    Decimals,
    Floating,
    Part,
    Repeated,
    Sized,
    Symbols,
    Whole,
)
from connect.kits.avro.column_parts import Items, Maps, Member, Record, Union
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.conventions import avro_member_name, is_map_entry, part
from connect.kits.avro.decode import Decode
from connect.kits.avro.defaults import Defaults
from connect.kits.avro.resolution import Members, check_readable, enum_symbols, field_pairs
from connect.kits.avro.structure import Structure
from connect.kits.avro.to_connect import connect_from_avro, only_branch
from connect.kits.columns.decimals import MOST_DECIMAL_BYTES
from connect.kits.columns.decoder import ColumnDecoder
from connect.kits.schema_frame import HEADER

__all__ = ["column_decoder"]

_MOST_PARTS: Final = 2000
"""The number of types in a schema, each counted at every use."""
_DEEPEST: Final = 3
"""The depth of arrays within arrays: elements are gone past once for each."""

_NUMBERS: Final = {
    Type.INT8: "i1",
    Type.INT16: "i2",
    Type.INT32: "i4",
    Type.INT64: "i8",
    Type.FLOAT32: "f4",
    Type.FLOAT64: "f8",
}
_TEMPORAL: Final = {
    logical.DATE_NAME: Type.INT32,
    logical.TIME_NAME: Type.INT32,
    logical.TIMESTAMP_NAME: Type.INT64,
}
_LOGICAL_KINDS: Final = frozenset({"null", "int", "long", "bytes", "fixed"})
_FLOATING: Final = {"float": "<f4", "double": "<f8"}
_KEYS: Final = frozenset({Type.STRING, Type.INT8, Type.INT16, Type.INT32, Type.INT64})


class _UnsupportedError(Exception):
    """Raised for a schema that is left to the other decoder."""


def column_decoder(
    writer: AvroSchema,
    reader: AvroSchema,
    schema: Schema,
    config: AvroDataConfig,
    decode: Decode,
    header: int = HEADER,
) -> ColumnDecoder:
    """Compile the decoder for messages written in ``writer`` and read as ``reader``.

    ``schema`` is the Connect schema of ``reader``, and ``decode`` the decoder by row for the same schemas
    and the same size of headers.
    """
    try:
        root = _Compiler(writer, config).root(writer, reader, schema)
    except (_UnsupportedError, SchemaError):
        root = None
    return ColumnDecoder(root, schema, decode, header)


class _Compiler:
    """Makes the parts that read a schema."""

    def __init__(self, writer: AvroSchema, config: AvroDataConfig) -> None:
        self._config = config
        self._structure = Structure(writer)
        self._defaults = Defaults(config)
        self._members: dict[int, Members] = {}
        if self._structure.of(writer).expansion > _MOST_PARTS:
            raise _UnsupportedError

    def root(self, writer: AvroSchema, reader: AvroSchema, schema: Schema) -> Part:
        if writer.kind == "bytes" and reader.kind == "bytes":
            # Java omits the length of bytes that make up the whole value.
            return self._bytes(writer, reader, schema, is_rest=True)
        return self._value(writer, reader, schema, 0)

    def _value(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, depth: int) -> Part:
        if writer.kind == "union":
            members = tuple(
                self._branch(writer, number, reader, schema, depth) for number in range(len(writer.branches))
            )
            return Union(members, arrow_type(schema))
        if reader.kind == "union":
            return self._into_member(writer, reader, self._member_for(writer, reader), schema, depth)
        return self._single(writer, reader, schema, depth)

    def _single(  # noqa: PLR0911 - one for each kind
        self, writer: AvroSchema, reader: AvroSchema, schema: Schema, depth: int
    ) -> Part:
        check_readable(writer, reader)
        if schema.name in logical.LOGICAL_NAMES and writer.kind not in _LOGICAL_KINDS:
            raise _UnsupportedError
        match writer.kind:
            case "null":
                return Absent(arrow_type(schema))
            case "record":
                return self._record(writer, reader, schema, depth)
            case "array" | "map":
                return self._container(writer, reader, schema, depth + 1)
            case "enum":
                return self._enum(writer, reader)
            case "boolean":
                return Boolean()
            case "int" | "long":
                return self._whole(writer, schema)
            case "float" | "double":
                return self._floating(writer, schema)
            case _:
                return self._bytes(writer, reader, schema)

    # -- unions --------------------------------------------------------------------------------------------------

    def _branch(self, writer: AvroSchema, number: int, reader: AvroSchema, schema: Schema, depth: int) -> Part | None:
        branch = writer.branches[number]
        try:
            if reader.kind != "union":
                return self._value(branch, reader, schema, depth)
            place = number if writer is reader else self._member_for(branch, reader)
            return self._into_member(branch, reader, place, schema, depth)
        except SchemaError:
            # Other members may be readable, so this is an error only if a value of this member occurs.
            return None

    def _member_for(self, writer: AvroSchema, union: AvroSchema) -> int:
        members = self._members.get(id(union))
        if members is None:
            members = self._members[id(union)] = Members(union)
        return members.place_of(writer)

    def _into_member(self, writer: AvroSchema, reader: AvroSchema, index: int, schema: Schema, depth: int) -> Part:
        member = reader.branches[index]
        if is_null(member):
            return Absent(arrow_type(schema))
        if only_branch(reader, self._config) is not None:
            return self._value(writer, member, schema, depth)
        field = schema.field(avro_member_name(member, index, self._config))
        assert field is not None
        return Member(self._value(writer, member, field.schema, depth), field.index, arrow_type(schema))

    # -- containers ----------------------------------------------------------------------------------------------

    def _record(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, depth: int) -> Part:
        if not self._structure.of(writer).least or not reader.fields:
            # Values of no bytes are counted, which only the other decoder does.
            raise _UnsupportedError
        schemas = {field.name: field.schema for field in schema.fields}
        steps = self._steps(writer, reader, schemas, depth)
        return Record(steps, arrow_type(schema))

    def _steps(
        self, writer: AvroSchema, reader: AvroSchema, schemas: dict[str, Schema], depth: int
    ) -> tuple[tuple[Part, int | None], ...]:
        places = {field.name: place for place, field in enumerate(reader.fields)}
        steps: list[tuple[Part, int | None]] = []
        for written, read in field_pairs(writer, reader):
            if read is None:
                steps.append((self._skipped(written.schema, depth), None))
            else:
                value = self._value(written.schema, read.schema, schemas[read.name], depth)
                steps.append((value, places[read.name]))
        known = {place for _, place in steps}
        steps += [
            (self._missing(field, schemas[field.name]), place)
            for place, field in enumerate(reader.fields)
            if place not in known
        ]
        return tuple(steps)

    def _skipped(self, writer: AvroSchema, depth: int) -> Part:
        """Return the part for a field that nobody reads."""
        schema = connect_from_avro(writer, self._config)
        if schema is None:
            raise _UnsupportedError
        return self._value(writer, writer, schema, depth)

    def _missing(self, field: AvroField, schema: Schema) -> Part:
        value = schema.default
        if field.default is NO_DEFAULT:
            raise SchemaError("a field is missing")
        if value is None:
            value = self._defaults.value(schema, field.schema, field.default)
        if isinstance(value, (dict, list)):
            # Such defaults are counted, as values of no bytes are.
            raise _UnsupportedError
        try:
            return Repeated(to_array([value], schema))
        except DataError as error:
            raise _UnsupportedError from error

    def _container(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, depth: int) -> Part:
        if depth > _DEEPEST or not self._structure.of(writer.element).least + (writer.kind == "map"):
            raise _UnsupportedError
        if writer.kind == "map":
            value = self._value(writer.element, reader.element, part(schema.value_schema), depth)
            key = Sized(pa.string(), is_text=True)
            return Maps(Record(((key, 0), (value, 1)), None), arrow_type(schema))
        if is_map_entry(reader.element):
            return self._entries(writer.element, reader.element, schema, depth)
        item = self._value(writer.element, reader.element, part(schema.value_schema), depth)
        return Items(item, arrow_type(schema))

    def _entries(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, depth: int) -> Part:
        check_readable(writer, reader)
        key = part(schema.key_schema)
        names = [field.name for field in reader.fields]
        if key.type not in _KEYS or key.optional or key.name in logical.LOGICAL_NAMES or names != ["key", "value"]:
            raise _UnsupportedError
        steps = self._steps(writer, reader, {"key": key, "value": part(schema.value_schema)}, depth)
        return Maps(Record(steps, None), arrow_type(schema))

    # -- values that hold no others ------------------------------------------------------------------------------

    def _enum(self, writer: AvroSchema, reader: AvroSchema) -> Part:
        symbols = enum_symbols(writer, reader)
        if not symbols:
            raise _UnsupportedError
        known = np.array([symbol is not None for symbol in symbols])
        return Symbols(pa.array(symbols, pa.string()), known)

    def _whole(self, writer: AvroSchema, schema: Schema) -> Part:
        kind = _NUMBERS.get(schema.type)
        limits = None
        if schema.name in logical.LOGICAL_NAMES:
            if _TEMPORAL.get(schema.name) is not schema.type:
                raise _UnsupportedError
            limits = logical.TEMPORAL_RANGES[schema.name]
        if kind is None:
            raise _UnsupportedError
        return Whole(writer.kind == "int", kind, arrow_type(schema), limits)

    def _floating(self, writer: AvroSchema, schema: Schema) -> Part:
        return Floating(_FLOATING[writer.kind], _NUMBERS[schema.type], arrow_type(schema))

    def _bytes(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, *, is_rest: bool = False) -> Part:
        exact = writer.size if writer.kind == "fixed" else None
        if exact == 0:
            raise _UnsupportedError
        if schema.name == logical.DECIMAL_NAME:
            if schema.type is not Type.BYTES or (exact or 0) > MOST_DECIMAL_BYTES:
                raise _UnsupportedError
            return Decimals(arrow_type(schema), exact, is_rest)
        if schema.name in logical.LOGICAL_NAMES or schema.type not in (Type.STRING, Type.BYTES):
            raise _UnsupportedError
        is_text = "string" in (writer.kind, reader.kind)
        return Sized(arrow_type(schema), is_text, exact, is_rest)
