"""What a change of a record's schema does to the open files: ``schema.compatibility``."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

from connect.data import Column, Schema, ValueColumn
from connect.data.projection import project
from connect.errors import DataError, SchemaError

__all__ = ["Change", "SchemaChanges"]


class Change(Enum):
    """What to do with records of a schema."""

    WRITE = "they are written as they are"
    PROJECT = "they are projected to the schema of the open file"
    ROTATE = "the open files end before them"


@dataclass(frozen=True, slots=True)
class SchemaChanges:
    """Decides by ``NONE``, ``BACKWARD``, ``FORWARD`` or ``FULL``."""

    compatibility: str

    def strand(self, schema: Schema | None) -> Hashable:
        """Return what records share whose files are one, whichever version they are of."""
        if self.compatibility == "NONE" or schema is None:
            return schema
        return (schema.type, schema.name)

    def change(self, current: Schema | None, schema: Schema | None) -> Change:
        """Return what records of a schema do to a file that has another one.

        Raises :class:`~connect.errors.DataError` if the schemas have no versions.
        """
        if current is schema or current is None or schema is None or self.compatibility == "NONE":
            return Change.WRITE
        if current.version is None or schema.version is None:
            raise DataError(
                f"schema.compatibility={self.compatibility} compares versions, and the schema of the record has none: "
                "read topics with a converter that uses a schema registry, or set NONE."
            )
        is_newer = schema.version > current.version
        is_older = schema.version < current.version
        if is_older if self.compatibility == "FORWARD" else is_newer:
            return Change.ROTATE
        return Change.PROJECT


def projected(column: Column, target: Schema) -> Column:
    """Return values in the form of another version of their schema; raises :class:`~connect.errors.DataError`."""
    schema = column.schema
    if schema is None or schema is target:
        return column
    try:
        return ValueColumn([project(schema, value, target) for value in column.values()], target)
    except SchemaError as error:
        raise DataError(
            f"The record cannot be projected to the schema of the open file (version {target.version}): {error}"
        ) from error
