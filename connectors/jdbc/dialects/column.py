"""Names of tables, and columns as a database describes them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Column", "NativeType", "TableId"]


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """The name of a table: ``catalog`` and ``schema`` are empty where the database has none."""

    name: str
    schema: str = ""
    catalog: str = ""

    def __str__(self) -> str:
        """The parts with dots between them, unquoted: as in source partitions and in patterns."""
        return ".".join(part for part in (self.catalog, self.schema, self.name) if part)


@dataclass(frozen=True, slots=True)
class NativeType:
    """The type of a column in the database's own words.

    ``name`` is without its arguments, in lower case: ``numeric``, ``timestamp with time zone``, ``tinyint``.
    """

    name: str
    precision: int | None = None
    scale: int | None = None
    unsigned: bool = False
    element: NativeType | None = None
    """The type of the elements, if this is an array."""
    values: tuple[str, ...] = ()
    """The values, if this is an enum."""

    def __str__(self) -> str:
        """The type for people."""
        if self.element is not None:
            return f"{self.element}[]"
        if self.precision is None:
            return self.name
        return f"{self.name}({self.precision}{'' if self.scale is None else f',{self.scale}'})"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or of a result."""

    name: str
    type: NativeType
    nullable: bool = True
    has_default: bool = False
    autoincrement: bool = False
    generated: bool = False
    """Whether the database computes it, so that it cannot be written."""
