"""ExtractField: replaces a struct or map with one of its fields."""

from __future__ import annotations

from typing import Any, Final

from connect.config import MEDIUM, Config, option
from connect.data import Schema
from connect.errors import ConfigError, DataError
from connect.transforms.fields.field_path import FieldSyntax, parse_field_path
from connect.transforms.fields.key_or_value import Change, ValueTransformation, require_map, require_struct_schema
from connect.transforms.fields.options import field_syntax_version, replace_null_with_default

__all__ = ["ExtractField", "ExtractFieldConfig"]

_PURPOSE: Final = "field extraction"


class ExtractFieldConfig(Config):
    """The field to extract."""

    field: str = option(importance=MEDIUM, doc="The field to extract.")
    replace_null_with_default: bool = replace_null_with_default()
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse a malformed path."""
        parse_field_path(self.field, self.field_syntax_version)
        return []


class ExtractField(ValueTransformation[ExtractFieldConfig]):
    """Replaces a struct or map with one of its fields; null stays null."""

    passes_null = False

    def __init__(self, config: ExtractFieldConfig) -> None:
        super().__init__(config)
        self._path = parse_field_path(config.field, config.field_syntax_version)

    def change(self, schema: Schema | None) -> Change:
        """Extract the field from values of a schema."""
        path = self._path

        def extract(value: Any) -> Any:
            return None if value is None else path.read(require_map(value, schema, _PURPOSE))

        if schema is None:
            return Change(None, extract)
        field = path.field_of(require_struct_schema(schema, _PURPOSE))
        if field is None:
            raise DataError(f"Unknown field: {path.text}")
        found_in = field.schema
        if found_in.default is None or not self.config.replace_null_with_default:
            return Change(found_in, extract)

        def extract_or_default(value: Any) -> Any:
            found = extract(value)
            return found_in.default if found is None and value is not None else found

        return Change(found_in, extract_or_default)
