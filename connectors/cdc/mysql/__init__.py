"""Changes of MySQL and MariaDB as records, read from their binary logs, under Debezium's keys."""

from connectors.cdc.mysql.source import MariaDbConnector, MariaDbTask, MySqlConnector, MySqlTask
from connectors.cdc.mysql.validation import MariaDbConfig, MySqlConfig

__all__ = ["MariaDbConfig", "MariaDbConnector", "MariaDbTask", "MySqlConfig", "MySqlConnector", "MySqlTask"]
