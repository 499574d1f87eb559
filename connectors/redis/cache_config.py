"""The options of the sink of strings: the keys of jcustenborder's connector."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    between,
    one_of,
    option,
)
from connect.config.unsupported_keys import UnsupportedKey, without_effect
from connect.errors import ConfigError
from connect.hosts import HostsConfig
from connect.internals.tls.key_stores import read_key_store, read_trust_store
from connect.internals.tls.pem import file_in_memory
from connectors.redis.checks import server_problems
from connectors.redis.connection import missing_client
from connectors.redis.server import Client, Layout, Line, Server, UnusableUriError, connected, host_problems, place
from connectors.redis.sink_config import charset, python_charset
from connectors.redis.structures import Structure, Writing

__all__ = ["RedisCacheSinkConfig"]

_WITHOUT_EFFECT: Final[Mapping[str, UnsupportedKey]] = {
    "redis.auto.reconnect.enabled": UnsupportedKey("the sink connects again when it has to", ("", "true")),
    "redis.request.queue.size": UnsupportedKey("a batch is sent at once, and awaited", ("", "2147483647")),
    "redis.socket.tcp.no.delay.enabled": UnsupportedKey("small packets are always sent at once", ("", "true")),
    "redis.ssl.provider": UnsupportedKey("TLS is Python's", ("", "jdk")),
    "redis.connection.attempts": UnsupportedKey("the server is tried until it answers", ("", "3")),
}
_STORES: Final = (
    ("truststore", "ssl.truststore.location", "ssl.truststore.password"),
    ("keystore", "ssl.keystore.location", "ssl.keystore.password"),
)
_STREAMS: Final = "connector.class=RedisSink with redis.type=STREAM writes streams"


class RedisCacheSinkConfig(HostsConfig):
    """Where to write strings."""

    passed_keys = ()
    redis_hosts: tuple[str, ...] = option(
        default=("localhost:6379",),
        importance=HIGH,
        doc="The servers, as HOST:PORT: one, or some nodes of a cluster.",
    )
    redis_client_mode: str = option(
        default="Standalone",
        importance=MEDIUM,
        validator=one_of("Standalone", "Cluster", ignore_case=True),
        doc="Whether the servers are one database (Standalone) or the nodes of a cluster (Cluster).",
    )
    redis_database: int = option(
        default=1, importance=MEDIUM, validator=at_least(0), doc="The number of the database. A cluster has none."
    )
    redis_username: str = option(default="", importance=MEDIUM, doc="The user, where the server has several.")
    redis_password: Password | None = option(default=None, importance=MEDIUM, doc="The password.")
    redis_data_type: str = option(
        default="Sets",
        importance=MEDIUM,
        validator=one_of("Sets", ignore_case=True),
        doc=f"Sets, which sets strings. {_STREAMS}.",
    )
    redis_charset: str = option(
        default="UTF-8", importance=LOW, validator=charset, doc="The character set of keys and values that are texts."
    )
    redis_operation_timeout_ms: Long = option(
        default=10_000, importance=MEDIUM, validator=at_least(100), doc="How long the server may take to answer."
    )
    redis_socket_connect_timeout_ms: int = option(
        default=10_000,
        importance=LOW,
        validator=at_least(1),
        doc="How long the server may take to accept a connection.",
    )
    redis_socket_keep_alive_enabled: bool = option(
        default=False, importance=LOW, doc="Whether the system looks after connections that are silent."
    )
    redis_ssl_enabled: bool = option(default=False, importance=MEDIUM, doc="Whether to use TLS.")
    redis_ssl_truststore_path: str = option(
        default="", importance=MEDIUM, doc="A file with the trusted authorities (PEM, JKS or PKCS12)."
    )
    redis_ssl_truststore_password: Password | None = option(
        default=None, importance=MEDIUM, doc="The password of redis.ssl.truststore.path."
    )
    redis_ssl_keystore_path: str = option(
        default="", importance=MEDIUM, doc="A file with the client's key and certificates (PEM, JKS or PKCS12)."
    )
    redis_ssl_keystore_password: Password | None = option(
        default=None, importance=MEDIUM, doc="The password of redis.ssl.keystore.path."
    )
    redis_connection_retry_delay_ms: int = option(
        default=2_000,
        importance=MEDIUM,
        validator=between(100, 3_600_000),
        doc="How long to wait before a server that does not answer is tried again. It is tried until it does.",
    )
    redis_offset_behavior: Literal["Earliest", "None"] = option(
        default="Earliest",
        importance=LOW,
        doc="What to do with a partition whose offset is not in Redis, as after it was emptied: write it from its "
        "beginning (Earliest), or go on from the offset committed in Kafka (None).",
    )

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        for _, problem in server_problems(self.client):
            yield ConfigRuleError(problem, "redis.hosts")

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if missing := missing_client():
            yield ConfigRuleError(missing, "redis.hosts")
            return
        if (older := self.originals.get("redis.datatype")) and str(older).strip().lower() != "sets":
            yield ConfigError("redis.datatype", older, _STREAMS)
        yield from self._store_errors()
        try:
            server = self.server
        except UnusableUriError as error:
            yield ConfigError("redis.hosts", ",".join(self.redis_hosts), f"Write HOST:PORT: {error}")
            return
        for problem in host_problems(server, self.host_rules):
            yield ConfigRuleError(problem, "redis.hosts")

    def warnings(self) -> Iterable[str]:
        """Yield warnings about a valid configuration."""
        yield from without_effect(_WITHOUT_EFFECT, self.originals)
        if len(self.redis_hosts) > 1 and not self._is_cluster:
            yield f"Only {self.redis_hosts[0]} of redis.hosts is used: redis.client.mode=Cluster uses all."

    @property
    def server(self) -> Server:
        """The server; raises :class:`~connectors.redis.server.UnusableUriError`."""
        hosts = tuple(place(text) for text in self.redis_hosts if text.strip())
        if not hosts:
            raise UnusableUriError("there is no host")
        password = self.redis_password.value if self.redis_password is not None else ""
        return Server(
            hosts=hosts,
            layout=Layout.CLUSTER if self._is_cluster else Layout.SINGLE,
            # A cluster has one database, whatever the default is.
            database=0 if self._is_cluster else self.redis_database,
            username=self.redis_username or None,
            password=password or None,
            uses_tls=self.redis_ssl_enabled,
            timeout_seconds=self.redis_operation_timeout_ms / 1000,
            connect_seconds=self.redis_socket_connect_timeout_ms / 1000,
            keepalive=self.redis_socket_keep_alive_enabled,
        )

    @property
    def writing(self) -> Writing:
        """How records are written."""
        return Writing(
            structure=Structure.SET,
            charset=python_charset(self.redis_charset) or "utf-8",
            java_offset_prefix="__kafka.offset.",
            refills=self.redis_offset_behavior == "Earliest",
            retry_seconds=self.redis_connection_retry_delay_ms / 1000,
        )

    def client(self, line: Line | None = None) -> Client:
        """Return a new client, whose connection can be held by ``line``."""
        files = ExitStack()
        try:
            client = connected(self.server, self.host_rules, lambda: self._tls_files(files), line)
        except BaseException:
            files.close()
            raise
        # It reads the files whenever it connects.
        weakref.finalize(client, files.close)
        return client

    @property
    def _is_cluster(self) -> bool:
        return self.redis_client_mode.strip().lower() == "cluster"

    def _tls_files(self, files: ExitStack) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if (trusted := read_trust_store(self._store_props, "")) is not None:
            options["ssl_ca_data"] = trusted
        if (entry := read_key_store(self._store_props, "")) is not None:
            path = files.enter_context(file_in_memory(entry.key + entry.certificates))
            options |= {"ssl_keyfile": path, "ssl_certfile": path, "ssl_password": entry.password}
        return options

    @property
    def _store_props(self) -> dict[str, str]:
        """The stores under the names by which the kit of TLS knows them."""
        props = {}
        for kind, location_key, password_key in _STORES:
            location: str = getattr(self, f"redis_ssl_{kind}_path")
            password: Password | None = getattr(self, f"redis_ssl_{kind}_password")
            if location:
                props[location_key] = location
                if password is not None and password.value:
                    props[password_key] = password.value
        if "ssl.keystore.password" in props:
            props["ssl.key.password"] = props["ssl.keystore.password"]
        return props

    def _store_errors(self) -> Iterator[ConfigError]:
        for (kind, location_key, password_key), read in zip(_STORES, (read_trust_store, read_key_store), strict=True):
            try:
                read(self._store_props, "")
            except ConfigError as error:
                key = f"redis.ssl.{kind}"
                text = str(error).replace(location_key, f"{key}.path").replace(password_key, f"{key}.password")
                yield ConfigRuleError(text, f"{key}.path")
