"""Keeps the topics of a flow at the target as they are at the source: which there are, their settings and ACLs."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from connect.data import TopicPartition
from connectors.mirror.filters import ConfigPropertyFilter
from connectors.mirror.selection import TopicSelection
from connectors.mirror.topics.acls import mirrored_acl
from connectors.mirror.topics.cluster import ClusterTopics
from connectors.mirror.topics.settings import settings_at_creation, settings_to_alter

__all__ = ["TopicUpkeep"]

logger = logging.getLogger(__name__)


class TopicUpkeep:
    """Compares two clusters and changes the target. For one thread.

    Nothing is ever deleted at the target. Where an alias stands, it is that of the source.
    """

    def __init__(
        self,
        source: ClusterTopics,
        target: ClusterTopics,
        selection: TopicSelection,
        alias: str,
        chosen: ConfigPropertyFilter,
        replication: int,
    ) -> None:
        self._source = source
        self._target = target
        self._selection = selection
        self._alias = alias
        self._chosen = chosen
        self._replication = replication
        self._told: frozenset[str] = frozenset()

    def look(self) -> tuple[TopicPartition, ...]:
        """The partitions to mirror, for which there are topics at the target then, unless it refuses them.

        Raises :class:`~connect.errors.RetriableError` if a cluster does not answer.
        """
        chosen = self._chosen_topics()
        there = self._target.partitions()
        self._create({topic: count for topic, count in chosen.items() if self._remote(topic) not in there})
        for topic, count in chosen.items():
            if there.get(self._remote(topic), count) < count:
                self._target.grow(self._remote(topic), count)
        return tuple(TopicPartition(topic, number) for topic in sorted(chosen) for number in range(chosen[topic]))

    def sync_settings(self) -> None:
        """Give the topics at the target the settings of those at the source."""
        there = self._target.partitions()
        topics = [topic for topic in self._chosen_topics() if self._remote(topic) in there]
        found = self._source.settings(topics)
        self._target.alter({self._remote(topic): settings_to_alter(of, self._chosen) for topic, of in found.items()})

    def sync_acls(self) -> None:
        """Let those read the topics at the target who may at the source."""
        acls = self._source.acls()
        if acls is None:
            self._tell("The source has no authorizer: no ACLs are copied.")
            return
        chosen = [(acl, self._remote(acl.topic)) for acl in acls if acl.topic in self._selection]
        self._target.allow(new for acl, topic in chosen if (new := mirrored_acl(acl, topic)) is not None)

    def _chosen_topics(self) -> dict[str, int]:
        return {topic: count for topic, count in self._source.partitions().items() if topic in self._selection}

    def _create(self, missing: Mapping[str, int]) -> None:
        settings = self._source.settings(sorted(missing))
        for topic, count in missing.items():
            own = settings_at_creation(settings.get(topic, ()), self._chosen)
            if self._target.create(self._remote(topic), count, self._replication, own):
                logger.info("Topic %s is mirrored to %s, which is new.", topic, self._remote(topic))

    def _remote(self, topic: str) -> str:
        return self._selection.policy.format_remote_topic(self._alias, topic)

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told |= {text}
            logger.info("%s", text)
