"""KeyToValue: copies fields of the key, or the whole key, into the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from connect.config import HIGH, Config, ConfigRuleError, option
from connect.data import Record, Schema, Type
from connect.data.values import infer_schema
from connect.errors import ConfigError, DataError
from connect.transformation import Transformation
from connect.transforms.fields.key_or_value import VALUE, require_map, type_name

__all__ = ["KeyToValue", "KeyToValueConfig"]

R = TypeVar("R", bound=Record)

_WHOLE: Final = "*"
_WHOLE_KEY: Final = "_key"
_PURPOSE: Final = "copying the key into the value"


class KeyToValueConfig(Config):
    """The fields of the key, and their names in the value."""

    key_fields: tuple[str, ...] = option(
        importance=HIGH, doc="The fields of the key to copy into the value; * stands for the whole key."
    )
    value_fields: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        doc="Their names in the value, in the same order; those of the key where the list ends. The whole key is "
        "called _key.",
    )

    def check(self) -> list[ConfigError]:
        """Refuse two fields of one name."""
        if len(self.names) < len(self.key_fields):
            text = "Each field of the value gets one field of the key: give key.fields different names in value.fields"
            return [ConfigRuleError(text, "key.fields", "value.fields")]
        return []

    @property
    def names(self) -> dict[str, str]:
        """The fields of the key by their names in the value."""
        given = [*self.value_fields, *self.key_fields[len(self.value_fields) :]]
        pairs = zip(given, self.key_fields, strict=False)
        return {_WHOLE_KEY if name == _WHOLE else name: field for name, field in pairs}


class KeyToValue(Transformation[KeyToValueConfig]):
    """Copies fields of the key, or the whole key, into the value, which keeps its other fields."""

    def __init__(self, config: KeyToValueConfig) -> None:
        super().__init__(config)
        self._names = config.names
        self._is_named = any(field != _WHOLE for field in config.key_fields)

    def apply(self, record: R) -> R | None:
        """Return the record with parts of its key in its value."""
        value = require_map(record.value, record.value_schema, _PURPOSE)
        schema = None if record.value_schema is None else self._schema(record, record.value_schema)
        copied = {name: self._part(record.key, field) for name, field in self._names.items()}
        return VALUE.put(record, schema, {**value, **copied})

    def _part(self, key: Any, field: str) -> Any:
        if field == _WHOLE:
            return key
        if not isinstance(key, Mapping):
            raise DataError(f"The key has no field {field}, because it is of type {type_name(key)}")
        return key.get(field)

    def _schema(self, record: Record, schema: Schema) -> Schema:
        key_schema = record.key_schema or infer_schema(record.key)
        if schema.type is not Type.STRUCT or key_schema is None or (record.key_schema is None and self._is_named):
            raise DataError("The value has a schema, so the key needs one too: give it one, or read the value without")
        fields = {field.name: field.schema for field in schema.fields}
        inferred = key_schema.as_optional() if record.key_schema is None else key_schema
        for name, wanted in self._names.items():
            fields[name] = inferred if wanted == _WHOLE else _field(key_schema, wanted)
        return schema.replace(fields=Schema.struct(fields).fields, default=None)


def _field(key_schema: Schema, name: str) -> Schema:
    field = key_schema.field(name) if key_schema.type is Type.STRUCT else None
    if field is None:
        raise DataError(f"The key has no field {name}: correct key.fields")
    return field.schema
