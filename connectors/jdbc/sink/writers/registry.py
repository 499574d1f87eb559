"""The registry of writers: built-in ones, and those of installed packages."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from connectors.jdbc.dialects.dialect import Dialect
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
    found = entry_points(group=ENTRY_POINTS)
    for each in found:
        if each.name == backend:
            loaded: type[Writer] = each.load()
            return loaded
    known = ", ".join(sorted({*_OURS, *(each.name for each in found)}))
    raise LookupError(
        f"The sink cannot write to {backend}; it can write to {known}. Use one of them, or install a package that "
        f"provides a writer in its entry points {ENTRY_POINTS}."
    )


def writer_of(dialect: Dialect) -> Writer:
    """Return the writer for a dialect."""
    return writer_class(dialect.backend)(dialect)
