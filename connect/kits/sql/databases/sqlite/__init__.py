"""SQLite, with Python's own driver."""

from connect.kits.sql.databases import Product
from connect.kits.sql.databases.sqlite.dialect import SqliteDialect
from connect.kits.sql.databases.sqlite.driver import SqliteDriver
from connect.kits.sql.databases.sqlite.writer import SqliteWriter

__all__ = ["SQLITE"]

SQLITE = Product(SqliteDriver("sqlite+pysqlite"), SqliteDialect, SqliteWriter)
