"""The databases that are built in, and the dialects and writers of installed packages."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Final

from connect.internals.extras import missing_extra
from connect.kits.sql.databases.mysql import MARIADB, MYSQL
from connect.kits.sql.databases.postgresql import POSTGRESQL
from connect.kits.sql.databases.sqlite import SQLITE
from connect.kits.sql.dialect import Dialect
from connect.kits.sql.driver import Driver
from connect.kits.sql.writer import Writer

__all__ = [
    "DEFAULT_DRIVERS",
    "backend_driver",
    "dialect_class",
    "driver_name",
    "driver_of",
    "missing_package",
    "writer_class",
    "writer_of",
]

_DIALECTS: Final = "sluice.jdbc.dialects"
_WRITERS: Final = "sluice.jdbc.writers"
"""The groups of entry points; the name of each is SQLAlchemy's of the database, such as ``oracle``."""

_PRODUCTS: Final = {each.dialect.backend: each for each in (SQLITE, POSTGRESQL, MYSQL, MARIADB)}
_DRIVERS: Final = {each.driver.name: each.driver for each in _PRODUCTS.values()}
DEFAULT_DRIVERS: Final = tuple(_PRODUCTS)


def driver_name(name: str) -> str:
    """Return SQLAlchemy's full name of a driver, such as ``postgresql+psycopg``; a short name means our default."""
    name = name.strip().lower()
    known = _PRODUCTS.get({"postgres": "postgresql"}.get(name, name))
    return name if known is None else known.driver.name


def driver_of(name: str) -> Driver:
    """Return the driver of a full name: a known one, or any other, without options."""
    return _DRIVERS.get(name) or Driver(name)


def backend_driver(backend: str) -> Driver:
    """Return the driver that is known for SQLAlchemy's name of a database, whose forms its other drivers follow."""
    known = _PRODUCTS.get(backend)
    return Driver(backend) if known is None else known.driver


def missing_package(driver: str) -> str | None:
    """Return how to install what a driver needs; ``None`` if everything is installed."""
    return missing_extra("jdbc", "sqlalchemy", *driver_of(driver).modules)


def dialect_class(name: str) -> type[Dialect]:
    """Return the dialect for SQLAlchemy's name of a database, or for the name of a Java class.

    Raises ``LookupError``, whose text lists the available ones.
    """
    for product in _PRODUCTS.values():
        if name in (product.dialect.backend, *product.dialect.java_names):
            return product.dialect
    found: type[Dialect] = _installed(_DIALECTS, name, "Unknown dialect {0}; available are {1}", "provides it")
    return found


def writer_class(backend: str) -> type[Writer]:
    """Return the writer for SQLAlchemy's name of a database. Raises ``LookupError`` with the known ones."""
    if backend in _PRODUCTS:
        return _PRODUCTS[backend].writer
    sentence = "The sink cannot write to {0}; it can write to {1}"
    found: type[Writer] = _installed(_WRITERS, backend, sentence, "provides a writer")
    return found


def writer_of(dialect: Dialect) -> Writer:
    """Return the writer for a dialect."""
    return writer_class(dialect.backend)(dialect)


def _installed(group: str, name: str, sentence: str, provides: str) -> Any:
    """Return what an installed package provides under a name in a group of entry points."""
    found = {each.name: each for each in reversed(entry_points(group=group))}
    if name in found:
        return found[name].load()
    raise LookupError(
        f"{sentence.format(name, ', '.join(sorted({*_PRODUCTS, *found})))}. Use one of them, or install a package that "
        f"{provides} in its entry points {group}."
    )
