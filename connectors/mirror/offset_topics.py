"""Reads and follows the topics in which a flow stores its offsets: offset syncs, runs and checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from confluent_kafka import Message

from connect.errors import DataError
from connectors.mirror.checkpoints import OffsetTranslator
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.flow import TopicsConfig
from connectors.mirror.internal_topics import READING, InternalTopics
from connectors.mirror.patience import Patience, Wait
from connectors.mirror.policies import ReplicationPolicy
from connectors.mirror.records import Checkpoint, OffsetSync
from connectors.mirror.run_records import StoredRuns
from connectors.mirror.sync_store import SyncStore

__all__ = ["OffsetTopics", "alias_of", "patience_with", "read_checkpoints"]

logger = logging.getLogger(__name__)

_MS: Final = 1000


class OffsetTopics:
    """The offset syncs and runs of a flow, kept up to date by a consumer of its own. For one thread."""

    def __init__(
        self,
        config: TopicsConfig,
        clients: Clients,
        policy: ReplicationPolicy,
        wait: Wait,
        *,
        keeps_history: bool = True,
    ) -> None:
        cluster = Cluster(config.offset_syncs_topic_location)
        other = config.alias_in_syncs
        self._syncs_topic, runs_topic = policy.offset_syncs_topic(other), policy.offset_runs_topic(other)
        consumer = clients.consumer(cluster, f"offset-syncs-{cluster}-consumer", READING)
        self._topics = InternalTopics(consumer, (self._syncs_topic, runs_topic), patience_with(config, cluster, wait))
        self.translator = OffsetTranslator(SyncStore(keeps_history=keeps_history), StoredRuns())

    def read_to_end(self) -> None:
        """Read the existing records. Nothing is translated before that.

        Raises a ``ConnectError`` if they cannot be read, and :class:`~connectors.mirror.patience.StoppedError`.
        """
        for message in self._topics.to_end():
            self._take(message)
        self.translator.syncs.start()

    def follow(self) -> None:
        """Read the records that have arrived since."""
        for message in self._topics.new():
            self._take(message)

    def close(self) -> None:
        """Close the consumer."""
        self._topics.close()

    def _take(self, message: Message) -> None:
        is_sync = message.topic() == self._syncs_topic
        _read(message, self._take_sync if is_sync else self.translator.runs.read)

    def _take_sync(self, key: bytes | None, value: bytes | None) -> None:
        self.translator.syncs.add(OffsetSync.decode(key, value))


def read_checkpoints(
    config: TopicsConfig, clients: Clients, policy: ReplicationPolicy, wait: Wait, take: Callable[[Checkpoint], None]
) -> None:
    """Pass the checkpoints of a flow to ``take``; raises what :meth:`OffsetTopics.read_to_end` does."""
    consumer = clients.consumer(Cluster.TARGET, "checkpoints-target-consumer", READING)
    topic = policy.checkpoints_topic(config.source_cluster_alias)
    topics = InternalTopics(consumer, (topic,), patience_with(config, Cluster.TARGET, wait))
    try:
        for message in topics.to_end():
            _read(message, lambda key, value: take(Checkpoint.decode(key, value)))
    finally:
        topics.close()


def alias_of(config: TopicsConfig, cluster: Cluster) -> str:
    """Return the alias of one of the clusters of a flow."""
    return config.source_cluster_alias if cluster is Cluster.SOURCE else config.target_cluster_alias


def patience_with(config: TopicsConfig, cluster: Cluster, wait: Wait) -> Patience:
    """Return the patience for requests to a cluster of a flow."""
    return Patience(alias_of(config, cluster), config.admin_timeout_ms / _MS, wait)


def _read(message: Message, take: Callable[[bytes | None, bytes | None], None]) -> None:
    try:
        take(message.key(), message.value())
    except DataError as error:
        logger.warning("Skipping record %s of %s: %s", message.offset(), message.topic(), error)
