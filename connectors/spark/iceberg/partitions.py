"""Partition specs: how a table is divided, expressed in Iceberg's transforms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Schema
from connect.errors import SchemaError
from connectors.spark.folder_fields import FolderField

__all__ = ["PartitionBy", "parse_partition_by", "partitions_in"]

_TERM: Final = re.compile(r"(\w+)\s*\((.+)\)")
_WIDE: Final = re.compile(r"truncate\[(\d+)\]")
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

    @property
    def label(self) -> str:
        """The name of the field in the names of folders."""
        return self.column if self.transform == "identity" else f"{self.column}_trunc"

    @property
    def tells_values(self) -> bool:
        """Whether the names of folders have values of the column, or their beginnings."""
        return self.transform in ("identity", "truncate")

    def path(self, table: Schema) -> tuple[str, ...]:
        """Return the names of the column and of the fields in it, for a table."""
        return (self.column,) if table.field(self.column) is not None else tuple(self.column.split("."))

    def folder_field(self, table: Schema) -> FolderField:
        """Return the field of a table's rows whose values name folders."""
        return FolderField(self.path(table), self.label, self.width)

    def check(self, table: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if the column does not exist."""
        found: Schema | None = table
        for name in self.path(table):
            field = None if found is None or not found.fields else found.field(name)
            found = None if field is None else field.schema
        if found is None:
            raise SchemaError(
                f"The table cannot be partitioned by {self.column}, which is not a field of the records; they "
                f"have {', '.join(table.field_names)}. Use one of those, or declare the field with "
                "value.schema."
            )


def partitions_in(document: Mapping[str, Any]) -> tuple[PartitionBy, ...]:
    """Return the transforms of identity and truncation by which a table is partitioned, given its metadata."""
    number = document["current-schema-id"]
    schema = next(item for item in document["schemas"] if item["schema-id"] == number)
    names = dict(_names(schema, ""))
    spec = next(item for item in document["partition-specs"] if item["spec-id"] == document["default-spec-id"])
    found = []
    for field in spec["fields"]:
        match = _WIDE.fullmatch(field["transform"])
        if field["transform"] == "identity":
            found.append(PartitionBy(names[field["source-id"]]))
        elif match is not None:
            found.append(PartitionBy(names[field["source-id"]], "truncate", int(match[1])))
    return tuple(found)


def _names(struct: Mapping[str, Any], path: str) -> Iterator[tuple[int, str]]:
    """Yield the identifiers of columns and of fields in them, with their full names."""
    for field in struct["fields"]:
        yield field["id"], f"{path}{field['name']}"
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _names(field["type"], f"{path}{field['name']}.")


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
    """Yield the parts separated by commas outside of parentheses."""
    for part in re.findall(r"(?:[^,(]|\([^)]*\))+", text):
        if part.strip():
            yield part.strip()
