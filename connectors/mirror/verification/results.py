"""Results of verifications, kept in a compacted topic at the target with a record for each partition."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Final

from confluent_kafka import KafkaError, Message

from connect.errors import ConnectError, DataError, RetriableError
from connect.measurement import Measurement
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.flow import TopicsConfig
from connectors.mirror.config.source import MirrorSourceConfig
from connectors.mirror.internal_topics import READING, InternalTopics, create_compacted
from connectors.mirror.offset_topics import patience_with
from connectors.mirror.patience import Wait, refusal
from connectors.mirror.policies import replication_policy
from connectors.mirror.verification.comparison import PartitionReport

__all__ = ["FollowedVerifications", "Verified", "VerifiedTopic"]

logger = logging.getLogger(__name__)

_MOST_DIFFERENCES: Final = 200
"""Most partitions that are measured: those whose verification is the oldest."""
_FLUSH_SECONDS: Final = 30.0
_REPLICAS: Final = "replication.factor"


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification of one partition.

    ``at`` is the time in milliseconds since 1970, ``difference`` the first offset that differs, and ``last`` how many
    of the newest offsets were compared, ``None`` for all.
    """

    topic: str
    partition: int
    topic_there: str
    at: int
    equal: int
    last: int | None = None
    difference: int | None = None

    @classmethod
    def of(cls, report: PartitionReport, at: int, last: int | None) -> Verified:
        """Return the result in a report."""
        found = None if report.difference is None else report.difference.offset
        return cls(report.topic, report.partition, report.topic_there, at, report.equal, last, found)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Verified:
        """Decode a record; raise :class:`~connect.errors.DataError` if it is malformed."""
        try:
            return cls(**json.loads(key or b""), **json.loads(value or b""))
        except (ValueError, TypeError) as error:
            raise DataError(f"It is not the record of a verification: {error}") from error

    def key(self) -> bytes:
        """Return the key of the record."""
        return json.dumps({"topic": self.topic, "partition": self.partition}).encode()

    def value(self) -> bytes:
        """Return the value of the record."""
        own = {key: each for key, each in self.document().items() if key not in ("topic", "partition")}
        return json.dumps(own).encode()

    def document(self) -> dict[str, Any]:
        """Return the result as JSON has it."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "topic_there": self.topic_there,
            "at": self.at,
            "equal": self.equal,
            "last": self.last,
            "difference": self.difference,
        }


class VerifiedTopic:
    """Writes and reads results, by the configuration of the flow's source connector. For one thread.

    Each method raises a ``ConnectError`` if the target does not answer or refuses.
    """

    def __init__(self, props: Mapping[str, str], wait: Wait = lambda _: True) -> None:
        self._config = config = MirrorSourceConfig.parse(props)
        self._clients = Clients(props)
        self._patience = patience_with(config, Cluster.TARGET, wait)
        self._topic = replication_policy(props).verified_topic(config.source_cluster_alias)

    def keep(self, found: Iterable[Verified]) -> None:
        """Write results; create the topic if it is missing."""
        admin = self._clients.admin(Cluster.TARGET, "verified-target-admin")
        create_compacted(admin, self._patience, self._topic, _REPLICAS, self._config.replication_factor)
        producer = self._clients.producer(Cluster.TARGET, "verified-target-producer")
        failed: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for each in found:
            producer.produce(self._topic, each.value(), each.key(), 0, on_delivery=on_delivery)
        if producer.flush(_FLUSH_SECONDS):
            raise RetriableError(
                f"The cluster {self._patience.cluster} has not acknowledged all records of {self._topic}."
            )
        if failed:
            raise refusal(self._patience.cluster, f"write {self._topic}", failed[0])

    def kept(self) -> list[Verified]:
        """Return the stored results, by topic and partition."""
        consumer = self._clients.consumer(Cluster.TARGET, "verified-target-consumer", READING)
        topics = InternalTopics(consumer, (self._topic,), self._patience)
        found: dict[bytes | None, Verified] = {}
        try:
            for message in topics.to_end():
                _take(message, found)
        finally:
            topics.close()
        return sorted(found.values(), key=lambda each: (each.topic, each.partition))


class FollowedVerifications:
    """Measures the stored results, for one task of the flow's checkpoint connector. For the task's thread.

    Nothing depends on it: a refusal of the target is logged once, and the target is not asked again.
    """

    def __init__(self, config: TopicsConfig, clients: Clients, wait: Wait) -> None:
        policy, alias = replication_policy(config.originals), config.source_cluster_alias
        consumer = clients.consumer(Cluster.TARGET, "verified-target-consumer", READING)
        topic = policy.verified_topic(alias)
        self._topics: InternalTopics | None = InternalTopics(
            consumer, (topic,), patience_with(config, Cluster.TARGET, wait)
        )
        self._found: dict[bytes | None, Verified] = {}
        self._labels = (("source", alias), ("target", config.target_cluster_alias))

    def follow(self) -> None:
        """Read the results that have arrived since; raise :class:`~connectors.mirror.patience.StoppedError`."""
        if self._topics is None:
            return
        try:
            for message in self._topics.new():
                _take(message, self._found)
        except RetriableError as error:
            logger.debug("The results of verifications cannot be read at the moment: %s", error)
        except ConnectError as error:
            logger.warning("The results of verifications cannot be read and are not measured: %s", error)
            self.close()

    def measurements(self) -> Iterator[Measurement]:
        """Yield the measurements of the partitions with the oldest verification."""
        for each in nsmallest(_MOST_DIFFERENCES, self._found.values(), key=lambda found: found.at):
            labels = (*self._labels, ("topic", each.topic_there), ("partition", str(each.partition)))
            seconds = each.at / 1000
            yield Measurement("mirror_verified_timestamp_seconds", seconds, "Time of the last verification.", labels)
            yield Measurement("mirror_verified_records", each.equal, "Records that were equal at both ends.", labels)
            differs = float(each.difference is not None)
            yield Measurement(
                "mirror_verified_differs", differs, "1 if the verification found a difference, else 0.", labels
            )

    def close(self) -> None:
        """Close the consumer."""
        topics, self._topics = self._topics, None
        if topics is not None:
            topics.close()


def _take(message: Message, found: dict[bytes | None, Verified]) -> None:
    try:
        found[message.key()] = Verified.decode(message.key(), message.value())
    except DataError as error:
        logger.warning("Skipping record %s of %s: %s", message.offset(), message.topic(), error)
