"""The Avro converter, its options, and Avro as a format of a schema registry."""

from __future__ import annotations

from functools import cache, partial
from typing import ClassVar

from connect.data import Schema
from connect.kits.avro.avro_schema import AvroSchema, is_null, parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import Decode, decoder
from connect.kits.avro.encode import Encode, encoder
from connect.kits.avro.from_connect import avro_from_connect
from connect.kits.avro.to_connect import connect_from_avro
from converters.registry import RegisteredSchema, RegistryClient, RegistryConfig
from converters.registry.codecs import ArrowDecoder, Reader, SchemaFormat, Written
from converters.registry.converter import RegistryConverter

__all__ = ["AvroConverter", "AvroConverterConfig"]


class AvroConverterConfig(RegistryConfig, AvroDataConfig):
    """The options of the Avro converter: the registry, and how schemas are mapped."""


class AvroFormat(SchemaFormat[AvroSchema]):
    """Avro, as these options map it."""

    kind: ClassVar[str] = "AVRO"
    title: ClassVar[str] = "Avro"

    def __init__(self, config: AvroConverterConfig) -> None:
        self._config = config

    def written(self, schema: Schema | None) -> Written[AvroSchema]:
        """Translate the schema of values to be written."""
        avro = avro_from_connect(schema, self._config)
        return Written(avro, avro_text(avro))

    def parsed(self, registered: RegisteredSchema, registry: RegistryClient) -> AvroSchema:
        """Parse a schema of the registry."""
        return parse_avro(registered.text, registry.referenced(registered))

    def record_name(self, schema: AvroSchema, header: bytes) -> str | None:  # noqa: ARG002
        """Return the name of a record; of a union, that of its only member but null."""
        present = [branch for branch in schema.branches if not is_null(branch)] or [schema]
        return present[0].name if len(present) == 1 and present[0].kind == "record" else None

    def check_readable(self, written: Written[AvroSchema], target: AvroSchema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if values of one schema could not be read in another."""
        decoder(written.parsed, target, connect_from_avro(target, self._config), self._config)

    def encoder(
        self,
        schema: Schema | None,
        written: Written[AvroSchema],  # noqa: ARG002
        target: AvroSchema,
        schema_id: int,
        *,
        strict: bool,  # noqa: ARG002
    ) -> Encode:
        """Return the encoder of values as messages in the target schema."""
        return encoder(schema, target, schema_id, self._config)

    def reader(self, writer: AvroSchema, target: AvroSchema, version: int | None, header: bytes) -> Reader:
        """Return the reader of messages written in one schema, by the rules of Avro for reading them in another."""
        schema = connect_from_avro(target, self._config, version)
        decode = decoder(writer, target, schema, self._config, len(header))
        if schema is None:
            return Reader(None, decode)
        return Reader(schema, decode, cache(partial(self._columns, writer, target, schema, decode, len(header))))

    def _columns(
        self, writer: AvroSchema, target: AvroSchema, schema: Schema, decode: Decode, header: int
    ) -> ArrowDecoder:
        # numpy and pyarrow are loaded only where columns are read.
        from connect.kits.avro.columns import column_decoder  # noqa: PLC0415

        return column_decoder(writer, target, schema, self._config, decode, header)


class AvroConverter(RegistryConverter[AvroConverterConfig]):
    """Writes and reads Avro with schemas in a Confluent-compatible schema registry, with the same bytes as Java.

    A message is a zero byte, the id of the schema in four bytes, and the value. Any other message, even one with a
    single extra byte, raises a :class:`~connect.errors.DataError`; a registry that does not respond raises a
    :class:`~connect.errors.RetriableError`.
    """

    def __init__(self, config: AvroConverterConfig, *, is_key: bool = False) -> None:
        super().__init__(config, AvroFormat(config), config.schemas_cache_config, is_key=is_key)
