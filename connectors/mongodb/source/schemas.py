"""Schemas of published structs: from Avro, or made of the document; and values that fit them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bson import encode
from bson.binary import Binary
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.timestamp import Timestamp

from connect.data import Schema, Type, decimal_schema, timestamp_schema
from connect.data.logical import timestamp_from_milliseconds
from connect.data.numerals import integer_range
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import NO_DEFAULT, AvroField, AvroSchema, is_null, parse_avro

__all__ = ["StructMaker", "inferred_schema", "schema_from_avro"]

Json = Callable[[Any], str]
"""Returns the JSON text of a BSON value."""

_TOP: Final = "default"
_PLAIN: Final[Mapping[str, Type]] = {
    "string": Type.STRING,
    "bytes": Type.BYTES,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
}
_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)
_OPTIONAL_TEXT: Final = Schema.string(optional=True)
_UNKNOWN: Final = Schema.string(optional=True, name="unknown")
"""The schema of null and of an empty array's elements, until another one is known."""


def schema_from_avro(text: str) -> Schema:
    """Return the Connect schema of an Avro record; a ``DataError`` if Avro or Connect does not have it so."""
    try:
        avro = parse_avro(text)
    except SchemaError as error:
        raise DataError(f"it is not an Avro schema: {error}") from error
    if avro.kind != "record":
        raise DataError("it must be a record.")
    return _translated(avro, "", (), optional=False)


def _translated(avro: AvroSchema, path: str, above: tuple[str, ...], *, optional: bool) -> Schema:
    attributes: dict[str, Any] = {"optional": optional}
    match avro.kind:
        case "record":
            name = avro.full_name.rpartition(".")[2]
            if name in above:
                raise DataError(f"the record {name} contains itself, which is not supported.")
            fields = {
                field.name: _with_default(
                    _translated(field.schema, f"{path}.{field.name}", (*above, name), optional=False), field
                )
                for field in avro.fields
            }
            return Schema.struct(fields, name=name, **attributes)
        case "array":
            return Schema.array(_translated(avro.element, path, above, optional=False), **attributes)
        case "map":
            return Schema.map(Schema.string(), _translated(avro.element, path, above, optional=False), **attributes)
        case "union":
            present = [branch for branch in avro.branches if not is_null(branch)]
            if len(present) != 1 or len(avro.branches) != 2:
                raise DataError(f"the union at {path.strip('.')} must be of null and one other type.")
            return _translated(present[0], path, above, optional=True)
        case kind if kind in _PLAIN:
            return Schema(_PLAIN[kind], **attributes)
        case kind:
            raise DataError(f"the type {kind} at {path.strip('.')} is not supported: use string or bytes.")


def _with_default(schema: Schema, field: AvroField) -> Schema:
    if field.default is NO_DEFAULT or field.default is None:
        return schema
    try:
        return schema.replace(default=field.default)
    except SchemaError as error:
        raise DataError(f"the default of the field {field.name} does not fit: {error}") from error


# -- schemas made of documents ------------------------------------------------------------------------------------


def inferred_schema(document: Mapping[str, Any]) -> Schema:
    """Return the schema of a document: its fields in the order of their names, the ``_id`` first."""
    return _settled(_struct(_TOP, document)).as_required()


def _struct(path: str, document: Mapping[str, Any]) -> Schema:
    names = sorted(document, key=lambda name: (name != "_id", name))
    fields = {name: _of_value("_id" if name == "_id" else _below(path, name), document[name]) for name in names}
    return Schema.struct(fields, name=path, optional=True)


def _below(path: str, name: str) -> str:
    return name if path == _TOP else f"{path}_{name}"


def _of_value(path: str, value: Any) -> Schema:
    if value is None:
        return _UNKNOWN
    if isinstance(value, dict):
        return _struct(path, value)
    if isinstance(value, list):
        return Schema.array(_of_elements(path, value), name=path, optional=True)
    if isinstance(value, Decimal128):
        return _decimal(value)
    return _BY_KIND.get(type(value), _OPTIONAL_TEXT)


def _decimal(value: Decimal128) -> Schema:
    exponent = value.to_decimal().as_tuple().exponent
    return decimal_schema(-exponent, optional=True) if isinstance(exponent, int) else _OPTIONAL_TEXT


def _of_elements(path: str, values: Iterable[Any]) -> Schema:
    found = _UNKNOWN
    for value in values:
        found = _combined(found, _of_value(path, value))
        if found is _OPTIONAL_TEXT:
            break
    return found


def _combined(first: Schema, second: Schema) -> Schema:
    """Return the schema of values of both: strings, which hold JSON, if there is no other."""
    if first is second or second is _UNKNOWN:
        return first
    if first is _UNKNOWN:
        return second
    if first.type is Type.ARRAY and second.type is Type.ARRAY:
        assert first.value_schema is not None
        assert second.value_schema is not None
        return first.replace(value_schema=_combined(first.value_schema, second.value_schema))
    if first.type is Type.STRUCT and second.type is Type.STRUCT:
        known = {field.name: field.schema for field in first.fields}
        for field in second.fields:
            known[field.name] = _combined(known[field.name], field.schema) if field.name in known else field.schema
        names = sorted(known, key=lambda name: (name != "_id", name))
        return Schema.struct({name: known[name] for name in names}, name=first.name, optional=True)
    return _OPTIONAL_TEXT


