"""A sink that answers each record on another topic."""

from __future__ import annotations

from connect.config import HIGH, Config, option
from connect.data import SinkBatch
from connect.sink import SinkConnector, SinkTask

__all__ = ["AnsweringConfig", "AnsweringSinkConnector", "AnsweringTask"]


class AnsweringConfig(Config):
    """Where it answers."""

    answer_topic: str = option(importance=HIGH, doc="The topic of the answers.")


class AnsweringTask(SinkTask[AnsweringConfig]):
    """Publishes the key of each record, and its value as text."""

    def put(self, records: SinkBatch) -> None:
        """Answer the records."""
        for record in records:
            self.context.publish(self.config.answer_topic, str(record.key).encode(), str(record.value["id"]).encode())


class AnsweringSinkConnector(SinkConnector[AnsweringConfig]):
    """Answers each record."""

    task_class = AnsweringTask
