"""JSON Schema: JSON whose schemas are in a schema registry."""

from converters.json_schema.config import JsonSchemaConverterConfig
from converters.json_schema.converter import JsonSchemaConverter

__all__ = ["JsonSchemaConverter", "JsonSchemaConverterConfig"]
