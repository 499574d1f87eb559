"""MongoDB: a sink, which writes records as documents, and a source, which publishes changes of documents."""

from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.sink import MongoSinkConnector, MongoSinkTask
from connectors.mongodb.source.config import MongoSourceConfig
from connectors.mongodb.source.source import MongoSourceConnector, MongoSourceTask

__all__ = [
    "MongoSinkConfig",
    "MongoSinkConnector",
    "MongoSinkTask",
    "MongoSourceConfig",
    "MongoSourceConnector",
    "MongoSourceTask",
]
