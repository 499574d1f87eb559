"""Encoders turn values of a Connect schema into messages. They are compiled once per target schema."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from connect.data import Field, Schema, Type, logical, validate
from connect.data.schema import INTEGER_RANGES
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import NO_DEFAULT, AvroField, AvroSchema, is_null
from connect.kits.avro.coercion import COERCIONS
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.conventions import avro_member_name, is_avro_map, is_map_entry, is_schemaless, is_union, part
from connect.kits.avro.defaults import Defaults
from connect.kits.avro.names import scrub, scrub_full
from connect.kits.avro.schemaless import write_schemaless
from connect.kits.avro.source import DEEPEST, Source, choose
from connect.kits.avro.structure import Structure, check_depth
from connect.kits.avro.to_connect import ConnectSchemas
from connect.kits.avro.wire_format import SMALL, MalformedError, varint
from connect.kits.schema_frame import header

__all__ = ["Encode", "encoder"]

Encode: TypeAlias = Callable[[Sequence[Any]], list[bytes]]
"""Encodes values as messages, headers included. Raises :class:`~connect.errors.DataError` for the first invalid one."""

_MANY: Final = 8
_CLASSES: Final = {
    **dict.fromkeys(INTEGER_RANGES, "int"),
    Type.FLOAT32: "float",
    Type.FLOAT64: "float",
    Type.STRING: "str",
    Type.BYTES: "bytes",
    Type.ARRAY: "list",
    Type.MAP: "dict",
    Type.STRUCT: "dict",
}
_WRITABLE: Final = {
    Type.INT8: ("int", "long", "float", "double"),
    Type.INT16: ("int", "long", "float", "double"),
    Type.INT32: ("int", "long", "double"),
    Type.INT64: ("long",),
    Type.FLOAT32: ("float", "double"),
    Type.FLOAT64: ("double",),
    Type.BOOLEAN: ("boolean",),
    Type.STRING: ("string", "enum"),
    Type.BYTES: ("bytes", "fixed"),
    Type.ARRAY: ("array",),
    Type.MAP: ("map", "array"),
    Type.STRUCT: ("record",),
}
_FOREIGN: Final = (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, AttributeError, struct.error)


def encoder(schema: Schema | None, avro: AvroSchema, schema_id: int, config: AvroDataConfig) -> Encode:
    """Compile the encoder for values of ``schema`` as messages in the Avro schema registered as ``schema_id``.

    Raises :class:`~connect.errors.SchemaError` if the Avro schema cannot represent the values of ``schema``.
    """
    write = _Compiler(check_depth(avro), config).compiled(schema, avro, header(schema_id))

    def encode(values: Sequence[Any]) -> list[bytes]:
        messages: list[bytes] = []
        try:
            write(values, messages.append)
        except DataError:
            raise
        except (MalformedError, *_FOREIGN) as error:
            raise _refusal(schema, values[len(messages)], error) from error
        return messages

    return encode


def _refusal(schema: Schema | None, value: Any, error: Exception) -> DataError:
    """Return the error for a value that cannot be written. It names the field if that can be determined."""
    try:
        validate(schema, value)
    except DataError as named:
        return named
    except _FOREIGN:
        pass  # some values that cannot be written cannot be printed either
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return DataError(f"The value cannot be written as Avro: {reason}")


class _Compiler:
    """Generates the code of an encoder. In it, ``o`` is the output, ``z`` a number and ``b`` encoded text.

    A frequently used record gets its own function, so the code does not grow larger than the schema.
    """

    def __init__(self, avro: AvroSchema, config: AvroDataConfig) -> None:
        self._config = config
        self._structure = Structure(avro)
        self._source = Source(_NAMES)
        self._connect_schemas = ConnectSchemas(config)
        self._defaults = Defaults(config)
        self._functions: dict[tuple[object, ...], str] = {}
        self._symbols: dict[int, str] = {}

    def compiled(self, schema: Schema | None, avro: AvroSchema, prefix: bytes) -> Callable[..., Any]:
        source = self._source
        with source.function("write(values, append)"), source.block("for x in values"):
            source.line(f"o = bytearray({source.constant(prefix)})")
            if schema is None:
                if not is_schemaless(avro):
                    raise SchemaError(f"A value without a schema cannot be written in {avro.full_name}: give it one.")
                source.line("write_schemaless(o, x)")
            elif avro.kind == "bytes" and schema.type is Type.BYTES:
                # Java writes bytes without their length if they make up the whole value.
                self._plain_bytes(schema, "x")
                source.line("o += x")
            else:
                self._value(schema, avro, "x")
            source.line("append(bytes(o))")
        return source.compiled("write")

    # -- any type ------------------------------------------------------------------------------------------------

    def _value(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        """Emit the code that writes the value of the variable ``x``, which it may modify."""
        if schema.type is Type.STRUCT and avro.kind == "record" and self._structure.is_shared(avro):
            self._source.line(f"{self._function(schema, avro)}(o, {x})")
        elif self._source.depth < DEEPEST:
            self._inline(schema, avro, x)
        else:
            name = self._source.new("part")
            with self._source.function(f"{name}(o, x)"):
                self._inline(schema, avro, "x")
            self._source.line(f"{name}(o, {x})")

    def _function(self, schema: Schema, avro: AvroSchema) -> str:
        """Return the name of the function that writes structs as a record. Schemas with the same fields share it."""
        key = (id(avro), is_union(schema), schema.fields)
        name = self._functions.get(key)
        if name is None:
            name = self._functions[key] = self._source.new("record")
            with self._source.function(f"{name}(o, x)"):
                self._inline(schema, avro, "x")
        return name

    def _inline(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        if is_union(schema):
            self._union(schema, avro, x)
        elif avro.kind != "union":
            self._present(schema, avro, x)
        else:
            self._nullable(schema, avro, x)

    def _nullable(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        index = _branch_of(schema, avro, self._config)
        null = next((place for place, branch in enumerate(avro.branches) if is_null(branch)), None)
        if null is None or not schema.optional:
            self._index(index)
            self._value(schema, avro.branches[index], x)
            return
        with self._source.block(f"if {x} is None"):
            self._index(null)
        with self._source.block("else"):
            self._index(index)
            self._value(schema, avro.branches[index], x)

    def _index(self, index: int) -> None:
        self._source.line(f"o += {self._source.constant(varint(2 * index))}")

    def _present(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        if avro.kind not in _WRITABLE[schema.type]:
            raise SchemaError(f"A value of type {schema.type.value} cannot be written as Avro type {avro.full_name}.")
        match schema.type:
            case Type.STRUCT:
                self._struct(schema, avro, x)
            case Type.ARRAY:
                self._array(schema, avro, x)
            case Type.MAP:
                self._map(schema, avro, x)
            case Type.STRING:
                self._exact(x, "str")
                self._text(x) if avro.kind == "string" else self._symbol(avro, x)
            case Type.BYTES:
                self._plain_bytes(schema, x)
                self._bytes(schema, avro, x)
            case Type.BOOLEAN:
                with self._source.block(f"if {x} is not True and {x} is not False"):
                    self._source.line("raise Malformed('it is no boolean')")
                self._source.line(f"o.append({x})")
            case _:
                self._number(schema, avro, x)

    def _exact(self, x: str, kind: str) -> None:
        """Emit the check of a value's class. Values of equivalent classes are converted, others are rejected."""
        with self._source.block(f"if {x}.__class__ is not {kind}"):
            self._source.line(f"{x} = as_{kind}({x})")

    # -- containers ----------------------------------------------------------------------------------------------

    def _union(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        source = self._source
        present = {
            avro_member_name(branch, index, self._config): (index, branch)
            for index, branch in enumerate(avro.branches)
            if not is_null(branch)
        }
        null = next((index for index, branch in enumerate(avro.branches) if is_null(branch)), None)
        derived = list(present.values())
        places = [
            present.get(field.name) or _place(derived, number, field) for number, field in enumerate(schema.fields)
        ]
        item = source.new("u")
        with source.block(f"if {x} is not None"):
            self._members(schema, x)

        def member(number: int) -> None:
            index, branch = places[number]
            self._index(index)
            self._value(schema.fields[number].schema.as_required(), branch, item)

        def no_member() -> None:
            if null is None or not schema.optional:
                source.line("raise Malformed('no member of a union is set')")
            else:
                self._index(null)

        if len(places) > _MANY:
            self._one_of_many(schema, x, item, member, no_member)
            return
        for number, name in enumerate(schema.field_names):
            with source.block(f"{'el' if number else ''}if {x} is not None and {x}[{name!r}] is not None"):
                source.line(f"{item} = {x}[{name!r}]")
                member(number)
        with source.block("else" if places else "if True"):
            no_member()

    def _one_of_many(
        self, schema: Schema, x: str, item: str, member: Callable[[int], None], no_member: Callable[[], None]
    ) -> None:
        """Emit the code that finds the member that is set and writes it."""
        source = self._source
        chosen, names = source.new("m"), source.constant(tuple(enumerate(schema.field_names)))
        source.line(f"{chosen} = -1")
        with source.block(f"if {x} is not None"):
            with source.block(f"for {chosen}, {item} in {names}"):
                source.line(f"{item} = {x}[{item}]")
                with source.block(f"if {item} is not None"):
                    source.line("break")
            with source.block("else"):
                source.line(f"{chosen} = -1")
        choose(source, chosen, range(len(schema.fields)), member, no_member)

    def _members(self, schema: Schema, x: str) -> None:
        """Emit the check that a value is a dict with exactly the fields of the schema."""
        self._exact(x, "dict")
        with self._source.block(f"if len({x}) != {len(schema.fields)}"):
            self._source.line(f"{x} = completed({x}, {self._source.constant(schema.field_names)})")

    def _struct(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        clean = scrub if self._config.scrub_invalid_names else str
        own = {clean(field.name): field for field in schema.fields}
        known = {target.name for target in avro.fields}
        unknown = [field.name for name, field in own.items() if name not in known]
        if unknown:
            raise SchemaError(
                f"The Avro schema {avro.full_name} has no field {unknown[0]}: register one that has, or drop the field "
                "(ReplaceField)."
            )
        self._members(schema, x)
        for target in avro.fields:
            field = own.get(target.name)
            if field is None:
                self._absent(target, avro)
            else:
                self._field(field, target, x)

    def _field(self, field: Field, target: AvroField, x: str) -> None:
        source, schema = self._source, field.schema
        item = source.new("f")
        source.line(f"{item} = {x}[{field.name!r}]")
        if schema.default is not None and not self._config.ignore_default_for_nullables:
            with source.block(f"if {item} is None"):
                source.line(f"{item} = {source.constant(schema.default)}")
        self._value(schema, target.schema, item)

    def _absent(self, target: AvroField, avro: AvroSchema) -> None:
        """Write the default of a field that the Connect schema lacks."""
        if target.default is NO_DEFAULT:
            raise SchemaError(
                f"The value lacks the field {target.name}, for which the Avro schema {avro.full_name} has no default."
            )
        schema = self._connect_schemas.translate(target.schema)
        item = self._source.new("f")
        default = self._defaults.value(schema, target.schema, target.default)
        self._source.line(f"{item} = {self._source.constant(default)}")
        self._value(schema, target.schema, item)

    def _array(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        source = self._source
        item = source.new("e")
        self._exact(x, "list")
        with self._counted(x), source.block(f"for {item} in {x}"):
            self._value(part(schema.value_schema), avro.element, item)
        source.line("o.append(0)")

    def _map(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        source = self._source
        if (avro.kind == "map") != is_avro_map(schema, self._config):
            raise SchemaError("A map with keys that are no strings is written as an array of entries, others as a map.")
        key, item = source.new("k"), source.new("e")
        self._exact(x, "dict")
        with self._counted(x), source.block(f"for {key}, {item} in {x}.items()"):
            if avro.kind == "map":
                self._exact(key, "str")
                self._text(key)
                self._value(part(schema.value_schema), avro.element, item)
            elif self._structure.is_shared(avro.element):
                source.line(f"{self._entry_function(schema, avro.element)}(o, {key}, {item})")
            else:
                self._entry(schema, avro.element, key, item)
        source.line("o.append(0)")

    def _entry(self, schema: Schema, entry: AvroSchema, key: str, item: str) -> None:
        if not is_map_entry(entry) or len(entry.fields) != 2:
            raise SchemaError(f"A map cannot be written as an array of {entry.full_name}, which is no entry of a map.")
        self._value(part(schema.key_schema), entry.fields[0].schema, key)
        self._value(part(schema.value_schema), entry.fields[1].schema, item)

    def _entry_function(self, schema: Schema, entry: AvroSchema) -> str:
        key = (id(entry), schema.key_schema, schema.value_schema)
        name = self._functions.get(key)
        if name is None:
            name = self._functions[key] = self._source.new("entry")
            with self._source.function(f"{name}(o, k, v)"):
                self._entry(schema, entry, "k", "v")
        return name

    @contextmanager
    def _counted(self, x: str) -> Iterator[None]:
        """Open a block for the elements of a non-empty container, preceded by their number."""
        with self._source.block(f"if {x}"):
            self._varint(f"len({x}) << 1")
            yield

    # -- values that hold no others ------------------------------------------------------------------------------

    def _number(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        source = self._source
        convert = _LOGICAL.get(schema.name) if schema.name is not None else None
        if convert is not None:
            source.line(f"{x} = {convert}({x})")
        self._exact(x, _CLASSES[schema.type])
        if schema.type in INTEGER_RANGES:
            low, high = INTEGER_RANGES[schema.type]
            with source.block(f"if not {low} <= {x} <= {high}"):
                source.line(f"raise Malformed(f'{{{x}}} is not within {low} and {high}')")
        if avro.kind in ("int", "long"):
            self._varint(f"{x} << 1 ^ {x} >> 63")
        else:
            source.line(f"o += pack_{avro.kind}({x})")

    def _plain_bytes(self, schema: Schema, x: str) -> None:
        if schema.name == logical.DECIMAL_NAME:
            self._source.line(f"{x} = as_unscaled({x}, {logical.decimal_scale(schema)})")
        else:
            self._exact(x, "bytes")

    def _bytes(self, schema: Schema, avro: AvroSchema, x: str) -> None:
        source = self._source
        if avro.kind == "bytes":
            self._varint(f"len({x}) << 1")
        elif schema.name == logical.DECIMAL_NAME:
            source.line(f"{x} = as_fixed({x}, {avro.size})")
        else:
            with source.block(f"if len({x}) != {avro.size}"):
                source.line(f"raise Malformed(f'{{len({x})}} bytes cannot be a fixed of {avro.size}')")
        source.line(f"o += {x}")

    def _symbol(self, avro: AvroSchema, x: str) -> None:
        source = self._source
        if id(avro) not in self._symbols:
            numbers = {symbol: varint(2 * index) for index, symbol in enumerate(avro.symbols)}
            self._symbols[id(avro)] = source.constant(numbers)
        places = self._symbols[id(avro)]
        with source.block(f"if {x} not in {places}"):
            source.line(f"raise Malformed(f'{{{x}!r}} is no symbol of an enum')")
        source.line(f"o += {places}[{x}]")

    def _text(self, x: str) -> None:
        self._source.line(f"b = {x}.encode()")
        self._varint("len(b) << 1")
        self._source.line("o += b")

    def _varint(self, number: str) -> None:
        source = self._source
        source.line(f"z = {number}")
        with source.block("if z < 128"):
            source.line("o.append(z)")
        with source.block("else"):
            source.line("o += SMALL[z] if z < 16384 else varint(z)")


def _branch_of(schema: Schema, union: AvroSchema, config: AvroDataConfig) -> int:
    """Return the index of the union member in which the values of a schema are written."""
    kinds = _WRITABLE[schema.type]
    places = [index for index, branch in enumerate(union.branches) if branch.kind in kinds]
    name = schema.name and (scrub_full(schema.name) if config.scrub_invalid_names else schema.name)
    named = [index for index in places if name is not None and union.branches[index].name == name]
    if not places:
        members = ", ".join(branch.full_name for branch in union.branches)
        raise SchemaError(f"A value of type {schema.type.value} cannot be written as one of the Avro types {members}.")
    return min(named or places, key=lambda index: kinds.index(union.branches[index].kind))


def _place(members: Sequence[tuple[int, AvroSchema]], number: int, field: Field) -> tuple[int, AvroSchema]:
    """Return the union member at a field's position, for a field whose name matches no member."""
    if number < len(members) and members[number][1].kind in _WRITABLE[field.schema.type]:
        return members[number]
    raise SchemaError(f"The Avro union has no member for the field {field.name} of the union.")


_LOGICAL: Final = {
    logical.DATE_NAME: "as_days",
    logical.TIME_NAME: "as_milliseconds_of_day",
    logical.TIMESTAMP_NAME: "as_milliseconds",
}
_NAMES: Final[dict[str, object]] = {
    **COERCIONS,
    "Malformed": MalformedError,
    "SMALL": SMALL,
    "pack_double": struct.Struct("<d").pack,
    "pack_float": struct.Struct("<f").pack,
    "varint": varint,
    "write_schemaless": write_schemaless,
}
