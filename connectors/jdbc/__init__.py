"""Tables of SQL databases as sources and sinks, with the keys of the Java JDBC connectors."""

from connectors.jdbc.sink import JdbcSinkConfig, JdbcSinkConnector, JdbcSinkTask
from connectors.jdbc.source.config import JdbcSourceConfig, JdbcTaskConfig
from connectors.jdbc.source.source import JdbcSourceConnector, JdbcSourceTask

__all__ = [
    "JdbcSinkConfig",
    "JdbcSinkConnector",
    "JdbcSinkTask",
    "JdbcSourceConfig",
    "JdbcSourceConnector",
    "JdbcSourceTask",
    "JdbcTaskConfig",
]
