"""Avro and JSON with schemas in Apicurio Registry, in its own forms of messages."""

from converters.apicurio.avro import ApicurioAvroConverter
from converters.apicurio.config import ApicurioAvroConfig, ExtJsonConfig
from converters.apicurio.json import ExtJsonConverter

__all__ = ["ApicurioAvroConfig", "ApicurioAvroConverter", "ExtJsonConfig", "ExtJsonConverter"]
