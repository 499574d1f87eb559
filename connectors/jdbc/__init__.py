"""Tables of SQL databases, read and written, with the keys of the JDBC connectors."""

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
