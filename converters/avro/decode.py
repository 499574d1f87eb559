"""Decoders: from messages to the values of a Connect schema, compiled once for the schema they were written in."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from connect.data import Schema, Type, logical
from connect.data.numerals import single
from connect.errors import DataError, SchemaError
from converters.avro.anything import read_anything
from converters.avro.avro_schema import NO_DEFAULT, AvroSchema, is_null, least_size
from converters.avro.defaults import default_from_json
from converters.avro.options import AvroDataConfig
from converters.avro.resolution import branch_for, check_readable, enum_symbols, field_pairs
from converters.avro.shape import avro_member_name, is_anything, is_map_entry
from converters.avro.source import DEEPEST, Source
from converters.avro.to_connect import connect_from_avro, only_branch
from converters.avro.wire import HEADER, MalformedError, long_tail

__all__ = ["Decode", "decoder"]

Decode: TypeAlias = Callable[[Sequence[bytes]], list[Any]]
"""Gives the values of messages, headers included. Raises :class:`~connect.errors.DataError` for the first bad one."""

_MOST_EMPTY: Final = 100_000
_WRAPS: Final = {Type.INT8: (0x80, 0xFF), Type.INT16: (0x8000, 0xFFFF)}
_FOREIGN: Final = (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, struct.error)


def decoder(writer: AvroSchema, reader: AvroSchema, schema: Schema | None, config: AvroDataConfig) -> Decode:
    """The decoder of messages written in ``writer``, which gives what they are in ``reader``.

    ``schema`` is the Connect schema of ``reader``. Raises :class:`~connect.errors.SchemaError` when what is written in
    the one cannot be read in the other.
    """
    if schema is None and not is_anything(writer):
        raise SchemaError(f"A value written in {writer.full_name} cannot be read as one without a schema.")
    read = _Compiler(config).compiled(writer, reader, schema)

    def decode(messages: Sequence[bytes]) -> list[Any]:
        values: list[Any] = []
        try:
            read(messages, values.append)
        except DataError:
            raise
        except MalformedError as error:
            raise _refusal(messages[len(values)], str(error)) from error
        except (IndexError, struct.error) as error:
            raise _refusal(messages[len(values)], "it ends before all of the value is read") from error
        except _FOREIGN as error:
            raise _refusal(messages[len(values)], str(error)) from error
        return values

    return decode


def _refusal(message: bytes, reason: str) -> DataError:
    size = max(len(message) - HEADER, 0)
    number = int.from_bytes(message[1:HEADER], "big", signed=True)
    return DataError(f"The {size} bytes of the message are no value of the Avro schema with id {number}: {reason}.")


class _Compiler:
    """Writes the code. In it ``d`` is the message, ``n`` its length, ``i`` the place in it."""

    def __init__(self, config: AvroDataConfig) -> None:
        self._config = config
        self._source = Source(_NAMES)

    def compiled(self, writer: AvroSchema, reader: AvroSchema, schema: Schema | None) -> Callable[..., Any]:
        source = self._source
        with source.function("read(messages, append)"), source.block("for d in messages"):
            source.line(f"n = len(d); i = {HEADER}")
            if writer.kind == "bytes" and reader.kind == "bytes":
                # Java writes and reads bytes that are the whole value without their length.
                source.line("x = d[i:]; i = n")
                self._logical(schema, "x")
            else:
                self._value(writer, reader, schema, "x")
            with source.block("if i != n"):
                source.line("raise Malformed(f'{n - i} bytes are left over')")
            source.line("append(x)")
        return source.compiled("read")

    # -- any type ------------------------------------------------------------------------------------------------

    def _value(self, writer: AvroSchema, reader: AvroSchema, schema: Schema | None, target: str) -> None:
        """Add what reads a value of ``writer`` into the variable ``target``."""
        if self._source.depth < DEEPEST:
            self._inline(writer, reader, schema, target)
            return
        name = self._source.new("part")
        with self._source.function(f"{name}(d, n, i)"):
            self._inline(writer, reader, schema, "x")
            self._source.line("return x, i")
        self._source.line(f"{target}, i = {name}(d, n, i)")

    def _inline(self, writer: AvroSchema, reader: AvroSchema, schema: Schema | None, target: str) -> None:
        if schema is None:
            self._source.line(f"{target}, i = read_anything(d, i)")
        elif writer.kind == "union":
            self._from_union(writer, reader, schema, target)
        elif reader.kind == "union":
            index = branch_for(writer, reader)
            self._into_member(writer, reader, index, schema, target)
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
        source = self._source
        index = source.new("u")
        source.line(f"{index} = d[i]; i += 1")
        if len(writer.branches) > 64:
            self._continue(index)
        for number, branch in enumerate(writer.branches):
            with source.block(f"{'el' if number else ''}if {index} == {2 * number}"):
                self._from_branch(writer, number, branch, reader, schema, target)
        with source.block("else" if writer.branches else "if True"):
            source.line(f"raise Malformed(f'a union of {len(writer.branches)} has the member {{{index} / 2:g}}')")

    def _from_branch(
        self, writer: AvroSchema, number: int, branch: AvroSchema, reader: AvroSchema, schema: Schema, target: str
    ) -> None:
        try:
            if reader.kind != "union":
                self._value(branch, reader, schema, target)
            elif writer is reader:
                self._into_member(branch, reader, number, schema, target)
            else:
                self._into_member(branch, reader, branch_for(branch, reader), schema, target)
        except SchemaError as error:
            # Other members may be readable: it is an error only when this one is met.
            self._source.line(f"raise DataError({self._source.constant(str(error))})")

    def _into_member(self, writer: AvroSchema, reader: AvroSchema, index: int, schema: Schema, target: str) -> None:
        """Read a value that becomes member ``index`` of the union ``reader``."""
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
        shown = ", ".join(f"{each!r}: {value if each == name else None}" for each in schema.field_names)
        self._source.line(f"{target} = {{{shown}}}")

    # -- containers ----------------------------------------------------------------------------------------------

    def _record(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        source = self._source
        values: dict[str, str] = {}
        for written, read in field_pairs(writer, reader):
            variable = source.new("f")
            if read is None:
                self._skip(written.schema, variable)
                continue
            field = schema.field(read.name)
            assert field is not None
            self._value(written.schema, read.schema, field.schema, variable)
            values[read.name] = variable
        for own in reader.fields:
            if own.name not in values:
                values[own.name] = self._missing(own.name, reader, schema)
        shown = ", ".join(f"{own.name!r}: {values[own.name]}" for own in reader.fields)
        source.line(f"{target} = {{{shown}}}")

    def _missing(self, name: str, reader: AvroSchema, schema: Schema) -> str:
        field, own = reader.field(name), schema.field(name)
        assert field is not None
        assert own is not None
        if field.default is NO_DEFAULT:
            raise SchemaError(
                f"The message lacks the field {name}, for which {reader.full_name}, in which it is read, has none."
            )
        value = default_from_json(own.schema, field.schema, field.default, self._config)
        constant = self._source.constant(value)
        return f"deepcopy({constant})" if isinstance(value, (dict, list)) else constant

    def _skip(self, written: AvroSchema, variable: str) -> None:
        # A null, which Connect has no schema for, takes no bytes.
        if not is_null(written):
            self._value(written, written, connect_from_avro(written, self._config), variable)

    def _array(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        source = self._source
        is_map = is_map_entry(reader.element)
        item = source.new("e")
        source.line(f"{target} = {'{}' if is_map else '[]'}")
        with self._items(least_size(writer.element), target):
            if is_map:
                self._entry(writer.element, reader.element, schema, target)
            else:
                self._value(writer.element, reader.element, schema.value_schema, item)
                source.line(f"{target}.append({item})")

    def _entry(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        parts = {"key": schema.key_schema, "value": schema.value_schema}
        values: dict[str, str] = {}
        for written, read in field_pairs(writer, reader):
            values[written.name] = self._source.new("v")
            if read is None:
                self._skip(written.schema, values[written.name])
            else:
                self._value(written.schema, read.schema, parts[read.name], values[written.name])
        self._source.line(f"{target}[{values['key']}] = {values['value']}")

    def _map(self, writer: AvroSchema, reader: AvroSchema, schema: Schema, target: str) -> None:
        source = self._source
        key, item = source.new("k"), source.new("e")
        source.line(f"{target} = {{}}")
        with self._items(1, target):
            self._text(key)
            self._value(writer.element, reader.element, schema.value_schema, item)
            source.line(f"{target}[{key}] = {item}")

    @contextmanager
    def _items(self, least: int, target: str) -> Iterator[None]:
        """A block for each element, of ``least`` bytes or more: they come in counted groups, the last of them empty."""
        source = self._source
        count = source.new("c")
        with source.block("while True"):
            self._whole(count)
            with source.block(f"if {count} <= 0"):
                with source.block(f"if not {count}"):
                    source.line("break")
                # A negative count is followed by the size of the group, for those who skip it.
                source.line(f"{count} = -{count}")
                self._whole(source.new("s"))
            limit = f"(n - i) // {least}" if least else f"{_MOST_EMPTY} - len({target})"
            with source.block(f"if {count} > {limit}"):
                source.line(f"raise Malformed(f'{{{count}}} elements cannot be in the {{n - i}} bytes that are left')")
            with source.block(f"for _ in range({count})"):
                yield

    # -- values that hold no others ------------------------------------------------------------------------------

    def _enum(self, writer: AvroSchema, reader: AvroSchema, target: str) -> None:
        source = self._source
        source.line(f"{target} = d[i]; i += 1")
        self._continue(target)
        symbols = enum_symbols(writer, reader)
        count = len(writer.symbols)
        with source.block(f"if {target} & 1 or {target} >= {2 * count}"):
            source.line(f"raise Malformed(f'an enum of {count} symbols has the symbol {{{target} / 2:g}}')")
        source.line(f"{target} = {source.constant(symbols)}[{target} >> 1]")
        if None in symbols:
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
                self._whole(target, most=0xFFFFFFFF)
            case "long":
                self._whole(target)
            case "float":
                source.line(f"{target}, = unpack_float(d, i); i += 4")
            case "double":
                source.line(f"{target}, = unpack_double(d, i); i += 8")
            case "fixed":
                source.line(f"j = i + {writer.size}")
                self._slice(target)
            case "bytes":
                self._sized(target)
            case _:
                self._text(target)
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

    # -- pieces of bytes -----------------------------------------------------------------------------------------

    def _continue(self, target: str, most: int = 0) -> None:
        with self._source.block(f"if {target} > 127"):
            self._source.line(f"{target}, i = long_tail(d, i, {target})")
            if most:
                with self._source.block(f"if {target} > {most}"):
                    self._source.line("raise Malformed('a whole number has more than 32 bits')")

    def _whole(self, target: str, most: int = 0) -> None:
        self._source.line(f"{target} = d[i]; i += 1")
        self._continue(target, most)
        self._source.line(f"{target} = {target} >> 1 ^ -({target} & 1)")

    def _sized(self, target: str, suffix: str = "") -> None:
        source = self._source
        source.line(f"{target} = d[i]; i += 1")
        self._continue(target)
        source.line(f"j = i + ({target} >> 1)")
        with source.block(f"if {target} & 1"):
            source.line("raise Malformed('a length is negative')")
        self._slice(target, suffix)

    def _slice(self, target: str, suffix: str = "") -> None:
        with self._source.block("if j > n"):
            self._source.line("raise Malformed(f'{j - i} bytes should follow where {n - i} are left')")
        self._source.line(f"{target} = d[i:j]{suffix}; i = j")

    def _text(self, target: str) -> None:
        self._sized(target, ".decode()")


_NAMES: Final[dict[str, object]] = {
    "DataError": DataError,
    "Malformed": MalformedError,
    "date_from_days": logical.date_from_days,
    "decimal_from_unscaled": logical.decimal_from_unscaled,
    "deepcopy": copy.deepcopy,
    "long_tail": long_tail,
    "read_anything": read_anything,
    "single": single,
    "time_from_milliseconds": logical.time_from_milliseconds,
    "timestamp_from_milliseconds": logical.timestamp_from_milliseconds,
    "unpack_double": struct.Struct("<d").unpack_from,
    "unpack_float": struct.Struct("<f").unpack_from,
}
