"""Documents of MongoDB, written as extended JSON in change events, as structs with a schema."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from connect.data import Field, Schema, Type, timestamp_schema
from connect.data.logical import timestamp_from_milliseconds
from connect.data.numerals import INT64_MAX, INT64_MIN
from connect.errors import DataError
from connect.transforms.debezium.by_logical_table_router import SchemaNames

__all__ = ["Documents", "parse_document"]

_INT32_MIN: Final = -(2**31)
_INT32_MAX: Final = 2**31 - 1
_NULL: Final = Schema.string(optional=True)
_TEXT: Final = Schema.string(optional=True)
_BYTES: Final = Schema.bytes(optional=True)
_INSTANT: Final = timestamp_schema(optional=True)
_REGEX: Final = Schema.struct({"regex": _TEXT, "options": _TEXT}, name="io.debezium.mongodb.regex", optional=True)


class _Typed(NamedTuple):
    """A value with its schema. The schema ``None`` is that of a value that has no place in a record."""

    schema: Schema | None
    value: Any


_NOTHING: Final = _Typed(None, None)


def parse_document(text: str, place: str) -> dict[str, Any]:
    """Parse a document; raise :class:`~connect.errors.DataError` naming its place, never its content (I8)."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"Field {place} is not a document of MongoDB: {type(error).__name__}") from None
    if not isinstance(parsed, dict):
        raise DataError(f"Field {place} is not a document of MongoDB, but {type(parsed).__name__}")
    return parsed


class Documents:
    """Makes structs of documents. Arrays become arrays, or with ``encodes_arrays`` structs with fields _0, _1 ..."""

    def __init__(self, names: SchemaNames, *, encodes_arrays: bool) -> None:
        self._names = names
        self._encodes_arrays = encodes_arrays

    def struct(self, document: Mapping[str, Any], name: str | None) -> tuple[Schema, dict[str, Any]]:
        """Return the schema, of this name, and the value of a document."""
        try:
            members = self._members(document, name)
        except RecursionError:
            raise DataError("A document is nested too deeply") from None
        return _struct(members, name, optional=False), {key: member.value for key, member in members.items()}

    def plain(self, value: Any) -> Any:
        """Return a value of a document as it is in records without a schema."""
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if not isinstance(value, dict):
            return value
        special = _special(value)
        if special is not None:
            return special.value
        return {self._names.adjusted(key): self.plain(item) for key, item in value.items() if not _is_nothing(item)}

    def _members(self, document: Mapping[str, Any], name: str | None) -> dict[str, _Typed]:
        members: dict[str, _Typed] = {}
        for key, item in document.items():
            field = self._names.adjusted(key)
            typed = self._typed(item, f"{name}.{field}")
            if typed.schema is not None:
                members[field] = typed
        return members

    def _typed(self, value: Any, name: str) -> _Typed:
        if isinstance(value, list):
            return self._array(value, name)
        if not isinstance(value, dict):
            return _scalar(value, name)
        scoped = value.get("$scope")
        if "$code" in value and isinstance(scoped, dict):
            schema, scope = self.struct(scoped, f"{name}.scope")
            of = Schema.struct({"code": _TEXT, "scope": schema.as_optional()}, name=name, optional=True)
            return _Typed(of, {"code": value["$code"], "scope": scope})
        special = _special(value)
        if special is not None:
            return special
        members = self._members(value, name)
        return _Typed(_struct(members, name, optional=True), {field: member.value for field, member in members.items()})

    def _array(self, items: list[Any], name: str) -> _Typed:
        if self._encodes_arrays:
            numbered = {f"_{index}": self._typed(item, f"{name}._{index}") for index, item in enumerate(items)}
            members = {field: typed for field, typed in numbered.items() if typed.schema is not None}
            value = {field: typed.value for field, typed in members.items()}
            return _Typed(_struct(members, name, optional=True), value)
        typed = [self._typed(item, name) for item in items]
        schema = _joined([None if item is None else of.schema for item, of in zip(items, typed, strict=True)], name)
        return _Typed(Schema.array(schema, optional=True), [_filled(of.value, schema) for of in typed])


def _struct(members: Mapping[str, _Typed], name: str | None, *, optional: bool) -> Schema:
    fields = {field: typed.schema for field, typed in members.items() if typed.schema is not None}
    return Schema.struct(fields, name=name, optional=optional)


def _joined(schemas: Iterable[Schema | None], name: str) -> Schema:
    """Return the schema that items have in common; ``None`` is that of a null."""
    joined: Schema | None = None
    for schema in schemas:
        if schema is None or joined is schema:
            continue
        joined = schema if joined is None else _join(joined, schema, name)
    return _TEXT if joined is None else joined


