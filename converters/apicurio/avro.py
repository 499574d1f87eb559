"""The Avro converter for Apicurio Registry."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from connect.data import Schema, Type
from connect.errors import DataError
from connect.kits.avro.avro_schema import AvroSchema, parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.from_connect import avro_from_connect
from converters.apicurio.client import ApicurioRegistry, Artifact, Found, artifact_of
from converters.apicurio.config import ApicurioAvroConfig, UseId
from converters.registry.codecs import Encode, Reader, remembering
from converters.registry.converter import MessageConverter
from converters.registry.plain_avro import avro_reader, avro_writer

__all__ = ["ApicurioAvroConverter"]

_KIND: Final = "AVRO"
_MAGIC: Final = b"\0"
_MARKS: Final = {UseId.CONTENT_ID: b"\1", UseId.GLOBAL_ID: b"\2"}
"""What stands before an id from a header, the one that counts first: Java's converters prefer content ids, too."""
_USES: Final = {mark: use for use, mark in _MARKS.items()}
_HEADER_FRAME: Final = 9
"""The size of a mark and the id of a header, which has always eight bytes."""


class ApicurioAvroConverter(MessageConverter[ApicurioAvroConfig]):
    """Writes and reads Avro with schemas in Apicurio Registry, as Apicurio's own converter does.

    A damaged message raises a :class:`~connect.errors.DataError`; a registry that does not answer raises a
    :class:`~connect.errors.RetriableError`.
    """

    def __init__(self, config: ApicurioAvroConfig, *, is_key: bool = False) -> None:
        self._registry = ApicurioRegistry(config)
        super().__init__(config, _Codecs(config, self._registry, is_key=is_key), is_key=is_key)
        if config.has_headers:
            self.reads_frame_from = {config.header_of(use, is_key=is_key): mark for use, mark in _MARKS.items()}
            self.writes_frame_to = config.header_of(config.id_kind, is_key=is_key)

    def frame_size(self, data: bytes) -> int:  # noqa: ARG002
        """Return the size of what names the schema of a message that was written."""
        return _HEADER_FRAME

    def close(self) -> None:
        """Close the connections to the registry."""
        self._registry.close()


class _Codecs:
    """The readers and writers of the most recent schemas."""

    def __init__(self, config: ApicurioAvroConfig, registry: ApicurioRegistry, *, is_key: bool) -> None:
        self._config = config
        self._registry = registry
        self._is_key = is_key
        self._frame = len(_MAGIC) + config.id_size
        self._writers = lru_cache(config.schemas_cache_config)(self._new_writer)
        self._readers: Callable[[bytes], Reader] = remembering(config.schemas_cache_config, self._new_reader)
        self._is_chosen = not config.auto_register and (config.find_latest or config.artifact_version is not None)

    @property
    def may_change(self) -> bool:
        """Whether writers must be fetched for each call, because the latest schema may change."""
        return self._is_chosen

    def header(self, message: bytes) -> bytes:
        """Return the start of a message by which its reader is chosen."""
        return message[: _HEADER_FRAME if message[:1] in _USES else self._frame]

    # -- writing -------------------------------------------------------------------------------------------------

    def writer(self, topic: str, schema: Schema | None) -> Encode:
        """Return the encoder for values with that schema on that topic."""
        if not self._is_chosen:
            return self._writers(topic, schema, None)
        return self._writers(topic, schema, self._registry.chosen(self._artifact(topic, self._own(schema))))

    def _new_writer(self, topic: str, schema: Schema | None, chosen: Found | None) -> Encode:
        avro = self._own(schema)
        if chosen is None:
            artifact, text = self._artifact(topic, avro), avro_text(avro)
            find = self._registry.registered if self._config.auto_register else self._registry.looked_up
            ids = find(artifact, text, _KIND)
        else:
            assert chosen.ids is not None
            avro, ids = parse_avro(chosen.text, list(chosen.references)), chosen.ids
        return avro_writer(_present(schema), avro, self._config, self._written_frame(ids.of(self._config.id_kind)))

    def _own(self, schema: Schema | None) -> AvroSchema:
        return avro_from_connect(_present(schema), self._config)

    def _artifact(self, topic: str, avro: AvroSchema) -> Artifact:
        name = avro.name if avro.kind in ("record", "enum") else None
        return artifact_of(self._config, topic, name, is_key=self._is_key)

    def _written_frame(self, number: int) -> bytes:
        if self._config.has_headers:
            return _MARKS[self._config.id_kind] + number.to_bytes(8, "big", signed=True)
        size = self._config.id_size
        if number.bit_length() >= size * 8:
            raise DataError(
                f"The id {number} has more than {size} bytes: set apicurio.registry.id-handler to one of 8."
            )
        return _MAGIC + number.to_bytes(size, "big")

    # -- reading -------------------------------------------------------------------------------------------------

    def reader(self, topic: str, header: bytes) -> Reader:  # noqa: ARG002
        """Return the reader for messages with that header."""
        return self._readers(header)

    def _new_reader(self, header: bytes) -> Reader:
        use, number = self._read_id(header)
        found = self._registry.by_id(use, number)
        avro = parse_avro(found.text, list(found.references))
        return avro_reader(avro, self._config, len(header), self._name)

    def _read_id(self, header: bytes) -> tuple[UseId, int]:
        use = _USES.get(header[:1]) if self._config.has_headers else None
        if use is None and header[:1] != _MAGIC:
            raise DataError(
                f"Unknown magic byte! The message begins with {header[:1].hex() or 'nothing'} instead of 00 and has no "
                "header that names its schema: it was not written for Apicurio Registry. Use the converter with which "
                "it was written."
            )
        size = self._frame if use is None else _HEADER_FRAME
        number = int.from_bytes(header[1:], "big", signed=True)
        if len(header) < size or number < 0:
            raise DataError(
                f"The message begins with {header.hex()}, where an id of {size - 1} bytes should be: check "
                "apicurio.registry.id-handler, which should be the one with which it was written."
            )
        return use or self._config.id_kind, number

    def _name(self, message: bytes) -> str:
        use, number = self._read_id(self.header(message))
        return f"the {use.value} {number}"


def _present(schema: Schema | None) -> Schema | None:
    """Return the schema that values which are not null are registered with: as in Java, structs are not optional."""
    return schema.as_required() if schema is not None and schema.type is Type.STRUCT else schema
