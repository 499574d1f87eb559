"""The options of a connection to an MQTT server, which source and sink share."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    between,
    invalid_value,
    non_empty_list,
    option,
    validator,
)
from connect.config.unsupported_keys import UnsupportedKey, without_effect
from connect.errors import ConfigError
from connect.hosts import HostDeniedError, HostsConfig
from connect.internals.extras import missing_extra
from connect.internals.tls.client import client_context, unusable_stores

__all__ = ["ConnectionConfig", "Server", "Will"]

_LICENCE: Final = UnsupportedKey("it belongs to a licence that is not needed here")
_WITHOUT_EFFECT: Final = {
    "confluent.license": _LICENCE,
    "confluent.topic": _LICENCE,
    "confluent.topic.bootstrap.servers": _LICENCE,
    "confluent.topic.replication.factor": _LICENCE,
    "max.retry.time.ms": UnsupportedKey("a server that cannot be reached is tried until it can be"),
}
_PORTS: Final = {"tcp": 1883, "mqtt": 1883, "ssl": 8883, "tls": 8883, "mqtts": 8883}
_ENCRYPTED: Final = frozenset({"ssl", "tls", "mqtts"})
_STORES: Final = {
    "mqtt.ssl.trust.store.path": "ssl.truststore.location",
    "mqtt.ssl.trust.store.password": "ssl.truststore.password",
    "mqtt.ssl.key.store.path": "ssl.keystore.location",
    "mqtt.ssl.key.store.password": "ssl.keystore.password",
    "mqtt.ssl.key.password": "ssl.key.password",
}


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the list."""

    host: str
    port: int
    is_encrypted: bool

    @classmethod
    def of(cls, uri: str) -> Self:
        """Return the server of a URI such as ``ssl://host:8883``; ``ValueError`` says what is wrong with it."""
        parts = urlsplit(uri.strip())
        if parts.scheme in ("ws", "wss"):
            raise ValueError("MQTT over WebSockets is not supported: use the port of the server for TCP or TLS")
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("Write it as tcp://host:1883 or ssl://host:8883")
        if parts.username or parts.password:
            raise ValueError("Set mqtt.username and mqtt.password instead of naming them here")
        return cls(parts.hostname, parts.port or _PORTS[parts.scheme], parts.scheme in _ENCRYPTED)


@dataclass(frozen=True, slots=True)
class Will:
    """What the server publishes if the connection ends without a farewell."""

    topic: str
    payload: bytes
    qos: int
    is_retained: bool


@validator("list of URIs such as tcp://host:1883 or ssl://host:8883")
def _uris(key: str, value: Collection[str]) -> None:
    """Refuse URIs that name no server."""
    for uri in value:
        try:
            Server.of(uri)
        except ValueError as error:
            # Not the URI itself, which may hold a password.
            raise invalid_value(key, "[hidden]" if "@" in uri else uri, str(error)) from None


