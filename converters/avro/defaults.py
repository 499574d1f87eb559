"""Default values as JSON, the way Avro schemas hold them, and back."""

from __future__ import annotations

from typing import Any, Final

from connect.data import Schema, Type, logical
from connect.data.numerals import double_text, float_text, single
from connect.errors import DataError
from converters.avro.avro_schema import AvroSchema, is_null
from converters.avro.names import scrub
from converters.avro.options import AvroDataConfig
from converters.avro.shape import avro_member_name, is_avro_map, is_map_entry, is_union, part

__all__ = ["default_from_json", "default_to_json", "fits_field"]

_LATIN: Final = "latin-1"
_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_RANGES: Final = {"int": 2**31, "long": 2**63}


def default_to_json(schema: Schema, value: Any, config: AvroDataConfig) -> Any:  # noqa: PLR0911 - one for each kind
    """The JSON of a default value, which is valid for its schema."""
    if value is None:
        return None
    if schema.name in logical.LOGICAL_NAMES:
        value = _plain(schema, value)
    match schema.type:
        case Type.FLOAT32:
            return _number(float_text(single(value)))
        case Type.FLOAT64:
            return _number(double_text(value))
        case Type.BYTES:
            return bytes(value).decode(_LATIN)
        case Type.ARRAY:
            return [default_to_json(part(schema.value_schema), item, config) for item in value]
        case Type.MAP:
            return _map_to_json(schema, value, config)
        case Type.STRUCT:
            return _struct_to_json(schema, value, config)
        case _:
            return value


def _map_to_json(schema: Schema, value: Any, config: AvroDataConfig) -> Any:
    of_key, of_item = part(schema.key_schema), part(schema.value_schema)
    if is_avro_map(schema, config):
        return {key: default_to_json(of_item, item, config) for key, item in value.items()}
    return [
        [default_to_json(of_key, key, config), default_to_json(of_item, item, config)] for key, item in value.items()
    ]


def _struct_to_json(schema: Schema, value: Any, config: AvroDataConfig) -> Any:
    members = {field.name: (field.schema, _of_field(field.schema, value.get(field.name))) for field in schema.fields}
    if is_union(schema):
        chosen = next(((of, item) for of, item in members.values() if item is not None), None)
        return None if chosen is None else default_to_json(*chosen, config)
    clean = scrub if config.scrub_invalid_names else str
    return {clean(name): default_to_json(of, item, config) for name, (of, item) in members.items()}


def _of_field(schema: Schema, value: Any) -> Any:
    return schema.default if value is None else value


def _number(text: str) -> Any:
    """The number that JSON shows as Java does; what JSON has no number for is a text."""
    return text if text in ("NaN", "Infinity", "-Infinity") else float(text)


def _plain(schema: Schema, value: Any) -> Any:
    match schema.name:
        case logical.DECIMAL_NAME:
            return logical.unscaled_from_decimal(value, logical.decimal_scale(schema))
        case logical.DATE_NAME:
            return logical.days_from_date(value)
        case logical.TIME_NAME:
            return logical.milliseconds_from_time(value)
        case _:
            return logical.milliseconds_from_timestamp(value)


def default_from_json(schema: Schema, avro: AvroSchema, node: Any, config: AvroDataConfig) -> Any:  # noqa: PLR0911 - one for each kind
    """The value that the JSON of a default means.

    Raises :class:`~connect.errors.DataError` when it does not fit the schema.
    """
    if node is None:
        return None
    if avro.kind == "union":
        return _of_union(schema, avro, node, config)
    value = _plain_from_json(schema, avro, node, config)
    match schema.name:
        case logical.DECIMAL_NAME:
            return logical.decimal_from_unscaled(value, logical.decimal_scale(schema))
        case logical.DATE_NAME:
            return logical.date_from_days(value)
        case logical.TIME_NAME:
            return logical.time_from_milliseconds(value)
        case logical.TIMESTAMP_NAME:
            return logical.timestamp_from_milliseconds(value)
        case _:
            return value


