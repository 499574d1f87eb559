"""The registry of dialects: built-in ones, and those of installed packages."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from connectors.jdbc.dialects.dialect import Dialect

__all__ = ["ENTRY_POINTS", "dialect_class"]

ENTRY_POINTS: Final = "sluice.jdbc.dialects"
"""The group of entry points; the name of each is SQLAlchemy's of the database, such as ``oracle``."""

_OURS: Final = {
    "mariadb": "connectors.jdbc.dialects.mysql.MariadbDialect",
    "mysql": "connectors.jdbc.dialects.mysql.MysqlDialect",
    "postgresql": "connectors.jdbc.dialects.postgresql.PostgresqlDialect",
    "sqlite": "connectors.jdbc.dialects.sqlite.SqliteDialect",
}


def dialect_class(name: str) -> type[Dialect]:
    """Return the dialect for SQLAlchemy's name of a database, or for the name of a Java class.

    Raises ``LookupError``, whose text lists the available ones.
    """
    if name in _OURS:
        return _loaded(_OURS[name])
    for path in _OURS.values():
        if name in _loaded(path).java_names:
            return _loaded(path)
    found = entry_points(group=ENTRY_POINTS)
    for each in found:
        if each.name == name:
            loaded: type[Dialect] = each.load()
            return loaded
    known = ", ".join(sorted({*_OURS, *(each.name for each in found)}))
    raise LookupError(
        f"Unknown dialect {name}; available are {known}. Use one of them, or install a package that provides it in "
        f"its entry points {ENTRY_POINTS}."
    )


def _loaded(path: str) -> type[Dialect]:
    module, _, name = path.rpartition(".")
    found: type[Dialect] = getattr(import_module(module), name)
    return found
