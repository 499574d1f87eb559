"""Caches of writers by Connect schema and of readers by schema id, for every format with schemas in a registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar
from uuid import UUID

from connect.data import Schema
from connect.errors import ConnectError, DataError, SchemaError
from connect.kits.schema_frame import HEADER, frame_size, guid_frame, read_key
from converters.registry.client import RegistryClient, RegistryError
from converters.registry.config import RegistryConfig, SubjectNameStrategy, subject_name_strategy
from converters.registry.schema import RegisteredSchema, SchemaReference

__all__ = ["ArrowDecoder", "Codecs", "Decode", "Encode", "Reader", "SchemaFormat", "Written", "remembering"]

Encode: TypeAlias = Callable[[Sequence[Any]], list[bytes]]
"""Encodes values as messages, headers included. Raises :class:`~connect.errors.DataError` for the first invalid one."""

Decode: TypeAlias = Callable[[Sequence[bytes]], list[Any]]
"""Decodes messages with the same header. Raises :class:`~connect.errors.DataError` for the first invalid one."""

P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a schema cannot be used."""

    text: str


def remembering(size: int, make: Callable[..., T]) -> Callable[..., T]:
    """Return a function that remembers what ``make`` has returned for the most recent arguments.

    It also remembers which schemas cannot be used: to find that out may take seconds, and there may be many messages of
    such a schema. Other errors may pass, and are not remembered.
    """

    @lru_cache(size)
    def outcome(*arguments: Any) -> T | _Refusal:
        try:
            return make(*arguments)
        except SchemaError as error:
            return _Refusal(str(error))

    def remembered(*arguments: Any) -> T:
        made: T | _Refusal = outcome(*arguments)
        if isinstance(made, _Refusal):
            raise SchemaError(made.text)
        return made

    return remembered


class ArrowDecoder(Protocol):
    """Decodes messages with the same header into an Arrow array; errors as of :data:`Decode`."""

    @property
    def is_fast(self) -> bool:
        """Whether messages are decoded together, and not first one after the other into values."""

    def read(self, messages: Sequence[bytes]) -> Any:
        """Decode a list of messages."""

    def read_array(self, messages: Any) -> Any:
        """Decode an Arrow array of messages."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The decoder for the messages of one schema, with the Connect schema of their values."""

    schema: Schema | None
    decode: Decode
    columns: Callable[[], ArrowDecoder] | None = None
    """Returns the decoder into Arrow, if the format has one. It is made when it is first asked for."""


@dataclass(frozen=True, slots=True)
class Written(Generic[P]):
    """The translation of a Connect schema: parsed, and as the registry is to keep it."""

    parsed: P
    text: str
    references: tuple[SchemaReference, ...] = ()


class SchemaFormat(ABC, Generic[P]):
    """A format of messages and its schemas, which are objects of the type ``P`` when parsed."""

    kind: ClassVar[str]
    """The ``schemaType`` of its schemas in the registry."""
    title: ClassVar[str]
    """Its name in messages to people."""

    @abstractmethod
    def written(self, schema: Schema | None) -> Written[P]:
        """Translate the schema of values to be written."""

    def following(self, schema: Schema | None, written: Written[P], latest: P) -> Written[P]:  # noqa: ARG002
        """Translate a schema so that it follows the latest one of its subject, where the format allows a choice."""
        return written

    @abstractmethod
    def parsed(self, registered: RegisteredSchema, registry: RegistryClient) -> P:
        """Parse a schema of the registry."""

    @abstractmethod
    def record_name(self, schema: P, header: bytes) -> str | None:
        """Return the name of the record that messages with this header hold, or ``None`` if it has none."""

    @abstractmethod
    def check_readable(self, written: Written[P], target: P) -> None:
        """Raise :class:`~connect.errors.SchemaError` if values of one schema could not be read in another."""

    @abstractmethod
    def encoder(self, schema: Schema | None, written: Written[P], target: P, schema_id: int, *, strict: bool) -> Encode:
        """Return the encoder of values as messages in the target schema, which has that id.

        ``strict`` if the target was chosen in the registry, and must be able to read what is written.
        """

    @abstractmethod
    def reader(self, writer: P, target: P, version: int | None, header: bytes) -> Reader:
        """Return the reader of messages with this header. They are written in one schema and read in another."""

    def header(self, message: bytes) -> bytes:
        """Return the start of a message by which its reader is chosen."""
        return message[: frame_size(message)]

    first_type: ClassVar[bytes] = b""
    """What in the header names the first type of a schema, where a schema has several."""
    follows_latest: ClassVar[bool] = False
    """Whether :meth:`following` makes a difference."""


