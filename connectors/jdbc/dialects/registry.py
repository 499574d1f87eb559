"""The registry of dialects: built-in ones, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from connectors.jdbc.dialects.dialect import Dialect

__all__ = ["ENTRY_POINTS", "available", "dialect_class", "installed"]

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
    loaded: type[Dialect] | None = installed(ENTRY_POINTS, name)
    if loaded is None:
        raise LookupError(
            f"Unknown dialect {name}; available are {available(ENTRY_POINTS, _OURS)}. Use one of them, or install a "
            f"package that provides it in its entry points {ENTRY_POINTS}."
        )
    return loaded


def installed(group: str, name: str) -> Any:
    """Return what an installed package provides under a name in a group of entry points; ``None`` if none does."""
    return next((each.load() for each in entry_points(group=group) if each.name == name), None)


def available(group: str, ours: Iterable[str]) -> str:
    """Return the names that are built in or provided by installed packages, for errors."""
    return ", ".join(sorted({*ours, *(each.name for each in entry_points(group=group))}))


def _loaded(path: str) -> type[Dialect]:
    module, _, name = path.rpartition(".")
    found: type[Dialect] = getattr(import_module(module), name)
    return found
