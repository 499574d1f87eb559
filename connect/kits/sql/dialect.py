"""The interface of a database dialect."""

from __future__ import annotations

import datetime as dt
import re
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from connect.kits.sql.column import Column, TableId
from connect.kits.sql.values import Reading, TypeOptions

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Cursor", "Dialect"]


class Cursor(Protocol):
    """A driver's cursor, as in Python's DB-API."""

    @property
    def description(self) -> Any:
        """The columns of the result."""

    def execute(self, sql: Any, parameters: Any = ..., /) -> Any:
        """Run a statement."""

    def fetchmany(self, size: int, /) -> Sequence[Sequence[Any]]:
        """Return the next rows; empty at the end."""

    def close(self) -> None:
        """Release the result."""


class Dialect:
    """A kind of database. To support another one, subclass this and register it in ``sluice.jdbc.dialects``.

    A dialect holds no connection: each method that queries the database is given a SQLAlchemy connection.
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

    rewrites_queries: ClassVar[bool] = False
    """Whether :meth:`selected_of` may return another query, so that the columns are asked for at each pass."""

    tells_transactions: ClassVar[bool] = False
    """Whether it can tell which transactions are under way: see :meth:`under_way`."""

    def __init__(self, options: TypeOptions | None = None, *, quote: bool = True) -> None:
        self.options = options or TypeOptions()
        self._quote = quote

    # -- names ---------------------------------------------------------------------------------------------------

    def quote(self, name: str) -> str:
        """Return a name for SQL, quoted unless ``quote.sql.identifiers=never``."""
        if not self._quote:
            return name
        opening, closing = self.quotes
        return f"{opening}{name.replace(closing, closing * 2)}{closing}"

    def quoted(self, table: TableId) -> str:
        """Return a table name for SQL."""
        return ".".join(self.quote(part) for part in (table.catalog, table.schema, table.name) if part)

    def escaped(self, sql: str) -> str:
        """Return SQL for a statement with parameters: a per cent sign in a name does not begin one."""
        return sql.replace("%", "%%") if self.placeholder == "%s" else sql

    def table_id(self, text: str) -> TableId:
        """Return the table of a name as users write it: ``accounts`` or ``public.accounts``, quoted or not."""
        parts = _split(text, *self.quotes)
        most = 2
        if not all(parts) or len(parts) > most + 1:
            raise ValueError(f"{text!r} is not a valid table name: write it as schema.table")
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
        """Return the tables of these JDBC types (``TABLE``, ``VIEW`` ...), in order.

        ``catalog`` and ``schema`` are patterns with ``%`` and ``_``; ``None`` means all except the system's.
        """

    @abstractmethod
    def resolve(self, connection: Connection, table: TableId) -> TableId | None:
        """Return the table with its schema or catalog as the connection resolves it; ``None`` if it does not exist."""

    @abstractmethod
    def columns(self, connection: Connection, table: TableId) -> tuple[Column, ...]:
        """Return the columns of a table in order; empty if there is no such table."""

    @abstractmethod
    def primary_key(self, connection: Connection, table: TableId) -> tuple[str, ...]:
        """Return the columns of the primary key in order; empty if there is none."""

    @abstractmethod
    def result_columns(self, connection: Connection, cursor: Cursor, sql: str) -> tuple[Column, ...]:
        """Return the columns of a query's result; ``cursor`` has executed the query."""

    def size(self, connection: Connection, table: TableId) -> int:  # noqa: ARG002
        """Estimate the size of a table in bytes or rows, for sharing tables evenly; 0 if unknown."""
        return 0

    # -- reading -------------------------------------------------------------------------------------------------

    def prepare(self, connection: Connection, *, reads: bool) -> None:
        """Set up the session so that values come as :meth:`reading` expects them; called once per connection.

        ``reads`` means that nothing will be written in it.
        """

    @abstractmethod
    def reading(self, column: Column) -> Reading | None:
        """Return how to read a column; ``None`` if Connect has no type for it."""

    def selected(self, column: Column) -> str:
        """Return a column for the list of a SELECT, under its own name."""
        return self.quote(column.name)

    def selected_of(self, query: str, columns: Sequence[Column]) -> str:  # noqa: ARG002
        """Return a query whose result has these columns in the form that keeps each of their values."""
        return query

    @abstractmethod
    def cursor(self, connection: Connection) -> Cursor:
        """Return a cursor that streams rows from the server, with the values that :meth:`reading` expects."""

    def abandon(self, cursor: Cursor) -> None:
        """Let go of a result that was not read to its end; the connection is closed with it."""
        cursor.close()

    @abstractmethod
    def now(self, connection: Connection) -> dt.datetime:
        """Return the current time of the database, with a time zone."""

    def timestamp_expression(self, name: str) -> str:
        """Return the expression by which a time column, given by its SQL name, is compared and ordered."""
        return name

    def unreadable_time(self, name: str) -> str | None:  # noqa: ARG002
        """Return the condition for rows whose time no comparison finds; ``None`` if the database keeps times only."""
        return None

    def time_zone(self, columns: Sequence[Column]) -> dt.tzinfo:  # noqa: ARG002
        """Return the zone of the clock by which times of these columns are compared; UTC if they are instants."""
        return dt.UTC

    @abstractmethod
    def timestamp_parameter(self, columns: Sequence[Column], moment: dt.datetime) -> Any:
        """Return an aware datetime in the form comparable with the first of these columns that is not null."""

    # -- transactions --------------------------------------------------------------------------------------------

    def under_way(self, connection: Connection, table: TableId | None) -> Hashable | None:  # noqa: ARG002
        """Return the transactions that may still add rows before those visible now, for :meth:`are_over`.

        Those that write to ``table``, or with ``None`` all of them, since a transaction may use the time of its
        beginning. ``None`` if there are none, or if the database cannot tell.
        """
        return None

    def are_over(self, connection: Connection, transactions: Hashable) -> bool:  # noqa: ARG002
        """Return whether all these transactions have ended."""
        return True


def _split(text: str, opening: str, closing: str) -> list[str]:
    """Split a name at dots outside quotes; a doubled quote stands for one."""
    quoted = rf"{re.escape(opening)}(?:[^{re.escape(closing)}]|{re.escape(closing) * 2})+{re.escape(closing)}"
    part = rf"{quoted}|[^.{re.escape(opening)}]+"
    if not re.fullmatch(rf"(?:{part})(?:\.(?:{part}))*", text):
        return [""]
    found = re.findall(part, text)
    return [each[1:-1].replace(closing * 2, closing) if each.startswith(opening) else each.strip() for each in found]
