"""A record in a dead letter queue: its origin, its error, and where it may be delivered again."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from connect.internals.chain.raw_records import RawRecord
from worker.config.connector import SinkConnectorConfig
from worker.config.internal_topics import InternalTopics
from worker.runtime.dead_letters.queue import PREFIX
from worker.runtime.sink.topic_choice import TopicChoice
from worker.security.redaction import Redaction

__all__ = ["REPLAYED", "DeadLetter", "DeadLetterOrigins"]

REPLAYED: Final = "__connect.dlq.replayed"
"""The header of a replayed record: the topic, partition and offset it had in the queue."""

_NUMBERS: Final = ("partition", "offset")
_TEXTS: Final = ("exception.message", "exception.stacktrace")

_HEADERS: Final = "errors.deadletterqueue.context.headers.enable"
_UNTOLD: Final = (
    f"The origin of the record is unknown, so it stays in the queue only. Set {_HEADERS}=true for future records."
)


@dataclass(frozen=True)
class DeadLetter:
    """A record of the queue ``queue``, with all its headers."""

    queue: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    @property
    def place(self) -> tuple[int, int]:
        """Its partition and offset in the queue."""
        return self.partition, self.offset

    @cached_property
    def context(self) -> Mapping[str, str]:
        """The error report in its headers, by name without the prefix; of repeated headers, the last one."""
        return {
            name.removeprefix(PREFIX): (value or b"").decode(errors="replace")
            for name, value in self.headers
            if name.startswith(PREFIX)
        }

    @property
    def size(self) -> int:
        """Its size in bytes."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers

    def belongs_to(self, connector: str, *, named: bool) -> bool:
        """Return whether it belongs to this connector, since several may share a queue.

        If the connector's records are ``named``, one without a name belongs to another.
        """
        return self.context.get("connector.name", "" if named else connector) == connector

    def original(self, only_topic: str | None) -> RawRecord | None:
        """Return the record as it was consumed, marked as replayed; ``None`` if its topic is unknown.

        ``only_topic`` is the topic if there can be only one. An unknown partition or offset is -1.
        """
        topic = self.context.get("topic") or only_topic
        if topic is None:
            return None
        partition, offset = (_number(self.context.get(name)) for name in _NUMBERS)
        kept = [(name, value) for name, value in self.headers if not name.startswith(PREFIX) and name != REPLAYED]
        mark = f"{self.queue}:{self.partition}:{self.offset}".encode()
        return RawRecord(
            topic,
            partition,
            offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            [*kept, (REPLAYED, mark)],
        )

    def document(self, redaction: Redaction) -> dict[str, Any]:
        """Return the record as in the REST API, without secrets that its error report may contain (invariant I8)."""
        plain = [(name, value) for name, value in self.headers if not name.startswith(PREFIX)]
        return {
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": _shown(self.key),
            "value": _shown(self.value),
            "headers": [{"key": name, "value": _shown(value)} for name, value in plain],
            "error": _error(self.context, redaction) if self.context else None,
        }


def _error(context: Mapping[str, str], redaction: Redaction) -> dict[str, Any]:
    """Return the error as shown."""
    texts = {name: redaction.redacted(context[name]) for name in _TEXTS if name in context}
    return {
        "topic": context.get("topic"),
        "partition": _known(context.get("partition")),
        "offset": _known(context.get("offset")),
        "source_partition": context.get("source.partition"),
        "source_offset": context.get("source.offset"),
        "connector": context.get("connector.name"),
        "task": _known(context.get("task.id")),
        "stage": context.get("stage"),
        "class": context.get("class.name"),
        "exception": context.get("exception.class.name"),
        "message": texts.get("exception.message"),
        "stacktrace": texts.get("exception.stacktrace"),
    }


def _shown(data: bytes | None) -> dict[str, str] | None:
    """Bytes as text if they are UTF-8, else in base64."""
    if data is None:
        return None
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else -1


def _known(text: str | None) -> int | None:
    number = _number(text)
    return None if number < 0 else number


class DeadLetterOrigins:
    """Decides to which topics dead letters may return, by the configurations of a sink and its worker.

    The headers alone cannot decide it: whoever may write to the queue chooses them.
    """

    def __init__(self, config: SinkConnectorConfig, internal: InternalTopics) -> None:
        self._name = config.name
        self._choice = TopicChoice(config, internal)
        self._internal = internal

    def original(self, record: DeadLetter) -> RawRecord | None:
        """Return the record as it was consumed; ``None`` if its topic is unknown."""
        return record.original(self._choice.only_topic)

    def why_not(self, original: RawRecord | None, to: str) -> str | None:
        """Return why a record cannot return; ``None`` if it can. For a task, its partition and offset must be known
        too.
        """
        if original is None:
            return _UNTOLD
        if self._internal.has(original.topic) or not self._choice.has(original.topic):
            return (
                f"Its headers say that it comes from topic {original.topic}, which connector {self._name} does not "
                "read: it stays in the queue only. If it did read that topic, add it to the connector's topics."
            )
        return _UNTOLD if to == "task" and (original.partition < 0 or original.offset < 0) else None
