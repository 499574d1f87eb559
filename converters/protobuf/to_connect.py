"""Translates messages of Protobuf to Connect schemas, with the decoders of their values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Final, TypeAlias

from connect.data import Field, Schema, Type, date_schema, decimal_schema, logical, time_schema, timestamp_schema
from connect.data.numerals import INT64_MAX
from connect.errors import DataError, SchemaError
from converters.protobuf.config import ProtobufConverterConfig, UnsignedType
from converters.protobuf.conventions import (
    DECIMAL,
    GENERALIZED_UNION,
    RECURSIVE,
    TAG,
    TYPE,
    UNION,
    UNKNOWN_SYMBOL,
    WRAPPERS,
)
from converters.protobuf.proto_schema import message_class, parameters_of

__all__ = ["KINDS", "Read", "Reading", "is_map_entry", "is_proto2", "is_synthetic", "reading_of"]

Read: TypeAlias = Callable[[Any], Any]
"""Returns a value of a parsed message. Raises :class:`~connect.errors.DataError` if there is none."""

_MOST_DEPTH: Final = 90
_MOST_PARTS: Final = 50_000
_MILLISECOND_NS: Final = 1_000_000
_KEPT: Final = 16
"""The number of files and messages of which is remembered what takes a copy of all they declare to find out."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The schema of values, and what reads one."""

    schema: Schema
    read: Read


@dataclass(frozen=True, slots=True)
class _Member:
    """A field of a struct, and what reads it from the message that has it."""

    name: str
    schema: Schema
    read: Read


def reading_of(message: Any, config: ProtobufConverterConfig, version: int | None = None) -> Reading:
    """Return how a message is read, by its descriptor.

    ``version`` is the schema's version in its subject. Raises :class:`~connect.errors.SchemaError` if Connect cannot
    represent the message.
    """
    translation = _Translation(config)
    if message.full_name in WRAPPERS and config.wrapper_for_raw_primitives:
        field = message.fields_by_name["value"]
        reading = translation.scalar(field, {})
        read_value = reading.read
        schema = reading.schema.replace(version=version, optional=False, parameters=_without_type(reading.schema))
        return Reading(schema, lambda root: read_value(root.value))
    reading = translation.struct(message, {})
    return Reading(reading.schema.replace(version=version), reading.read)


