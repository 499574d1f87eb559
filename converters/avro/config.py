"""The options of the Avro converter."""

from __future__ import annotations

from converters.avro.options import AvroDataConfig
from converters.registry_config import RegistryConfig

__all__ = ["AvroConverterConfig"]


class AvroConverterConfig(RegistryConfig, AvroDataConfig):
    """The options of the Avro converter: the registry, and how schemas are mapped."""
