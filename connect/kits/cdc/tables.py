"""Tables as a database's catalog describes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Column", "Table", "TableId"]


@dataclass(frozen=True, slots=True)
class TableId:
    """The name of a table. PostgreSQL leaves out the catalog, MySQL the schema: ``str`` is what filters match."""

    catalog: str
    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.schema or self.catalog, self.table) if part)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: ``type_name`` is the database's own name of its type, ``length`` and ``scale`` are declared or None.

    ``default`` is a constant in the form in which the database's decoder delivers values; None means that there is
    none, or none that a schema can state. ``native`` is for the dialect alone, such as the number of the type.
    """

    name: str
    type_name: str
    length: int | None = None
    scale: int | None = None
    optional: bool = True
    default: Any = None
    is_generated: bool = False
    is_auto_incremented: bool = False
    enum_values: tuple[str, ...] = ()
    comment: str | None = None
    native: Any = None


@dataclass(frozen=True, slots=True)
class Table:
    """A version of a table: its columns in their order, and the columns of its key in the order of the key."""

    id: TableId
    columns: tuple[Column, ...]
    key_columns: tuple[str, ...] = ()
    comment: str | None = None
    _by_name: dict[str, Column] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._by_name.update({column.name: column for column in self.columns})

    def column(self, name: str) -> Column | None:
        """Return the column called ``name``, or None."""
        return self._by_name.get(name)