class _Translation:
    """Translates one message."""

    def __init__(self, config: ProtobufConverterConfig) -> None:
        self._config = config
        self._open: list[str] = []
        self._parts = 0

    def _name(self, descriptor: Any) -> str:
        name: str = descriptor.full_name if self._config.enhanced_protobuf_schema_support else descriptor.name
        return name

    # -- messages ------------------------------------------------------------------------------------------------

    def struct(self, message: Any, parameters: dict[str, str], *, optional: bool = False) -> Reading:
        """Return how a message is read that stands where these parameters say."""
        self._parts += 1
        if len(self._open) > _MOST_DEPTH or self._parts > _MOST_PARTS:
            raise SchemaError(
                f"The Protobuf message {message.full_name} is nested more than {_MOST_DEPTH} levels deep, or has more "
                f"than {_MOST_PARTS:,} parts when it is written out: divide it."
            )
        if message.full_name in self._open:
            # A Connect schema cannot contain itself.
            own = {**parameters, RECURSIVE: message.full_name}
            schema = Schema.bytes(optional=True, name=self._name(message), parameters=own)
            return Reading(schema, partial(message_class(message).SerializeToString, deterministic=True))
        self._open.append(message.full_name)
        try:
            members = self._members(message)
        finally:
            self._open.pop()
        fields = [Field(member.name, member.schema, index) for index, member in enumerate(members)]
        schema = Schema(Type.STRUCT, name=self._name(message), fields=fields, optional=optional, parameters=parameters)
        reads = [(member.name, member.read) for member in members]

        def read(value: Any) -> dict[str, Any]:
            return {name: read_field(value) for name, read_field in reads}

        return Reading(schema, read)

    def _members(self, message: Any) -> list[_Member]:
        members = []
        for oneof in message.oneofs:
            if not is_synthetic(oneof):
                members += self._oneof(oneof)
        inner = {field.name for oneof in message.oneofs if not is_synthetic(oneof) for field in oneof.fields}
        members += [self._field(field) for field in message.fields if field.name not in inner]
        return members

    def _oneof(self, oneof: Any) -> list[_Member]:
        config, name = self._config, oneof.name
        members: list[tuple[str, Schema, Read]] = []
        for field in oneof.fields:
            value = self._value(field, {TAG: str(field.number)})
            members.append((field.name, value.schema.as_optional(), value.read))
        if config.flatten_unions:
            return [
                _Member(name, schema, _if_present(field, read))
                for field, (name, schema, read) in zip(oneof.fields, members, strict=True)
            ]
        fields = [Field(name, schema, index) for index, (name, schema, _) in enumerate(members)]
        full = self._name(oneof)
        generalized = config.generalized_sum_type_support
        struct = Schema(
            Type.STRUCT,
            name=full if generalized else f"{UNION}.{full}",
            fields=fields,
            optional=True,
            parameters={GENERALIZED_UNION: full} if generalized else {},
        )
        reads = {name: read for name, _, read in members}
        blank, which_oneof = dict.fromkeys(reads), message_class(oneof.containing_type).WhichOneof

        def read_oneof(value: Any) -> Any:
            chosen = which_oneof(value, name)
            return None if chosen is None else {**blank, chosen: reads[chosen](getattr(value, chosen))}

        index = list(oneof.containing_type.oneofs).index(oneof)
        own = f"{name}_{index}" if config.generate_index_for_unions else name
        return [_Member(own, struct, read_oneof)]

    # -- fields --------------------------------------------------------------------------------------------------

    def _field(self, field: Any) -> _Member:
        name, tag = field.name, {TAG: str(field.number)}
        if field.is_repeated:
            return self._repeated(field, tag)
        value = self._value(field, tag)
        if field.message_type is not None:
            return _Member(name, value.schema, self._read_message(field, value))
        tells = field.has_presence and (self._config.optional_for_proto2 or not is_proto2(field.file))
        optional = tells or not self._config.marks_nullables
        schema = value.schema.replace(optional=optional)
        if tells:
            return _Member(name, schema, _if_present(field, value.read))
        return _Member(name, schema, _attribute(name, value.read))

    def _read_message(self, field: Any, value: Reading) -> Read:
        name, read = field.name, value.read
        makes_struct = (
            self._config.generate_struct_for_nulls
            and value.schema.type is Type.STRUCT
            and field.message_type.full_name not in WRAPPERS
        )
        return _attribute(name, read) if makes_struct else _if_present(field, read)

    def _repeated(self, field: Any, tag: dict[str, str]) -> _Member:
        name, optional = field.name, not self._config.marks_nullables
        get = attrgetter(name)
        entry = field.message_type
        if entry is not None and is_map_entry(field):
            key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
            read_key, read_value = self._field(key), self._field(value)
            full = entry.full_name.rpartition(".")[0]
            own = _snake(entry.name.removesuffix("Entry"))
            schema = Schema.map(
                read_key.schema,
                read_value.schema,
                optional=optional,
                name=f"{full}.{own}" if self._config.enhanced_protobuf_schema_support else own,
                parameters=tag,
            )
            return _Member(name, schema, _map_reader(field, read_key, read_value, self))
        item = self._value(field, {})
        schema = Schema.array(item.schema, optional=optional, parameters=tag)
        if item.read is _same:
            return _Member(name, schema, lambda message: list(get(message)))
        read_item = item.read
        return _Member(name, schema, lambda message: [read_item(each) for each in get(message)])

    def _value(self, field: Any, parameters: dict[str, str]) -> Reading:
        """Return how one value of a field is read."""
        message = field.message_type
        if field.type == field.TYPE_GROUP:
            raise SchemaError(
                f"The Protobuf field {field.full_name} is a group, which is not supported: declare a message instead."
            )
        if message is None:
            return self.scalar(field, parameters)
        if message.full_name in WRAPPERS and self._config.wrapper_for_nullables:
            value = self.scalar(message.fields_by_name["value"], {})
            merged = {**value.schema.parameters, **parameters}
            read_inner = value.read
            return Reading(
                value.schema.replace(optional=True, parameters=merged), lambda wrapper: read_inner(wrapper.value)
            )
        make = _LOGICAL.get(message.full_name)
        if make is not None:
            return make(field, parameters)
        return self.struct(message, parameters, optional=True)

    def scalar(self, field: Any, parameters: dict[str, str]) -> Reading:
        """Return how a scalar is read, or a symbol of an enum."""
        kind = KINDS[field.type]
        if kind == "enum":
            return self._enum(field.enum_type, parameters)
        base = _TYPES[kind]
        given = parameters_of(field).get("connect.type")
        if kind == "int32" and given in ("int8", "int16"):
            return Reading(Schema(Type(given), optional=True, parameters=parameters), _narrow(given))
        own = {TYPE: kind} if kind not in _NATURAL else {}
        if kind in ("uint64", "fixed64"):
            return self._unsigned({**own, **parameters})
        schema = Schema(base, optional=True, parameters={**own, **parameters})
        # In proto3, parsing a message also checks its text.
        return Reading(schema, _text if kind == "string" and _syntax(field.file) != "proto3" else _same)

    def _unsigned(self, parameters: dict[str, str]) -> Reading:
        match self._config.uint64_type:
            case UnsignedType.DECIMAL:
                return Reading(decimal_schema(0, optional=True, parameters=parameters), Decimal)
            case UnsignedType.STRING:
                return Reading(Schema.string(optional=True, parameters=parameters), str)
            case _:
                return Reading(Schema.int64(optional=True, parameters=parameters), _signed)

    def _enum(self, enum: Any, parameters: dict[str, str]) -> Reading:
        config = self._config
        marker = config.enum_parameter
        named = {marker: enum.name}
        symbols: dict[int, str] = {}
        for value in enum.values:
            named[f"{marker}.{value.name}"] = str(value.number)
            symbols.setdefault(value.number, value.name)
        kind = Type.INT32 if config.int_for_enums else Type.STRING
        schema = Schema(kind, optional=True, name=self._name(enum), parameters={**named, **parameters})
        if config.int_for_enums:
            return Reading(schema, _same)
        unknown = f"{UNKNOWN_SYMBOL}{enum.name}_"
        get = symbols.get

        def read(number: int) -> str:
            symbol = get(number)
            return f"{unknown}{number}" if symbol is None else symbol

        return Reading(schema, read)