class ConnectionConfig(HostsConfig):
    """Where the server is, and how to sign in."""

    passed_keys = ()
    mqtt_server_uri: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        doc="The servers: tcp://host:1883, or ssl://host:8883 for TLS. The next one is tried if one does not answer.",
    )
    mqtt_username: str = option(default="", importance=HIGH, doc="The user to sign in; nobody if empty.")
    mqtt_password: Password = option(default=Password(""), importance=HIGH, doc="The password of the user.")
    mqtt_client_id: str = option(
        default="",
        importance=MEDIUM,
        doc="The client id, by which the server knows the session again; with several tasks it is followed by their "
        "number. By default it is sluice- and the name of the connector. It must not be used elsewhere.",
    )
    mqtt_version: Literal["3.1.1", "5"] = option(
        default="3.1.1",
        importance=MEDIUM,
        doc="The version of the protocol. With 5, user properties are headers, and the server says why it refuses.",
    )
    mqtt_connect_timeout_seconds: int = option(
        default=30, importance=LOW, validator=at_least(1), doc="How long connecting may take."
    )
    mqtt_keepalive_interval_seconds: int = option(
        default=60,
        importance=LOW,
        validator=between(1, 65_535),
        doc="After how many seconds without a sign of life a connection counts as lost.",
    )
    mqtt_reconnect_interval_ms: Long = option(
        default=2_000,
        importance=LOW,
        validator=at_least(1),
        doc="How long to wait before a lost connection is made again.",
    )
    mqtt_session_expiry_seconds: int = option(
        default=604_800,
        importance=LOW,
        validator=between(0, 4_294_967_295),
        doc="How long the server keeps a session without a connection, by default a week; MQTT 5 only. A server of "
        "3.1.1 decides itself.",
    )
    mqtt_ssl_trust_store_path: str = option(
        default="",
        importance=HIGH,
        doc="A file with the certificates of the trusted authorities: PEM, JKS or PKCS12. By default the system's.",
    )
    mqtt_ssl_trust_store_password: Password = option(
        default=Password(""), importance=HIGH, doc="The password of the trust store; PEM has none."
    )
    mqtt_ssl_key_store_path: str = option(
        default="",
        importance=HIGH,
        doc="A file with the client's private key and certificates: PEM, JKS or PKCS12.",
    )
    mqtt_ssl_key_store_password: Password = option(
        default=Password(""), importance=HIGH, doc="The password of the key store; PEM has none."
    )
    mqtt_ssl_key_password: Password = option(
        default=Password(""), importance=HIGH, doc="The password of the private key."
    )
    mqtt_will_topic: str = option(
        default="",
        importance=LOW,
        doc="The topic of the last will, which the server publishes if the task is killed or cut off.",
    )
    mqtt_will_message: str = option(default="", importance=LOW, doc="The text of the last will.")
    mqtt_will_qos: int = option(
        default=0, importance=LOW, validator=between(0, 2), doc="The quality of service of the last will."
    )
    mqtt_will_retained: bool = option(
        default=False, importance=LOW, doc="Whether the server keeps the last will for later subscribers."
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if missing := missing_extra("mqtt", "paho.mqtt"):
            yield ConfigRuleError(missing, "mqtt.server.uri")
        try:
            _uris("mqtt.server.uri", self.mqtt_server_uri)
        except ConfigError as error:
            yield error
            return
        for server in self.servers:
            try:
                self.host_rules.check_name(server.host)
            except HostDeniedError as error:
                yield ConfigRuleError(str(error), "mqtt.server.uri")
        if len({server.is_encrypted for server in self.servers}) > 1:
            yield ConfigRuleError("Use either tcp:// or ssl:// for all servers.", "mqtt.server.uri")
        if self.mqtt_will_topic and any(each in self.mqtt_will_topic for each in "+#\0"):
            yield ConfigError("mqtt.will.topic", self.mqtt_will_topic, "A topic to publish to has no wildcards")
        for unusable in unusable_stores(self._store_props, ""):
            yield ConfigRuleError(*_renamed(unusable))

    def warnings(self) -> Iterator[str]:
        """Yield a warning for each key that has no effect."""
        yield from without_effect(_WITHOUT_EFFECT, self.originals)

    @property
    def servers(self) -> tuple[Server, ...]:
        """The servers to try in turn."""
        return tuple(map(Server.of, self.mqtt_server_uri))

    @property
    def place(self) -> str:
        """The servers, for people."""
        return ",".join(f"{server.host}:{server.port}" for server in self.servers)

    @property
    def client_id(self) -> str:
        """The client id."""
        return self.mqtt_client_id or f"sluice-{self.originals.get('name') or 'connector'}"

    @property
    def is_version_5(self) -> bool:
        """Whether to speak MQTT 5."""
        return self.mqtt_version == "5"

    @property
    def reconnect_seconds(self) -> float:
        """How long to wait before connecting again."""
        return self.mqtt_reconnect_interval_ms / 1000

    @property
    def patience_seconds(self) -> float:
        """How long the connection's thread may do nothing else than wait for room."""
        return min(10.0, self.mqtt_keepalive_interval_seconds / 6)

    @property
    def will(self) -> Will | None:
        """The last will, if there is one."""
        if not self.mqtt_will_topic:
            return None
        return Will(self.mqtt_will_topic, self.mqtt_will_message.encode(), self.mqtt_will_qos, self.mqtt_will_retained)

    def tls(self) -> ssl.SSLContext | None:
        """The TLS context; ``None`` for plain TCP."""
        return client_context(self._store_props, "") if self.servers[0].is_encrypted else None

    def task_props(self, count: int) -> Iterator[Mapping[str, str | None]]:
        """Yield the configuration of each task: they differ in their client ids, and each worker adds its own rules for
        hosts.
        """
        for number in range(count):
            client_id = self.client_id if count == 1 else f"{self.client_id}-{number}"
            yield {**self.props_for_tasks(), "mqtt.client.id": client_id}

    @property
    def _store_props(self) -> dict[str, str]:
        """The stores under the names by which the kit of TLS knows them."""
        props: dict[str, Any] = {}
        for key, name in _STORES.items():
            found = getattr(self, key.replace(".", "_"))
            text = found.value if isinstance(found, Password) else found
            if text:
                props[name] = text
        return props


def _renamed(error: ConfigError) -> tuple[str, str]:
    """Return the text and the key of an error under the names of these options."""
    text = str(error)
    key = "mqtt.ssl.trust.store.path" if "truststore" in text else "mqtt.ssl.key.store.path"
    for own, name in _STORES.items():
        text = text.replace(name, own)
    return text, key
