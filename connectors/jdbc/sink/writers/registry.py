"""The writers there are: ours, and those that installed packages bring."""

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
    """The writer for SQLAlchemy's name of a database; a ``LookupError``, whose text says what there is, if none."""
    if backend in _OURS:
        return _OURS[backend]
    found = entry_points(group=ENTRY_POINTS)
    for each in found:
        if each.name == backend:
            loaded: type[Writer] = each.load()
            return loaded
    known = ", ".join(sorted({*_OURS, *(each.name for each in found)}))
    raise LookupError(
        f"The sink cannot write to {backend}; it can write to {known}. Install a package that has a writer in its "
        f"entry points {ENTRY_POINTS}."
    )


def writer_of(dialect: Dialect) -> Writer:
    """The writer for a dialect."""
    return writer_class(dialect.backend)(dialect)
