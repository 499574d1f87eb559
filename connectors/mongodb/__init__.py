"""MongoDB: a sink, which writes records as documents, and a source, which publishes changes of documents."""

from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.sink import MongoSinkConnector, MongoSinkTask

__all__ = ["MongoSinkConfig", "MongoSinkConnector", "MongoSinkTask"]
