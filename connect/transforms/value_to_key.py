"""ValueToKey: makes the key from fields of the value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from connect.config import HIGH, Config, option
from connect.data import Batch, Field, Record, Schema, ValueColumn
from connect.errors import ConfigError, DataError
from connect.transformation import Transformation
from connect.transforms.fields.field_path import FieldSyntax, parse_field_path
from connect.transforms.fields.key_or_value import SchemaCache, copy_of, require_map, require_struct_schema
from connect.transforms.fields.options import field_syntax_version, replace_null_with_default, unique_names

__all__ = ["ValueToKey", "ValueToKeyConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])

_PURPOSE: Final = "copying fields from value to key"


class ValueToKeyConfig(Config):
    """The fields that make up the key."""

    fields: tuple[str, ...] = option(
        importance=HIGH,
        validator=unique_names,
        doc="The fields of the value that become the fields of the key, in order.",
    )
    replace_null_with_default: bool = replace_null_with_default()
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse malformed paths."""
        for field in self.fields:
            parse_field_path(field, self.field_syntax_version, "fields")
        return []


class _KeyMaker(NamedTuple):
    """The steps that make keys from values of one schema."""

    schema: Schema | None
    key: Callable[[Any], dict[str, Any]]


class ValueToKey(Transformation[ValueToKeyConfig]):
    """Replaces the key with a struct or map of fields of the value, under the same names."""

    def __init__(self, config: ValueToKeyConfig) -> None:
        super().__init__(config)
        syntax = config.field_syntax_version
        self._paths = [parse_field_path(field, syntax, "fields") for field in config.fields]
        self._makers = SchemaCache(self._maker)

    def apply(self, record: R) -> R | None:
        """Return the record with the new key."""
        schema, make = self._makers(record.value_schema)
        key = make(record.value)
        new = copy_of(record)
        new.key_schema = schema
        new.key = key
        return new

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch with the new keys."""
        schema, make = self._makers(batch.value_schema)
        return [batch.replace(key=ValueColumn([make(value) for value in batch.value.values()], schema))]

    def _maker(self, schema: Schema | None) -> _KeyMaker:
        if schema is None:
            paths = self._paths
            return _KeyMaker(
                None,
                lambda value: {path.name: path.read(require_map(value, None, _PURPOSE)) for path in paths},
            )
        require_struct_schema(schema, _PURPOSE)
        members = [self._member(schema, index) for index in range(len(self._paths))]
        fills = self.config.replace_null_with_default
        sources = [(path, member.name, member.schema) for path, member in zip(self._paths, members, strict=True)]

        def key(value: Any) -> dict[str, Any]:
            struct = require_map(value, schema, _PURPOSE)
            return {
                name: own.default if (found := path.read(struct)) is None and fills else found
                for path, name, own in sources
            }

        return _KeyMaker(Schema.struct(members), key)

    def _member(self, schema: Schema, index: int) -> Field:
        path = self._paths[index]
        field = path.field_of(schema)
        if field is None:
            raise DataError(f"Field does not exist: {path.text}")
        return Field(path.name, field.schema, index)
