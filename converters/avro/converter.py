"""The Avro converter."""

from __future__ import annotations

from converters.avro.codecs import AvroConverterConfig, AvroFormat
from converters.registry.converter import RegistryConverter

__all__ = ["AvroConverter"]


class AvroConverter(RegistryConverter[AvroConverterConfig]):
    """Writes and reads Avro with schemas in a Confluent-compatible schema registry, with the same bytes as Java.

    A message is a zero byte, the id of the schema in four bytes, and the value. Any other message, even one with a
    single extra byte, raises a :class:`~connect.errors.DataError`; a registry that does not respond raises a
    :class:`~connect.errors.RetriableError`.
    """

    def __init__(self, config: AvroConverterConfig, *, is_key: bool = False) -> None:
        super().__init__(config, AvroFormat(config), config.schemas_cache_config, is_key=is_key)