def _without_type(schema: Schema) -> dict[str, str]:
    return {name: text for name, text in schema.parameters.items() if name != TYPE}


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value.decode()  # raises the error that tells what is wrong
    text: str = value
    return text


def _attribute(name: str, read: Read) -> Read:
    get: Read = attrgetter(name)
    return get if read is _same else lambda message: read(get(message))


def _if_present(field: Any, read: Read) -> Read:
    name, get = field.name, attrgetter(field.name)
    has_field = message_class(field.containing_type).HasField
    return lambda message: read(get(message)) if has_field(message, name) else None


def _map_reader(field: Any, key: _Member, value: _Member, translation: _Translation) -> Read:
    get = attrgetter(field.name)
    if not field.message_type.GetOptions().map_entry:

        def read_entries(message: Any) -> dict[Any, Any]:
            return {key.read(entry): value.read(entry) for entry in get(message)}

        return read_entries
    read_value = translation._value(field.message_type.fields_by_name["value"], {}).read
    read_key = translation._value(field.message_type.fields_by_name["key"], {}).read

    def read_map(message: Any) -> dict[Any, Any]:
        return {read_key(name): read_value(item) for name, item in get(message).items()}

    return read_map


def is_map_entry(field: Any) -> bool:
    """Return whether a repeated field is a map: one of Protobuf, or what Java's converter writes for one."""
    entry = field.message_type
    if entry.GetOptions().map_entry:
        return True
    names = [each.name for each in entry.fields]
    return entry.name.endswith("Entry") and names == ["key", "value"] and not entry.fields[0].is_repeated


def is_synthetic(oneof: Any) -> bool:
    """Return whether a oneof only stands for the label optional of proto3."""
    fields = list(oneof.fields)
    if len(fields) != 1 or oneof.name != f"_{fields[0].name}" or fields[0].is_repeated:
        return False
    return fields[0].name in _labelled(oneof.containing_type)


