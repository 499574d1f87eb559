"""Avro, with the schemas in a schema registry."""

from converters.avro.codecs import AvroConverterConfig
from converters.avro.converter import AvroConverter

__all__ = ["AvroConverter", "AvroConverterConfig"]