def _join(one: Schema, other: Schema, name: str) -> Schema:
    if one.type is Type.STRUCT and other.type is Type.STRUCT and one.name == other.name:
        fields = {field.name: field.schema for field in one.fields}
        for field in other.fields:
            known = fields.get(field.name)
            fields[field.name] = (
                field.schema if known is None or known is field.schema else _join(known, field.schema, name)
            )
        members = [Field(key, schema, index) for index, (key, schema) in enumerate(fields.items())]
        return one.replace(fields=members)
    if one.value_schema is not None and other.value_schema is not None:
        return Schema.array(_join(one.value_schema, other.value_schema, name), optional=True)
    if one is other:
        return one
    raise DataError(
        f"The items of array {name} are of different types, {one.type.name} and {other.type.name}: "
        "set array.encoding to document"
    )


def _filled(value: Any, schema: Schema) -> Any:
    """Return the value with a null for each field that it lacks."""
    if isinstance(value, dict) and schema.type is Type.STRUCT:
        return {field.name: _filled(value.get(field.name), field.schema) for field in schema.fields}
    if isinstance(value, list) and schema.value_schema is not None:
        return [_filled(item, schema.value_schema) for item in value]
    return value


def _scalar(value: Any, name: str) -> _Typed:
    match value:
        case None:
            return _Typed(_NULL, None)
        case bool():
            return _Typed(Schema.boolean(optional=True), value)
        case str():
            return _Typed(_TEXT, value)
        case float():
            return _Typed(Schema.float64(optional=True), value)
        case int() if _INT32_MIN <= value <= _INT32_MAX:
            return _Typed(Schema.int32(optional=True), value)
        case int() if INT64_MIN <= value <= INT64_MAX:
            return _Typed(Schema.int64(optional=True), value)
    raise DataError(f"The number in field {name} has more than 64 bits")


def _special(document: Mapping[str, Any]) -> _Typed | None:
    """Return the value that extended JSON writes as this document, or ``None`` if it is a document."""
    first = next(iter(document), "")
    read = _READERS.get(first)
    if read is None:
        return None
    try:
        return read(document)
    except (ValueError, TypeError, KeyError, OverflowError, binascii.Error, DataError) as error:
        raise DataError(f"A value {first} of a document cannot be read: {type(error).__name__}") from None


def _is_nothing(value: Any) -> bool:
    return isinstance(value, dict) and _special(value) is _NOTHING


def _date(document: Mapping[str, Any]) -> _Typed:
    given = document["$date"]
    if isinstance(given, dict):
        given = int(given["$numberLong"])
    if isinstance(given, str):
        return _Typed(_INSTANT, dt.datetime.fromisoformat(given).astimezone(dt.UTC))
    return _Typed(_INSTANT, timestamp_from_milliseconds(given))


def _binary(document: Mapping[str, Any]) -> _Typed:
    given = document["$binary"]
    text = given["base64"] if isinstance(given, dict) else given
    return _Typed(_BYTES, base64.b64decode(text, validate=True))


def _regex(document: Mapping[str, Any]) -> _Typed:
    given = document.get("$regularExpression")
    if given is not None:
        return _Typed(_REGEX, {"regex": given["pattern"], "options": given["options"]})
    return _Typed(_REGEX, {"regex": document["$regex"], "options": document.get("$options", "")})


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], _Typed]]] = {
    "$oid": lambda document: _Typed(_TEXT, str(document["$oid"])),
    "$numberInt": lambda document: _Typed(Schema.int32(optional=True), int(document["$numberInt"])),
    "$numberLong": lambda document: _Typed(Schema.int64(optional=True), int(document["$numberLong"])),
    "$numberDouble": lambda document: _Typed(Schema.float64(optional=True), float(document["$numberDouble"])),
    "$numberDecimal": lambda document: _Typed(_TEXT, str(document["$numberDecimal"])),
    "$date": _date,
    "$binary": _binary,
    "$uuid": lambda document: _Typed(_BYTES, uuid.UUID(document["$uuid"]).bytes),
    "$timestamp": lambda document: _Typed(_INSTANT, timestamp_from_milliseconds(document["$timestamp"]["t"] * 1000)),
    "$regex": _regex,
    "$regularExpression": _regex,
    "$code": lambda document: _Typed(_TEXT, str(document["$code"])),
    "$minKey": lambda _: _NOTHING,
    "$maxKey": lambda _: _NOTHING,
    "$undefined": lambda _: _NOTHING,
    "$symbol": lambda document: _Typed(_TEXT, str(document["$symbol"])),
}
