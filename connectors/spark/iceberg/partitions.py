"""Partition specs: how a table is divided, in the words of Iceberg's transforms."""

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
        """Add this field to a builder of Java's."""
        arguments = [self.column] if self.width is None else [self.column, self.width]
        getattr(builder, self.transform)(*arguments)

    def check(self, table: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if the column is not there."""
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
    """Read ``day(at), bucket(16, id), origin``; :class:`ValueError` says which part cannot be understood."""
    return tuple(_parsed(part) for part in _parts(text))


def _parsed(part: str) -> PartitionBy:
    match = _TERM.fullmatch(part)
    if match is None:
        if not re.fullmatch(r"[^\s()]+", part):
            raise ValueError(f"{part!r} is no partition field: {_REASON}.")
        return PartitionBy(part)
    # Spark's words are in the plural.
    name = match[1].lower()
    name = name if name in _OF_TIME else name.removesuffix("s")
    arguments = [argument.strip() for argument in match[2].split(",")]
    if name in _OF_TIME and len(arguments) == 1:
        return PartitionBy(arguments[0], _OF_TIME[name])
    if name in _WITH_WIDTH and len(arguments) == 2:
        # The sink of Apache Iceberg has the column first, Spark the number.
        column, width = arguments if arguments[1].isdecimal() else reversed(arguments)
        if width.isdecimal() and int(width) > 0:
            return PartitionBy(column, name, int(width))
    raise ValueError(f"{part!r} is no partition field: {_REASON}.")


def _parts(text: str) -> Iterator[str]:
    """The parts between the commas that are not within parentheses."""
    for part in re.findall(r"(?:[^,(]|\([^)]*\))+", text):
        if part.strip():
            yield part.strip()
