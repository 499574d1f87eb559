"""The settings of each Kafka client of a mirror, by the cluster it connects to and its purpose.

From low to high precedence: Java's defaults and ours, the security settings of ``source.cluster.`` or
``target.cluster.``, those of ``consumer.`` (``producer.``, ``admin.``), and those of ``source.consumer.`` and the like.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from connect.errors import ConfigError
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.clients.statistics import TakeStatistics
from connect.internals.kafka.settings.client import ClientKind, ClientProperties
from connect.internals.kafka.settings.properties import JAVA_DEFAULTS, layered, librdkafka_properties
from connectors.mirror.config.security import SecurityConfig

__all__ = ["Clients", "Cluster", "Role", "java_settings"]

logger = logging.getLogger(__name__)

_BOOTSTRAP: Final = "bootstrap.servers"
_CLIENT_ID: Final = "client.id"
_OF_CONNECTORS: Final = frozenset({"consumer.poll.timeout.ms", "admin.timeout.ms"})
"""Options of the connectors which look like client settings but are not."""

_OF_CLUSTERS: Final = frozenset({_BOOTSTRAP, *(key.name for key in SecurityConfig.definitions())})
"""The keys below ``source.cluster.`` and ``target.cluster.`` that reach clients, as in MirrorMaker."""

# I9: 32 MiB wait to be consumed and 16 MiB are being fetched from a broker. A back-off of 10 ms in place of 1,000
# triples the rate of a consumer whose queue is full.
_OURS: Final[Mapping[ClientKind, Mapping[str, str]]] = MappingProxyType(
    {
        ClientKind.PRODUCER: {"linger.ms": "5"},
        ClientKind.CONSUMER: {
            "queued.max.messages.kbytes": str(32 * 1024),
            "queued.min.messages": "20000",
            "fetch.max.bytes": str(16 * 1024 * 1024),
            "fetch.queue.backoff.ms": "10",
        },
        ClientKind.ADMIN: {},
    }
)


class Cluster(StrEnum):
    """One of the two clusters of a flow."""

    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class Role:
    """The purpose of a client: the cluster it connects to, its kind, and the end of its client id."""

    cluster: Cluster
    kind: ClientKind
    name: str

    @property
    def prefix(self) -> str:
        """The prefix of the settings for this cluster's clients of this kind."""
        return f"{self.cluster}.{self.kind.value}."


class Clients:
    """Creates the clients of one connector, or of one of its tasks, from its configuration."""

    def __init__(self, props: Mapping[str, str | None], task: int | None = None) -> None:
        self._props = props
        self._task = task
        self._reported: set[str] = set()

    def consumer(
        self,
        cluster: Cluster,
        name: str,
        forced: Mapping[str, str] | None = None,
        take_statistics: TakeStatistics | None = None,
    ) -> Consumer:
        """Return a consumer that is assigned its partitions, and starts at the beginning of those without an offset."""
        properties = self.properties(Role(cluster, ClientKind.CONSUMER, name), forced)
        return librdkafka.consumer(properties, on_statistics=take_statistics)

    def producer(self, cluster: Cluster, name: str, forced: Mapping[str, str] | None = None) -> Producer:
        """Return a producer."""
        return librdkafka.producer(self.properties(Role(cluster, ClientKind.PRODUCER, name), forced))

    def admin(self, cluster: Cluster, name: str) -> AdminClient:
        """Return an admin client."""
        return librdkafka.admin(self.properties(Role(cluster, ClientKind.ADMIN, name)))

    def properties(self, role: Role, forced: Mapping[str, str] | None = None) -> ClientProperties:
        """Return the settings of a client; raise :class:`~connect.errors.ConfigError` if they are invalid.

        ``forced`` overrides what is configured.
        """
        java = java_settings(self._props, role, self._task)
        if not java.get(_BOOTSTRAP, "").strip():
            key = f"{role.cluster}.cluster.{_BOOTSTRAP}"
            raise ConfigError(key, java.get(_BOOTSTRAP), f"It is not set. List brokers of the {role.cluster} cluster")
        kind = role.kind
        # librdkafka creates no consumer without a group; this one is never joined, and nothing is committed to it.
        group = {"group.id": java[_CLIENT_ID], "enable.auto.offset.store": "false"}
        own = {**(group if kind is ClientKind.CONSUMER else {}), **(forced or {})}
        properties = librdkafka_properties(layered(kind, _OURS[kind], JAVA_DEFAULTS[kind], java, own), kind)
        for key, reason in properties.ignored.items():
            if key not in self._reported:
                self._reported.add(key)
                logger.warning("Client setting %s has no effect: %s", key, reason)
        return properties


def java_settings(props: Mapping[str, str | None], role: Role, task: int | None = None) -> dict[str, str]:
    """Return the settings of a client under Java's names, as MirrorMaker 2 would pass them."""
    settings = {key: value for key, value in _below(f"{role.cluster}.cluster.", props) if key in _OF_CLUSTERS}
    prefix = role.kind.worker_prefix
    settings |= [(key, value) for key, value in _below(prefix, props) if f"{prefix}{key}" not in _OF_CONNECTORS]
    settings |= _below(role.prefix, props)
    if role.kind is ClientKind.CONSUMER:
        settings = {"auto.offset.reset": "earliest"} | settings | {"enable.auto.commit": "false"}
    return settings | {_CLIENT_ID: _client_id(props, role, task, settings.get(_CLIENT_ID))}


def _client_id(props: Mapping[str, str | None], role: Role, task: int | None, given: str | None) -> str:
    flow = f"{props.get('source.cluster.alias')}->{props.get('target.cluster.alias') or 'target'}"
    name = f"{props.get('name')}" if task is None else f"{props.get('name')}-{task}"
    return "|".join((*((given,) if given else ()), flow, name, role.name))


def _below(prefix: str, props: Mapping[str, str | None]) -> list[tuple[str, str]]:
    return [
        (key.removeprefix(prefix), value)
        for key, value in props.items()
        if key.startswith(prefix) and value is not None
    ]
