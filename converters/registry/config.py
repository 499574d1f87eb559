"""The options of the client of a schema registry, for every converter that uses one, and the subjects they name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final
from uuid import UUID

from connect.config import (
    HIDDEN,
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    all_of,
    at_least,
    invalid_value,
    option,
    url_list,
    validator,
)
from connect.config.url import HttpUrl, http_url
from connect.errors import ConfigError, DataError
from connect.hosts import HostsConfig
from connect.internals.tls.client import TLS_NAMES
from connect.kits.http.settings import TlsConfig
from connect.kits.schema_frame import guid_frame, header
from converters.universal import ConverterConfig

__all__ = ["RegistryConfig", "SubjectNameStrategy", "subject_name_strategy"]

_BASIC_SOURCES = ("URL", "USER_INFO", "SASL_INHERIT")
_BEARER_SOURCES = ("STATIC_TOKEN", "OAUTHBEARER", "SASL_OAUTHBEARER_INHERIT", "CUSTOM")
_TOKEN: Final = re.compile(r"[!-~]+")
"""The form of a valid token, which becomes part of a header."""

_HOST: Final = re.compile(r"[^\s/@?#\\\[\]:]+|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?")
_BEARER_REMEDY = "use STATIC_TOKEN (bearer.auth.token) or OAUTHBEARER (bearer.auth.issuer.endpoint.url)"


_JAVA_PACKAGES: Final = ("io.confluent.kafka.serializers.subject", "io.confluent.kafka.serializers")


_ID_PACKAGE: Final = "io.confluent.kafka.serializers.schema.id"
_HEADER_SERIALIZER: Final = "HeaderSchemaIdSerializer"
_ID_SERIALIZERS: Final = ("PrefixSchemaIdSerializer", _HEADER_SERIALIZER)
_DUAL_DESERIALIZER: Final = "DualSchemaIdDeserializer"
_CONFIG_DESERIALIZER: Final = "ConfigSchemaIdDeserializer"
_ID_DESERIALIZERS: Final = (_DUAL_DESERIALIZER, "PrefixSchemaIdDeserializer", _CONFIG_DESERIALIZER)


class SubjectNameStrategy(StrEnum):
    """The ways to name subjects; the value is the simple name of the Java class."""

    TOPIC_NAME = "TopicNameStrategy"
    RECORD_NAME = "RecordNameStrategy"
    TOPIC_RECORD_NAME = "TopicRecordNameStrategy"

    @property
    def uses_record(self) -> bool:
        """Whether the name of the record is part of the subject."""
        return self is not SubjectNameStrategy.TOPIC_NAME

    def subject(self, topic: str, record_name: str | None, *, is_key: bool) -> str:
        """Return the subject of a schema; ``record_name`` is ``None`` if the schema has no name.

        Raises :class:`~connect.errors.DataError` if the strategy requires a name.
        """
        if self is SubjectNameStrategy.TOPIC_NAME:
            return f"{topic}-{'key' if is_key else 'value'}"
        if record_name is None:
            side = "key" if is_key else "value"
            raise DataError(
                f"In configuration {side}.subject.name.strategy = {self.value}, the message {side} must only be a"
                f" record schema: give the {side} of topic {topic} a schema with a name, or use TopicNameStrategy."
            )
        return record_name if self is SubjectNameStrategy.RECORD_NAME else f"{topic}-{record_name}"


def subject_name_strategy(name: str) -> SubjectNameStrategy | None:
    """Return the strategy with that simple name or Java class, or ``None`` if there is none."""
    package, _, simple = name.rpartition(".")
    if package and package not in _JAVA_PACKAGES:
        return None
    return next((strategy for strategy in SubjectNameStrategy if strategy.value == simple), None)


@validator("list of http and https URLs")
def _http_urls(key: str, value: tuple[str, ...]) -> None:
    for url in value:
        _registry_url(key, url)


@validator("http or https URL")
def _issuer(key: str, value: str) -> None:
    _issuer_url(key, value)


@validator("token of visible characters")
def _token(key: str, value: str) -> None:
    if not _TOKEN.fullmatch(value):
        reason = "A token is one word of ASCII characters: remove the line break at its end, which files often have"
        raise invalid_value(key, HIDDEN, reason)


@validator("TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy or the Java class of one")
def _strategy(key: str, value: str) -> None:
    if subject_name_strategy(value) is None:
        choices = ", ".join(SubjectNameStrategy)
        raise invalid_value(key, value, f"use one of {choices}; custom strategies are not supported")


@validator("PrefixSchemaIdSerializer, HeaderSchemaIdSerializer or the Java class of one")
def _id_serializer(key: str, value: str) -> None:
    _check_class(key, value, _ID_SERIALIZERS)


@validator("DualSchemaIdDeserializer, PrefixSchemaIdDeserializer, ConfigSchemaIdDeserializer or the Java class of one")
def _id_deserializer(key: str, value: str) -> None:
    _check_class(key, value, _ID_DESERIALIZERS)


@validator("GUID such as 3f8a7c5e-0d4b-4a9e-9f0a-6b1c2d3e4f50")
def _guid(key: str, value: str) -> None:
    try:
        UUID(value)
    except ValueError as error:
        raise invalid_value(key, value, "it is no GUID") from error


def _check_class(key: str, value: str, choices: tuple[str, ...]) -> None:
    package, _, simple = value.rpartition(".")
    if simple not in choices or package not in ("", _ID_PACKAGE):
        raise invalid_value(key, value, f"use one of {', '.join(choices)}; custom classes are not supported")


class _TlsConfig(
    TlsConfig,
    tls_prefix="schema.registry.",
    tls_aliases={name: name for name in TLS_NAMES},
    alias_doc="The same as {key}, which takes precedence.",
):
    """The TLS options. Each key can also be written without ``schema.registry.``."""


class RegistryConfig(ConverterConfig, _TlsConfig, HostsConfig):
    """The options for reaching a schema registry and for choosing schemas in it."""

    schema_registry_url: tuple[str, ...] = option(
        importance=HIGH,
        validator=all_of(url_list, _http_urls),
        doc="The URLs of the schema registry, separated by commas. The first that answers is used until it fails.",
    )
    schema_registry_url_randomize: bool = option(
        default=False, importance=LOW, doc="Whether to start with a random URL instead of the first."
    )
    max_schemas_per_subject: int = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        doc="How many schemas of the registry to cache.",
    )
    auto_register_schemas: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether schemas are registered when they are first used. Otherwise they must be registered already.",
    )
    normalize_schemas: bool = option(
        default=False, importance=MEDIUM, doc="Whether the registry compares schemas in their normal form."
    )
    use_latest_version: bool = option(
        default=False,
        importance=LOW,
        doc="Whether values are written, and read, in the latest schema of the subject. To write, set "
        "auto.register.schemas=false too.",
    )
    latest_compatibility_strict: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the latest schema must be able to read values written in the value's own schema.",
    )
    latest_cache_ttl_sec: int = option(
        default=-1, importance=LOW, doc="For how many seconds the latest schema is cached; -1 for ever."
    )
    latest_cache_size: int = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        doc="For how many subjects the latest schema is cached.",
    )
    use_schema_id: int = option(
        default=-1,
        importance=LOW,
        doc="The id of the schema in which values are written; -1 for none. Set auto.register.schemas=false too.",
    )
    use_schema_guid: str | None = option(
        default=None,
        importance=LOW,
        validator=_guid,
        doc="The GUID of the schema in which values are written, as with use.schema.id, which takes precedence.",
    )
    id_compatibility_strict: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the schema of use.schema.id or use.schema.guid must be able to read values written in the value's "
        "own schema.",
    )
    key_subject_name_strategy: str = option(
        default=SubjectNameStrategy.TOPIC_NAME.value,
        importance=MEDIUM,
        validator=_strategy,
        doc="How the subject of the schema of keys is named: TopicNameStrategy (<topic>-key), RecordNameStrategy (the "
        "name of the record) or TopicRecordNameStrategy (<topic>-<name of the record>).",
    )
    value_subject_name_strategy: str = option(
        default=SubjectNameStrategy.TOPIC_NAME.value,
        importance=MEDIUM,
        validator=_strategy,
        doc="How the subject of the schema of values is named; see key.subject.name.strategy.",
    )
    key_schema_id_serializer: str = option(
        default=_ID_SERIALIZERS[0],
        importance=LOW,
        validator=_id_serializer,
        doc="Where keys name their schema: PrefixSchemaIdSerializer (by its id, before the data) or "
        "HeaderSchemaIdSerializer (by its GUID, in the header __key_schema_id).",
    )
    value_schema_id_serializer: str = option(
        default=_ID_SERIALIZERS[0],
        importance=LOW,
        validator=_id_serializer,
        doc="Where values name their schema: PrefixSchemaIdSerializer (by its id, before the data) or "
        "HeaderSchemaIdSerializer (by its GUID, in the header __value_schema_id).",
    )
    key_schema_id_deserializer: str = option(
        default=_ID_DESERIALIZERS[0],
        importance=LOW,
        validator=_id_deserializer,
        doc="Where keys that are read name their schema: DualSchemaIdDeserializer (in the header __key_schema_id if it "
        "is there, otherwise before the data), PrefixSchemaIdDeserializer (always before the data) or "
        "ConfigSchemaIdDeserializer (nowhere: it is that of use.schema.id or use.schema.guid).",
    )
    value_schema_id_deserializer: str = option(
        default=_ID_DESERIALIZERS[0],
        importance=LOW,
        validator=_id_deserializer,
        doc="Where values that are read name their schema: DualSchemaIdDeserializer (in the header __value_schema_id "
        "if it is there, otherwise before the data), PrefixSchemaIdDeserializer (always before the data) or "
        "ConfigSchemaIdDeserializer (nowhere: it is that of use.schema.id or use.schema.guid).",
    )
    basic_auth_credentials_source: str = option(
        default="URL",
        importance=MEDIUM,
        doc="Where to find the user and password for the registry: URL (in schema.registry.url), USER_INFO "
        "(basic.auth.user.info) or SASL_INHERIT (sasl.jaas.config of this converter).",
    )
    basic_auth_user_info: Password = option(
        default=Password(""), importance=MEDIUM, doc="The user and password as <user>:<password>, for USER_INFO."
    )
    schema_registry_basic_auth_user_info: Password = option(
        default=Password(""), importance=LOW, doc="An older name of basic.auth.user.info."
    )
    sasl_jaas_config: Password | None = option(
        default=None, importance=LOW, doc="The user and password as for a Kafka client, for SASL_INHERIT."
    )
    bearer_auth_credentials_source: str = option(
        default="",
        importance=MEDIUM,
        doc="Where a bearer token for the registry comes from: STATIC_TOKEN (bearer.auth.token) or OAUTHBEARER (the "
        "issuer of bearer.auth.issuer.endpoint.url).",
    )
    bearer_auth_token: Password | None = option(
        default=None, importance=MEDIUM, validator=_token, doc="The token, for STATIC_TOKEN."
    )
    bearer_auth_issuer_endpoint_url: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=_issuer,
        doc="The URL that issues tokens for client credentials, for OAUTHBEARER.",
    )
    bearer_auth_client_id: str | None = option(default=None, importance=MEDIUM, doc="The client's id, for OAUTHBEARER.")
    bearer_auth_client_secret: Password | None = option(
        default=None, importance=MEDIUM, doc="The client's secret, for OAUTHBEARER."
    )
    bearer_auth_scope: str | None = option(
        default=None, importance=MEDIUM, doc="The scope to request, for OAUTHBEARER."
    )
    bearer_auth_cache_expiry_buffer_seconds: int = option(
        default=300,
        importance=LOW,
        validator=at_least(0),
        doc="How many seconds before its expiry a token is replaced.",
    )
    bearer_auth_logical_cluster: str | None = option(
        default=None, importance=MEDIUM, doc="The logical cluster of the registry, sent as target-sr-cluster."
    )
    bearer_auth_identity_pool_id: str | None = option(
        default=None, importance=MEDIUM, doc="The identity pool, sent as Confluent-Identity-Pool-Id."
    )
    proxy_host: str = option(default="", importance=LOW, doc="The host of an HTTP proxy to the registry.")
    proxy_port: int = option(default=-1, importance=LOW, doc="The port of the HTTP proxy.")
    http_connect_timeout_ms: int = option(
        default=60000, importance=LOW, validator=at_least(1), doc="How long connecting may take."
    )
    http_read_timeout_ms: int = option(
        default=60000, importance=LOW, validator=at_least(1), doc="How long an answer may take."
    )
    max_retries: int = option(
        default=3,
        importance=LOW,
        validator=at_least(0),
        doc="How often a request is retried while no URL answers, before it is left to the runtime to try again later.",
    )
    retries_wait_ms: Long = option(
        default=1000, importance=LOW, validator=at_least(0), doc="The longest wait before the first retry."
    )
    retries_max_wait_ms: Long = option(
        default=20000, importance=LOW, validator=at_least(0), doc="The longest wait before any retry."
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several options."""
        yield from super().check()
        basic, bearer = self.basic_auth_credentials_source, self.bearer_auth_credentials_source
        if basic not in ("", *_BASIC_SOURCES):
            choices = ", ".join(_BASIC_SOURCES)
            yield ConfigError("basic.auth.credentials.source", basic, f"it must be one of {choices}")
        if bearer not in ("", *_BEARER_SOURCES[:2]):
            yield ConfigError("bearer.auth.credentials.source", bearer, _BEARER_REMEDY)
        if basic not in ("", "URL") and bearer:
            yield ConfigRuleError(
                "Only one of 'basic.auth.credentials.source' and 'bearer.auth.credentials.source' may be specified",
                "basic.auth.credentials.source",
            )
        try:
            self.proxy  # noqa: B018 - asked for what it raises
        except ConfigError as error:
            yield error
        yield from self._missing()
        for side in ("key", "value"):
            given = getattr(self, f"{side}_schema_id_deserializer")
            if given.endswith(_CONFIG_DESERIALIZER) and self.use_schema_id < 0 and self.use_schema_guid is None:
                yield ConfigError(f"{side}.schema.id.deserializer", given, "it needs use.schema.id or use.schema.guid")

    def _missing(self) -> Iterable[ConfigError]:
        if self.basic_auth_credentials_source == "USER_INFO" and ":" not in self.user_info:
            yield ConfigError("basic.auth.user.info", "[hidden]", "USER_INFO needs it, as <user>:<password>")
        if self.basic_auth_credentials_source == "SASL_INHERIT" and self.sasl_jaas_config is None:
            yield ConfigError(
                "sasl.jaas.config", None, "SASL_INHERIT needs it among the converter's own keys; or use USER_INFO"
            )
        if self.bearer_auth_credentials_source == "STATIC_TOKEN" and self.bearer_auth_token is None:
            yield ConfigError("bearer.auth.token", None, "STATIC_TOKEN needs it")
        if self.bearer_auth_credentials_source == "OAUTHBEARER":
            needed = ("bearer_auth_issuer_endpoint_url", "bearer_auth_client_id", "bearer_auth_client_secret")
            for name in needed:
                if getattr(self, name) is None:
                    yield ConfigError(name.replace("_", "."), None, "OAUTHBEARER needs it")

    def writes_id_in_header(self, *, is_key: bool) -> bool:
        """Return whether keys or values name their schema in a header."""
        name = self.key_schema_id_serializer if is_key else self.value_schema_id_serializer
        return name.rpartition(".")[2] == _HEADER_SERIALIZER

    def reads_id_in_header(self, *, is_key: bool) -> bool:
        """Return whether keys or values may name their schema in a header."""
        name = self.key_schema_id_deserializer if is_key else self.value_schema_id_deserializer
        return name.rpartition(".")[2] == _DUAL_DESERIALIZER

    def configured_frame(self, *, is_key: bool) -> bytes:
        """Return what stands in place of the beginning of keys or values that do not name their schema themselves."""
        name = self.key_schema_id_deserializer if is_key else self.value_schema_id_deserializer
        if name.rpartition(".")[2] != _CONFIG_DESERIALIZER:
            return b""
        return guid_frame(self.use_schema_guid) if self.use_schema_guid is not None else header(self.use_schema_id)

    @property
    def urls(self) -> tuple[HttpUrl, ...]:
        """The URLs of the registry, in order."""
        return tuple(_registry_url("schema.registry.url", url) for url in self.schema_registry_url)

    @property
    def issuer(self) -> HttpUrl | None:
        """The URL that issues tokens, if there is one."""
        url = self.bearer_auth_issuer_endpoint_url
        return None if url is None else _issuer_url("bearer.auth.issuer.endpoint.url", url)

    @property
    def proxy(self) -> str | None:
        """The URL of the proxy, or ``None``. Raises :class:`~connect.errors.ConfigError` if it is not valid."""
        return _proxy_url(self.proxy_host, self.proxy_port)

    @property
    def user_info(self) -> str:
        """``<user>:<password>``, or an empty text."""
        return self.basic_auth_user_info.value or self.schema_registry_basic_auth_user_info.value


