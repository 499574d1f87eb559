"""Translates Connect schemas to the text of Protobuf files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from connect.data import Schema, Type, logical
from connect.errors import SchemaError
from converters.json.nesting import check_schema
from converters.protobuf.config import ProtobufConverterConfig
from converters.protobuf.conventions import (
    DECIMAL,
    LOGICAL_MESSAGES,
    TAG,
    TYPE,
    UNKNOWN_SYMBOL,
    WRAPPERS,
    enum_name,
    is_union,
    proto_name,
    split,
    symbol_name,
    union_name,
)
from converters.protobuf.to_connect import KINDS

__all__ = ["Declaration", "declaration_of"]

_SCALARS: Final = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_CHOSEN: Final = {
    Type.INT32: frozenset({"int32", "sint32", "sfixed32"}),
    Type.INT64: frozenset({"int64", "uint32", "fixed32", "uint64", "fixed64", "sint64", "sfixed64"}),
    Type.STRING: frozenset({"uint64", "fixed64"}),
}
"""The types that the parameter ``Type`` may name for a Connect type."""
_WRAPPER_OF: Final = {kind: name for name, kind in WRAPPERS.items()}
_ELSEWHERE: Final = frozenset({*WRAPPERS, *LOGICAL_MESSAGES})
_WRAPPERS_FILE: Final = "google/protobuf/wrappers.proto"
_META_FILE: Final = "confluent/meta.proto"
_MOST_NUMBER: Final = 2**29 - 1
_RESERVED_NUMBERS: Final = range(19_000, 20_000)
_MOST_NAMES: Final = 1000
_IN_CAMEL_CASE: Final = re.compile(r"_+(.?)")
_WORDS: Final = frozenset(
    {
        *KINDS.values(),
        *("enum", "extend", "extensions", "group", "message", "oneof", "option"),
        *("optional", "repeated", "required", "reserved"),
    }
)
"""What the type of a field may not be called, because a line that begins with it means something else."""


@dataclass(slots=True)
class _Line:
    """A field: ``label`` ends in a space or is empty."""

    name: str
    kind: str
    label: str
    number: int
    options: dict[str, str]


@dataclass(slots=True)
class _Message:
    """A message, in which fields, oneofs, messages, enums and the symbols of enums must all have different names."""

    name: str
    members: frozenset[str]
    """The names of the fields and oneofs."""
    lines: list[_Line] = field(default_factory=list)
    oneofs: list[tuple[str, list[_Line]]] = field(default_factory=list)
    messages: dict[str, tuple[Schema, _Message]] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    reserved: set[int] = field(default_factory=set)

    def symbols(self) -> set[str]:
        """Return the symbols of all enums that are not within another message."""
        return {symbol for each in self.enums.values() for symbol in each}


@dataclass(frozen=True, slots=True)
class Declaration:
    """The text of a file, and the full name of the message in it that is written."""

    text: str
    root: str


def declaration_of(schema: Schema | None, config: ProtobufConverterConfig, earlier: Any = None) -> Declaration:
    """Return the file that declares the values of a Connect schema.

    Fields keep the numbers they have in ``earlier``, the descriptor of the message of an earlier version, if there is
    one. Raises :class:`~connect.errors.SchemaError` if Protobuf cannot represent the schema.
    """
    if schema is None:
        raise SchemaError(
            "A value without a schema cannot be written as Protobuf: give it one, or use JsonConverter with "
            "schemas.enable=false."
        )
    check_schema(schema)
    if schema.type is Type.STRUCT and not is_union(schema):
        return _Translation(config).file(schema, earlier)
    if schema.type.is_primitive and schema.name not in logical.LOGICAL_NAMES:
        return _wrapper(_scalar(schema))
    what = schema.name if schema.name in logical.LOGICAL_NAMES else schema.type.name
    raise SchemaError(
        f"Protobuf cannot write a {what} that is not within a message: put it into a struct (HoistField)."
    )


def _wrapper(kind: str) -> Declaration:
    messages = "\n".join(f"message {split(name)[1]} {{\n  {each} value = 1;\n}}" for name, each in WRAPPERS.items())
    name = _WRAPPER_OF.get(kind)
    if name is None:
        raise SchemaError(f"Protobuf has no wrapper for {kind}: put the value into a struct (HoistField).")
    return Declaration(f'syntax = "proto3";\npackage google.protobuf;\n\n{messages}\n', name)


class _Translation:
    """Writes one file."""

    def __init__(self, config: ProtobufConverterConfig) -> None:
        self._config = config
        self._imports: set[str] = set()
        self._nameless = 0

    def file(self, schema: Schema, earlier: Any) -> Declaration:
        package, name = self._names(schema)
        message = self._message(schema, name, earlier)
        text = ['syntax = "proto3";']
        if package:
            text.append(f"package {package};")
        if self._imports:
            text.append("")
            text += [f'import "{each}";' for each in sorted(self._imports)]
        hiding = {*package.split("."), *_declared(message)}
        text += ["", *_message_text(message, hiding, 0)]
        return Declaration("\n".join(text) + "\n", f"{package}.{name}" if package else name)

    def _names(self, schema: Schema) -> tuple[str, str]:
        """Return the package and the name of a message."""
        if not schema.name:
            self._nameless += 1
            return "", f"ConnectDefault{self._nameless}"
        scrubs = self._config.scrub_invalid_names
        return_name = [proto_name(part, scrubs=scrubs) for part in schema.name.split(".")]
        return ".".join(return_name[:-1]), return_name[-1]

    def _message(self, schema: Schema, name: str, earlier: Any) -> _Message:
        message = _Message(name, frozenset(self._member_names(schema)))
        numbers = _Numbers(schema, earlier)
        for each in schema.fields:
            if is_union(each.schema):
                self._oneof(each.name, each.schema, message, numbers)
            else:
                message.lines.append(self._line(each.name, each.schema, message, numbers, nested=True))
        message.reserved = numbers.reserved()
        _check_names(message)
        return message

    def _member_names(self, schema: Schema) -> Iterator[str]:
        scrubs = self._config.scrub_invalid_names
        for each in schema.fields:
            if is_union(each.schema):
                yield proto_name(union_name(each.schema) or each.name, scrubs=scrubs)
        yield from (proto_name(name, scrubs=scrubs) for name, _ in _members(schema))

    def _oneof(self, field_name: str, schema: Schema, message: _Message, numbers: _Numbers) -> None:
        name = union_name(schema) or field_name
        lines = [self._line(each.name, each.schema, message, numbers, nested=False) for each in schema.fields]
        if lines:
            message.oneofs.append((proto_name(name, scrubs=self._config.scrub_invalid_names), lines))

    def _line(self, field_name: str, schema: Schema, message: _Message, numbers: _Numbers, *, nested: bool) -> _Line:
        name = proto_name(field_name, scrubs=self._config.scrub_invalid_names)
        label, options = "", _options(schema)
        if schema.type is Type.ARRAY:
            assert schema.value_schema is not None
            if schema.value_schema.type in (Type.ARRAY, Type.MAP):
                raise SchemaError(
                    f"The field {field_name} is an array of {schema.value_schema.type.name}, which Protobuf does "
                    "not have: put the inner one into a struct."
                )
            label, options = "repeated ", _options(schema.value_schema)
            kind = self._kind(name, schema.value_schema, message, numbers)
        elif schema.type is Type.MAP:
            label, kind = "repeated ", self._entry(schema, message, numbers.inner(name))
        else:
            kind = self._kind(name, schema, message, numbers)
            if schema.optional and kind in _WRAPPER_OF and (nested or self._config.wrapper_for_nullables):
                label, kind = self._nullable(kind)
            elif schema.optional and nested and self._config.optional_for_nullables and enum_name(schema) is not None:
                label = "optional "
        if not nested and label:
            raise SchemaError(
                f"The member {field_name} of a union is an array or a map, which Protobuf does not allow."
            )
        if options:
            self._imports.add(_META_FILE)
        return _Line(
            name, kind, label, numbers.of(name, schema, f"{label.replace('optional ', '')}{_own_name(kind)}"), options
        )

    def _nullable(self, kind: str) -> tuple[str, str]:
        """Return the label and the type of a scalar that may be null."""
        if self._config.wrapper_for_nullables:
            self._imports.add(_WRAPPERS_FILE)
            return "", _WRAPPER_OF[kind]
        return ("optional " if self._config.optional_for_nullables else ""), kind

    def _kind(self, name: str, schema: Schema, message: _Message, numbers: _Numbers) -> str:
        own = _LOGICAL.get(schema.name or "")
        if own is not None and _scalar(schema) not in ("uint64", "fixed64"):
            self._imports.add(LOGICAL_MESSAGES[own])
            return own
        enum = enum_name(schema)
        if enum is not None:
            return self._enum(schema, message, *enum)
        if schema.type is Type.STRUCT:
            return self._nested(schema, message, numbers.inner(name))
        return _scalar(schema)

    def _nested(self, schema: Schema, message: _Message, earlier: Any) -> str:
        if is_union(schema):
            raise SchemaError(
                f"The union {schema.name} stands in an array, a map or a union, where Protobuf has no oneof: put it "
                "into a struct."
            )
        _, name = self._names(schema)
        while name in message.members or name in _WORDS:
            name += "Message"
        wanted, count = name, 1
        bare = schema.replace(parameters=_without_tag(schema), optional=False, default=None, doc=None)
        while not _is_free(name, message, bare):
            count += 1
            name = f"{wanted}{count}"
        if name not in message.messages:
            message.messages[name] = bare, self._message(schema, name, earlier)
        return name

    def _entry(self, schema: Schema, message: _Message, earlier: Any) -> str:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        if schema.name:
            stem = "".join(part[:1].upper() + part[1:] for part in split(schema.name)[1].split("_"))
        else:
            self._nameless += 1
            stem = f"ConnectDefault{self._nameless}"
        name = f"{proto_name(stem, scrubs=self._config.scrub_invalid_names)}Entry"
        plain = Schema.struct({"key": _untagged(schema.key_schema), "value": _untagged(schema.value_schema)})
        wanted, count = name.removesuffix("Entry"), 1
        while not _is_free(name, message, plain):
            count += 1
            name = f"{wanted}{count}Entry"
        if name not in message.messages:
            message.messages[name] = plain, self._message(plain, name, earlier)
        return name

    def _enum(self, schema: Schema, message: _Message, marker: str, full_name: str) -> str:
        scrubs = self._config.scrub_invalid_names
        wanted = name = proto_name(split(full_name)[1], scrubs=scrubs)
        while name in message.members or name in _WORDS:
            wanted = name = f"{name}Enum"
        prefix = f"{marker}."
        symbols = {
            symbol_name(key.removeprefix(prefix), scrubs=scrubs): _whole(text, key)
            for key, text in schema.parameters.items()
            if key.startswith(prefix)
        }
        if not symbols:
            raise SchemaError(f"The enum {name} has no symbols: give its schema parameters {prefix}<symbol>=<number>.")
        for count in range(2, _MOST_NAMES):
            # What is read where a number has no symbol is the symbol of zero, which proto3 demands of each enum.
            all_symbols = symbols if 0 in symbols.values() else {f"{UNKNOWN_SYMBOL}{name}_0": 0, **symbols}
            place = _place_of_enum(name, all_symbols, message)
            if place is not None:
                return place
            name = f"{wanted}{count}"
        raise SchemaError(f"The message {message.name} has too many enums called {wanted}: rename some.")


def _place_of_enum(name: str, symbols: dict[str, int], message: _Message) -> str | None:
    """Declare an enum in a message, unless it is there; return its name, or ``None`` if another one has that name."""
    if name in message.messages or name in message.symbols():
        return None
    holder = message.messages.get(f"{name}Scope")
    known = message.enums.get(name) or (holder[1].enums.get(name) if holder is not None else None)
    if known is not None and known != symbols:
        return None
    if known is not None:
        return name if name in message.enums else f"{name}Scope.{name}"
    taken = message.members | message.messages.keys() | message.enums.keys() | message.symbols() | {name}
    if taken.isdisjoint(symbols):
        message.enums[name] = symbols
        return name
    # The symbols of an enum are names of the message that it stands in.
    if holder is not None or f"{name}Scope" in taken or name in symbols:
        return None
    scope = _Message(f"{name}Scope", frozenset())
    scope.enums[name] = symbols
    message.messages[scope.name] = Schema.struct({}), scope
    return f"{scope.name}.{name}"


def _is_free(name: str, message: _Message, schema: Schema) -> bool:
    """Return whether a message may have that name within another, or is there already."""
    if name in message.messages:
        return message.messages[name][0] is schema
    return name not in message.enums and name not in message.symbols() and name not in message.members


class _Numbers:
    """Gives fields their numbers: those they have had, those that are asked for, and others that are free."""

    def __init__(self, schema: Schema, earlier: Any) -> None:
        self._earlier = {} if earlier is None else {each.name: each for each in earlier.fields}
        self._gone = set() if earlier is None else {each.number for each in earlier.fields} | set(_reserved(earlier))
        self._taken = set(self._gone)
        self._asked: dict[int, str] = {}
        for name, member in _members(schema):
            if TAG in member.parameters:
                number = _whole(member.parameters[TAG], TAG)
                if not 0 < number <= _MOST_NUMBER or number in _RESERVED_NUMBERS:
                    raise SchemaError(f"The field {name} has the tag {number}, which Protobuf does not allow.")
                if number in self._asked:
                    raise SchemaError(
                        f"The fields {self._asked[number]} and {name} have the same tag {number} ({TAG}): "
                        "give each its own."
                    )
                self._asked[number] = name
        self._taken |= self._asked.keys()
        self._next = 1
        self._kept: set[int] = set()

    def inner(self, name: str) -> Any:
        """Return the earlier message in the field of that name, if it had one."""
        field = self._earlier.get(name)
        return None if field is None else field.message_type

    def of(self, name: str, schema: Schema, kind: str) -> int:
        """Return the number of a field, whose type is written ``kind``."""
        number = int(schema.parameters[TAG]) if TAG in schema.parameters else self._number(name, kind)
        self._kept.add(number)
        return number

    def _number(self, name: str, kind: str) -> int:
        earlier = self._earlier.get(name)
        if earlier is not None and earlier.number not in self._asked and _kind_of(earlier) == kind:
            number: int = earlier.number
            return number
        while self._next in self._taken or self._next in _RESERVED_NUMBERS:
            self._next += 1
        self._taken.add(self._next)
        return self._next

    def reserved(self) -> set[int]:
        """Return the numbers that no field may have any more."""
        return self._gone - self._kept


def _members(schema: Schema) -> Iterator[tuple[str, Schema]]:
    for each in schema.fields:
        if is_union(each.schema):
            yield from ((member.name, member.schema) for member in each.schema.fields)
        else:
            yield each.name, each.schema


def _reserved(message: Any) -> Iterator[int]:
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - the package is optional

    declared = descriptor_pb2.DescriptorProto()
    message.CopyToProto(declared)
    for each in declared.reserved_range:
        # A range to the end of all numbers is one that nobody comes near.
        yield from range(each.start, min(each.end, each.start + 10_000))


def _kind_of(field: Any) -> str:
    """Return the type of a field as it is written in the same message."""
    label = "repeated " if field.is_repeated else ""
    if field.message_type is not None:
        full = field.message_type.full_name
        return f"{label}{full if full in WRAPPERS or full in LOGICAL_MESSAGES else field.message_type.name}"
    return f"{label}{field.enum_type.name if field.enum_type is not None else KINDS[field.type]}"


def _own_name(kind: str) -> str:
    """Return the name of a type without the message in which it stands."""
    return kind if kind in WRAPPERS or kind in LOGICAL_MESSAGES else split(kind)[1]


def _scalar(schema: Schema) -> str:
    chosen = schema.parameters.get(TYPE)
    allowed = _CHOSEN.get(schema.type, frozenset())
    if schema.name == logical.DECIMAL_NAME:
        allowed = _CHOSEN[Type.STRING]
    return chosen if chosen in allowed else _SCALARS.get(schema.type, "")


def _options(schema: Schema) -> dict[str, str]:
    if schema.type in (Type.INT8, Type.INT16):
        return {"connect.type": schema.type.value}
    if schema.name == logical.DECIMAL_NAME and _scalar(schema) == "bytes":
        precision = schema.parameters.get("connect.decimal.precision")
        return {
            "scale": str(logical.decimal_scale(schema)),
            **({"precision": str(_whole(precision, "connect.decimal.precision"))} if precision else {}),
        }
    return {}


def _without_tag(schema: Schema) -> dict[str, str]:
    return {name: text for name, text in schema.parameters.items() if name != TAG}


def _untagged(schema: Schema) -> Schema:
    return schema.replace(parameters=_without_tag(schema))


def _whole(text: str, key: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise SchemaError(f"The parameter {key} of a schema is {text!r}; it must be a whole number.") from error


def _check_names(message: _Message) -> None:
    seen: set[str] = set()
    for line in (*message.lines, *(line for _, lines in message.oneofs for line in lines)):
        if line.name in seen:
            raise SchemaError(
                f"Two fields of the message {message.name} are called {line.name}: rename one (ReplaceField)."
            )
        seen.add(line.name)


# -- text --------------------------------------------------------------------------------------------------------


def _declared(message: _Message) -> Iterator[str]:
    yield message.name
    for _, inner in message.messages.values():
        yield from _declared(inner)


def _message_text(message: _Message, hiding: set[str], level: int) -> Iterable[str]:
    """Return the lines of a message. Names that begin with one of ``hiding`` are not looked for in other files."""
    inset = "  " * level
    yield f"{inset}message {message.name} {{"
    if _has_alike(message):
        yield f"{inset}  option deprecated_legacy_json_field_conflicts = true;"
    if message.reserved:
        yield f"{inset}  reserved {', '.join(map(str, sorted(message.reserved)))};"
    for line in message.lines:
        yield f"{inset}  {_line_text(line, hiding)}"
    for name, lines in message.oneofs:
        yield f"{inset}  oneof {name} {{"
        for line in lines:
            yield f"{inset}    {_line_text(line, hiding)}"
        yield f"{inset}  }}"
    for _, inner in message.messages.values():
        yield from _message_text(inner, hiding, level + 1)
    for name, symbols in message.enums.items():
        yield from _enum_text(name, symbols, f"{inset}  ")
    yield f"{inset}}}"


def _has_alike(message: _Message) -> bool:
    """Return whether fields have names that are one in JSON, such as user_id and userId, which has to be allowed."""
    names = [line.name for line in (*message.lines, *(each for _, lines in message.oneofs for each in lines))]
    return len({_IN_CAMEL_CASE.sub(lambda found: found[1].upper(), name) for name in names}) < len(names)


def _line_text(line: _Line, hiding: set[str]) -> str:
    options = ""
    if line.options:
        params = ", ".join(f'{{key: "{key}", value: "{text}"}}' for key, text in line.options.items())
        options = f" [({_from_root('confluent.field_meta', hiding)}) = {{params: [{params}]}}]"
    kind = _from_root(line.kind, hiding) if line.kind in _ELSEWHERE else line.kind
    return f"{line.label}{kind} {line.name} = {line.number}{options};"


def _from_root(name: str, hiding: set[str]) -> str:
    return f".{name}" if name.partition(".")[0] in hiding else name


def _enum_text(name: str, symbols: dict[str, int], inset: str) -> Iterable[str]:
    yield f"{inset}enum {name} {{"
    if len(set(symbols.values())) < len(symbols):
        yield f"{inset}  option allow_alias = true;"
    # In proto3 the first symbol is zero.
    for symbol, number in sorted(symbols.items(), key=lambda each: each[1] != 0):
        yield f"{inset}  {symbol} = {number};"
    yield f"{inset}}}"


_LOGICAL: Final = {
    logical.DECIMAL_NAME: DECIMAL,
    logical.DATE_NAME: "google.type.Date",
    logical.TIME_NAME: "google.type.TimeOfDay",
    logical.TIMESTAMP_NAME: "google.protobuf.Timestamp",
}
