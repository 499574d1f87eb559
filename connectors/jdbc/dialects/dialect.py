"""What a kind of database does in its own way."""

from __future__ import annotations

import datetime as dt
import re
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from connectors.jdbc.dialects.column import Column, TableId
from connectors.jdbc.dialects.values import Reading, TypeOptions

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Cursor", "Dialect"]


class Cursor(Protocol):
    """A cursor of a driver, as Python's DB-API has it."""

    @property
    def description(self) -> Any:
        """The columns of the result."""

    def execute(self, sql: Any, parameters: Any = ..., /) -> Any:
        """Run a statement."""

    def fetchmany(self, size: int, /) -> Sequence[Sequence[Any]]:
        """The next rows; none at the end."""

    def close(self) -> None:
        """Release the result."""


class Dialect:
    """A kind of database. Subclass it for another one, and name the class in the entry point ``sluice.jdbc.dialects``.

    A dialect keeps no connection: each method that asks the database is given one of SQLAlchemy.
    """

    backend: ClassVar[str]
    """SQLAlchemy's name of the database, such as ``postgresql``: the part of a URL before ``+``."""
    java_names: ClassVar[tuple[str, ...]] = ()
    """What ``dialect.name`` may be for it in the Java connector."""
    quotes: ClassVar[tuple[str, str]] = ('"', '"')
    placeholder: ClassVar[str] = "%s"
    """A parameter in a statement for the driver: ``?`` or ``%s``."""
    has_catalogs: ClassVar[bool] = False
    """Whether a table's name is qualified by its database, as in MySQL, and not by a schema."""

    tells_transactions: ClassVar[bool] = False
    """Whether it can tell which transactions are under way: see :meth:`under_way`."""

    def __init__(self, options: TypeOptions | None = None, *, quote: bool = True) -> None:
        self.options = options or TypeOptions()
        self._quote = quote

    # -- names ---------------------------------------------------------------------------------------------------

    def quote(self, name: str) -> str:
        """A name as SQL has it: quoted, unless ``quote.sql.identifiers=never``."""
        if not self._quote:
            return name
        opening, closing = self.quotes
        return f"{opening}{name.replace(closing, closing * 2)}{closing}"

    def quoted(self, table: TableId) -> str:
        """The name of a table as SQL has it."""
        return ".".join(self.quote(part) for part in (table.catalog, table.schema, table.name) if part)

    def table_id(self, text: str) -> TableId:
        """The table of a name as users write it, ``accounts`` or ``public.accounts``, quoted or not."""
        parts = _split(text, *self.quotes)
        most = 2
        if not all(parts) or len(parts) > most + 1:
            raise ValueError(f"{text!r} is no name of a table: write it as schema.table")
        name, qualifier, database = [*reversed(parts), "", ""][:3]
        if self.has_catalogs:
            return TableId(name, catalog=qualifier)
        return TableId(name, schema=qualifier, catalog=database)

    # -- metadata ------------------------------------------------------------------------------------------------

    @abstractmethod
    def tables(
        self,
        connection: Connection,
        *,
        types: Iterable[str] = ("TABLE",),
        catalog: str | None = None,
        schema: str | None = None,
    ) -> list[TableId]:
        """The tables of these JDBC types (``TABLE``, ``VIEW`` ...), in order.

        ``catalog`` and ``schema`` are patterns with ``%`` and ``_``; ``None`` means all but the system's.
        """

    @abstractmethod
    def resolve(self, connection: Connection, table: TableId) -> TableId | None:
        """The table with its schema or catalog filled in as the connection finds it; ``None`` if there is none."""

    @abstractmethod
    def columns(self, connection: Connection, table: TableId) -> tuple[Column, ...]:
        """The columns of a table in order; empty if there is no such table."""

    @abstractmethod
    def primary_key(self, connection: Connection, table: TableId) -> tuple[str, ...]:
        """The columns of the primary key in its order; empty if there is none."""

    @abstractmethod
    def result_columns(self, connection: Connection, cursor: Cursor, sql: str) -> tuple[Column, ...]:
        """The columns of what a query gives; ``cursor`` has run it."""

    def size(self, connection: Connection, table: TableId) -> int:  # noqa: ARG002
        """About how many bytes or rows a table has, to share tables evenly; 0 if that is not known."""
        return 0

    # -- reading -------------------------------------------------------------------------------------------------

    def prepare(self, connection: Connection, *, reads: bool) -> None:
        """Set the session up, so that values come as :meth:`reading` expects them; called once for a connection.

        ``reads`` says that nothing will be written in it.
        """

    @abstractmethod
    def reading(self, column: Column) -> Reading | None:
        """How a column is read; ``None`` if Connect has no type for it."""

    def selected(self, column: Column) -> str:
        """A column in the list of a SELECT, under its own name."""
        return self.quote(column.name)

    @abstractmethod
    def cursor(self, connection: Connection) -> Cursor:
        """A cursor that takes rows from the server bit by bit, and gives the values that :meth:`reading` expects."""

    @abstractmethod
    def now(self, connection: Connection) -> dt.datetime:
        """The time of the database, aware."""

    def timestamp_expression(self, name: str) -> str:
        """A column of times, given as SQL has its name, as it is compared and ordered."""
        return name

    @abstractmethod
    def timestamp_parameter(self, columns: Sequence[Column], moment: dt.datetime) -> Any:
        """An aware instant as it is compared with the first of these columns that is not null."""

    # -- transactions --------------------------------------------------------------------------------------------

    def under_way(self, connection: Connection, table: TableId | None) -> Hashable | None:  # noqa: ARG002
        """The transactions that may still add rows before those that are visible now, for :meth:`are_over`.

        Those that write to ``table``; with ``None`` all, because a transaction may use the time of its beginning.
        ``None`` if there are none, or if the database cannot tell.
        """
        return None

    def are_over(self, connection: Connection, transactions: Hashable) -> bool:  # noqa: ARG002
        """Whether all these transactions have ended."""
        return True


def _split(text: str, opening: str, closing: str) -> list[str]:
    """The parts of a name between dots; a dot in quotes does not count, a doubled quote is one."""
    quoted = rf"{re.escape(opening)}(?:[^{re.escape(closing)}]|{re.escape(closing) * 2})+{re.escape(closing)}"
    part = rf"{quoted}|[^.{re.escape(opening)}]+"
    if not re.fullmatch(rf"(?:{part})(?:\.(?:{part}))*", text):
        return [""]
    found = re.findall(part, text)
    return [each[1:-1].replace(closing * 2, closing) if each.startswith(opening) else each.strip() for each in found]
