"""Watches for new and dropped tables."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from connect.errors import ConnectError, RetriableError
from connect.source import SourceConnectorContext
from connectors.jdbc.connection import Database
from connectors.jdbc.dialects.column import TableId
from connectors.jdbc.source.config import JdbcSourceConfig

__all__ = ["TableMonitor"]

logger = logging.getLogger(__name__)

_JOIN: Final = 5.0
_RETRY: Final = 1.0


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
        self._sizes: Mapping[TableId, int] = {}
        self._thread = threading.Thread(target=self._run, name="jdbc-tables", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that waits for the database ends with its process."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN)

    def sizes(self, seconds: float) -> Mapping[TableId, int]:
        """Wait for the list of tables, and return it with their sizes; empty if it is not known in time."""
        self._answered.wait(seconds)
        return self._sizes

    def _run(self) -> None:
        try:
            database = Database(self._config, self._wait, self._config.type_options, reads=True)
        except ConnectError as error:
            self._fail(error)
            return
        try:
            while not self._stopped.is_set():
                known = self._look(database)
                self._stopped.wait(self._config.table_poll_interval_ms / 1000 if known else _RETRY)
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
                logger.warning("%s; the tasks keep their current tables.", error)
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
        for name in config.table_filter.missing(chosen):
            logger.warning("Table %s in table.whitelist does not exist; checking again later.", name)
        _refuse_same_topics(chosen)
        # Looked at once: a table that only grows is to stay with its task.
        known = self._sizes
        sizes = {table: known[table] if table in known else dialect.size(connection, table) for table in chosen}
        database.close()
        return MappingProxyType(sizes)

    def _note(self, sizes: Mapping[TableId, int]) -> None:
        before, first = self._sizes.keys(), not self._listed
        changed = before != sizes.keys()
        self._sizes = sizes
        self._listed = True
        self._answered.set()
        if first and not sizes:
            logger.warning("The configuration matches no table; checking again later.")
        if not changed:
            return
        if not first:
            logger.info("The list of tables has changed: %s.", ", ".join(map(str, sizes)) or "none")
        self._context.request_task_reconfiguration()

    def _wait(self, seconds: float) -> bool:
        return not self._stopped.wait(seconds)


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
