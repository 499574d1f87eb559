"""The options of the Avro converter."""

from __future__ import annotations

from connect.kits.avro.config import AvroDataConfig
from converters.registry import RegistryConfig

__all__ = ["AvroConverterConfig"]


class AvroConverterConfig(RegistryConfig, AvroDataConfig):
    """The options of the Avro converter: the registry, and how schemas are mapped."""
