"""The topics that a sink connector consumes: those it names, or those its pattern matches."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from worker.config.connector import SinkConnectorConfig
from worker.config.internal_topics import InternalTopics

__all__ = ["TopicChoice", "topic_found"]

_TIMEOUT_SECONDS: Final = 10.0
_MISSING: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
_FEW: Final = 3


class TopicChoice:
    """The topics of ``topics`` or ``topics.regex``, of which none may be an ``internal`` one.

    The pattern is matched here, against the whole name as in Java: the client would match a prefix, in another
    dialect. It matches no internal topic; one in ``topics`` raises :class:`~connect.errors.ConfigError`. Validation
    alone does not suffice: a configuration may have been stored before the worker's file was changed.
    """

    def __init__(self, config: SinkConnectorConfig, internal: InternalTopics) -> None:
        for refused in internal.refused("topics", config.topics):
            raise refused
        self.names = tuple(config.topics)
        self._internal = internal
        self._pattern = re.compile(config.topics_regex) if config.topics_regex else None

    @property
    def is_pattern(self) -> bool:
        """Whether topics that are created later may match."""
        return self._pattern is not None

    @property
    def only_topic(self) -> str | None:
        """The topic, if there can be only one."""
        return self.names[0] if len(self.names) == 1 else None

    def has(self, topic: str) -> bool:
        """Return whether the connector consumes this topic."""
        return bool(self.matching([topic])) if self.is_pattern else topic in self.names

    def present(self, client: Consumer | AdminClient) -> tuple[str, ...]:
        """Return the existing topics that match, in order. Raises ``KafkaException`` if the broker does not answer."""
        return tuple(self.partitions(client))

    def partitions(self, client: Consumer | AdminClient) -> dict[str, tuple[int, ...]]:
        """Return the partitions of each existing topic that matches, in order; one request if there may be many topics.

        Raises ``KafkaException`` if the broker does not answer.
        """
        found: dict[str, Any] = {}
        if self.is_pattern or len(self.names) > _FEW:
            found = client.list_topics(timeout=_TIMEOUT_SECONDS).topics
        if self.is_pattern:
            return {name: _numbers(found[name]) for name in self.matching(found)}
        present = {name: _good(found.get(name)) or topic_found(client, name) for name in sorted(self.names)}
        return {name: _numbers(topic) for name, topic in present.items() if topic is not None}

    def missing(self, present: Collection[str]) -> str | None:
        """Say, for users, which topics the sink waits for; ``None`` if all are ``present``."""
        if self._pattern is not None:
            if present:
                return None
            return (
                f"No topic matches topics.regex={self._pattern.pattern}; the sink waits until one does. Create one, "
                "start what writes to it, or correct the key topics.regex."
            )
        absent = sorted(set(self.names).difference(present))
        if not absent:
            return None
        names, rest = ", ".join(absent[:_FEW]), len(absent) - _FEW
        if len(absent) == 1:
            return (
                f"Topic {names} does not exist; the sink waits until it does. Create it, start what writes to it, or "
                "correct the key topics."
            )
        names += f" and {rest:,} more" if rest > 0 else ""
        return (
            f"The topics {names} do not exist; the sink waits until they do. Create them, start what writes to them, "
            "or correct the key topics."
        )

    def matching(self, topics: Iterable[str]) -> tuple[str, ...]:
        """Return those of ``topics`` that match the pattern, in order, without internal topics."""
        assert self._pattern is not None
        return tuple(
            sorted(topic for topic in topics if self._pattern.fullmatch(topic) and not self._internal.has(topic))
        )


def topic_found(client: Consumer | AdminClient, name: str) -> Any:
    """Return the broker's description of a topic; ``None`` if it does not exist.

    Raises ``KafkaException`` if the broker does not answer. A consumer that is assigned a topic which its user may not
    describe reports nothing, and waits.
    """
    topic = client.list_topics(name, timeout=_TIMEOUT_SECONDS).topics.get(name)
    if topic is not None and topic.error is not None:
        if topic.error.code() not in _MISSING:
            raise KafkaException(topic.error)
        return None
    return topic


def _good(topic: Any) -> Any:
    """Return the topic; if its description has an error or is missing it is requested by name, to find the reason."""
    return topic if topic is not None and topic.error is None else None


def _numbers(topic: Any) -> tuple[int, ...]:
    return tuple(sorted(topic.partitions))
