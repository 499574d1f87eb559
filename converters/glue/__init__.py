"""AWS Glue's schema registry: Avro whose schemas are kept there."""

from converters.glue.config import GlueAvroConverterConfig
from converters.glue.converter import GlueAvroConverter

__all__ = ["GlueAvroConverter", "GlueAvroConverterConfig"]
