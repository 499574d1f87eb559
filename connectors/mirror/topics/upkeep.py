"""Keeps the topics at the target in sync with the source: their number, partitions, settings and ACLs."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from uuid import UUID

from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from connect.data import TopicPartition
from connectors.mirror.filters import ConfigPropertyFilter
from connectors.mirror.selection import LeftOut, TopicSelection
from connectors.mirror.topics.attributes import AclBinding, mirrored_acl, settings_at_creation, settings_to_alter
from connectors.mirror.topics.cluster import ClusterTopics
from connectors.mirror.topics.deletion import DeletionNotes, Deletions

__all__ = ["TopicUpkeep"]

logger = logging.getLogger(__name__)


class TopicUpkeep:
    """Compares two clusters and changes the target. For one thread.

    With ``deletions``, ACLs that are removed at the source are removed at the target, and topics can be deleted;
    ``notes`` store since when topics have been missing. ``alias`` is that of the source.
    """

    def __init__(
        self,
        source: ClusterTopics,
        target: ClusterTopics,
        selection: TopicSelection,
        alias: str,
        chosen: ConfigPropertyFilter,
        replication: int,
        deletions: Deletions | None = None,
        notes: DeletionNotes | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._selection = selection
        self._alias = alias
        self._chosen = chosen
        self._replication = replication
        self._deletions = deletions
        self._notes = notes
        self._has_recalled = False
        self._acls: frozenset[AclBinding] = frozenset()
        self._reported: frozenset[str] = frozenset()

    def look(self) -> tuple[TopicPartition, ...]:
        """Create and extend topics at the target, and return the partitions to mirror.

        Partitions that the target refuses to create are left out, so that they do not hold up the others.

        Raises :class:`~connect.errors.RetriableError` if a cluster does not answer.
        """
        every, there = self._source.partitions(), self._target.partitions()
        self._tell_of_connect(every)
        chosen = {topic: count for topic, count in every.items() if topic in self._selection}
        missing = {topic: count for topic, count in chosen.items() if self._remote(topic) not in there}
        ready = {topic: missing[topic] for topic in self._create(missing)}
        for topic in chosen.keys() - missing.keys():
            ready[topic] = self._grown(topic, there[self._remote(topic)], chosen[topic])
        return tuple(TopicPartition(topic, number) for topic in sorted(ready) for number in range(ready[topic]))

    def _grown(self, topic: str, there: int, wanted: int) -> int:
        """Return how many of the wanted partitions the target has, after it was asked for those that it lacks."""
        return wanted if there >= wanted or self._target.grow(self._remote(topic), wanted) else there

    def ids(self, partitions: Collection[TopicPartition]) -> dict[str, tuple[UUID | None, UUID | None]]:
        """Return the ids of the topics of these partitions at both ends, where they are known."""
        topics = {partition.topic for partition in partitions}
        source, target = self._source.ids(topics), self._target.ids({self._remote(topic) for topic in topics})
        return {topic: (source.get(topic), target.get(self._remote(topic))) for topic in topics}

    def source_is_away(self) -> None:
        """Note that a cluster has not answered."""
        if self._deletions is not None:
            self._deletions.source_is_away()

    def orphans(self) -> dict[str, int]:
        """Return the topics that are gone at the source but have mirrors, with the number of partitions of these."""
        there, policy = self._source.partitions(), self._selection.policy
        upstream = {
            policy.upstream_topic(topic): count
            for topic, count in self._target.partitions().items()
            if policy.topic_source(topic) == self._alias
        }
        return {
            topic: count
            for topic, count in upstream.items()
            if topic is not None and topic not in there and topic in self._selection
        }

    def delete(self, orphans: Collection[str], own: Collection[str], now: float) -> None:
        """Delete the mirrors of ``orphans`` that have been missing long enough, if they are the connector's ``own``.

        ``now`` is in seconds since 1970.
        """
        if self._deletions is None:
            return
        if self._notes is not None and not self._has_recalled:
            self._deletions.recall(self._notes.kept())
            self._has_recalled = True
        due = self._deletions.due(self._source.partitions(), orphans, now)
        if self._notes is not None:
            self._notes.keep(self._deletions.missing)
        for topic in due:
            if topic in own and self._target.delete(self._remote(topic)):
                logger.warning(
                    "Topic %s was deleted, because %s was deleted at the source.", self._remote(topic), topic
                )

    def sync_settings(self) -> None:
        """Copy the settings of the source's topics to the target."""
        there = self._target.partitions()
        topics = [topic for topic in self._chosen_topics() if self._remote(topic) in there]
        found = self._source.settings(topics)
        self._target.alter({self._remote(topic): settings_to_alter(of, self._chosen) for topic, of in found.items()})

    def sync_acls(self) -> None:
        """Copy the ACLs of the source's topics to the target."""
        acls = self._source.acls()
        if acls is None:
            self._tell("The source cluster has no authorizer, so no ACLs are copied.")
            return
        chosen = [(acl, self._remote(acl.topic)) for acl in acls if acl.topic in self._selection]
        mirrored = frozenset(new for acl, topic in chosen if (new := mirrored_acl(acl, topic)) is not None)
        self._target.allow(mirrored)
        if self._deletions is not None:
            self._target.disallow(self._acls - mirrored)
        self._acls = mirrored

    def _chosen_topics(self) -> dict[str, int]:
        return {topic: count for topic, count in self._source.partitions().items() if topic in self._selection}

    def _create(self, missing: Mapping[str, int]) -> list[str]:
        """Create the mirrors of these topics; return the topics whose mirrors exist then."""
        settings = self._source.settings(sorted(missing))
        upstream = {self._remote(topic): topic for topic in missing}
        new = [
            NewTopic(
                remote,
                missing[topic],
                self._replication,
                config=dict(settings_at_creation(settings.get(topic, ()), self._chosen)),
            )
            for remote, topic in upstream.items()
        ]
        created = self._target.create(new)
        for remote in created:
            logger.info("Topic %s is mirrored to the new topic %s.", upstream[remote], remote)
        return [topic for topic in missing if self._remote(topic) in created]

    def _tell_of_connect(self, topics: Collection[str]) -> None:
        for topic in sorted(topics):
            if self._selection.left_out(topic) is LeftOut.CONNECT:
                self._tell(
                    f"Topic {topic} looks like an internal topic of Kafka Connect and is not mirrored. If it is not "
                    "one, name it in topics."
                )

    def _remote(self, topic: str) -> str:
        return self._selection.policy.format_remote_topic(self._alias, topic)

    def _tell(self, text: str) -> None:
        if text not in self._reported:
            self._reported |= {text}
            logger.info("%s", text)
