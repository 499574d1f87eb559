"""JSON, either with the schema in an envelope around each value or without a schema."""

from converters.json.config import JsonConverterConfig
from converters.json.converter import JsonConverter
from converters.json.encode import DecimalFormat

__all__ = ["DecimalFormat", "JsonConverter", "JsonConverterConfig"]