def is_proto2(file: Any) -> bool:
    """Return whether a file is of proto2."""
    return _syntax(file) in ("", "proto2")


@lru_cache(maxsize=_KEPT)
def _syntax(file: Any) -> str:
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - the package is optional

    declared = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(declared)
    syntax: str = declared.syntax
    return syntax


@lru_cache(maxsize=_KEPT)
def _labelled(message: Any) -> frozenset[str]:
    """Return the names of the fields of a message that have the label optional of proto3."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - as above

    declared = descriptor_pb2.DescriptorProto()
    message.CopyToProto(declared)
    return frozenset(field.name for field in declared.field if field.proto3_optional)


def _snake(name: str) -> str:
    """Return a name in camel case as one with underscores."""
    return "".join(f"_{each.lower()}" if each.isupper() and place else each.lower() for place, each in enumerate(name))


def _signed(value: int) -> int:
    if value > INT64_MAX:
        raise DataError(
            f"The number {value} of 64 bits without sign is larger than INT64 holds: set uint64.type=decimal or string."
        )
    return value


def _narrow(kind: str) -> Read:
    limit = 2**7 if kind == "int8" else 2**15

    def read(value: int) -> int:
        if not -limit <= value < limit:
            raise DataError(f"The number {value} does not fit {kind}, which the Protobuf schema says it is.")
        return value

    return read


# -- logical types -----------------------------------------------------------------------------------------------


def _read_timestamp(value: Any) -> dt.datetime:
    return logical.timestamp_from_milliseconds(value.seconds * 1000 + value.nanos // _MILLISECOND_NS)


def _read_date(value: Any) -> dt.date:
    try:
        return dt.date(value.year, value.month, value.day)
    except ValueError as error:
        raise DataError(
            f"{value.year}-{value.month}-{value.day} is not a google.type.Date of a day: {error}"
        ) from error


def _read_time(value: Any) -> dt.time:
    try:
        return dt.time(value.hours, value.minutes, value.seconds, value.nanos // _MILLISECOND_NS * 1000)
    except ValueError as error:
        raise DataError(f"{value.hours}:{value.minutes}:{value.seconds} is not a time within a day: {error}") from error


def _decimal(field: Any, parameters: dict[str, str]) -> Reading:
    given = parameters_of(field)
    scale = int(given.get("scale", "0"))
    extra = {"connect.decimal.precision": given["precision"]} if "precision" in given else {}

    def read(value: Any) -> Decimal:
        number = logical.decimal_from_unscaled(value.value or b"\0", value.scale)
        if value.scale == scale:
            return number
        rounded = number.quantize(Decimal((0, (1,), -scale)), context=_EXACT)
        if rounded != number:
            raise DataError(
                f"The decimal {number} has more than {scale} digits after the point, the scale of its field."
            )
        return rounded

    return Reading(decimal_schema(scale, optional=True, parameters={**extra, **parameters}), read)


def _logical(make: Callable[..., Schema], read: Read) -> Callable[[Any, dict[str, str]], Reading]:
    return lambda _field, parameters: Reading(make(optional=True, parameters=parameters), read)


_EXACT: Final = Context(prec=4000, traps=[])
_LOGICAL: Final = {
    DECIMAL: _decimal,
    "google.protobuf.Timestamp": _logical(timestamp_schema, _read_timestamp),
    "google.type.Date": _logical(date_schema, _read_date),
    "google.type.TimeOfDay": _logical(time_schema, _read_time),
}
_NATURAL: Final = frozenset({"int32", "int64", "float", "double", "bool", "string", "bytes"})
_TYPES: Final = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), Type.INT32),
    **dict.fromkeys(("int64", "uint32", "fixed32", "uint64", "fixed64", "sint64", "sfixed64"), Type.INT64),
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "bool": Type.BOOLEAN,
    "string": Type.STRING,
    "bytes": Type.BYTES,
}
KINDS: Final = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    12: "bytes",
    13: "uint32",
    14: "enum",
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
"""The names of the types, by their numbers in descriptors."""
