"""Decides which topics connectors may not use: those in which Kafka and the worker keep their own state.

The config topic holds the key with which the workers of a cluster sign their requests, and the passwords of all
connectors; the history topic holds these passwords, too. Whoever may edit, or preview, a single connector could read
them with a sink, or write to them with a source, so that the roles in ``rest.authorization.file`` would mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from connect.config.validators import matches_wildcard
from connect.errors import ConfigError, ConnectError

__all__ = ["HANDED_KEY", "INTERNAL_TOPICS_ALLOWLIST", "InternalTopics"]

HANDED_KEY: Final = "worker.internal.topics"
"""The key under which a plugin with clients of its own is told the topics that the worker keeps from connectors."""

INTERNAL_TOPICS_ALLOWLIST: Final = "connector.internal.topics.allowlist"
"""The worker's key with the internal topics that connectors may use all the same."""

_CONFIG_TOPIC: Final = "config.storage.topic"
_HISTORY_TOPIC: Final = "config.history.topic"
_OFFSETS_TOPIC: Final = "offset.storage.topic"
_OF_THE_WORKER: Final = (_CONFIG_TOPIC, _HISTORY_TOPIC, _OFFSETS_TOPIC, "status.storage.topic", "audit.topic")
_OF_KAFKA: Final = "__"
_OF_CONNECTORS: Final = "__debezium-"
"""What the names of topics begin with that Debezium's connectors write, such as their heartbeats."""
_WHY_NOT: Final = (
    "Kafka or this cluster of workers keeps its own state there. Name another topic, or have the worker's "
    f"{INTERNAL_TOPICS_ALLOWLIST} changed"
)


class InternalTopics:
    """The internal topics of a worker's properties, whose references are resolved. Immutable."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        named = {worker[key] for key in _OF_THE_WORKER if worker.get(key)}
        if worker.get(_CONFIG_TOPIC) and not worker.get(_HISTORY_TOPIC):
            named.add(f"{worker[_CONFIG_TOPIC]}-history")
        self._named = frozenset(named)
        self._offsets = worker.get(_OFFSETS_TOPIC)
        written = worker.get(INTERNAL_TOPICS_ALLOWLIST, "")
        self._allowed = tuple(pattern.strip() for pattern in written.split(",") if pattern.strip())

    @property
    def named(self) -> tuple[str, ...]:
        """The topics of the worker itself that connectors may not use."""
        return tuple(topic for topic in sorted(self._named) if self.has(topic))

    def has(self, topic: str) -> bool:
        """Return whether connectors may not use the topic."""
        is_internal = topic in self._named or (topic.startswith(_OF_KAFKA) and not topic.startswith(_OF_CONNECTORS))
        return is_internal and not any(matches_wildcard(pattern, topic) for pattern in self._allowed)

    def check(self, topic: str) -> None:
        """Refuse to have records written to an internal topic."""
        if self.has(topic):
            raise ConnectError(f"A record cannot be written to topic {topic}: {_WHY_NOT}")

    def refused(self, key: str, topics: Iterable[str]) -> Iterator[ConfigError]:
        """Yield an error for each internal topic that a connector's ``key`` names."""
        for topic in topics:
            if self.has(topic):
                yield ConfigError(key, topic, f"It is not for connectors: {_WHY_NOT}")

    def refused_offsets(self, key: str, topic: str | None) -> Iterator[ConfigError]:
        """Yield an error if an offsets topic of a connector's own is an internal topic for something else."""
        if topic and topic != self._offsets:
            yield from self.refused(key, [topic])