class Codecs(Generic[P]):
    """The readers and writers of the most recent schemas, at most ``size`` of each."""

    def __init__(
        self, form: SchemaFormat[P], config: RegistryConfig, registry: RegistryClient, size: int, *, is_key: bool
    ) -> None:
        self.form = form
        self._config = config
        self._registry = registry
        self._is_key = is_key
        name = config.key_subject_name_strategy if is_key else config.value_subject_name_strategy
        self._strategy = subject_name_strategy(name) or SubjectNameStrategy.TOPIC_NAME
        self._written: Callable[[Schema | None], Written[P]] = remembering(size, form.written)
        self._parsed: Callable[[RegisteredSchema], P] = remembering(size, self._new_parsed)
        self._writers = lru_cache(size)(self._new_writer)
        self._readers: Callable[..., Reader] = remembering(size, self._new_reader)

    @property
    def names_guids(self) -> bool:
        """Whether messages name their schemas by GUIDs."""
        return self._config.writes_id_in_header(is_key=self._is_key)

    @property
    def _is_fixed(self) -> bool:
        """Whether the schema that is written is given."""
        return self._config.use_schema_id >= 0 or self._config.use_schema_guid is not None

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
        if config.auto_register_schemas or self._is_fixed or not config.use_latest_version:
            return None
        return self._registry.latest(self._subject(topic, self._written(schema).parsed))

    def _new_writer(self, topic: str, schema: Schema | None, latest: RegisteredSchema | None) -> Encode:
        config, form = self._config, self.form
        if not config.auto_register_schemas and self._is_fixed:
            guid = None if config.use_schema_guid is None else UUID(config.use_schema_guid)
            target = self._named(topic, guid if config.use_schema_id < 0 and guid is not None else config.use_schema_id)
            return self._writer_in(schema, target, strict=config.id_compatibility_strict)
        if latest is not None:
            return self._writer_in(schema, latest, strict=config.latest_compatibility_strict)
        subject = self._subject(topic, self._written(schema).parsed)
        written = self._following(schema, subject)
        asked = subject, written.text, form.kind, written.references
        schema_id = (
            self._registry.register(*asked) if config.auto_register_schemas else self._registry.look_up(*asked).id
        )
        encode = form.encoder(schema, written, written.parsed, schema_id, strict=False)
        return _with_guid(encode, self._registry.guid_of(*asked)) if self.names_guids else encode

    def _following(self, schema: Schema | None, subject: str) -> Written[P]:
        written = self._written(schema)
        if not self.form.follows_latest:
            return written
        latest = self._registry.newest(subject)
        if latest is None or latest.kind != self.form.kind:
            return written
        return self.form.following(schema, written, self._parsed(latest))

    def _writer_in(self, schema: Schema | None, target: RegisteredSchema, *, strict: bool) -> Encode:
        """Return the encoder for a schema chosen in the registry, to which the values must conform."""
        written, parsed = self._written(schema), self._parsed(target)
        if strict:
            try:
                self.form.check_readable(written, parsed)
            except SchemaError as error:
                key = "id" if self._is_fixed else "latest"
                raise SchemaError(
                    f"Incompatible schema {written.text}: the schema with id {target.id}, in which values should be "
                    f"written, cannot read it. {error} Set {key}.compatibility.strict=false to disable this check."
                ) from error
        encode = self.form.encoder(schema, written, parsed, target.id, strict=strict)
        if not self.names_guids:
            if not target.id:
                raise ConnectError(
                    f"The schema registry tells no id of the schema with GUID {target.guid}: name it in a header "
                    "(schema.id.serializer), or set use.schema.id instead of use.schema.guid."
                )
            return encode
        if target.guid is None:
            raise ConnectError(
                f"The schema registry tells no GUID of the schema with id {target.id}, so it cannot be named in a "
                "header: that takes Confluent Platform 8.0 or later; or leave out the schema.id.serializer keys."
            )
        return _with_guid(encode, target.guid)

    # -- reading -------------------------------------------------------------------------------------------------

    def header(self, message: bytes) -> bytes:
        """Return the start of a message by which its reader is chosen."""
        return self.form.header(message)

    def reader(self, topic: str, header: bytes) -> Reader:
        """Return the reader for messages on that topic with that header."""
        key = read_key(header, self.form.title)
        if not self._config.use_latest_version:
            return self._readers(topic, key, header, None)
        subject = self._subject(topic, self._parsed(self._named(topic, key)), header)
        return self._readers(topic, key, header, self._registry.latest(subject))

    def _new_reader(self, topic: str, key: int | UUID, header: bytes, latest: RegisteredSchema | None) -> Reader:
        named = self._named(topic, key)
        writer = self._parsed(named)
        if latest is None or latest.id == key or latest.text == named.text:
            version = self._version(named, self._subject(topic, writer, header))
            return self.form.reader(writer, writer, version, header)
        return self.form.reader(writer, self._parsed(latest), latest.version, header)

    def _named(self, topic: str, key: int | UUID) -> RegisteredSchema:
        if isinstance(key, UUID):
            return self._registry.by_guid(key)
        return self._registry.by_id(key, self._known_subject(topic))

    def _version(self, named: RegisteredSchema, subject: str) -> int | None:
        if named.id:
            return self._registry.version_of(named.id, subject)
        try:
            return self._registry.look_up(subject, named.text, named.kind, named.references).version
        except RegistryError:
            return None

    def _new_parsed(self, registered: RegisteredSchema) -> P:
        if registered.kind != self.form.kind:
            raise DataError(
                f"The schema with id {registered.id} is of type {registered.kind} and not {self.form.title}: use the "
                "converter that wrote the message."
            )
        return self.form.parsed(registered, self._registry)

    # -- subjects ------------------------------------------------------------------------------------------------

    def _known_subject(self, topic: str) -> str | None:
        """Return the subject if it does not depend on the schema, otherwise ``None``."""
        return None if self._strategy.uses_record else self._strategy.subject(topic, None, is_key=self._is_key)

    def _subject(self, topic: str, schema: P, header: bytes = b"") -> str:
        name = self.form.record_name(schema, header) if self._strategy.uses_record else None
        return self._strategy.subject(topic, name, is_key=self._is_key)


def _with_guid(encode: Encode, guid: str) -> Encode:
    """Return an encoder whose messages name their schema by its GUID instead of its id."""
    try:
        frame = guid_frame(guid)
    except ValueError as error:
        raise ConnectError(f"The schema registry tells {guid!r} for the GUID of a schema, which is none.") from error
    return lambda values: [frame + message[HEADER:] for message in encode(values)]
