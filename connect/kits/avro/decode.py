"""Decoders turn messages into values of a Connect schema. They are compiled once per writer schema."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

from connect.data import Schema, Type, logical
from connect.data.hash_collisions import MOST_ALIKE
from connect.data.numerals import single
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import NO_DEFAULT, AvroField, AvroSchema, is_null
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.conventions import avro_member_name, is_map_entry, is_schemaless
from connect.kits.avro.defaults import Defaults, count_values
from connect.kits.avro.reading import Reading, Skipping
from connect.kits.avro.resolution import Members, check_readable, enum_symbols, field_pairs
from connect.kits.avro.schemaless import read_schemaless
from connect.kits.avro.source import DEEPEST, Source, choose
from connect.kits.avro.structure import Structure, check_depth
from connect.kits.avro.to_connect import only_branch
from connect.kits.avro.wire_format import MalformedError
from connect.kits.schema_frame import HEADER, key_of

__all__ = ["Decode", "DecodeBlock", "block_decoder", "decoder"]

Decode: TypeAlias = Callable[[Sequence[bytes]], list[Any]]
"""Decodes messages, headers included. Raises :class:`~connect.errors.DataError` for the first malformed one."""

DecodeBlock: TypeAlias = Callable[[bytes, int, int], tuple[list[Any], int]]
"""Decodes a number of consecutive values starting at an offset; returns them with the offset after the last.

