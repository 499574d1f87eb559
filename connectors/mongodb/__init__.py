"""MongoDB: sinks, which write records as documents or apply events of Debezium, and a source of changes."""

from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.debezium_config import MongoDbSinkConfig
from connectors.mongodb.sink.sink import (
    MongoDbSinkConnector,
    MongoDbSinkTask,
    MongoSinkConnector,
    MongoSinkTask,
)
from connectors.mongodb.source.config import MongoSourceConfig
from connectors.mongodb.source.source import MongoSourceConnector, MongoSourceTask

__all__ = [
    "MongoDbSinkConfig",
    "MongoDbSinkConnector",
    "MongoDbSinkTask",
    "MongoSinkConfig",
    "MongoSinkConnector",
    "MongoSinkTask",
    "MongoSourceConfig",
    "MongoSourceConnector",
    "MongoSourceTask",
]
