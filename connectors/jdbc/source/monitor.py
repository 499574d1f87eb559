"""Watches for new and dropped tables."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from connect.errors import ConnectError, RetriableError
from connect.kits.sql.column import TableId
from connect.kits.sql.connection import Database
from connect.source import SourceConnectorContext
from connectors.jdbc.source.config import JdbcSourceConfig
from connectors.jdbc.source.tables import has_topic_form

__all__ = ["TableMonitor"]

logger = logging.getLogger(__name__)

_JOIN_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0


class TableMonitor:
    """Lists the tables to read in its own thread, every ``table.poll.interval.ms``.

    When the list changes, it requests new task configs. If the first list cannot be read, it fails the connector; later
    it only warns, since the tasks continue on their own.
    """

    def __init__(self, config: JdbcSourceConfig, context: SourceConnectorContext) -> None:
        self._config = config
        self._context = context
        self._stopped = threading.Event()
        self._answered = threading.Event()
        """The tables were listed once, or cannot be."""
        self._listed = False
        self._reported: set[tuple[TableId, bool]] = set()
        self._sizes: Mapping[TableId, int] = {}
        self._missing: Sequence[str] = ()
        self._thread = threading.Thread(target=self._run, name="jdbc-tables", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that waits for the database ends with its process."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def sizes(self, seconds: float) -> Mapping[TableId, int]:
        """Wait for the list of tables, and return it with their sizes; empty if it is not known in time."""
        self._answered.wait(seconds)
        return self._sizes

    def _run(self) -> None:
        try:
            database = self._config.database(self._wait, self._config.type_options, reads=True)
        except ConnectError as error:
            self._fail(error)
            return
        try:
            while not self._stopped.is_set():
                known = self._look(database)
                self._stopped.wait(self._config.table_poll_interval_ms / 1000 if known else _RETRY_SECONDS)
        finally:
            database.dispose()

    def _look(self, database: Database) -> bool:
        """Read the list once; return whether the tables are known."""
        try:
            with database.errors("list the tables"):
                self._note(self._tables(database))
        except RetriableError as error:
            if not self._listed and not self._stopped.is_set():
                self._fail(ConnectError(str(error)))
            else:
                self._context.show_wait(f"{error}; the tasks keep their current tables.")
        except Exception as error:
            self._fail(error)
        return self._listed

    def _fail(self, error: Exception) -> None:
        self._context.raise_error(error)
        self._stopped.set()
        self._answered.set()

    def _tables(self, database: Database) -> Mapping[TableId, int]:
        config, dialect, connection = self._config, database.dialect, database.connection()
        found = dialect.tables(
            connection,
            types=[each.strip().upper() for each in config.table_types],
            catalog=config.catalog_pattern,
            schema=config.schema_pattern,
        )
        chosen = config.table_filter.chosen(found)
        missing = config.table_filter.missing(chosen)
        if missing and config.originals.get("run.until") == "drained":
            raise ConnectError(
                f"{_do_not_exist(missing)}, and the connector has run.until=drained. Create what is missing, or "
                "correct the key table.whitelist."
            )
        self._missing = tuple(missing)
        chosen = self._publishable(chosen)
        _refuse_same_topics(chosen)
        # Measured only once, so that a growing table stays with its task.
        known = self._sizes
        sizes = {table: known[table] if table in known else dialect.size(connection, table) for table in chosen}
        database.close()
        return MappingProxyType(sizes)

    def _publishable(self, tables: list[TableId]) -> list[TableId]:
        """Return the tables whose rows Kafka can take, and tell once of each of the others.

        Those are left out, so that they do not fail the task of their neighbours, unless a transformation may rename
        their topics. If there is no other table, they are tried.
        """
        prefix = self._config.topic_prefix
        publishable = [table for table in tables if has_topic_form(prefix + table.name)]
        may_rename = bool(self._config.originals.get("transforms"))
        is_kept = may_rename or not publishable
        unpublished = {(table, is_kept) for table in set(tables) - set(publishable)}
        for table, _ in sorted(unpublished - self._reported):
            logger.warning(
                "%s: its topic would be %r, but topic names consist of at most 249 letters, digits, '.', '_' and '-'. "
                "Rename the topic with the transformation RegexRouter, or exclude the table with table.blacklist or "
                "table.exclude.list.",
                f"Table {table} fails the task unless a transformation renames its topic"
                if is_kept
                else f"Table {table} is not read",
                prefix + table.name,
            )
        self._reported = unpublished
        return tables if is_kept else publishable

    def _note(self, sizes: Mapping[TableId, int]) -> None:
        before, first = self._sizes.keys(), not self._listed
        changed = before != sizes.keys()
        self._sizes = sizes
        self._listed = True
        self._answered.set()
        self._context.show_wait(self._awaited())
        if not changed:
            return
        if not first:
            logger.info("The list of tables has changed: %s.", ", ".join(map(str, sizes)) or "none")
        self._context.request_task_reconfiguration()

    def _awaited(self) -> str | None:
        """Say, for users, which tables the connector waits for; ``None`` if it waits for none."""
        if self._missing:
            until = "it does. Create it" if len(self._missing) == 1 else "they do. Create them"
            return (
                f"{_do_not_exist(self._missing)}; the source waits until {until}, or correct the key table.whitelist."
            )
        if not self._sizes:
            return (
                "The configuration matches no table; the source waits until it does. Create one, or correct the keys "
                "that choose tables, such as table.blacklist, table.types and schema.pattern."
            )
        return None

    def _wait(self, seconds: float) -> bool:
        return not self._stopped.wait(seconds)


def _do_not_exist(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"Table {names[0]} in table.whitelist does not exist"
    return f"The tables {', '.join(names)} in table.whitelist do not exist"


def _refuse_same_topics(tables: list[TableId]) -> None:
    """Refuse tables with the same name in two schemas: they would share a topic, although their columns differ."""
    seen: dict[str, TableId] = {}
    for table in tables:
        if (other := seen.setdefault(table.name, table)) != table:
            raise ConnectError(
                f"The tables {other} and {table} have the same name, so their rows would go to the same topic. Select "
                "one with schema.pattern, catalog.pattern or table.whitelist, and read the other with another "
                "connector."
            )
