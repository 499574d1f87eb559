"""The JDBC sink: topics to tables."""

from connectors.jdbc.sink.config import JdbcSinkConfig
from connectors.jdbc.sink.sink import JdbcSinkConnector, JdbcSinkTask

__all__ = ["JdbcSinkConfig", "JdbcSinkConnector", "JdbcSinkTask"]
