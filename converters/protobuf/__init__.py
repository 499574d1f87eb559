"""Protobuf, with the schemas in a schema registry."""

from converters.protobuf.config import ProtobufConverterConfig
from converters.protobuf.converter import ProtobufConverter

__all__ = ["ProtobufConverter", "ProtobufConverterConfig"]
