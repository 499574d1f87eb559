"""PostgreSQL: the changes of its tables, from its write-ahead log by logical decoding with ``pgoutput``."""

from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.source import PostgresConnector, PostgresTask

__all__ = ["PostgresConfig", "PostgresConnector", "PostgresTask"]
