"""Avro, with the schemas in a schema registry."""

from converters.avro.converter import AvroConverter, AvroConverterConfig

__all__ = ["AvroConverter", "AvroConverterConfig"]
