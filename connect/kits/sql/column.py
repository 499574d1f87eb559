"""Table names, and columns as a database describes them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Column", "NativeType", "TableId"]


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table name: ``catalog`` and ``schema`` are empty where the database has none."""

    name: str
    schema: str = ""
    catalog: str = ""

    def __str__(self) -> str:
        """Return the parts separated by dots, unquoted, as in source partitions and patterns."""
        return ".".join(part for part in (self.catalog, self.schema, self.name) if part)


@dataclass(frozen=True, slots=True)
class NativeType:
    """The type of a column in the database's terms.

    ``name`` has no arguments and is in lower case: ``numeric``, ``timestamp with time zone``, ``tinyint``.
    """

    name: str
    precision: int | None = None
    scale: int | None = None
    unsigned: bool = False
    element: NativeType | None = None
    """The element type, for an array."""
    values: tuple[str, ...] = ()
    """The values, for an enum."""

    def __str__(self) -> str:
        """Return the type for display."""
        if self.element is not None:
            return f"{self.element}[]"
        if self.precision is None:
            return self.name
        return f"{self.name}({self.precision}{'' if self.scale is None else f',{self.scale}'})"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or of a result."""

    name: str
    type: NativeType
    nullable: bool = True
    has_default: bool = False
    autoincrement: bool = False
    generated: bool = False
    """Whether the database computes the column, so that it cannot be written."""