def _settled(schema: Schema) -> Schema:
    """Return a schema in which what is unknown is a string."""
    if schema is _UNKNOWN:
        return _OPTIONAL_TEXT
    if schema.type is Type.STRUCT:
        fields = {field.name: _settled(field.schema) for field in schema.fields}
        return Schema.struct(fields, name=schema.name, optional=True)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return schema.replace(value_schema=_settled(schema.value_schema))
    return schema


_BY_KIND: Final[Mapping[type, Schema]] = {
    bool: Schema.boolean(optional=True),
    int: Schema.int32(optional=True),
    Int64: Schema.int64(optional=True),
    float: Schema.float64(optional=True),
    DatetimeMS: timestamp_schema(optional=True),
    Timestamp: timestamp_schema(optional=True),
    bytes: Schema.bytes(optional=True),
    Binary: Schema.bytes(optional=True),
}


# -- values -------------------------------------------------------------------------------------------------------


class StructMaker:
    """Makes values of schemas from BSON values. What does not fit is a ``DataError`` that names the field."""

    def __init__(self, json: Json) -> None:
        self._json = json

    def value(self, schema: Schema, value: Any, path: str = "") -> Any:
        """Return the value that fits a schema."""
        if value is None:
            return self._missing(schema, path)
        if schema.type is Type.STRUCT:
            return self._struct(schema, value, path)
        if schema.type is Type.ARRAY:
            assert schema.value_schema is not None
            element = schema.value_schema
            items = _required(list, value, "an array", path)
            return [self.value(element, item, f"{path}[{at}]") for at, item in enumerate(items)]
        if schema.type is Type.MAP:
            assert schema.value_schema is not None
            member = schema.value_schema
            found = _required(dict, value, "a document", path)
            return {name: self.value(member, item, f"{path}.{name}") for name, item in found.items()}
        return self._plain(schema, value, path)

    def _missing(self, schema: Schema, path: str) -> Any:
        if schema.default is not None or schema.optional:
            return schema.default
        raise DataError(f"The field {path.strip('.')} is missing, and the schema requires it.")

    def _struct(self, schema: Schema, value: Any, path: str) -> dict[str, Any]:
        document = _required(dict, value, "a document", path)
        return {
            field.name: self.value(field.schema, document.get(field.name), f"{path}.{field.name}")
            for field in schema.fields
        }

    def _plain(self, schema: Schema, value: Any, path: str) -> Any:
        if schema.name is not None:
            return _logical(value)
        if schema.type is Type.STRING:
            return value if type(value) is str else self._text(value)
        if schema.type is Type.BYTES:
            return _bytes(value, path)
        if schema.type is Type.BOOLEAN:
            return _required(bool, value, "a boolean", path)
        return _number(schema.type, value, path)

    def _text(self, value: Any) -> str:
        text = self._json(value)
        # A value whose JSON is a string, such as the hexadecimal digits of an id, is that string.
        return text[1:-1] if text.startswith('"') and text.endswith('"') and len(text) > 1 else text


def _required(kind: type, value: Any, named: str, path: str) -> Any:
    if not isinstance(value, kind):
        raise DataError(f"The field {path.strip('.')} must be {named} by the schema, and is a {type(value).__name__}.")
    return value


def _logical(value: Any) -> Any:
    if isinstance(value, Decimal128):
        return value.to_decimal()
    if isinstance(value, Timestamp):
        return dt.datetime.fromtimestamp(value.time, dt.UTC)
    return timestamp_from_milliseconds(int(value))


def _bytes(value: Any, path: str) -> bytes:
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return encode(value)
    raise DataError(f"The field {path.strip('.')} must be bytes by the schema, and is a {type(value).__name__}.")


def _number(kind: Type, value: Any, path: str) -> int | float:
    """Return a number of a type. One that the type cannot hold is an error, where Java would change it."""
    number = value.to_decimal() if isinstance(value, Decimal128) else value
    if isinstance(number, bool) or (not isinstance(number, (int, float)) and not isinstance(value, Decimal128)):
        raise DataError(f"The field {path.strip('.')} must be a number by the schema, and is a {type(value).__name__}.")
    if kind in _FLOATS:
        return float(number)
    try:
        whole = int(number)
    except (ValueError, OverflowError) as error:
        raise DataError(f"The field {path.strip('.')} has {value}, which is no whole number.") from error
    least, most = integer_range(_BITS[kind])
    if whole != number or not least <= whole <= most:
        raise DataError(f"The field {path.strip('.')} has {value}, which does not fit into an {kind.value}.")
    return whole
