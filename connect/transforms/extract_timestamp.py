"""ExtractTimestamp: takes the timestamp of the record from its key or value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeVar

from connect.config import HIGH, LOW, Config, non_empty, option
from connect.data import Batch, Record, Schema
from connect.data.excerpt import excerpt
from connect.data.numerals import INT64_MAX, INT64_MIN
from connect.errors import ConfigError, DataError
from connect.internals.java.date_text import milliseconds_of
from connect.transforms.fields.field_path import FieldSyntax, parse_field_path
from connect.transforms.fields.key_or_value import KeyOrValueTransformation, copy_of, require_map, type_name
from connect.transforms.fields.options import field_syntax_version

__all__ = ["ExtractTimestamp", "ExtractTimestampConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])

_PURPOSE: Final = "extracting the timestamp"


class ExtractTimestampConfig(Config):
    """The field with the timestamp, and its unit."""

    field_name: str = option(
        importance=HIGH, validator=non_empty, doc="The field with the timestamp, an int64 or a Timestamp."
    )
    timestamp_resolution: Literal["milliseconds", "seconds"] = option(
        default="milliseconds", importance=LOW, doc="Unit of a timestamp that is a number."
    )
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse a malformed path."""
        parse_field_path(self.field_name, self.field_syntax_version, "field.name")
        return []


class ExtractTimestamp(KeyOrValueTransformation[ExtractTimestampConfig]):
    """Gives the record the timestamp that a field of its key or value holds."""

    def __init__(self, config: ExtractTimestampConfig) -> None:
        super().__init__(config)
        self._path = parse_field_path(config.field_name, config.field_syntax_version, "field.name")

    def apply(self, record: R) -> R | None:
        """Return the record with the timestamp."""
        timestamp = self._timestamp(*self.side.read(record))
        new = copy_of(record)
        new.timestamp = timestamp
        return new

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch with the timestamps."""
        column = self.side.column(batch)
        return [batch.replace(timestamps=[self._timestamp(column.schema, value) for value in column.values()])]

    def _timestamp(self, schema: Schema | None, data: Any) -> int:
        found = self._path.read(require_map(data, schema, _PURPOSE))
        if isinstance(found, dt.datetime):
            return milliseconds_of(found)
        place = f"Field {self._path.text} of the {self.side.name}"
        if isinstance(found, int) and not isinstance(found, bool):
            timestamp = found * 1000 if self.config.timestamp_resolution == "seconds" else found
            if not INT64_MIN <= timestamp <= INT64_MAX:
                raise DataError(f"{place} must be the timestamp but has more than 64 bits: {excerpt(found)}")
            return timestamp
        if found is None:
            raise DataError(f"{place} must be the timestamp but is missing or null")
        raise DataError(f"{place} must be a whole number or a Timestamp, not {type_name(found)}")
