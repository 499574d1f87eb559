"""The databases that are supported, each in a folder of its own."""

from __future__ import annotations

from dataclasses import dataclass

from connect.kits.sql.dialect import Dialect
from connect.kits.sql.driver import Driver
from connect.kits.sql.writer import Writer

__all__ = ["Product"]


@dataclass(frozen=True, slots=True)
class Product:
    """A database: how it is connected to, read and written."""

    driver: Driver
    dialect: type[Dialect]
    writer: type[Writer]
