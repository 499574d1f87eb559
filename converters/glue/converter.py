"""The Avro converter for AWS Glue's schema registry."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Final
from uuid import UUID

from connect.data import Schema
from connect.errors import DataError
from connect.kits.avro.avro_schema import AvroSchema, parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.decode import decoder
from connect.kits.avro.encode import encoder
from connect.kits.avro.from_connect import avro_from_connect
from connect.kits.avro.to_connect import connect_from_avro
from connect.kits.schema_frame import HEADER
from converters.glue.client import GlueRegistry
from converters.glue.config import Compression, GlueAvroConverterConfig
from converters.registry.codecs import ArrowDecoder, Encode, Reader
from converters.registry.converter import MessageConverter

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
        self._readers = lru_cache(config.cache_size)(self._new_reader)

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
        encode, is_bytes = encoder(present, avro, 0, self._config), avro.kind == "bytes"
        compresses = self._config.compression is Compression.ZLIB
        frame = _VERSION + bytes([_COMPRESSED if compresses else _PLAIN]) + version.bytes

        def write(values: Sequence[Any]) -> list[bytes]:
            bodies = (message[HEADER:] for message in encode(values))
            if is_bytes:
                bodies = (_long(len(body)) + body for body in bodies)
            if compresses:
                bodies = (zlib.compress(body) for body in bodies)
            return [frame + body for body in bodies]

        return write

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
        schema = connect_from_avro(avro, self._config, None)
        decode = decoder(avro, avro, schema, self._config, _FRAME)
        opens: list[Callable[[bytes], bytes]] = []
        if header[1] == _COMPRESSED:
            opens.append(_inflated)
        if avro.kind == "bytes":
            opens.append(_without_length)
        columns = None if schema is None else cache(partial(self._columns, avro, schema, decode, tuple(opens)))
        return Reader(schema, partial(_decoded, decode, tuple(opens)) if opens else decode, columns)

    def _columns(
        self,
        avro: AvroSchema,
        schema: Schema,
        decode: Callable[[Sequence[bytes]], list[Any]],
        opens: tuple[Callable[[bytes], bytes], ...],
    ) -> ArrowDecoder:
        # numpy and pyarrow are loaded only where columns are read.
        from connect.kits.avro.columns import column_decoder  # noqa: PLC0415

        made = column_decoder(avro, avro, schema, self._config, decode, _FRAME)
        return _OpeningDecoder(made, opens) if opens else made


class _OpeningDecoder:
    """Decodes messages that are opened first."""

    def __init__(self, decoder: ArrowDecoder, opens: tuple[Callable[[bytes], bytes], ...]) -> None:
        self._decoder = decoder
        self._opens = opens
        self.is_fast = decoder.is_fast

    def read(self, messages: Sequence[bytes]) -> Any:
        """Decode a list of messages."""
        return self._decoder.read(_opened(self._opens, messages))

    def read_array(self, messages: Any) -> Any:
        """Decode an Arrow array of messages."""
        return self.read(messages.to_pylist())


def _decoded(
    decode: Callable[[Sequence[bytes]], list[Any]],
    opens: tuple[Callable[[bytes], bytes], ...],
    messages: Sequence[bytes],
) -> list[Any]:
    return decode(_opened(opens, messages))


def _opened(opens: tuple[Callable[[bytes], bytes], ...], messages: Sequence[bytes]) -> list[bytes]:
    found = list(messages)
    for each in opens:
        found = [each(message) for message in found]
    return found


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


def _without_length(message: bytes) -> bytes:
    """Return a message of bytes alone without their length, which Amazon's converter writes and Confluent's omits."""
    size, shift, at = 0, 0, _FRAME
    while at < len(message) and shift < 63:
        byte = message[at]
        size |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            if size & 1 or size >> 1 != len(message) - at:
                break
            return message[:_FRAME] + message[at:]
    raise DataError("The message is damaged: the length of its bytes is not that of what follows.")


def _long(number: int) -> bytes:
    """Return a length as Avro writes it."""
    number <<= 1
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
