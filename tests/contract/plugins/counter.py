"""A source in twenty lines: it counts, and goes on counting where it stopped."""

from connect.config import HIGH, Config, option
from connect.data import Schema, SourceRecord
from connect.source import SourceConnector, SourceTask


class CounterConfig(Config):
    """What to publish and how fast."""

    topic: str = option(importance=HIGH, doc="Topic to publish the numbers to.")
    seconds: float = option(default=1.0, importance=HIGH, doc="How long to wait before each number.")


class CounterTask(SourceTask[CounterConfig]):
    """Publishes the next number at every poll."""

    def start(self) -> None:
        self.partition = {"topic": self.config.topic}
        last = self.context.offset_storage_reader.offset(self.partition)
        self.number = last["number"] if last else 0

    def poll(self) -> list[SourceRecord]:
        if not self.context.wait(self.config.seconds):
            return []
        self.number += 1
        record = SourceRecord(self.config.topic, self.number, Schema.int64())
        return [record.replace(source_partition=self.partition, source_offset={"number": self.number})]


class CounterConnector(SourceConnector[CounterConfig]):
    """Counts from one."""

    task_class = CounterTask
