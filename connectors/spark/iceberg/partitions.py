"""Partition specs: how a table is divided, expressed in Iceberg's transforms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Schema
from connect.errors import SchemaError

__all__ = ["PartitionBy", "parse_partition_by"]

_TERM: Final = re.compile(r"(\w+)\s*\((.+)\)")
_OF_TIME: Final = {"year": "year", "month": "month", "day": "day", "date": "day", "hour": "hour", "date_hour": "hour"}
_WITH_WIDTH: Final = ("bucket", "truncate")
_REASON: Final = "use a field, or year, month, day, hour, bucket or truncate of one: day(at), bucket(16, id)"


@dataclass(frozen=True, slots=True)
class PartitionBy:
    """One field of a partition spec: a transform of a column, with its number for ``bucket`` and ``truncate``."""

    column: str
    transform: str = "identity"
    width: int | None = None

    def add_to(self, builder: Any) -> None:
        """Add this field to one of Java's builders."""
        arguments = [self.column] if self.width is None else [self.column, self.width]
        getattr(builder, self.transform)(*arguments)

    def check(self, table: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if the column does not exist."""
        found: Schema | None = table
        for name in self.column.split("."):
            field = None if found is None or not found.fields else found.field(name)
            found = None if field is None else field.schema
        if found is None:
            raise SchemaError(
                f"The table cannot be partitioned by {self.column}, which is not a field of the records; they "
                f"have {', '.join(table.field_names)}. Use one of those, or declare the field with "
                "value.schema."
            )


def parse_partition_by(text: str) -> tuple[PartitionBy, ...]:
    """Parse ``day(at), bucket(16, id), origin``; raises a :class:`ValueError` that says which part is invalid."""
    return tuple(_parsed(part) for part in _parts(text))


def _parsed(part: str) -> PartitionBy:
    match = _TERM.fullmatch(part)
    if match is None:
        if not re.fullmatch(r"[^\s()]+", part):
            raise ValueError(f"{part!r} is no partition field: {_REASON}.")
        return PartitionBy(part)
    # Spark uses the plural forms.
    name = match[1].lower()
    name = name if name in _OF_TIME else name.removesuffix("s")
    arguments = [argument.strip() for argument in match[2].split(",")]
    if name in _OF_TIME and len(arguments) == 1:
        return PartitionBy(arguments[0], _OF_TIME[name])
    if name in _WITH_WIDTH and len(arguments) == 2:
        # Apache Iceberg's own sink puts the column first, Spark the number.
        column, width = arguments if arguments[1].isdecimal() else reversed(arguments)
        if width.isdecimal() and int(width) > 0:
            return PartitionBy(column, name, int(width))
    raise ValueError(f"{part!r} is no partition field: {_REASON}.")


def _parts(text: str) -> Iterator[str]:
    """The parts separated by commas outside of parentheses."""
    for part in re.findall(r"(?:[^,(]|\([^)]*\))+", text):
        if part.strip():
            yield part.strip()
