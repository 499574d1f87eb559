"""The options of the converters for Apicurio Registry, under the names of its own converters."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from connect.config import (
    HIDDEN,
    HIGH,
    LOW,
    MEDIUM,
    Config,
    Long,
    Password,
    at_least,
    invalid_value,
    option,
    validator,
)
from connect.config.url import HttpUrl, http_url
from connect.errors import ConfigError
from connect.hosts import HostsConfig
from connect.kits.avro.config import AvroDataConfig
from connect.kits.http.settings import TlsConfig
from converters.json.config import JsonDataConfig
from converters.universal import ConverterConfig

__all__ = ["ApicurioAvroConfig", "ApicurioConfig", "ExtJsonConfig", "IdHandler", "IfExists", "Strategy", "UseId"]

_VERSIONS: Final = {"/apis/registry/v2": 2, "/apis/registry/v3": 3}
_NEWEST: Final = "/apis/registry/v3"
_STRATEGY_PACKAGES: Final = ("io.apicurio.registry.serde.strategy", "io.apicurio.registry.serde.avro.strategy")
_SERDE: Final = "io.apicurio.registry.serde"


class Strategy(StrEnum):
    """The ways to name artifacts; the value is the simple name of the Java class."""

    TOPIC_ID = "TopicIdStrategy"
    SIMPLE_TOPIC_ID = "SimpleTopicIdStrategy"
    RECORD_ID = "RecordIdStrategy"
    QUALIFIED_RECORD_ID = "QualifiedRecordIdStrategy"
    TOPIC_RECORD_ID = "TopicRecordIdStrategy"


class IdHandler(StrEnum):
    """The ways in which ids stand before the data; the value is the simple name of the Java class."""

    FOUR_BYTES = "Default4ByteIdHandler"
    EIGHT_BYTES = "Legacy8ByteIdHandler"
    OLD_FOUR_BYTES = "Legacy4ByteIdHandler"
    OLD_EIGHT_BYTES = "DefaultIdHandler"

    @property
    def size(self) -> int:
        """How many bytes an id has."""
        return 4 if self in (IdHandler.FOUR_BYTES, IdHandler.OLD_FOUR_BYTES) else 8


class UseId(StrEnum):
    """Which of its ids a schema is named by."""

    GLOBAL_ID = "globalId"
    CONTENT_ID = "contentId"


class IfExists(StrEnum):
    """The values of ``apicurio.registry.auto-register.if-exists``, of both versions of Apicurio."""

    FAIL = "FAIL"
    UPDATE = "UPDATE"
    RETURN_OR_UPDATE = "RETURN_OR_UPDATE"
    CREATE_VERSION = "CREATE_VERSION"
    FIND_OR_CREATE_VERSION = "FIND_OR_CREATE_VERSION"


def _simple(name: str, packages: tuple[str, ...]) -> str | None:
    package, _, simple = name.rpartition(".")
    return simple if not package or package in packages else None


@validator("URL of Apicurio Registry, such as http://registry:8080/apis/registry/v3")
def _url(key: str, value: str) -> None:
    _registry_url(key, value)


@validator("one of TopicIdStrategy, SimpleTopicIdStrategy, RecordIdStrategy, ... or its Java class")
def _strategy(key: str, value: str) -> None:
    if _simple(value, _STRATEGY_PACKAGES) not in set(Strategy):
        raise invalid_value(key, value, f"use one of {', '.join(Strategy)}; strategies of your own are not supported")


@validator("one of Default4ByteIdHandler, Legacy8ByteIdHandler, ... or its Java class")
def _id_handler(key: str, value: str) -> None:
    if _simple(value, (_SERDE,)) not in set(IdHandler):
        raise invalid_value(key, value, f"use one of {', '.join(IdHandler)}; classes of your own are not supported")


@validator("BINARY")
def _binary(key: str, value: str) -> None:
    if value != "BINARY":
        raise invalid_value(key, value, "Avro is written in its binary form: leave it out")


class _TlsConfig(TlsConfig, tls_prefix="apicurio.registry.request."):
    """The TLS options."""


class ApicurioConfig(ConverterConfig, _TlsConfig, HostsConfig):
    """The options for reaching Apicurio Registry and for choosing schemas in it."""

    apicurio_registry_url: str = option(
        name="apicurio.registry.url",
        importance=HIGH,
        validator=_url,
        doc="The URL of the registry. What it ends with says which version of its API is spoken, and with it, how "
        "messages name their schemas by default: /apis/registry/v2 as Apicurio 2 does, /apis/registry/v3 as Apicurio "
        "3; without either, version 3.",
    )
    auto_register: bool = option(
        name="apicurio.registry.auto-register",
        default=False,
        importance=HIGH,
        doc="Whether schemas are registered when they are first used. Otherwise they must be registered already.",
    )
    if_exists: IfExists | None = option(
        name="apicurio.registry.auto-register.if-exists",
        default=None,
        importance=LOW,
        doc="What registering does if the artifact exists: FAIL, CREATE_VERSION (UPDATE), or FIND_OR_CREATE_VERSION "
        "(RETURN_OR_UPDATE), which is the default.",
    )
    find_latest: bool = option(
        name="apicurio.registry.find-latest",
        default=False,
        importance=MEDIUM,
        doc="Whether values are written in the latest version of the artifact. It has no effect with "
        "apicurio.registry.auto-register.",
    )
    strategy_class: str = option(
        name="apicurio.registry.artifact-resolver-strategy",
        default=Strategy.TOPIC_ID.value,
        importance=MEDIUM,
        validator=_strategy,
        doc="How artifacts are named: TopicIdStrategy (<topic>-key or <topic>-value), SimpleTopicIdStrategy (<topic>), "
        "and for Avro RecordIdStrategy (the name of the record, in the group of its namespace), "
        "QualifiedRecordIdStrategy (the full name) or TopicRecordIdStrategy (<topic>-<name>, in the group).",
    )
    group_id: str | None = option(
        name="apicurio.registry.artifact.group-id",
        default=None,
        importance=MEDIUM,
        doc="The group of the artifact, in place of that of the strategy.",
    )
    artifact_id: str | None = option(
        name="apicurio.registry.artifact.artifact-id",
        default=None,
        importance=MEDIUM,
        doc="The id of the artifact, in place of that of the strategy.",
    )
    artifact_version: str | None = option(
        name="apicurio.registry.artifact.version",
        default=None,
        importance=MEDIUM,
        doc="The version of the artifact: of the one that values are written in, or of what is registered.",
    )
    check_period_ms: Long = option(
        name="apicurio.registry.check-period-ms",
        default=30_000,
        importance=LOW,
        validator=at_least(0),
        doc="For how long the latest version is cached.",
    )
    retry_count: int = option(
        name="apicurio.registry.retry-count",
        default=3,
        importance=LOW,
        validator=at_least(0),
        doc="How often a request is retried while the registry does not answer, before the runtime tries again later.",
    )
    retry_backoff_ms: Long = option(
        name="apicurio.registry.retry-backoff-ms",
        default=300,
        importance=LOW,
        validator=at_least(0),
        doc="The wait before a retry.",
    )
    username: str | None = option(
        name="apicurio.registry.auth.username", default=None, importance=MEDIUM, doc="The user, for basic credentials."
    )
    password: Password | None = option(
        name="apicurio.registry.auth.password", default=None, importance=MEDIUM, doc="The user's password."
    )
    token_endpoint: str | None = option(
        name="apicurio.registry.auth.service.token.endpoint",
        default=None,
        importance=MEDIUM,
        validator=_url,
        doc="The URL that issues tokens for client credentials.",
    )
    client_id: str | None = option(
        name="apicurio.registry.auth.client.id", default=None, importance=MEDIUM, doc="The client, for tokens."
    )
    client_secret: Password | None = option(
        name="apicurio.registry.auth.client.secret", default=None, importance=MEDIUM, doc="The client's secret."
    )
    client_scope: str | None = option(
        name="apicurio.registry.auth.client.scope", default=None, importance=LOW, doc="The scope of tokens."
    )
    old_username: str | None = option(
        name="apicurio.auth.username",
        default=None,
        importance=LOW,
        doc="The name in Apicurio 2 of apicurio.registry.auth.username.",
    )
    old_password: Password | None = option(
        name="apicurio.auth.password",
        default=None,
        importance=LOW,
        doc="The name in Apicurio 2 of apicurio.registry.auth.password.",
    )
    old_token_endpoint: str | None = option(
        name="apicurio.auth.service.token.endpoint",
        default=None,
        importance=LOW,
        validator=_url,
        doc="The name in Apicurio 2 of apicurio.registry.auth.service.token.endpoint.",
    )
    service_url: str | None = option(
        name="apicurio.auth.service.url",
        default=None,
        importance=LOW,
        validator=_url,
        doc="The URL of a Keycloak, which issues tokens in the realm apicurio.auth.realm.",
    )
    realm: str | None = option(
        name="apicurio.auth.realm", default=None, importance=LOW, doc="The realm of apicurio.auth.service.url."
    )
    old_client_id: str | None = option(
        name="apicurio.auth.client.id",
        default=None,
        importance=LOW,
        doc="The name in Apicurio 2 of apicurio.registry.auth.client.id.",
    )
    old_client_secret: Password | None = option(
        name="apicurio.auth.client.secret",
        default=None,
        importance=LOW,
        doc="The name in Apicurio 2 of apicurio.registry.auth.client.secret.",
    )
    old_client_scope: str | None = option(
        name="apicurio.auth.client.scope",
        default=None,
        importance=LOW,
        doc="The name in Apicurio 2 of apicurio.registry.auth.client.scope.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield the mistakes in how the options go together."""
        yield from super().check()
        if self.user is not None and self.user_password is None:
            yield ConfigError("apicurio.registry.auth.password", None, "the user needs it")
        if self.service_url is not None and self.realm is None:
            yield ConfigError("apicurio.auth.realm", None, "apicurio.auth.service.url needs it")
        if self.issuer is not None and (self.client is None or self.secret is None):
            missing = "client.id" if self.client is None else "client.secret"
            yield ConfigError(f"apicurio.registry.auth.{missing}", None, "tokens need it")

    @property
    def url(self) -> HttpUrl:
        """The URL of the registry's API."""
        url = _registry_url("apicurio.registry.url", self.apicurio_registry_url)
        if url.address.endswith(tuple(_VERSIONS)):
            return url
        return HttpUrl(url.address + _NEWEST, user_info=url.user_info)

    @property
    def api(self) -> int:
        """The version of the registry's API, which is also that of Apicurio's converters that are stood for."""
        address = self.url.address
        return next(version for path, version in _VERSIONS.items() if address.endswith(path))

    @property
    def strategy(self) -> Strategy:
        """The strategy that names artifacts."""
        return Strategy(self.strategy_class.rpartition(".")[2])

    @property
    def user(self) -> str | None:
        """The user, if there is one."""
        return self.username or self.old_username

    @property
    def user_password(self) -> Password | None:
        """The user's password."""
        return self.password or self.old_password

    @property
    def client(self) -> str | None:
        """The client's id, for tokens."""
        return self.client_id or self.old_client_id

    @property
    def secret(self) -> Password | None:
        """The client's secret."""
        return self.client_secret or self.old_client_secret

    @property
    def scope(self) -> str | None:
        """The scope of tokens."""
        return self.client_scope or self.old_client_scope

    @property
    def issuer(self) -> str | None:
        """The URL that issues tokens, if there is one."""
        if self.service_url is not None:
            return f"{self.service_url.rstrip('/')}/realms/{self.realm}/protocol/openid-connect/token"
        return self.token_endpoint or self.old_token_endpoint


