"""HoistField: wraps the key or value in a struct or map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connect.config import MEDIUM, Config, option
from connect.data import Schema, StructColumn
from connect.transforms.fields.key_or_value import Change, ValueTransformation

__all__ = ["HoistField", "HoistFieldConfig"]


class HoistFieldConfig(Config):
    """The field that holds the former key or value."""

    field: str = option(importance=MEDIUM, doc="The name of the only field of the struct or map that is made.")


class HoistField(ValueTransformation[HoistFieldConfig]):
    """Wraps the key or value, null included, in a struct, or without schema in a map, as its only field."""

    passes_null = False

    def change(self, schema: Schema | None) -> Change:
        """Hoist values of a schema."""
        field = self.config.field
        new_schema = None if schema is None else Schema.struct({field: schema})

        def hoist(value: Any) -> dict[str, Any]:
            return {field: value}

        def hoist_all(values: Sequence[Any]) -> Sequence[Any]:
            if new_schema is None:
                return [{field: value} for value in values]
            return StructColumn({field: values}, new_schema)

        return Change(new_schema, hoist, hoist_all)
