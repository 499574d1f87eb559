"""Tables of SQL databases, read and written, with the keys of the JDBC connectors."""

from connectors.jdbc.sink import JdbcSinkConfig, JdbcSinkConnector, JdbcSinkTask

__all__ = ["JdbcSinkConfig", "JdbcSinkConnector", "JdbcSinkTask"]