def _registry_url(key: str, text: str) -> HttpUrl:
    """Parse the URL of a registry. The :class:`~connect.errors.ConfigError` for an invalid one does not show it."""
    url = _usable(key, text)
    if url.query:
        raise invalid_value(key, HIDDEN, "The URL of a registry has no query: remove the ? and what follows it")
    return url


def _issuer_url(key: str, text: str) -> HttpUrl:
    """Parse the URL that issues tokens; errors as in :func:`_registry_url`."""
    url = _usable(key, text)
    if url.user_info is not None:
        reason = "It contains a user: remove that, and set bearer.auth.client.id and bearer.auth.client.secret instead"
        raise invalid_value(key, HIDDEN, reason)
    return url


def _proxy_url(host: str, port: int) -> str | None:
    """Parse the URL of a proxy, or return ``None`` if it is empty; errors as in :func:`_registry_url`."""
    if not host or port <= 0:
        return None
    if not _HOST.fullmatch(host) or port > 65535:
        reason = "It must be just the name or address of a host, and proxy.port must be from 1 to 65535"
        raise invalid_value("proxy.host", HIDDEN, reason)
    place = f"[{host.strip('[]')}]" if ":" in host else host
    return _usable("proxy.host", f"http://{place}:{port}").address


def _usable(key: str, text: str) -> HttpUrl:
    try:
        return http_url(text)
    except ValueError as error:
        # The URL may contain a password, so the error shows no part of it.
        raise invalid_value(key, HIDDEN, f"This is not a usable URL: {error}") from error
