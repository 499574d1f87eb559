"""A sink that takes its time: it asks for records again, commits late, and writes down what it is told to do."""

from collections.abc import Collection, Mapping
from pathlib import Path

from connect.config import HIGH, LOW, Config, option
from connect.data import SinkBatch, TopicPartition
from connect.errors import DataError, RetriableError
from connect.sink import SinkConnector, SinkTask


class BusyConfig(Config):
    """Where it writes and how often it is busy."""

    file: str = option(importance=HIGH, doc="File of what it was told to do.")
    refusals: int = option(default=0, importance=LOW, doc="How often it asks for its first records again.")
    delays: int = option(default=0, importance=LOW, doc="How often nothing is durable yet.")
    rewind: int = option(default=0, importance=LOW, doc="Offset to continue from, if it is greater than 0.")
    refused: str = option(default="", importance=LOW, doc="A value that it does not take.")


class BusyTask(SinkTask[BusyConfig]):
    """Is busy."""

    def start(self) -> None:
        self.refusals, self.delays = self.config.refusals, self.config.delays

    def open(self, partitions: Collection[TopicPartition]) -> None:
        if self.config.rewind:
            self.context.offset(dict.fromkeys(partitions, self.config.rewind))

    def put(self, records: SinkBatch) -> None:
        if self.refusals:
            self.refusals -= 1
            raise RetriableError("busy", 0.001)
        taken = [record for record in records if record.value != self.config.refused]
        if len(taken) < len(records):
            error = DataError(f"{self.config.refused} is refused")
            if self.context.errant_record_reporter is None:
                raise error
            for record in records:
                if record.value == self.config.refused:
                    self.context.errant_record_reporter.report(record, error)
        self.tell("put", *(record.value for record in taken))

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if self.delays:
            self.delays -= 1
            self.context.timeout(0.001)
            return {}
        self.tell("flush", *map(str, offsets.values()))
        return offsets

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.tell("close")

    def stop(self) -> None:
        self.tell("stop")

    def tell(self, *words: str) -> None:
        with Path(self.config.file).open("a", encoding="utf-8") as file:
            file.write(" ".join(words) + "\n")


class BusyConnector(SinkConnector[BusyConfig]):
    """Makes one busy task."""

    task_class = BusyTask