def _of_union(schema: Schema, avro: AvroSchema, node: Any, config: AvroDataConfig) -> Any:
    present = [(index, branch) for index, branch in enumerate(avro.branches) if not is_null(branch)]
    if not is_union(schema):
        return default_from_json(schema, present[0][1], node, config)
    for index, branch in present:
        field = schema.field(avro_member_name(branch, index, config))
        try:
            if field is not None:
                value = default_from_json(field.schema, branch, node, config)
                return {each: value if each == field.name else None for each in schema.field_names}
        except DataError:
            continue
    raise DataError(f"{node!r} is of none of the types of the union")


def _plain_from_json(schema: Schema, avro: AvroSchema, node: Any, config: AvroDataConfig) -> Any:  # noqa: PLR0911 - one for each kind
    is_number = isinstance(node, (int, float)) and not isinstance(node, bool)
    match schema.type:
        case Type.BOOLEAN if isinstance(node, bool):
            return node
        case kind if kind in _INTEGERS and is_number and node == int(node):
            return int(node)
        case Type.FLOAT32 | Type.FLOAT64 if is_number or node in ("NaN", "Infinity", "-Infinity"):
            return single(float(node)) if schema.type is Type.FLOAT32 else float(node)
        case Type.STRING if isinstance(node, str):
            return node
        case Type.BYTES if isinstance(node, str):
            try:
                return node.encode(_LATIN)
            except UnicodeEncodeError as error:
                raise DataError(f"{node!r} holds characters that are no bytes") from error
        case Type.ARRAY if isinstance(node, list):
            return [default_from_json(part(schema.value_schema), avro.element, item, config) for item in node]
        case Type.MAP:
            return _map_from_json(schema, avro, node, config)
        case Type.STRUCT if isinstance(node, dict):
            return _struct_from_json(schema, avro, node, config)
        case _:
            raise DataError(f"{node!r} is not of the type {schema.type.value}")


def _map_from_json(schema: Schema, avro: AvroSchema, node: Any, config: AvroDataConfig) -> Any:
    of_item = part(schema.value_schema)
    if avro.kind == "map" and isinstance(node, dict):
        return {key: default_from_json(of_item, avro.element, item, config) for key, item in node.items()}
    if avro.kind == "array" and is_map_entry(avro.element) and isinstance(node, list):
        of_key = part(schema.key_schema)
        key_avro, item_avro = (field.schema for field in avro.element.fields)
        pairs = [(pair["key"], pair["value"]) if isinstance(pair, dict) else tuple(pair) for pair in node]
        return {
            default_from_json(of_key, key_avro, key, config): default_from_json(of_item, item_avro, item, config)
            for key, item in pairs
        }
    raise DataError(f"{node!r} is no map")


def _struct_from_json(schema: Schema, avro: AvroSchema, node: dict[str, Any], config: AvroDataConfig) -> Any:
    values = {}
    for own, field in zip(schema.fields, avro.fields, strict=True):
        if field.name in node:
            values[own.name] = default_from_json(own.schema, field.schema, node[field.name], config)
        else:
            values[own.name] = own.schema.default
    return values


def fits_field(avro: AvroSchema, node: Any) -> bool:  # noqa: PLR0911 - one for each kind
    """Whether Avro allows a field of this type to have the default: in a union, one of its first type."""
    if avro.kind == "union":
        return fits_field(avro.branches[0], node)
    is_number = isinstance(node, (int, float)) and not isinstance(node, bool)
    match avro.kind:
        case "null":
            return node is None
        case "boolean":
            return isinstance(node, bool)
        case "int" | "long":
            return is_number and isinstance(node, int) and -_RANGES[avro.kind] <= node < _RANGES[avro.kind]
        case "float" | "double":
            return is_number
        case "string" | "bytes":
            return isinstance(node, str)
        case "fixed":
            return isinstance(node, str) and len(node) == avro.size
        case "enum":
            return node in avro.symbols
        case "array":
            return isinstance(node, list) and all(fits_field(avro.element, item) for item in node)
        case "map":
            return isinstance(node, dict) and all(fits_field(avro.element, item) for item in node.values())
        case _:
            return isinstance(node, dict) and all(
                fits_field(field.schema, node.get(field.name)) for field in avro.fields
            )