class HeaderNamesConfig(Config):
    """The names of the headers that may name schemas."""

    key_global_id_header: str = option(
        name="apicurio.registry.headers.key.globalId.name",
        default="apicurio.key.globalId",
        importance=LOW,
        doc="The header with the global id of the key's schema.",
    )
    key_content_id_header: str = option(
        name="apicurio.registry.headers.key.contentId.name",
        default="apicurio.key.contentId",
        importance=LOW,
        doc="The header with the content id of the key's schema.",
    )
    value_global_id_header: str = option(
        name="apicurio.registry.headers.value.globalId.name",
        default="apicurio.value.globalId",
        importance=LOW,
        doc="The header with the global id of the value's schema.",
    )
    value_content_id_header: str = option(
        name="apicurio.registry.headers.value.contentId.name",
        default="apicurio.value.contentId",
        importance=LOW,
        doc="The header with the content id of the value's schema.",
    )

    def header_of(self, use: UseId, *, is_key: bool) -> str:
        """Return the name of the header that holds an id of this kind."""
        if use is UseId.GLOBAL_ID:
            return self.key_global_id_header if is_key else self.value_global_id_header
        return self.key_content_id_header if is_key else self.value_content_id_header


class ApicurioAvroConfig(ApicurioConfig, HeaderNamesConfig, AvroDataConfig):
    """The options of Apicurio's Avro converter."""

    use_id: UseId | None = option(
        name="apicurio.registry.use-id",
        default=None,
        importance=MEDIUM,
        doc="Which of its ids a schema is named by: globalId, the default with version 2 of the API, or contentId, the "
        "default with version 3.",
    )
    id_handler_class: str | None = option(
        name="apicurio.registry.id-handler",
        default=None,
        importance=MEDIUM,
        validator=_id_handler,
        doc="How ids stand before the data: in 8 bytes (DefaultIdHandler, Legacy8ByteIdHandler), the default with "
        "version 2 of the API, or in 4 (Default4ByteIdHandler, Legacy4ByteIdHandler), the default with version 3.",
    )
    as_confluent: bool = option(
        name="apicurio.registry.as-confluent",
        default=False,
        importance=LOW,
        doc="Whether ids stand before the data in 4 bytes, whatever apicurio.registry.id-handler says.",
    )
    headers_enabled: bool | None = option(
        name="apicurio.registry.headers.enabled",
        default=None,
        importance=MEDIUM,
        doc="Whether schemas are named in headers, the default with version 2 of the API, or before the data. With "
        "headers both are read.",
    )
    avro_encoding: str = option(
        name="apicurio.registry.avro.encoding",
        default="BINARY",
        importance=LOW,
        validator=_binary,
        doc="The encoding of Avro: BINARY.",
    )

    @property
    def id_kind(self) -> UseId:
        """Which of its ids a schema is named by."""
        return self.use_id or (UseId.GLOBAL_ID if self.api == 2 else UseId.CONTENT_ID)

    @property
    def id_size(self) -> int:
        """How many bytes an id before the data has."""
        if self.as_confluent:
            return 4
        if self.id_handler_class is not None:
            return IdHandler(self.id_handler_class.rpartition(".")[2]).size
        return 8 if self.api == 2 else 4

    @property
    def has_headers(self) -> bool:
        """Whether schemas are named in headers."""
        return self.api == 2 if self.headers_enabled is None else self.headers_enabled


class ExtJsonConfig(ApicurioConfig, JsonDataConfig):
    """The options of Apicurio's JSON converter."""

    def check(self) -> Iterable[ConfigError]:
        """Yield the mistakes in how the options go together."""
        yield from super().check()
        if self.strategy not in (Strategy.TOPIC_ID, Strategy.SIMPLE_TOPIC_ID):
            yield ConfigError(
                "apicurio.registry.artifact-resolver-strategy",
                self.strategy_class,
                "schemas of JSON have no records: use TopicIdStrategy or SimpleTopicIdStrategy",
            )


def _registry_url(key: str, text: str) -> HttpUrl:
    """Parse a URL. The :class:`~connect.errors.ConfigError` for an invalid one does not show it."""
    try:
        url = http_url(text)
    except ValueError as error:
        raise invalid_value(key, HIDDEN, f"This is not a usable URL: {error}") from error
    if url.query:
        raise invalid_value(key, HIDDEN, "It has a query: remove the ? and what follows it")
    return url
