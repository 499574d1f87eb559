"""Schemas in the form of the SpoolDir sources, and values of them from texts and JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connect.data import Schema, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.errors import ConfigError, SchemaError
from connect.internals.java.date_format import DateFormat
from connect.kits.files.readers.column_type import column_type
from connect.kits.json_text import json_text

__all__ = ["ValueSchemas", "parse_schema"]

_TYPES: Final = {
    "INT8": Type.INT8,
    "INT16": Type.INT16,
    "INT32": Type.INT32,
    "INT64": Type.INT64,
    "FLOAT32": Type.FLOAT32,
    "FLOAT64": Type.FLOAT64,
    "BOOLEAN": Type.BOOLEAN,
    "STRING": Type.STRING,
    "BYTES": Type.BYTES,
}
_LOGICAL: Final = "org.apache.kafka.connect.data."
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_STRING: Final = Schema.string(optional=True)
_KNOWN: Final = {
    "name",
    "type",
    "isOptional",
    "fieldSchemas",
    "valueSchema",
    "keySchema",
    "parameters",
    "version",
    "doc",
}


def parse_schema(text: str) -> Schema:
    """Return the schema that a JSON object describes; it must be a struct. Raises SchemaError."""
    try:
        node = json.loads(text)
    except ValueError as error:
        raise SchemaError(f"It is not JSON: {error}") from error
    schema = _schema(node, "the schema")
    if schema.type is not Type.STRUCT:
        raise SchemaError('Its type must be "STRUCT".')
    return schema


def _schema(node: Any, where: str) -> Schema:
    if not isinstance(node, dict):
        raise SchemaError(f"{where} must be a JSON object.")
    if strange := sorted(set(node) - _KNOWN):
        raise SchemaError(f"{where} has {strange[0]}, which is not supported.")
    kind, name, optional = node.get("type"), node.get("name"), bool(node.get("isOptional", False))
    if isinstance(name, str) and name.startswith(_LOGICAL):
        return _logical(name.removeprefix(_LOGICAL), node, optional, where)
    if kind == "STRUCT":
        members = node.get("fieldSchemas")
        if not isinstance(members, dict):
            raise SchemaError(f'{where} needs "fieldSchemas".')
        fields = {each: _schema(inner, f"the field {each}") for each, inner in members.items()}
        return Schema.struct(fields, name=name, optional=optional)
    if kind == "ARRAY":
        return Schema.array(_schema(node.get("valueSchema"), f"the items of {where}"), optional=optional)
    if kind == "MAP":
        key, value = (_schema(node.get(part), f"{part} of {where}") for part in ("keySchema", "valueSchema"))
        return Schema.map(key, value, optional=optional)
    if kind not in _TYPES:
        raise SchemaError(f"{where} has the type {kind!r}: use STRUCT, ARRAY, MAP, {', '.join(_TYPES)}.")
    return Schema(_TYPES[kind], name=name, optional=optional)


def _logical(name: str, node: Mapping[str, Any], optional: bool, where: str) -> Schema:
    if name == "Decimal":
        scale = (node.get("parameters") or {}).get("scale")
        if scale is None or not str(scale).lstrip("-").isdecimal():
            raise SchemaError(f'{where} needs "parameters": {{"scale": "2"}}.')
        return decimal_schema(int(scale), optional=optional)
    makers = {"Date": date_schema, "Time": time_schema, "Timestamp": timestamp_schema}
    if name not in makers:
        raise SchemaError(f"{where} has the name {_LOGICAL}{name}, which is not supported.")
    return makers[name](optional=optional)


@dataclass(frozen=True)
class ValueSchemas:
    """The schemas of keys and values: those given, or those that are made from the names of fields."""

    key: Schema | None
    value: Schema | None
    key_fields: Sequence[str]
    names: tuple[str, str]
    """The names of the schemas of keys and values that are made."""
    patterns: Sequence[str]
    timezone: str
    _made: dict[tuple[str, ...], Schema] = field(default_factory=dict)
    _parsers: dict[Schema, Callable[[Any], Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            try:
                DateFormat(pattern)
            except ValueError as error:
                raise ConfigError("parser.timestamp.date.formats", pattern, str(error)) from error
        try:
            ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            told = "Name a time zone such as UTC or Europe/Paris."
            raise ConfigError("parser.timestamp.timezone", self.timezone, told) from error

    def is_timestamp(self, name: str) -> bool:
        """Whether a field of the value is a timestamp that is never null."""
        member = None if self.value is None else next((each for each in self.value.fields if each.name == name), None)
        return member is not None and member.schema == timestamp_schema()

    def key_schema_of(self, value: Schema) -> Schema | None:
        """Return the schema of the keys of values with a schema; ``None`` if they have no key."""
        if self.value is not None:
            return self.key if self.key is not None and self.key.fields else None
        names = [name for name in self.key_fields if name in value.field_names]
        return self._struct((self.names[0], *names)) if names else None

    def schema_of(self, names: Sequence[str]) -> Schema:
        """Return the schema of a value that has these fields in its file."""
        return self.value if self.value is not None else self._struct((self.names[1], *names))

    def _struct(self, made: tuple[str, ...]) -> Schema:
        schema = self._made.get(made)
        if schema is None:
            schema = self._made[made] = Schema.struct(dict.fromkeys(made[1:], _STRING), name=made[0])
        return schema

    def values(self, schema: Schema, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row as a struct of a schema. Raises ``ValueError`` with the reason if it cannot be one."""
        found: dict[str, Any] = {}
        for member in schema.fields:
            try:
                found[member.name] = self._parser(member.schema)(row.get(member.name))
            except ValueError as error:
                raise ValueError(f"{member.name} is {row.get(member.name)!r}: {error}") from error
        return found

    def _parser(self, schema: Schema) -> Callable[[Any], Any]:
        parser = self._parsers.get(schema)
        if parser is None:
            parser = self._parsers[schema] = partial(self._parsed, schema, self._plain(schema))
        return parser

    def _parsed(self, schema: Schema, plain: Callable[[Any], Any], value: Any) -> Any:
        if value == "" and schema.optional and schema.type is not Type.STRING:
            return None
        if value is None:
            if schema.optional:
                return None
            raise ValueError("it is null, and its schema is not optional")
        return plain(value)

    def _plain(self, schema: Schema) -> Callable[[Any], Any]:  # noqa: PLR0911 - one for each kind
        """Return the function for values that are not null."""
        name = (schema.name or "").removeprefix(_LOGICAL)
        if name in ("Date", "Time", "Timestamp"):
            return partial(self._moment, name)
        if name == "Decimal":
            return partial(_from_text, f"decimal({dict(schema.parameters or {})['scale']})")
        if schema.type is Type.STRING:
            return lambda value: value if isinstance(value, str) else json_text(value)
        if schema.type is Type.BYTES:
            return lambda value: str(value).encode()
        if schema.type is Type.STRUCT:
            return partial(self._nested, schema)
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            return partial(_items, self._parser(schema.value_schema))
        if schema.type is Type.MAP and schema.value_schema is not None:
            return partial(_entries, self._parser(schema.value_schema))
        return partial(_from_text, schema.type.value)

    def _nested(self, schema: Schema, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError("it is not an object")  # noqa: TRY004 - as others
        return self.values(schema, value)

    def _moment(self, name: str, value: Any) -> Any:
        """Return a date or time: from a number as Kafka Connect counts it, or from a text by the patterns."""
        if isinstance(value, int) and not isinstance(value, bool):
            at = value * 86_400_000 if name == "Date" else value
        else:
            at = self._milliseconds(str(value))
        moment = _EPOCH + dt.timedelta(milliseconds=at)
        return {"Date": moment.date(), "Time": moment.time(), "Timestamp": moment}[name]

    def _milliseconds(self, text: str) -> int:
        for pattern in self.patterns:
            try:
                at = DateFormat(pattern).parse(text)
            except ValueError:
                continue
            return at if _has_zone(pattern) else self._in_zone(at)
        raise ValueError(f"it matches none of the patterns {', '.join(self.patterns)}")

    def _in_zone(self, at: int) -> int:
        if self.timezone == "UTC":
            return at
        local = (_EPOCH + dt.timedelta(milliseconds=at)).replace(tzinfo=ZoneInfo(self.timezone))
        return round((local - _EPOCH) / dt.timedelta(milliseconds=1))


def _has_zone(pattern: str) -> bool:
    return any(letter in "zZX" for part in pattern.split("'")[::2] for letter in part)


def _from_text(kind: str, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it is not a number of JSON")
    text = str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else json_text(value)
    return column_type(kind).parse(text)


def _items(parse: Callable[[Any], Any], value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("it is not an array")  # noqa: TRY004 - as others
    return [parse(item) for item in value]


def _entries(parse: Callable[[Any], Any], value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it is not an object")  # noqa: TRY004 - as others
    return {key: parse(item) for key, item in value.items()}
