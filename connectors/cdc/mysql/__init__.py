"""Changes of MySQL and MariaDB as records, read from their binary logs, under Debezium's keys."""

from connectors.cdc.mysql.config import MariaDbConfig, MySqlConfig
from connectors.cdc.mysql.source import MariaDbConnector, MariaDbTask, MySqlConnector, MySqlTask

__all__ = ["MariaDbConfig", "MariaDbConnector", "MariaDbTask", "MySqlConfig", "MySqlConnector", "MySqlTask"]
