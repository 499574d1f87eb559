"""The dead letter queue: a topic for the records that a task has given up, with their errors.

A record of a sink is written as it was on its topic, with its bytes and headers. A record of a source is written as it
was read, as JSON if that is neither text nor bytes; one that Kafka refused, as it should have been on its topic. Crash
point: :meth:`DeadLetterQueue.flush` waits for Kafka's acknowledgement before offsets pass the record (invariant I4), so
a kill may write it twice and never loses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson
from confluent_kafka import Producer

from connect.data import SinkRecord
from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.tolerance import ErrorCounts, Failure
from connect.internals.delivery.acknowledged_producer import AcknowledgedProducer
from worker.security.redaction import Redaction

__all__ = ["PREFIX", "DeadLetterQueue", "ErrorHeaders"]

PREFIX: Final = "__connect.errors."
"""The prefix of the headers that describe the error (KIP-298)."""


@dataclass(frozen=True, slots=True)
class ErrorHeaders:
    """The headers of KIP-298 and, for sources, where the record was read; without secrets (invariant I8)."""

    connector: str
    task: int
    redaction: Redaction

    def of(self, failure: Failure, raw: RawRecord) -> Sequence[tuple[str, bytes | None]]:
        """Return the headers of a record."""
        place: Mapping[str, object] = {"topic": raw.topic, "partition": raw.partition, "offset": raw.offset}
        record = failure.record
        if record is not None and not isinstance(record, SinkRecord):
            place = {
                "topic": record.topic,
                "source.partition": _json(record.source_partition).decode(),
            }
            if record.source_offset:
                place = {**place, "source.offset": _json(record.source_offset).decode()}
        context: Mapping[str, object] = {
            **place,
            "connector.name": self.connector,
            "task.id": self.task,
            "stage": failure.stage.value,
            "class.name": failure.executing,
            "exception.class.name": failure.error_class,
            "exception.message": self.redaction.redacted(str(failure.error)),
            "exception.stacktrace": self.redaction.redacted(failure.trace),
        }
        return [(f"{PREFIX}{name}", str(value).encode()) for name, value in context.items()]


class DeadLetterQueue:
    """Writes failures to ``topic``, with ``headers`` if there are to be any.

    A :class:`~connect.internals.chain.tolerance.Reporter`.

    What is sent and what is refused is counted in ``counts``. Used by the task's thread alone.
    """

    def __init__(
        self, producer: Producer, topic: str, headers: ErrorHeaders | None, counts: ErrorCounts | None = None
    ) -> None:
        self._counts = counts or ErrorCounts()
        self._producer = AcknowledgedProducer(producer, f"The dead letter queue {topic}", self._count_refused)
        self._topic = topic
        self._headers = headers

    def report(self, failure: Failure) -> None:
        """Send the record of a failure, if it has one."""
        raw = failure.raw or _raw_of_source(failure)
        if raw is None:
            return
        headers: list[tuple[str, str | bytes | None]] = [*raw.headers]
        if self._headers is not None:
            headers += self._headers.of(failure, raw)
        self._counts.deadletterqueue_produce_requests += 1
        self._producer.send(self._topic, raw.key, raw.value, headers, raw.timestamp)

    def _count_refused(self) -> None:
        self._counts.deadletterqueue_produce_failures += 1

    def flush(self) -> None:
        """Wait until every record is acknowledged; see :meth:`AcknowledgedProducer.flush`."""
        self._producer.flush()


def _raw_of_source(failure: Failure) -> RawRecord | None:
    record = failure.record
    if record is None or isinstance(record, SinkRecord):
        return None
    return RawRecord(record.topic, -1, -1, record.timestamp, "CreateTime", _bytes(record.key), _bytes(record.value), ())


def _bytes(value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return value.encode() if isinstance(value, str) else _json(value)


def _json(value: object) -> bytes:
    # People read this: values that JSON cannot represent are shown as Python shows them.
    try:
        return orjson.dumps(value, default=repr, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:
        # orjson has no numbers beyond 64 bits, and no half surrogate pairs.
        return json.dumps(value, default=repr).encode()
