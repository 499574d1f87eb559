"""Generated records: quickstart schemas by name, or any Avro schema with annotations."""

from connectors.datagen.config import DatagenConfig, DatagenTaskConfig
from connectors.datagen.source import DatagenConnector, DatagenTask

__all__ = ["DatagenConfig", "DatagenConnector", "DatagenTask", "DatagenTaskConfig"]
