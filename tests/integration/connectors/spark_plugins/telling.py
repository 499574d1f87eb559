"""A sink that tells of each record on a topic of its own."""

from __future__ import annotations

from connect.config import HIGH, Config, option
from connect.data import SinkBatch
from connect.sink import SinkConnector, SinkTask

__all__ = ["TellingConfig", "TellingSinkConnector", "TellingTask"]


class TellingConfig(Config):
    """Where it tells."""

    told_topic: str = option(importance=HIGH, doc="The topic of what is told.")


class TellingTask(SinkTask[TellingConfig]):
    """Publishes the key of each record, and its value as text."""

    def put(self, records: SinkBatch) -> None:
        """Tell of records."""
        for record in records:
            self.context.publish(self.config.told_topic, str(record.key).encode(), str(record.value["id"]).encode())


class TellingSinkConnector(SinkConnector[TellingConfig]):
    """Tells."""

    task_class = TellingTask
