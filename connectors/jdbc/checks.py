"""What a check of the database finds: whether it can be signed in to, and whether it has the tables that are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from connect.config import ConfigRuleError
from connect.errors import ConfigError, ConnectError
from connect.internals.java.regex import regex_of_name
from connect.kits.objects.local import folder_problem
from connect.kits.sql.column import TableId
from connect.kits.sql.connection import Database
from connect.kits.sql.dialect import Dialect
from connectors.jdbc.config import ConnectionConfig
from connectors.jdbc.sink.config import JdbcSinkConfig
from connectors.jdbc.sink.routing import Routing
from connectors.jdbc.source.config import FILTERS, JdbcSourceConfig

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["CheckedSinkConfig", "CheckedSourceConfig"]

_EXPRESSIONS: Final = ("table.include.list", "table.exclude.list")
_COLUMNS: Final = ("incrementing.column.name", "timestamp.column.name")
_MOST_DESCRIBED: Final = 20
"""Of how many tables the columns are asked for: each takes a request."""


class _CheckedConfig(ConnectionConfig):
    """The options of a database that can be checked."""

    def check_system(self) -> Iterable[ConfigError]:
        """Connect once, and yield an error for what would fail later."""
        if self.creates_file and not Path(self.address.database).exists():
            if problem := folder_problem(Path(self.address.database).parent, writes=True):
                yield ConfigRuleError(problem, "connection.url")
            return
        try:
            with self.asked() as (dialect, connection):
                yield from self.table_errors(dialect, connection)
        except ConnectError as error:
            yield ConfigRuleError(str(error), "connection.url")

    @contextmanager
    def asked(self) -> Iterator[tuple[Dialect, Connection]]:
        """Connect once, to ask for tables. Raises :class:`~connect.errors.ConnectError` if the database refuses."""
        database = Database(
            self.host_guard, self.dialect(), lambda _: False, attempts=1, backoff=0, reads=not self.creates_file
        )
        try:
            with database.errors("ask for tables"):
                yield database.dialect, database.connection()
        finally:
            database.dispose()

    @property
    def creates_file(self) -> bool:
        """Whether the database is a file that is created when it is written to."""
        return False

    def table_errors(self, dialect: Dialect, connection: Connection) -> Iterable[ConfigError]:  # noqa: ARG002
        """Yield an error for each table that is not as the options need it."""
        return ()


class CheckedSourceConfig(JdbcSourceConfig, _CheckedConfig):
    """The options of the JDBC source, whose database can be checked."""

    choices: ClassVar[Mapping[str, str]] = {**dict.fromkeys(FILTERS, "tables"), **dict.fromkeys(_COLUMNS, "columns")}

    def choices_of(self, key: str) -> Iterable[str]:
        """Return the tables as the key names them, or the columns of the tables that are chosen."""
        with self.asked() as (dialect, connection):
            tables = self._tables(dialect, connection)
            if key in _COLUMNS:
                chosen = self.table_filter.chosen(tables)[:_MOST_DESCRIBED]
                return sorted({column.name for table in chosen for column in dialect.columns(connection, table)})
        if key in _EXPRESSIONS:
            return [regex_of_name(str(table)) for table in tables]
        # A list cannot have a name with a comma.
        return [name for name in map(_listed, tables) if "," not in name]

    def _tables(self, dialect: Dialect, connection: Connection) -> list[TableId]:
        return dialect.tables(
            connection,
            types=[each.strip().upper() for each in self.table_types],
            catalog=self.catalog_pattern,
            schema=self.schema_pattern,
        )

    def table_errors(self, dialect: Dialect, connection: Connection) -> Iterable[ConfigError]:
        """Yield an error for tables that do not exist, and for columns that they lack. A query is not run."""
        if self.statement:
            return
        chosen = self.table_filter.chosen(self._tables(dialect, connection))
        key = next((key for key in FILTERS if getattr(self, key.replace(".", "_"))), "connection.url")
        if missing := self.table_filter.missing(chosen):
            yield ConfigRuleError(
                f"The connector would wait for {', '.join(missing)}: there is no such table, or "
                f"{self.connection_user or 'the user'} may not see it. Create it, grant the right to read it, or "
                f"correct {key}.",
                key,
            )
        elif not chosen:
            yield ConfigRuleError("No table would be read: create one, or correct the keys that choose tables.", key)
        columns = {"timestamp.column.name": self.timestamp_column_name} if self.mode.has_timestamp else {}
        if self.mode.has_incrementing and self.incrementing_column_name:
            columns["incrementing.column.name"] = (self.incrementing_column_name,)
        for table in chosen if columns else ():
            has = {column.name.lower() for column in dialect.columns(connection, table)}
            for key, names in columns.items():
                if lacking := [name for name in names if name.lower() not in has]:
                    yield ConfigRuleError(f"Table {table} has no column {lacking[0]}: correct {key}.", key)


def _listed(table: TableId) -> str:
    """Return the name as a list of tables has it: a part with a dot in quotes."""
    parts = [part for part in (table.catalog, table.schema, table.name) if part]
    return ".".join(f'"{part}"' if "." in part else part for part in parts)


class CheckedSinkConfig(JdbcSinkConfig, _CheckedConfig):
    """The options of the JDBC sink, whose database can be checked."""

    @property
    def creates_file(self) -> bool:
        """Whether the database is a file: SQLite makes it."""
        return self.address.is_file

    def table_errors(self, dialect: Dialect, connection: Connection) -> Iterable[ConfigError]:
        """Yield an error for the table of each topic in topics that does not exist and is not created."""
        if self.auto_create or self.table_name_field:
            return
        routing = Routing(self, dialect)
        for topic in filter(None, (name.strip() for name in (self.originals.get("topics") or "").split(","))):
            table = routing.table_of(topic)
            if dialect.resolve(connection, table) is None:
                yield ConfigRuleError(
                    f"Table {table} for the topic {topic} does not exist: create it, set auto.create=true, or correct "
                    "table.name.format.",
                    "table.name.format",
                )
