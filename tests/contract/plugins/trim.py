"""A transformation in twenty lines: it trims a field of the key or of the value."""

from typing import Any

from connect.config import HIGH, Config, option
from connect.data import Schema
from connect.transforms import Change, ValueTransformation


class TrimConfig(Config):
    """What to trim."""

    field: str = option(importance=HIGH, doc="Name of the field, a text.")


class Trim(ValueTransformation[TrimConfig]):
    """Removes the white space from both ends of a field; values without the field stay as they are."""

    def change(self, schema: Schema | None) -> Change:
        field = self.config.field

        def trimmed(value: Any) -> Any:
            if isinstance(value, dict) and isinstance(value.get(field), str):
                return {**value, field: value[field].strip()}
            return value

        return Change(schema, trimmed)
