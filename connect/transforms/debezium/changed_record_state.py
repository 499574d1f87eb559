"""ExtractChangedRecordState: tells in headers which fields a change event has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from connect.config import LOW, Config, option
from connect.data import Record, Schema
from connect.transformation import Transformation
from connect.transforms.debezium_unwrap import is_envelope
from connect.transforms.fields.key_or_value import copy_of, require_map

__all__ = ["ExtractChangedRecordState", "ExtractChangedRecordStateConfig"]

R = TypeVar("R", bound=Record)

_PURPOSE: Final = "comparing the row before and after a change"


class ExtractChangedRecordStateConfig(Config):
    """The headers with the names of fields."""

    header_changed_name: str | None = option(
        default=None, importance=LOW, doc="The header for the names of the fields that differ; none if empty."
    )
    header_unchanged_name: str | None = option(
        default=None, importance=LOW, doc="The header for the names of the fields that are equal; none if empty."
    )


class ExtractChangedRecordState(Transformation[ExtractChangedRecordStateConfig]):
    """Tells in headers which fields an update has changed and which not. Other records pass unchanged."""

    def apply(self, record: R) -> R | None:
        """Return the record with the headers."""
        if record.value is None or not is_envelope(record.value_schema, record.value):
            return record
        event = require_map(record.value, record.value_schema, _PURPOSE)
        before, after = event.get("before"), event.get("after")
        if before is None or after is None:
            return record
        changed, unchanged = _compared(require_map(before, None, _PURPOSE), require_map(after, None, _PURPOSE))
        new = copy_of(record)
        for name, fields in (
            (self.config.header_changed_name, changed),
            (self.config.header_unchanged_name, unchanged),
        ):
            if name and name.strip():
                schema = Schema.array(Schema.string(optional=True), optional=True, name=name)
                new.headers = new.headers.add(name, fields, schema)
        return new


def _compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names of the fields that differ, and of those that do not."""
    changed: list[str] = []
    unchanged: list[str] = []
    for name, item in after.items():
        (unchanged if _same(before.get(name), item) else changed).append(name)
    return changed, unchanged


def _same(one: Any, other: Any) -> bool:
    is_nan = isinstance(one, float) and isinstance(other, float) and one != one and other != other  # noqa: PLR0124
    return is_nan or (type(one) is type(other) and one == other)
