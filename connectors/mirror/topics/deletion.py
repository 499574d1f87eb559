"""When a mirrored topic is deleted because its source topic is, and since when source topics have been missing.

The times are kept in a compacted topic at the target, so that a restart knows them.

Crash points: a time that was not written before a kill starts anew: the topic is deleted later, never earlier. Times of
topics that were deleted, or exist again, are removed at the next look.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Final

from confluent_kafka import KafkaError, Message

from connect.errors import ConnectError, RetriableError
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.source import MirrorSourceConfig
from connectors.mirror.internal_topics import READING, InternalTopics, create_compacted
from connectors.mirror.patience import Patience, Wait, refusal
from connectors.mirror.policies import replication_policy

__all__ = ["DeletionNotes", "Deletions"]

logger = logging.getLogger(__name__)


class Deletions:
    """Decides which topics have been missing at the source for ``grace`` seconds, in every look. For one thread.

    A source that does not answer, or has no topics at all, has not deleted anything: the time starts anew. Times are in
    seconds, of any clock.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._missing: dict[str, float] = {}

    @property
    def missing(self) -> Mapping[str, float]:
        """The time since which each topic has been missing."""
        return self._missing

    def recall(self, missing: Mapping[str, float]) -> None:
        """Continue with times from before a restart."""
        self._missing = {**missing, **self._missing}

    def source_is_away(self) -> None:
        """Start the times anew, because the source has not answered."""
        self._missing.clear()

    def due(self, there: Collection[str], mirrored: Collection[str], now: float) -> list[str]:
        """Return the ``mirrored`` topics that have been missing long enough; ``there`` are all topics of the source."""
        if not there:
            self.source_is_away()
            return []
        self._missing = {topic: self._missing.get(topic, now) for topic in mirrored if topic not in there}
        return sorted(topic for topic, since in self._missing.items() if now - since >= self._grace)


_FLUSH_SECONDS: Final = 30.0
_REPLICAS: Final = "replication.factor"
_MS: Final = 1000


class DeletionNotes:
    """Reads and writes these times, in seconds since 1970. For one thread.

    Each method raises :class:`~connect.errors.RetriableError` if the target does not answer. A refusal is logged once;
    the times are then kept in memory only.
    """

    def __init__(self, config: MirrorSourceConfig, seconds: float, wait: Wait) -> None:
        self._clients = Clients(config.originals)
        self._replicas = config.replication_factor
        self._topic = replication_policy(config.originals).missing_topic(config.source_cluster_alias)
        self._patience = Patience(config.target_cluster_alias, seconds, wait)
        self._written: dict[str, float] = {}
        self._refuses = False

    def kept(self) -> Mapping[str, float]:
        """Return the time since which each topic has been missing, as last written."""
        consumer = self._clients.consumer(Cluster.TARGET, "missing-target-consumer", READING)
        topics = InternalTopics(consumer, (self._topic,), self._patience)
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
        """Write what has changed since the last write."""
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
        create_compacted(admin, self._patience, self._topic, _REPLICAS, self._replicas)
        producer = self._clients.producer(Cluster.TARGET, "missing-target-producer")
        failed: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for topic, since in changed.items():
            value = None if since is None else str(round(since * _MS)).encode()
            producer.produce(self._topic, value, topic.encode(), 0, on_delivery=on_delivery)
        if producer.flush(_FLUSH_SECONDS):
            raise RetriableError(
                f"The cluster {self._patience.cluster} has not acknowledged all records of {self._topic}."
            )
        if failed:
            raise refusal(self._patience.cluster, f"write {self._topic}", failed[0])

    def _tell(self, error: ConnectError) -> None:
        if not self._refuses:
            logger.warning("A restart will forget how long topics have been missing at the source: %s", error)
        self._refuses = True


def _take(message: Message, found: dict[str, float]) -> None:
    topic, value = (message.key() or b"").decode(errors="replace"), message.value()
    try:
        if value is None:
            found.pop(topic, None)
        else:
            found[topic] = int(value) / _MS
    except ValueError:
        logger.warning("Skipping record %s of %s: it is not a time in milliseconds.", message.offset(), message.topic())
