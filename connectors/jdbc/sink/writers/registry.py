"""The registry of writers: built-in ones, and those of installed packages."""

from __future__ import annotations

from typing import Final

from connectors.jdbc.dialects.dialect import Dialect
from connectors.jdbc.dialects.registry import available, installed
from connectors.jdbc.sink.writers.mysql import MariadbWriter, MysqlWriter
from connectors.jdbc.sink.writers.postgresql import PostgresqlWriter
from connectors.jdbc.sink.writers.sqlite import SqliteWriter
from connectors.jdbc.sink.writers.writer import Writer

__all__ = ["ENTRY_POINTS", "writer_class", "writer_of"]

ENTRY_POINTS: Final = "sluice.jdbc.writers"
"""The group of entry points; the name of each is SQLAlchemy's of the database, such as ``oracle``."""

_OURS: Final[dict[str, type[Writer]]] = {
    "mariadb": MariadbWriter,
    "mysql": MysqlWriter,
    "postgresql": PostgresqlWriter,
    "sqlite": SqliteWriter,
}


def writer_class(backend: str) -> type[Writer]:
    """Return the writer for SQLAlchemy's name of a database. Raises ``LookupError`` with the known ones."""
    if backend in _OURS:
        return _OURS[backend]
    loaded: type[Writer] | None = installed(ENTRY_POINTS, backend)
    if loaded is None:
        raise LookupError(
            f"The sink cannot write to {backend}; it can write to {available(ENTRY_POINTS, _OURS)}. Use one of them, "
            f"or install a package that provides a writer in its entry points {ENTRY_POINTS}."
        )
    return loaded


def writer_of(dialect: Dialect) -> Writer:
    """Return the writer for a dialect."""
    return writer_class(dialect.backend)(dialect)
