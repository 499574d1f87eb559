"""ConcatFields: joins fields to one text."""

from __future__ import annotations

from typing import Any, Final

from connect.config import HIGH, Config, non_empty, non_empty_list, option
from connect.data import Schema
from connect.errors import DataError
from connect.internals.java.value_text import value_text
from connect.transforms.fields.field_path import FieldPath
from connect.transforms.fields.key_or_value import Change, ValueTransformation, require_map, require_struct_schema

__all__ = ["ConcatFields", "ConcatFieldsConfig"]

_PURPOSE: Final = "joining fields"


class ConcatFieldsConfig(Config):
    """The fields to join, and the field that gets the text."""

    field_names: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        doc="The fields to join, in order; a dot leads into a nested struct.",
    )
    output_field_name: str = option(importance=HIGH, validator=non_empty, doc="The field for the joined text.")
    delimiter: str = option(default="", importance=HIGH, doc="The text between two fields.")
    field_replace_missing: str = option(
        default="", importance=HIGH, doc="The text for a field that is missing or null."
    )


class ConcatFields(ValueTransformation[ConcatFieldsConfig]):
    """Adds a field with the texts of other fields, joined. As in Java, the new schema has no name."""

    passes_null = False

    def __init__(self, config: ConcatFieldsConfig) -> None:
        super().__init__(config)
        self._paths = [FieldPath(name, tuple(name.split("."))) for name in config.field_names]

    def change(self, schema: Schema | None) -> Change:
        """Join fields in values of a schema."""
        output, joined = self.config.output_field_name, self._joiner(schema)

        def change(value: Any) -> dict[str, Any]:
            given = require_map(value, schema, _PURPOSE)
            return {**given, output: joined(given)}

        if schema is None:
            return Change(None, change)
        require_struct_schema(schema, _PURPOSE)
        if schema.field(output) is not None:
            raise DataError(f"The {self.side.name} has a field {output} already: set another output.field.name")
        fields = {field.name: field.schema for field in schema.fields}
        return Change(Schema.struct({**fields, output: Schema.string(optional=True)}), change)

    def _joiner(self, schema: Schema | None) -> Any:
        delimiter, missing = self.config.delimiter, self.config.field_replace_missing
        parts = []
        for path in self._paths:
            field = None if schema is None else path.field_of(schema)
            parts.append((path, None if field is None else field.schema))

        def joined(value: Any) -> str:
            found = [(of, path.read(value)) for path, of in parts]
            return delimiter.join(missing if item is None else value_text(of, item) for of, item in found)

        return joined
