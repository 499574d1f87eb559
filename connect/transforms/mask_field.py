"""MaskField: replaces confidential fields with zeros, empty strings or a given replacement."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from connect.config import HIGH, LOW, Config, non_empty, option
from connect.data import Schema, Type
from connect.data.logical import DECIMAL_NAME, EPOCH, decimal_scale
from connect.data.values import (
    convert_to_decimal,
    convert_to_float32,
    convert_to_float64,
    convert_to_int8,
    convert_to_int16,
    convert_to_int32,
    convert_to_int64,
)
from connect.errors import ConfigError, DataError
from connect.transforms.fields.field_path import FieldSyntax, FieldTree, parse_field_path
from connect.transforms.fields.key_or_value import Change, ValueTransformation, type_name
from connect.transforms.fields.options import field_syntax_version, replace_null_with_default, unique_names
from connect.transforms.fields.struct_change import change_fields

__all__ = ["MaskField", "MaskFieldConfig"]

_PURPOSE: Final = "mask fields"


class MaskFieldConfig(Config):
    """The fields to mask, and the replacement."""

    fields: tuple[str, ...] = option(importance=HIGH, validator=unique_names, doc="The fields to mask.")
    replacement: str | None = option(
        default=None,
        importance=LOW,
        validator=non_empty,
        doc="What to put in the place of numbers and strings, read as a number where one is needed. Without it, "
        "zero, false, the empty string, list or map, and the epoch stand for what was there.",
    )
    replace_null_with_default: bool = replace_null_with_default()
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse malformed paths."""
        for field in self.fields:
            parse_field_path(field, self.field_syntax_version, "fields")
        return []


class MaskField(ValueTransformation[MaskFieldConfig]):
    """Masks fields. Null stays null."""

    passes_null = False

    def __init__(self, config: MaskFieldConfig) -> None:
        super().__init__(config)
        syntax = config.field_syntax_version
        self._fields = FieldTree.of((parse_field_path(field, syntax, "fields"), None) for field in config.fields)

    def change(self, schema: Schema | None) -> Change:
        """Mask fields in values of a schema."""
        defaults = self.config.replace_null_with_default
        masked = change_fields(schema, self._fields, self._mask_field, purpose=_PURPOSE, defaults=defaults)
        return masked._replace(schema=schema)

    def _mask_field(self, schema: Schema | None, _: None) -> Change:
        replacement = self.config.replacement
        return Change(schema, _blanker(schema) if replacement is None else _replacer(schema, replacement))


def _blanker(schema: Schema | None) -> Callable[[Any], Any]:
    """Return the function that replaces a value with the empty value of its type."""
    scale = decimal_scale(schema) if schema is not None and schema.name == DECIMAL_NAME else 0

    def blank(value: Any) -> Any:
        if isinstance(value, Decimal):
            return Decimal((0, (0,), -scale))
        if isinstance(value, Mapping) and not (schema is not None and schema.type is Type.STRUCT):
            return {}
        found = next((empty for python, empty in _EMPTY if isinstance(value, python)), None)
        if found is None:
            raise DataError(f"Cannot mask value of type: {type_name(value)}")
        return [] if isinstance(found, list) else found

    return blank


_EMPTY: Final[tuple[tuple[type | tuple[type, ...], Any], ...]] = (
    (str, ""),
    (bool, False),
    (int, 0),
    (float, 0.0),
    ((list, tuple), []),
    (dt.datetime, EPOCH),
    (dt.date, EPOCH.date()),
    (dt.time, dt.time()),
)


def _replacer(schema: Schema | None, replacement: str) -> Callable[[Any], Any]:
    """Return the function that replaces a value with the replacement, converted to its type."""

    def replace(value: Any) -> Any:
        if isinstance(value, str):
            return replacement
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
            raise DataError(f"Cannot mask value of type {type_name(value)} with custom replacement.")
        if not isinstance(value, Decimal) and schema is not None and schema.type not in _CONVERSIONS:
            raise DataError(f"Cannot mask value of type {type_name(value)} where {schema.type.name} is expected.")
        return _number_like(value, schema, replacement)

    return replace


def _number_like(value: float | Decimal, schema: Schema | None, text: str) -> Any:
    try:
        if isinstance(value, Decimal):
            return convert_to_decimal(None, text, 0)
        default = Type.FLOAT64 if isinstance(value, float) else Type.INT64
        return _CONVERSIONS[default if schema is None else schema.type](None, text)
    except DataError as error:
        raise DataError(f"Unable to convert {text} to a number") from error


_CONVERSIONS: Final[Mapping[Type, Callable[[None, str], Any]]] = {
    Type.INT8: convert_to_int8,
    Type.INT16: convert_to_int16,
    Type.INT32: convert_to_int32,
    Type.INT64: convert_to_int64,
    Type.FLOAT32: convert_to_float32,
    Type.FLOAT64: convert_to_float64,
}
