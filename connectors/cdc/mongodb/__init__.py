"""MongoDB: the changes of its collections, from change streams, in Debezium's envelope."""

from connectors.cdc.mongodb.config import MongoDbConfig
from connectors.cdc.mongodb.source import MongoDbConnector, MongoDbTask

__all__ = ["MongoDbConfig", "MongoDbConnector", "MongoDbTask"]
