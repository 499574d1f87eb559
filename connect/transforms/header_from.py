"""HeaderFrom: copies or moves fields to headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from connect.config import HIGH, Config, ConfigRuleError, non_empty_list, option
from connect.data import Batch, Header, Headers, Record, Schema, ValueColumn
from connect.errors import ConfigError, DataError
from connect.transforms.fields.field_path import FieldPath, FieldSyntax, FieldTree, parse_field_path
from connect.transforms.fields.key_or_value import (
    KeyOrValueTransformation,
    SchemaCache,
    require_map,
    require_struct_schema,
)
from connect.transforms.fields.options import field_syntax_version, replace_null_with_default
from connect.transforms.replace_field import Selection, select_fields

__all__ = ["HeaderFrom", "HeaderFromConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class HeaderFromConfig(Config):
    """The fields, and the headers they become."""

    fields: tuple[str, ...] = option(
        importance=HIGH, validator=non_empty_list, doc="The fields whose values become values of headers."
    )
    headers: tuple[str, ...] = option(
        importance=HIGH, validator=non_empty_list, doc="The keys of the headers, in the order of the fields."
    )
    operation: Literal["move", "copy"] = option(
        importance=HIGH, doc="Whether the fields are copied, or moved and so removed from the key or value."
    )
    replace_null_with_default: bool = replace_null_with_default()
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse lists of fields and headers that differ in length, and unreadable field paths."""
        if len(self.fields) != len(self.headers):
            text = "'fields' config must have the same number of elements as 'headers' config."
            return [ConfigRuleError(text, "fields", "headers")]
        for field in self.fields:
            parse_field_path(field, self.field_syntax_version, "fields")
        return []


class _Extraction(NamedTuple):
    """The steps that turn fields into headers for one schema, and the schema of the values without moved fields."""

    schema: Schema | None
    headers: Callable[[Mapping[str, Any]], list[Header]]
    rest: Callable[[Any], Any] | None


class HeaderFrom(KeyOrValueTransformation[HeaderFromConfig]):
    """Moves or copies fields to headers, which follow those the record has."""

    def __init__(self, config: HeaderFromConfig) -> None:
        super().__init__(config)
        self._purpose = f"header {config.operation}"
        syntax = config.field_syntax_version
        self._paths = [parse_field_path(field, syntax, "fields") for field in config.fields]
        self._extractions = SchemaCache(self._extraction)

    def apply(self, record: R) -> R | None:
        """Return the record with the headers."""
        side = self.side
        schema, data = side.read(record)
        value = require_map(data, schema, self._purpose)
        extraction = self._extractions(schema)
        rest = data if extraction.rest is None else extraction.rest(data)
        new = side.put(record, extraction.schema, rest)
        new.headers = Headers((*record.headers, *extraction.headers(value)))
        return new

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch with the headers."""
        column = self.side.column(batch)
        schema, values = column.schema, column.values()
        checked = [require_map(value, schema, self._purpose) for value in values]
        extraction = self._extractions(schema)
        make = extraction.headers
        headers = [Headers((*present, *make(value))) for present, value in zip(batch.headers, checked, strict=True)]
        new = batch.replace(headers=headers)
        if extraction.rest is None:
            return [new]
        rest = [extraction.rest(value) for value in values]
        return [self.side.put_column(new, ValueColumn(rest, extraction.schema))]

    def _extraction(self, schema: Schema | None) -> _Extraction:
        if schema is not None:
            require_struct_schema(schema, self._purpose)
        sources = [self._source(schema, path, key) for path, key in zip(self._paths, self.config.headers, strict=True)]

        fills = self.config.replace_null_with_default

        def headers(value: Mapping[str, Any]) -> list[Header]:
            return [
                Header(key, kind.default if (found := path.read(value)) is None and kind and fills else found, kind)
                for path, key, kind in sources
            ]

        if self.config.operation == "copy":
            return _Extraction(schema, headers, None)
        moved = Selection(FieldTree.of((path, "") for path in self._paths), None, FieldTree())
        rest = select_fields(schema, moved, purpose=self._purpose, defaults=fills)
        return _Extraction(rest.schema, headers, rest.value)

    def _source(self, schema: Schema | None, path: FieldPath, key: str) -> tuple[FieldPath, str, Schema | None]:
        if schema is None:
            return path, key, None
        field = path.field_of(schema)
        if field is None:
            raise DataError(f"Field does not exist: {path.text}; it was to become the header {key}")
        return path, key, field.schema
