"""Since when topics are missing at the source: kept in a compacted topic at the target, so that a restart knows it.

Crash points: a time that was not written yet begins anew after a kill: the topic is deleted later, and not earlier.
What was written of a topic that is deleted, or is there again, is taken back at the next look.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaError, Message

from connect.errors import ConnectError, RetriableError
from connectors.mirror.asking import Asking, Wait, refusal
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.source import MirrorSourceConfig
from connectors.mirror.internal_topics import READING, InternalTopics, create_compacted
from connectors.mirror.policies import replication_policy

__all__ = ["DeletionNotes"]

logger = logging.getLogger(__name__)

_FLUSH_SECONDS: Final = 30.0
_REPLICAS: Final = "replication.factor"
_MS: Final = 1000


class DeletionNotes:
    """Reads and writes the times, in seconds since 1970. For one thread.

    Each method raises :class:`~connect.errors.RetriableError` if the target does not answer. One that refuses is told
    of once; the times are then known in memory alone.
    """

    def __init__(self, config: MirrorSourceConfig, seconds: float, wait: Wait) -> None:
        self._clients = Clients(config.originals)
        self._replicas = config.replication_factor
        self._topic = replication_policy(config.originals).missing_topic(config.source_cluster_alias)
        self._asking = Asking(config.target_cluster_alias, seconds, wait)
        self._written: dict[str, float] = {}
        self._refuses = False

    def kept(self) -> Mapping[str, float]:
        """Since when each topic was missing, as it was written last."""
        consumer = self._clients.consumer(Cluster.TARGET, "missing-target-consumer", READING)
        topics = InternalTopics(consumer, (self._topic,), self._asking)
        found: dict[str, float] = {}
        try:
            for message in topics.to_end():
                _take(message, found)
        except RetriableError:
            raise
        except ConnectError as error:
            self._tell(error)
        finally:
            topics.close()
        self._written = found
        return dict(found)

    def keep(self, missing: Mapping[str, float]) -> None:
        """Write what has changed since it was written last."""
        changed = {topic: missing.get(topic) for topic in missing.keys() | self._written.keys()}
        changed = {topic: since for topic, since in changed.items() if self._written.get(topic) != since}
        if not changed or self._refuses:
            return
        try:
            self._write(changed)
        except RetriableError:
            raise
        except ConnectError as error:
            self._tell(error)
        else:
            self._written = dict(missing)

    def _write(self, changed: Mapping[str, float | None]) -> None:
        admin = self._clients.admin(Cluster.TARGET, "missing-target-admin")
        create_compacted(admin, self._asking, self._topic, _REPLICAS, self._replicas)
        producer = self._clients.producer(Cluster.TARGET, "missing-target-producer")
        failed: list[KafkaError] = []

        def told(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for topic, since in changed.items():
            value = None if since is None else str(round(since * _MS)).encode()
            producer.produce(self._topic, value, topic.encode(), 0, on_delivery=told)
        if producer.flush(_FLUSH_SECONDS):
            raise RetriableError(f"The cluster {self._asking.cluster} has not taken all records of {self._topic}.")
        if failed:
            raise refusal(self._asking.cluster, f"write {self._topic}", failed[0])

    def _tell(self, error: ConnectError) -> None:
        if not self._refuses:
            logger.warning("How long topics are missing at the source is forgotten at a restart: %s", error)
        self._refuses = True


def _take(message: Message, found: dict[str, float]) -> None:
    topic, value = (message.key() or b"").decode(errors="replace"), message.value()
    try:
        if value is None:
            found.pop(topic, None)
        else:
            found[topic] = int(value) / _MS
    except ValueError:
        logger.warning("The record %s of %s is left out: it is no time.", message.offset(), message.topic())
