"""The options of the Avro converter, and caches of writers by Connect schema and of readers by schema id."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING

from connect.data import Schema
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import AvroSchema, is_null, parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import Decode, decoder
from connect.kits.avro.encode import Encode, encoder
from connect.kits.avro.from_connect import avro_from_connect
from connect.kits.avro.to_connect import connect_from_avro
from converters.avro.column import Decoders
from converters.registry import (
    RegisteredSchema,
    RegistryClient,
    RegistryConfig,
    SubjectNameStrategy,
    subject_name_strategy,
)

if TYPE_CHECKING:
    from connect.kits.avro.columns import ColumnDecoder

__all__ = ["AvroConverterConfig", "Codecs", "Reader"]


class AvroConverterConfig(RegistryConfig, AvroDataConfig):
    """The options of the Avro converter: the registry, and how schemas are mapped."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The decoder for the messages of one schema, with the Connect schema of their values."""

    schema: Schema | None
    decode: Decode
    decoders: Decoders | None
    """Also the decoder by column, if the values have a schema."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The Avro translation of a Connect schema."""

    avro: AvroSchema
    text: str


class Codecs:
    """The readers and writers of the most recent schemas, at most ``schemas.cache.config`` of each."""

    def __init__(self, config: AvroConverterConfig, registry: RegistryClient, *, is_key: bool) -> None:
        self._config = config
        self._registry = registry
        self._is_key = is_key
        name = config.key_subject_name_strategy if is_key else config.value_subject_name_strategy
        self._strategy = subject_name_strategy(name) or SubjectNameStrategy.TOPIC_NAME
        size = config.schemas_cache_config
        self._written = lru_cache(size)(self._new_written)
        self._parsed = lru_cache(size)(self._new_parsed)
        self._writers = lru_cache(size)(self._new_writer)
        self._readers = lru_cache(size)(self._new_reader)

    @property
    def may_change(self) -> bool:
        """Whether readers and writers must be fetched for each call, because the latest schema may change."""
        return self._config.use_latest_version and self._config.latest_cache_ttl_sec >= 0

    # -- writing -------------------------------------------------------------------------------------------------

    def writer(self, topic: str, schema: Schema | None) -> Encode:
        """Return the encoder for values with that schema on that topic."""
        return self._writers(topic, schema, self._latest(topic, schema))

    def _latest(self, topic: str, schema: Schema | None) -> RegisteredSchema | None:
        config = self._config
        if config.auto_register_schemas or config.use_schema_id >= 0 or not config.use_latest_version:
            return None
        return self._registry.latest(self._subject(topic, self._written(schema).avro))

    def _new_writer(self, topic: str, schema: Schema | None, latest: RegisteredSchema | None) -> Encode:
        config, written = self._config, self._written(schema)
        subject = self._subject(topic, written.avro)
        if config.auto_register_schemas:
            return encoder(schema, written.avro, self._registry.register(subject, written.text), config)
        if config.use_schema_id >= 0:
            target = self._registry.by_id(config.use_schema_id, self._known_subject(topic))
            return self._writer_in(schema, written, target, strict=config.id_compatibility_strict)
        if latest is not None:
            return self._writer_in(schema, written, latest, strict=config.latest_compatibility_strict)
        return encoder(schema, written.avro, self._registry.look_up(subject, written.text).id, config)

    def _writer_in(self, schema: Schema | None, written: _Written, target: RegisteredSchema, *, strict: bool) -> Encode:
        """Return the encoder for a schema chosen in the registry, to which the values must conform."""
        avro = self._parsed(target)
        if strict:
            try:
                decoder(written.avro, avro, connect_from_avro(avro, self._config), self._config)
            except SchemaError as error:
                key = "id" if self._config.use_schema_id >= 0 else "latest"
                raise SchemaError(
                    f"Incompatible schema {written.text}: the schema with id {target.id}, in which values should be "
                    f"written, cannot read it. {error} Set {key}.compatibility.strict=false to disable this check."
                ) from error
        return encoder(schema, avro, target.id, self._config)

    def _new_written(self, schema: Schema | None) -> _Written:
        avro = avro_from_connect(schema, self._config)
        return _Written(avro, avro_text(avro))

    # -- reading -------------------------------------------------------------------------------------------------

    def reader(self, topic: str, schema_id: int) -> Reader:
        """Return the reader for messages on that topic that were written with the schema of that id."""
        if not self._config.use_latest_version:
            return self._readers(topic, schema_id, None)
        subject = self._subject(topic, self._of_id(topic, schema_id))
        return self._readers(topic, schema_id, self._registry.latest(subject))

    def _new_reader(self, topic: str, schema_id: int, latest: RegisteredSchema | None) -> Reader:
        writer = self._of_id(topic, schema_id)
        if latest is None or latest.id == schema_id:
            version = self._registry.version_of(schema_id, self._subject(topic, writer))
            target = writer
        else:
            target, version = self._parsed(latest), latest.version
        schema = connect_from_avro(target, self._config, version)
        decode = decoder(writer, target, schema, self._config)
        if schema is None:
            return Reader(None, decode, None)
        return Reader(
            schema, decode, Decoders(schema, decode, cache(partial(self._columns, writer, target, decode, schema)))
        )

    def _columns(self, writer: AvroSchema, target: AvroSchema, decode: Decode, schema: Schema) -> ColumnDecoder:
        # numpy and pyarrow are loaded only where columns are read.
        from connect.kits.avro.columns import column_decoder  # noqa: PLC0415

        return column_decoder(writer, target, schema, self._config, decode)

    def _of_id(self, topic: str, schema_id: int) -> AvroSchema:
        return self._parsed(self._registry.by_id(schema_id, self._known_subject(topic)))

    def _new_parsed(self, registered: RegisteredSchema) -> AvroSchema:
        if registered.kind != "AVRO":
            raise DataError(
                f"The schema with id {registered.id} is of type {registered.kind} and not Avro: use the converter that "
                "wrote the message."
            )
        return parse_avro(registered.text, self._registry.referenced(registered))

    # -- subjects ------------------------------------------------------------------------------------------------

    def _known_subject(self, topic: str) -> str | None:
        """Return the subject if it does not depend on the schema, otherwise ``None``."""
        return None if self._strategy.uses_record else self._strategy.subject(topic, None, is_key=self._is_key)

    def _subject(self, topic: str, avro: AvroSchema) -> str:
        present = [branch for branch in avro.branches if not is_null(branch)] or [avro]
        name = present[0].name if len(present) == 1 and present[0].kind == "record" else None
        return self._strategy.subject(topic, name, is_key=self._is_key)