Raises :class:`~connect.errors.DataError` if the bytes do not hold that many values.
"""

_MANY: Final = 8
_WRAPS: Final = {Type.INT8: (0x80, 0xFF), Type.INT16: (0x8000, 0xFFFF)}
_FOREIGN: Final = (ArithmeticError, LookupError, TypeError, ValueError, struct.error)


def decoder(
    writer: AvroSchema,
    reader: AvroSchema,
    schema: Schema | None,
    config: AvroDataConfig,
    header: int = HEADER,
    name: Callable[[bytes], str] = key_of,
) -> Decode:
    """Compile the decoder for messages written in the Avro schema ``writer`` and read as ``reader``.

    ``schema`` is the Connect schema of ``reader``, and ``header`` the size of the messages' headers. ``name`` tells for
    errors what a message names its schema by. Raises
    :class:`~connect.errors.SchemaError` if data written with ``writer`` cannot be read as ``reader``.
    """
    if schema is None and not is_schemaless(writer):
        raise SchemaError(f"A value written in {writer.full_name} cannot be read as one without a schema.")
    check_depth(writer)
    read = _Compiler(writer, config).compiled(writer, reader, schema, header)
    refusal = partial(_refusal, header, name)

    def decode(messages: Sequence[bytes]) -> list[Any]:
        values: list[Any] = []
        try:
            read(messages, values.append)
        except DataError:
            raise
        except MalformedError as error:
            raise refusal(messages[len(values)], str(error)) from error
        except (IndexError, struct.error) as error:
            raise refusal(messages[len(values)], "it ends before all of the value is read") from error
        except RecursionError as error:
            raise refusal(messages[len(values)], "it is nested too deeply") from error
        except _FOREIGN as error:
            raise refusal(messages[len(values)], str(error)) from error
        return values

    return decode


def block_decoder(avro: AvroSchema, schema: Schema, config: AvroDataConfig) -> DecodeBlock:
    """Compile the decoder for values without headers, as stored in files.

    ``schema`` is the Connect schema of ``avro``.
    """
    check_depth(avro)
    read = _Compiler(avro, config).compiled_block(avro, schema)

    def decode(data: bytes, place: int, count: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        try:
            place = read(data, place, count, values.append)
        except DataError:
            raise
        except (MalformedError, IndexError, RecursionError, *_FOREIGN) as error:
            reason = "it ends too early" if isinstance(error, (IndexError, struct.error)) else str(error)
            raise DataError(f"A value does not match its Avro schema: {reason}.") from error
        return values, place

    return decode


def _refusal(header: int, name: Callable[[bytes], str], message: bytes, reason: str) -> DataError:
    size = max(len(message) - header, 0)
    return DataError(f"The {size} bytes of the message are no value of the Avro schema with {name(message)}: {reason}.")


class _Compiler:
    """Generates the code of a decoder; see :mod:`connect.kits.avro.reading` for the variables in it.

    A frequently used record gets its own function, so the code does not grow larger than the schema.
    """

    def __init__(self, writer: AvroSchema, config: AvroDataConfig) -> None:
        self._config = config
        self._structure = Structure(writer)
        self._source = Source(_NAMES)
        self._reading = Reading(self._source)
        self._source.know(self._reading.names())
        self._skipping = Skipping(self._source, self._reading, self._structure)
        self._defaults = Defaults(config)
        self._functions: dict[tuple[int, int], str | SchemaError] = {}
        self._members: dict[int, Members] = {}
        self._symbols: dict[tuple[int, int], tuple[str, bool]] = {}
        self._empty: dict[int, str] = {}
        self._is_reckoned = False

    def compiled(
        self, writer: AvroSchema, reader: AvroSchema, schema: Schema | None, header: int
    ) -> Callable[..., Any]:
        source = self._source
        with source.function("read(messages, append)"), source.block("for d in messages"):
            source.line(f"n = len(d); i = {header}")
            with self._reading.message():
                if writer.kind == "bytes" and reader.kind == "bytes":
                    # Java omits the length of bytes that make up the whole value, so the rest of the message is the
                    # value.
                    source.line("x = d[i:]; i = n")
                    self._logical(schema, "x")
                else:
                    self._value(writer, reader, schema, "x")
            with source.block("if i != n"):
                source.line("raise Malformed(f'{n - i} bytes are left over')")
            source.line("append(x)")
        return source.compiled("read")

    def compiled_block(self, avro: AvroSchema, schema: Schema) -> Callable[..., Any]:
        source = self._source
        with source.function("read(d, i, count, append)"):
            source.line("n = len(d)")
            with self._reading.message(), source.block("for _ in range(count)"):
                self._value(avro, avro, schema, "x")
                source.line("append(x)")
            with source.block("if i > n"):
                source.line("raise IndexError")
            source.line("return i")
        return source.compiled("read")

    # -- any type ------------------------------------------------------------------------------------------------

    def _value(self, writer: AvroSchema, reader: AvroSchema, schema: Schema | None, target: str) -> None:
        """Emit the code that reads a value of ``writer`` into the variable ``target``."""
        facts = self._structure.of(writer)
        if facts.least or self._is_reckoned or is_null(writer):
            self._reckoned(writer, reader, schema, target)
            return
        self._reading.spend(str(facts.values))
        self._is_reckoned = True
        self._reckoned(writer, reader, schema, target)
        self._is_reckoned = False

    def _reckoned(self, writer: AvroSchema, reader: AvroSchema, schema: Schema | None, target: str) -> None:
        if schema is not None and writer.kind == reader.kind == "record" and self._structure.is_shared(writer):
            name = self._function(writer, reader, lambda: self._record(writer, reader, schema, "x"))
            self._source.line(f"{target}, i = {name}(d, n, i)")
        elif self._source.depth < DEEPEST:
            self._inline(writer, reader, schema, target)
        else:
            name = self._source.new("part")
            with self._source.function(f"{name}(d, n, i)"):
                self._inline(writer, reader, schema, "x")
                self._source.line("return x, i")
            self._source.line(f"{target}, i = {name}(d, n, i)")

    def _function(self, writer: AvroSchema, reader: AvroSchema, write: Callable[[], None], result: str = "x") -> str:
        """Return the name of the function that reads ``writer`` as ``reader``; ``write`` emits its body once."""
        key = (id(writer), id(reader))
        if key not in self._functions:
            name = self._source.new("record")
            try:
                with self._source.function(f"{name}(d, n, i)"):
                    write()
                    self._source.line(f"return {result}, i")
                self._functions[key] = name
            except SchemaError as error:
                self._functions[key] = error
        known = self._functions[key]
        if isinstance(known, SchemaError):
            raise SchemaError(str(known)) from known
        return known

    def _inline(self, writer: AvroSchema, reader: AvroSchema, schema: Schema | None, target: str) -> None:
        if schema is None:
            self._source.line(f"{target}, i = read_schemaless(d, i)")
        elif writer.kind == "union":
            self._from_union(writer, reader, schema, target)
        elif reader.kind == "union":
            self._into_member(writer, reader, self._member_for(writer, reader), schema, target)
        else:
            self._single(writer, reader, schema, target)

    def _single(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        check_readable(writer, reader)
        match writer.kind:
            case "null":
                self._source.line(f"{target} = None")
            case "record":
                self._record(writer, reader, schema, target)
            case "array":
                self._array(writer, reader, schema, target)
            case "map":
                self._map(writer, reader, schema, target)
            case "enum":
                self._enum(writer, reader, target)
            case _:
                self._scalar(writer, reader, schema, target)

    # -- unions --------------------------------------------------------------------------------------------------

    def _from_union(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        source, count = self._source, len(writer.branches)
        index = source.new("u")
        self._reading.member(index, count)

        def member(number: int) -> None:
            self._from_branch(writer, number // 2, reader, schema, target)

        def otherwise() -> None:
            source.line(f"raise Malformed(f'a union of {count} has the member {{{index} / 2:g}}')")

        choose(source, index, range(0, 2 * count, 2), member, otherwise)

    def _from_branch(self, writer: AvroSchema, number: int, reader: AvroSchema, schema: Schema, target: str) -> None:
        branch, is_reckoned = writer.branches[number], self._is_reckoned
        try:
            with self._source.whole():
                if reader.kind != "union":
                    self._value(branch, reader, schema, target)
                elif writer is reader:
                    self._into_member(branch, reader, number, schema, target)
                else:
                    self._into_member(branch, reader, self._member_for(branch, reader), schema, target)
        except SchemaError as error:
            # Other members may be readable, so this is an error only if a value of this member occurs.
            self._is_reckoned = is_reckoned
            self._source.line(f"raise DataError({self._source.constant(str(error))})")

    def _member_for(self, writer: AvroSchema, union: AvroSchema) -> int:
        members = self._members.get(id(union))
        if members is None:
            members = self._members[id(union)] = Members(union)
        return members.place_of(writer)

    def _into_member(self, writer: AvroSchema, reader: AvroSchema, index: int, schema: Schema, target: str) -> None:
        """Emit the code that reads a value into member ``index`` of the union ``reader``."""
        member = reader.branches[index]
        if is_null(member):
            self._source.line(f"{target} = None")
            return
        if only_branch(reader, self._config) is not None:
            self._value(writer, member, schema, target)
            return
        name = avro_member_name(member, index, self._config)
        field = schema.field(name)
        assert field is not None
        value = self._source.new("v")
        self._value(writer, member, field.schema, value)
        if len(schema.fields) > _MANY:
            self._source.line(f"{target} = {self._unset(reader, schema)}.copy(); {target}[{name!r}] = {value}")
            return
        shown = ", ".join(f"{each!r}: {value if each == name else None}" for each in schema.field_names)
        self._source.line(f"{target} = {{{shown}}}")

    def _unset(self, reader: AvroSchema, schema: Schema) -> str:
        """Return the value of a union in which no member is set."""
        if id(reader) not in self._empty:
            self._empty[id(reader)] = self._source.constant(dict.fromkeys(schema.field_names))
        return self._empty[id(reader)]

    # -- containers ----------------------------------------------------------------------------------------------

    def _record(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        source = self._source
        values: dict[str, str] = {}
        for written, read in field_pairs(writer, reader):
            if read is None:
                self._skipping.skip(written.schema)
                continue
            variable = source.new("f")
            field = schema.field(read.name)
            assert field is not None
            self._value(written.schema, read.schema, field.schema, variable)
            values[read.name] = variable
        for own in reader.fields:
            if own.name not in values:
                values[own.name] = self._missing(own, reader, schema)
        shown = ", ".join(f"{own.name!r}: {values[own.name]}" for own in reader.fields)
        source.line(f"{target} = {{{shown}}}")

    def _missing(self, field: AvroField, reader: AvroSchema, schema: Schema) -> str:
        own = schema.field(field.name)
        assert own is not None
        if field.default is NO_DEFAULT:
            raise SchemaError(
                f"The message lacks the field {field.name}, for which {reader.full_name}, in which it is read, has "
                "none."
            )
        value = own.schema.default
        if value is None:
            value = self._defaults.value(own.schema, field.schema, field.default)
        constant = self._source.constant(value)
        if not isinstance(value, (dict, list)):
            return constant
        self._reading.spend(str(count_values(value)))
        return f"deepcopy({constant})"

    def _array(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        if is_map_entry(reader.element):
            self._entries(writer.element, reader.element, schema, target)
            return
        source = self._source
        item = source.new("e")
        source.line(f"{target} = []")
        with self._items(writer.element):
            self._value(writer.element, reader.element, schema.value_schema, item)
            source.line(f"{target}.append({item})")

    @contextmanager
    def _items(self, element: AvroSchema) -> Iterator[None]:
        facts, before = self._structure.of(element), self._is_reckoned
        with self._reading.items(facts.least, facts.values):
            self._is_reckoned = before or not facts.least
            yield
        self._is_reckoned = before

    def _entries(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        source = self._source
        check_readable(writer, reader)
        key, value, alike = source.new("k"), source.new("v"), source.new("a")
        source.line(f"{target} = {{}}")
        is_decimal = schema.key_schema is not None and schema.key_schema.name == logical.DECIMAL_NAME
        if is_decimal:
            source.line(f"{alike} = {{}}")
        with self._items(writer):
            if self._structure.is_shared(writer):
                name = self._function(writer, reader, lambda: self._entry(writer, reader, schema, "k", "v"), "k, v")
                source.line(f"{key}, {value}, i = {name}(d, n, i)")
            else:
                self._entry(writer, reader, schema, key, value)
            if is_decimal:
                with source.block(f"if {key} not in {target}"):
                    source.line(f"check_hash({alike}, {key})")
            source.line(f"{target}[{key}] = {value}")

    def _entry(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, key: str, value: str) -> None:
        parts = {"key": (schema.key_schema, key), "value": (schema.value_schema, value)}
        for written, read in field_pairs(writer, reader):
            if read is None:
                self._skipping.skip(written.schema)
                continue
            part, target = parts.pop(read.name)
            self._value(written.schema, read.schema, part, target)
        for name, (part, target) in parts.items():
            assert part is not None
            field = reader.field(name)
            assert field is not None
            if field.default is NO_DEFAULT:
                raise SchemaError(f"The entries of a map that the message holds lack the {name}.")
            default = self._defaults.value(part, field.schema, field.default)
            self._source.line(f"{target} = deepcopy({self._source.constant(default)})")

    def _map(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        source = self._source
        key, item = source.new("k"), source.new("e")
        source.line(f"{target} = {{}}")
        with self._reading.items(1 + self._structure.of(writer.element).least, 0):
            self._reading.sized(key, ".decode()")
            self._value(writer.element, reader.element, schema.value_schema, item)
            source.line(f"{target}[{key}] = {item}")

    # -- values that hold no others ------------------------------------------------------------------------------

    def _enum(self, writer: AvroSchema, reader: AvroSchema, target: str) -> None:
        source = self._source
        source.line(f"{target} = d[i]; i += 1")
        self._reading.rest(target)
        count = len(writer.symbols)
        with source.block(f"if {target} & 1 or {target} >= {2 * count}"):
            source.line(f"raise Malformed(f'an enum of {count} symbols has the symbol {{{target} / 2:g}}')")
        key = (id(writer), id(reader))
        if key not in self._symbols:
            symbols = enum_symbols(writer, reader)
            self._symbols[key] = (source.constant(symbols), None in symbols)
        name, lacks_some = self._symbols[key]
        source.line(f"{target} = {name}[{target} >> 1]")
        if lacks_some:
            with source.block(f"if {target} is None"):
                source.line("raise Malformed('it has a symbol of an enum that the reader does not know')")

    def _scalar(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        source = self._source
        match writer.kind:
            case "boolean":
                source.line(f"{target} = d[i]; i += 1")
                with source.block(f"if {target} > 1"):
                    source.line(f"raise Malformed(f'a boolean is {{{target}}}')")
                source.line(f"{target} = {target} == 1")
            case "int":
                self._reading.whole(target, most=0xFFFFFFFF)
            case "long":
                self._reading.whole(target)
            case "float":
                source.line(f"{target}, = unpack_float(d, i); i += 4")
            case "double":
                source.line(f"{target}, = unpack_double(d, i); i += 8")
            case "fixed":
                source.line(f"j = i + {writer.size}")
                self._reading.slice(target)
            case "bytes":
                self._reading.sized(target)
            case _:
                self._reading.sized(target, ".decode()")
        self._promote(writer.kind, reader.kind, schema, target)
        self._logical(schema, target)

    def _promote(self, written: str, read: str, schema: Schema, target: str) -> None:
        source = self._source
        if schema.type in _WRAPS:
            half, mask = _WRAPS[schema.type]
            source.line(f"{target} = ({target} + {half} & {mask}) - {half}")
        elif written in ("int", "long") and read in ("float", "double"):
            source.line(f"{target} = {'single' if read == 'float' else 'float'}({target})")
        elif written == "string" and read == "bytes":
            source.line(f"{target} = {target}.encode()")
        elif written == "bytes" and read == "string":
            source.line(f"{target} = {target}.decode()")

    def _logical(self, schema: Schema | None, target: str) -> None:
        source = self._source
        match None if schema is None else schema.name:
            case logical.DECIMAL_NAME:
                assert schema is not None
                with source.block(f"if not {target}"):
                    source.line("raise Malformed('a decimal has no bytes')")
                source.line(f"{target} = decimal_from_unscaled({target}, {logical.decimal_scale(schema)})")
            case logical.DATE_NAME:
                source.line(f"{target} = date_from_days({target})")
            case logical.TIME_NAME:
                source.line(f"{target} = time_from_milliseconds({target})")
            case logical.TIMESTAMP_NAME:
                source.line(f"{target} = timestamp_from_milliseconds({target})")


def _check_hash(seen: dict[int, int], key: Any) -> None:
    """Reject a map in which many keys share a hash, as crafted decimals may: a dict compares each with all others."""
    number = hash(key)
    count = seen[number] = seen.get(number, 0) + 1
    if count > MOST_ALIKE:
        raise MalformedError(f"a map has more than {MOST_ALIKE} different keys with the same hash")


_NAMES: Final[Mapping[str, object]] = {
    "DataError": DataError,
    "check_hash": _check_hash,
    "date_from_days": logical.date_from_days,
    "decimal_from_unscaled": logical.decimal_from_unscaled,
    "deepcopy": copy.deepcopy,
    "read_schemaless": read_schemaless,
    "single": single,
    "time_from_milliseconds": logical.time_from_milliseconds,
    "timestamp_from_milliseconds": logical.timestamp_from_milliseconds,
}
