"""Tables of SQL databases, read and written, with the keys of the JDBC connectors."""

from connectors.jdbc.source.config import JdbcSourceConfig, JdbcTaskConfig
from connectors.jdbc.source.source import JdbcSourceConnector, JdbcSourceTask

__all__ = [
    "JdbcSourceConfig",
    "JdbcSourceConnector",
    "JdbcSourceTask",
    "JdbcTaskConfig",
]
