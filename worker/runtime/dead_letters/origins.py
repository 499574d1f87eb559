"""The origins to which dead letters may return: not for everybody who may write to the queue to choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connect.chain.raw_records import RawRecord
from worker.config.connector import SinkConnectorConfig
from worker.runtime.dead_letters.dead_letter import DeadLetter
from worker.runtime.sink.topic_choice import INTERNAL_TOPICS, TopicChoice

__all__ = ["DeadLetterOrigins", "internal_topics"]

_STORAGE: Final = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")
_HEADERS: Final = "errors.deadletterqueue.context.headers.enable"
_UNTOLD: Final = (
    f"Nothing tells where the record comes from, and it stays in the queue only. Set {_HEADERS}=true for those to come."
)


class DeadLetterOrigins:
    """Decides where dead letters may return to, by the configurations of a sink and of its worker."""

    def __init__(self, config: SinkConnectorConfig, worker_props: Mapping[str, str]) -> None:
        self._name = config.name
        self._choice = TopicChoice(config)
        self._internal = internal_topics(worker_props)

    def original(self, record: DeadLetter) -> RawRecord | None:
        """The record as it was consumed; ``None`` if nothing tells its topic."""
        return record.original(self._choice.only_topic)

    def why_not(self, original: RawRecord | None, to: str) -> str | None:
        """The reason for which a record cannot return, if any; to a task it needs its partition and offset too."""
        if original is None:
            return _UNTOLD
        if original.topic in self._internal or not self._choice.has(original.topic):
            return (
                f"Its headers say that it comes from topic {original.topic}, which connector {self._name} does not "
                "read: it stays in the queue only. If it did read that topic, add it to the connector's topics."
            )
        return _UNTOLD if to == "task" and (original.partition < 0 or original.offset < 0) else None


def internal_topics(worker_props: Mapping[str, str]) -> frozenset[str]:
    """The topics of Kafka and of the worker's cluster, which hold no records of connectors."""
    return INTERNAL_TOPICS | {worker_props[key] for key in _STORAGE if key in worker_props}
