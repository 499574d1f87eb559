"""Drop: sets the key or value to null."""

from __future__ import annotations

from typing import Any, Literal

from connect.config import MEDIUM, Config, option
from connect.data import Schema
from connect.errors import DataError
from connect.transforms.fields.key_or_value import Change, ValueTransformation

__all__ = ["Drop", "DropConfig"]


class DropConfig(Config):
    """What becomes of the schema."""

    schema_behavior: Literal["nullify", "retain", "validate", "force_optional"] = option(
        default="nullify",
        importance=MEDIUM,
        ignore_case=True,
        doc="What becomes of the schema. nullify: it is dropped too. retain: it is kept, even if it allows no null. "
        "validate: it is kept, and a record fails if it allows no null. force_optional: it is made optional.",
    )


class Drop(ValueTransformation[DropConfig]):
    """Sets the key or value to null."""

    passes_null = False

    def change(self, schema: Schema | None) -> Change:
        """Drop values of a schema."""
        return Change(None if schema is None else self._kept(schema), _null)

    def _kept(self, schema: Schema) -> Schema | None:
        match self.config.schema_behavior:
            case "nullify":
                return None
            case "force_optional":
                return schema.as_optional()
            case "validate" if not schema.optional:
                raise DataError(
                    f"The schema of the {self.side.name} allows no null: set schema.behavior to force_optional or "
                    "nullify."
                )
        return schema


def _null(_value: Any) -> None:
    return None
