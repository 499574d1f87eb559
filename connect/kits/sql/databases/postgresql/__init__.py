"""PostgreSQL, with psycopg 3."""

from connect.kits.sql.databases import Product
from connect.kits.sql.databases.postgresql.dialect import PostgresqlDialect
from connect.kits.sql.databases.postgresql.driver import PsycopgDriver
from connect.kits.sql.databases.postgresql.writer import PostgresqlWriter

__all__ = ["POSTGRESQL"]

POSTGRESQL = Product(PsycopgDriver("postgresql+psycopg"), PostgresqlDialect, PostgresqlWriter)
