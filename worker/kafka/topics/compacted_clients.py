"""The clients of a compacted topic: their settings, their write limit, and the meaning of their errors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from connect.errors import ConnectError, RetriableError
from connect.internals.kafka.auth.rights import WORKER, explained, on_topic
from connect.internals.kafka.settings.client import ClientProperties, PropertyValue
from worker.formatting import local_time

__all__ = [
    "WriteLimit",
    "closed_error",
    "denied_error",
    "ends_reader_properties",
    "gone_text",
    "is_late",
    "is_too_large",
    "is_transient",
    "late_error",
    "reader_properties",
    "refused_write_error",
    "replaced_text",
    "unread_partition_error",
    "write_limit_error",
    "writer_properties",
]

_SAVE: Final = "Save what you need of it (GET /connectors?expand=info), and restart every worker of the cluster."
_ISOLATION: Final = "isolation.level"

# I9: such a topic is small, and the client buffers at most 1 MiB, although a single record may be larger.
_CONSUMER: Final[Mapping[str, PropertyValue]] = {
    "enable.partition.eof": True,
    "queued.max.messages.kbytes": 1024,
    "queued.min.messages": 1000,
    "fetch.queue.backoff.ms": 2,
    "fetch.min.bytes": 1,
    # How soon a partition that temporarily cannot be fetched is tried again.
    "fetch.error.backoff.ms": 100,
}
# A consumer that has lost all brokers always starts over with its first address, and so with the shortest wait.
_RECONNECT: Final = "reconnect.backoff.ms"
_LONGEST_RECONNECT: Final = "reconnect.backoff.max.ms"
_PATIENT_MS: Final = 500
# With one request at a time the order is kept, and duplicates are removed by compaction, so no producer id is needed.
_PRODUCER: Final[Mapping[str, PropertyValue]] = {
    "linger.ms": 0,
    "enable.idempotence": False,
    "max.in.flight.requests.per.connection": 1,
}
_PASSING: Final = frozenset(
    (
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    )
)


@dataclass(frozen=True, slots=True)
class WriteLimit:
    """Stops a worker from writing too late: each record is delivered within ``seconds`` or never.

    ``lasts`` is called in the topic's thread and returns whether the worker may write for the given number of seconds.
    A record whose acknowledgement was lost may have been delivered within that time. ``lapses`` counts how often others
    may have taken over the worker's units; while it does not change, undelivered records may be retried.
    """

    seconds: float
    lasts: Callable[[float], bool]
    lapses: Callable[[], int]


def reader_properties(consumer: ClientProperties) -> ClientProperties:
    """Return the settings of the consumer that reads the topic."""
    return replace(consumer, properties={**consumer.properties, **_CONSUMER, **_patience(consumer.properties)})


def ends_reader_properties(consumer: ClientProperties) -> ClientProperties:
    """Return the settings of the consumer that looks up the topic's end.

    Committed records end with the last complete transaction; an open one has to be waited for.
    """
    properties = reader_properties(consumer).properties
    return replace(consumer, properties={**properties, _ISOLATION: "read_uncommitted"})


def writer_properties(producer: ClientProperties, within: float = math.inf) -> ClientProperties:
    """Return the settings of the producer. A record that is not delivered ``within`` that many seconds never is."""
    limit = {} if within == math.inf else {"message.timeout.ms": max(1, int(within * 1000))}
    return replace(producer, properties={**producer.properties, **_PRODUCER, **limit})


def is_transient(error: KafkaError) -> bool:
    """Return whether an error is temporary, so that the request is worth repeating."""
    return not error.fatal() and (error.retriable() or error.code() in _PASSING)


def is_late(error: KafkaError) -> bool:
    """Return whether a record was not delivered within the limit."""
    return bool(error.code() == KafkaError._MSG_TIMED_OUT)


def is_too_large(error: BaseException | None) -> bool:
    """Return whether a record was larger than the producer or the topic accepts, so that a retry would fail again."""
    while error is not None:
        if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return True
        error = error.__cause__
    return False


def closed_error(topic: str) -> ConnectError:
    """Return the error of a request that was open when its topic was closed."""
    return ConnectError(f"Topic '{topic}' is closed here: the worker is stopping")


def unread_partition_error(topic: str) -> ConnectError:
    """Return the error of a record that was written to a partition that this worker does not read."""
    return ConnectError(f"Topic '{topic}' has more partitions than when this worker was started; restart the worker")


def denied_error(topic: str, error: KafkaError, operation: str) -> ConnectError:
    """Return the error of a client to which the brokers have denied access."""
    reason = explained(error, WORKER, on_topic(topic, operation))
    return ConnectError(f"Topic '{topic}' cannot be used: {reason}")


def refused_write_error(topic: str, error: KafkaError) -> ConnectError:
    """Return the error of a record that was not written: a ``RetriableError`` if that may be temporary."""
    kind = RetriableError if is_transient(error) else ConnectError
    refused = kind(f"Topic '{topic}' could not be written to: {explained(error, WORKER, on_topic(topic, 'Write'))}")
    refused.__cause__ = KafkaException(error)
    return refused


def gone_text(topic: str) -> str:
    """Return what is said of a topic that exists no more."""
    return (
        f"Topic '{topic}' does not exist any more, noticed at {local_time(time.time())}. What this worker shows was "
        f"read before. {_SAVE} The workers then create the topic again, empty."
    )


def replaced_text(topic: str) -> str:
    """Return what is said of a topic that is shorter than what was read of it."""
    return (
        f"Topic '{topic}' was deleted and created again, or has lost its newest records, noticed at "
        f"{local_time(time.time())}. What this worker shows is what it has read of the former topic. {_SAVE} They then "
        "know only what the topic holds now."
    )


def late_error(topic: str, what: str) -> RetriableError:
    """Return the error of a request that took too long."""
    return RetriableError(f"Topic '{topic}' {what} in time; are its brokers up and can they be reached?")


def write_limit_error(topic: str) -> RetriableError:
    """Return the error of a write beyond the limit."""
    return RetriableError(
        f"Nothing is written to topic '{topic}': this worker has not heard from its cluster for a while, and another "
        "worker may do its work by now"
    )


def _patience(properties: Mapping[str, PropertyValue]) -> dict[str, PropertyValue]:
    shortest, longest = (int(properties.get(key, _PATIENT_MS)) for key in (_RECONNECT, _LONGEST_RECONNECT))
    return {_RECONNECT: min(max(shortest, _PATIENT_MS), longest)}
