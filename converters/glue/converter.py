"""The Avro converter for AWS Glue's schema registry."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Final
from uuid import UUID

from connect.data import Schema
from connect.errors import DataError
from connect.kits.avro.avro_schema import parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.from_connect import avro_from_connect
from converters.glue.client import GlueRegistry
from converters.glue.config import Compression, GlueAvroConverterConfig
from converters.registry.codecs import Encode, Reader, remembering
from converters.registry.converter import MessageConverter
from converters.registry.plain_avro import avro_reader, avro_writer

__all__ = ["GlueAvroConverter"]

_FRAME: Final = 18
"""The size of what a message begins with: its version, its compression, and the id of a schema's version."""
_VERSION: Final = b"\3"
_PLAIN: Final = 0
_COMPRESSED: Final = 5
_MOST_INFLATED_BYTES: Final = 64 * 1024 * 1024
_CONFLUENT: Final = "io.confluent.connect.avro"
_AMAZON: Final = "com.amazonaws.services.schemaregistry.kafkaconnect.avrodata"
"""The namespace of what has no names of its own, in Confluent's mapping and in Amazon's."""


class GlueAvroConverter(MessageConverter[GlueAvroConverterConfig]):
    """Writes and reads Avro with schemas in AWS Glue, as Amazon's converter does.

    A damaged message raises a :class:`~connect.errors.DataError`; a registry that does not respond raises a
    :class:`~connect.errors.RetriableError`.
    """

    def __init__(self, config: GlueAvroConverterConfig, *, is_key: bool = False) -> None:
        self._registry = GlueRegistry(config)
        super().__init__(config, GlueCodecs(config, self._registry), is_key=is_key)

    def close(self) -> None:
        """Close the connections to the registry."""
        self._registry.close()


class GlueCodecs:
    """The readers and writers of the most recent schemas."""

    may_change = False

    def __init__(self, config: GlueAvroConverterConfig, registry: GlueRegistry) -> None:
        self._config = config
        self._registry = registry
        self.writer: Callable[[str, Schema | None], Encode] = lru_cache(config.cache_size)(self._new_writer)
        self._readers: Callable[[bytes], Reader] = remembering(config.cache_size, self._new_reader)

    def header(self, message: bytes) -> bytes:
        """Return the start of a message by which its reader is chosen."""
        return message[:_FRAME]

    # -- writing -------------------------------------------------------------------------------------------------

    def _new_writer(self, topic: str, schema: Schema | None) -> Encode:
        # Values are registered by what they are: one that may be null is none when it is written.
        present = None if schema is None else schema.as_required()
        avro = avro_from_connect(present, self._config)
        text = avro_text(avro).replace(_CONFLUENT, _AMAZON)
        version = self._registry.version(self._config.schema_name or topic, text)
        compresses = self._config.compression is Compression.ZLIB
        frame = _VERSION + bytes([_COMPRESSED if compresses else _PLAIN]) + version.bytes
        return avro_writer(present, avro, self._config, frame, zlib.compress if compresses else None)

    # -- reading -------------------------------------------------------------------------------------------------

    def reader(self, topic: str, header: bytes) -> Reader:  # noqa: ARG002
        """Return the reader for messages with that header."""
        return self._readers(header)

    def _new_reader(self, header: bytes) -> Reader:
        if len(header) < _FRAME or header[:1] != _VERSION or header[1] not in (_PLAIN, _COMPRESSED):
            raise DataError(
                f"The message begins with {header[:2].hex() or 'nothing'} instead of 0300 or 0305 and 16 more bytes: "
                "it was not written for AWS Glue's schema registry. Use the converter with which it was written."
            )
        text = self._registry.text(UUID(bytes=bytes(header[2:])))
        avro = parse_avro(text.replace(_AMAZON, _CONFLUENT), [])
        return avro_reader(avro, self._config, _FRAME, _name, _inflated if header[1] == _COMPRESSED else None)


def _name(message: bytes) -> str:
    return f"the version {UUID(bytes=bytes(message[2:_FRAME]))}"


def _inflated(message: bytes) -> bytes:
    """Return a message without its compression; a small one may not become one that fills the memory."""
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(message[_FRAME:], _MOST_INFLATED_BYTES)
    except zlib.error as error:
        raise DataError(f"The message cannot be decompressed: {error}") from error
    if not stream.eof and stream.unconsumed_tail:
        raise DataError(
            f"The message has more than {_MOST_INFLATED_BYTES >> 20} MiB when it is decompressed, which is not read."
        )
    if not stream.eof or stream.unused_data:
        raise DataError("The message cannot be decompressed: it ends too early, or has bytes left over.")
    return message[:_FRAME] + body
