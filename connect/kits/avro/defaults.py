"""Translates default values to and from the JSON in Avro schemas."""

from __future__ import annotations

from typing import Any, Final

from connect.data import Schema, Type, logical
from connect.data.numerals import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, double_text, float_text, single
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import AvroSchema, is_null
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.conventions import avro_member_name, is_avro_map, is_map_entry, is_union, part
from connect.kits.avro.names import scrub

__all__ = ["Defaults", "count_values", "fits_field"]

_MOST_TAKEN: Final = 100_000
_LATIN: Final = "latin-1"
_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_RANGES: Final = {"int": (INT32_MIN, INT32_MAX), "long": (INT64_MIN, INT64_MAX)}


class Defaults:
    """Translates the default values of one schema.

    A struct in a default may omit fields, which then take their own defaults. As a default of two bytes can thereby
    expand to any number of values, that number is limited.
    """

    def __init__(self, config: AvroDataConfig) -> None:
        self._config = config
        self._left = _MOST_TAKEN

    # -- to JSON -------------------------------------------------------------------------------------------------

    def json(self, schema: Schema, value: Any) -> Any:  # noqa: PLR0911 - one for each kind
        """Return the JSON of a default value that is valid for its schema."""
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
                return [self.json(part(schema.value_schema), item) for item in value]
            case Type.MAP:
                return self._map_to_json(schema, value)
            case Type.STRUCT:
                return self._struct_to_json(schema, value)
        return value

    def _map_to_json(self, schema: Schema, value: Any) -> Any:
        of_key, of_item = part(schema.key_schema), part(schema.value_schema)
        if is_avro_map(schema, self._config):
            return {key: self.json(of_item, item) for key, item in value.items()}
        return [[self.json(of_key, key), self.json(of_item, item)] for key, item in value.items()]

    def _struct_to_json(self, schema: Schema, value: Any) -> Any:
        members = {
            field.name: (field.schema, self._own(field.schema, value.get(field.name))) for field in schema.fields
        }
        if is_union(schema):
            chosen = next(((of, item) for of, item in members.values() if item is not None), None)
            return None if chosen is None else self.json(*chosen)
        clean = scrub if self._config.scrub_invalid_names else str
        return {clean(name): self.json(of, item) for name, (of, item) in members.items()}

    # -- from JSON -----------------------------------------------------------------------------------------------

    def value(self, schema: Schema, avro: AvroSchema, node: Any) -> Any:
        """Return the value represented by the JSON of a default.

        Raises :class:`~connect.errors.DataError` if it does not match the schema.
        """
        try:
            return self._value(schema, avro, node)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise DataError(f"it does not fit: {error}") from error

    def _value(self, schema: Schema, avro: AvroSchema, node: Any) -> Any:  # noqa: PLR0911 - one for each kind
        if node is None:
            return None
        if avro.kind == "union":
            return self._of_union(schema, avro, node)
        value = self._plain(schema, avro, node)
        match schema.name:
            case logical.DECIMAL_NAME:
                return logical.decimal_from_unscaled(value, logical.decimal_scale(schema))
            case logical.DATE_NAME:
                return logical.date_from_days(value)
            case logical.TIME_NAME:
                return logical.time_from_milliseconds(value)
            case logical.TIMESTAMP_NAME:
                return logical.timestamp_from_milliseconds(value)
        return value

    def _of_union(self, schema: Schema, avro: AvroSchema, node: Any) -> Any:
        present = [(index, branch) for index, branch in enumerate(avro.branches) if not is_null(branch)]
        if not is_union(schema):
            return self._value(schema, present[0][1], node)
        for index, branch in present:
            field = schema.field(avro_member_name(branch, index, self._config))
            try:
                if field is not None:
                    value = self._value(field.schema, branch, node)
                    return {each: value if each == field.name else None for each in schema.field_names}
            except DataError:
                continue
        raise DataError(f"{node!r} is of none of the types of the union")

    def _plain(self, schema: Schema, avro: AvroSchema, node: Any) -> Any:  # noqa: PLR0911 - one for each kind
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
                return node.encode(_LATIN)
            case Type.ARRAY if isinstance(node, list):
                return [self._value(part(schema.value_schema), avro.element, item) for item in node]
            case Type.MAP:
                return self._map(schema, avro, node)
            case Type.STRUCT if isinstance(node, dict):
                return self._struct(schema, avro, node)
        raise DataError(f"{node!r} is not of the type {schema.type.value}")

    def _map(self, schema: Schema, avro: AvroSchema, node: Any) -> Any:
        of_item = part(schema.value_schema)
        if avro.kind == "map" and isinstance(node, dict):
            return {key: self._value(of_item, avro.element, item) for key, item in node.items()}
        if avro.kind == "array" and is_map_entry(avro.element) and isinstance(node, list):
            of_key = part(schema.key_schema)
            key_avro, item_avro = (field.schema for field in avro.element.fields)
            pairs = [(pair["key"], pair["value"]) if isinstance(pair, dict) else tuple(pair) for pair in node]
            return {self._value(of_key, key_avro, key): self._value(of_item, item_avro, item) for key, item in pairs}
        raise DataError(f"{node!r} is no map")

    def _struct(self, schema: Schema, avro: AvroSchema, node: dict[str, Any]) -> Any:
        values = {}
        for own, field in zip(schema.fields, avro.fields, strict=True):
            if field.name in node:
                values[own.name] = self._value(own.schema, field.schema, node[field.name])
            else:
                values[own.name] = self._own(own.schema, None)
        return values

    def _own(self, schema: Schema, value: Any) -> Any:
        """Return the value, or the schema's own default if the value is null."""
        if value is not None:
            return value
        default = schema.default
        if isinstance(default, (dict, list)):
            self._left -= count_values(default, self._left)
            if self._left < 0:
                raise SchemaError(f"the defaults of the schema stand for more than {_MOST_TAKEN} values")
        return default


def count_values(value: Any, most: int = 1 << 62) -> int:
    """Count the values in a default. Counting stops at about ``most`` + 1."""
    count, parts = 0, [value]
    while parts and count <= most:
        each = parts.pop()
        count += 1
        if isinstance(each, dict):
            parts += each
            parts += each.values()
        elif isinstance(each, list):
            parts += each
    return count


def _number(text: str) -> Any:
    """Return a number that JSON prints as Java does, or a string where JSON has no such number."""
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


def fits_field(avro: AvroSchema, node: Any) -> bool:  # noqa: PLR0911 - one for each kind
    """Return whether Avro allows this default for a field of this type. A union's must match its first type."""
    if avro.kind == "union":
        return fits_field(avro.branches[0], node)
    is_number = isinstance(node, (int, float)) and not isinstance(node, bool)
    match avro.kind:
        case "null":
            return node is None
        case "boolean":
            return isinstance(node, bool)
        case "int" | "long":
            low, high = _RANGES[avro.kind]
            return is_number and isinstance(node, int) and low <= node <= high
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
