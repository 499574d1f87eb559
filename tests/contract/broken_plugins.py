"""Plugins that break the contract, each in one way, to see that the kit notices."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from connect.config import HIGH, Config, option
from connect.converter import Converter
from connect.data import Batch, Column, Record, Schema, SchemaAndValue, SinkBatch, SourceRecord, TopicPartition
from connect.errors import ConnectError, DataError
from connect.sink import SinkConnector, SinkTask
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connect.transformation import Predicate, Transformation

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class LettersConfig(Config):
    """How the source misbehaves; without a fault it does not."""

    topic: str = option(importance=HIGH, doc="Topic to publish to.")
    fault: str = option(default="", importance=HIGH, doc="What it does wrong.")


class LettersTask(SourceTask[LettersConfig]):
    """Publishes the letters a to f, two a poll."""

    def start(self) -> None:
        offset = self.context.offset_storage_reader.offset({"letters": "all"})
        self.next = 0 if offset is None or self.config.fault in ("forgets", "split, forgets") else offset["next"]
        if self.config.fault == "skips" and self.next == 3:
            self.next += 1
        self.started = True

    def poll(self) -> list[SourceRecord]:
        if self.config.fault == "sleeps" or (self.config.fault == "blocks" and self.next >= 6):
            time.sleep(0.25)
        if self.config.fault == "sleeps for minutes" and self.next >= 6:
            time.sleep(600)
        return [self.record() for _ in range(min(2, 6 - self.next))]

    def record(self) -> SourceRecord:
        self.next += 1
        value: Any = "abcdef"[self.next - 1]
        if self.config.fault == "misfits" and value == "c":
            value = 3
        next_ = -(-self.next // 2) * 2 if self.config.fault == "coarse" else self.next
        offset = {"next": [next_]} if self.config.fault == "nests" else {"next": next_}
        return SourceRecord(
            self.config.topic, value, Schema.string(), source_partition={"letters": "all"}, source_offset=offset
        )

    def drained(self) -> bool:
        return self.next >= 6 and self.config.fault != "split, endless"

    def stop(self) -> None:
        if self.config.fault == "stops once":
            del self.started


class LettersConnector(SourceConnector[LettersConfig]):
    """Publishes letters."""

    task_class = LettersTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        count = {"too many tasks": max_tasks + 1, "every task does all": max_tasks}.get(self.config.fault, 1)
        return [self.config.originals] * count

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str | None]] | None:
        if not self.config.fault.startswith("split"):
            return None
        count = {"split, too many": max_splits + 1, "split, forgets": max_splits}.get(self.config.fault, 1)
        return [self.config.originals] * count

    @classmethod
    def exactly_once_support(cls, config: LettersConfig) -> ExactlyOnceSupport | None:
        return ExactlyOnceSupport.SUPPORTED if config.fault == "claims too much" else None

    @classmethod
    def alter_offsets(cls, config: LettersConfig, offsets: Mapping[str, Any]) -> bool:
        if config.fault == "refuses its offsets" and None not in offsets.values():
            raise ConnectError("This cannot be altered.")
        return True


class PagesConfig(Config):
    """Where to write, and how the sink misbehaves; without a fault it does not."""

    file: str = option(importance=HIGH, doc="File to write to.")
    fault: str = option(default="", importance=HIGH, doc="What it does wrong.")


class PagesTask(SinkTask[PagesConfig]):
    """Keeps records until flush, and appends them to a file then."""

    def start(self) -> None:
        self.lines: list[str] = []
        self.partitions: set[TopicPartition] = set()
        self.path = Path(self.config.file)
        self.path.touch()

    def open(self, partitions: Any) -> None:
        self.partitions |= set(partitions)

    def put(self, records: SinkBatch) -> None:
        if self.config.fault == "fails when empty":
            _ = records.offsets[0]
        if self.config.fault == "forgets closed partitions" and not set(records.origins) <= self.partitions:
            return
        self.lines += records.value.values()
        if self.config.fault == "writes at once and at flush":
            self.flush({})
            self.lines += records.value.values()

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self.config.fault == "flushes nothing":
            return
        with self.path.open("a") as file:
            file.writelines(f"{line}\n" for line in self.lines)
        self.lines = []

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if self.config.fault == "commits before it flushes":
            lines, self.lines = self.lines, []
            self.later = [*getattr(self, "later", []), *lines]
            return offsets
        self.flush(offsets)
        return {tp: end + (self.config.fault == "commits ahead") for tp, end in offsets.items()}

    def close(self, partitions: Any) -> None:
        if self.config.fault == "forgets closed partitions":
            self.partitions.clear()

    def stop(self) -> None:
        self.lines = [*self.lines, *getattr(self, "later", [])]
        if self.config.fault == "commits before it flushes":
            self.flush({})


class PagesConnector(SinkConnector[PagesConfig]):
    """Appends to a file."""

    task_class = PagesTask


class ObjectsTask(PagesTask):
    """Writes each record as a JSON object that tells where it comes from."""

    def put(self, records: SinkBatch) -> None:
        places = [(record.value, [record.original_partition, record.original_offset]) for record in records]
        self.lines += [json.dumps({**value, "at": place}) for value, place in places]


class ObjectsConnector(SinkConnector[PagesConfig]):
    """Appends JSON objects to a file."""

    task_class = ObjectsTask


class TextConverter(Converter[LettersConfig]):
    """Strings; ``fault`` says what it does wrong."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return b"" if self.config.fault == "loses tombstones" else None
        if not isinstance(value, str):
            raise TypeError(value) if self.config.fault == "raises something" else DataError("no string")
        return value.encode()

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        try:
            return SchemaAndValue(Schema.string(optional=True), None if data is None else data.decode())
        except UnicodeDecodeError as error:
            raise DataError("no text") from error

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:
        if self.config.fault == "drops nulls by column":
            return super().to_connect_column(topic, [item for item in data if item is not None])
        if self.config.fault == "replaces by column":
            return super().to_connect_column(topic, [item and item.decode(errors="replace").encode() for item in data])
        return super().to_connect_column(topic, data)

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        if self.config.fault == "shouts by column":
            return [item if item is None else item.upper() for item in super().from_connect_column(topic, column)]
        return super().from_connect_column(topic, column)


class Stamp(Transformation[LettersConfig]):
    """Changes the topic; ``fault`` says what it does wrong."""

    count = 0

    def apply(self, record: R) -> R | None:
        self.count += 1
        if self.config.fault == "does nothing":
            return record
        if self.config.fault == "refuses all":
            raise DataError("no")
        if self.config.fault == "mutates":
            record.topic = "stamped"
        if self.config.fault == "mutates values" and isinstance(record.value, dict):
            record.value["name"] = "stamped"
        if self.config.fault == "remembers":
            self.first = getattr(self, "first", None) or record
            return record.replace(topic="stamped", value=self.first.value, value_schema=self.first.value_schema)
        if self.config.fault == "fails on nulls":
            _ = record.value.items
        if self.config.fault == "counts":
            return record.replace(topic=f"stamped-{self.count}")
        if self.config.fault == "moves" and hasattr(record, "original_offset"):
            return record.replace(topic="stamped", original_topic="stamped")
        return record.replace(topic="stamped")

    def apply_batch(self, batch: B) -> Sequence[B]:
        if self.config.fault == "differs by batch":
            return [batch]
        if self.config.fault == "mutates by batch":
            for value in batch.value.values():
                if isinstance(value, dict):
                    value["name"] = "stamped"
        return super().apply_batch(batch)


class Tilted(Transformation[LettersConfig]):
    """Has variants that do not do the same."""

    class Key(Transformation[LettersConfig]):
        """Sets the key to null."""

        def apply(self, record: R) -> R | None:
            return record.replace(key=None, key_schema=None)

    class Value(Transformation[LettersConfig]):
        """Leaves the value alone."""

        def apply(self, record: R) -> R | None:
            return record

    def apply(self, record: R) -> R | None:
        return record


class Moody(Predicate[LettersConfig]):
    """Answers with something else than a boolean, or otherwise by batch."""

    def test(self, record: Record) -> bool:
        answer: Any = record.key if self.config.fault == "answers with a key" else record.key is None
        if self.config.fault == "remembers":
            answer = self.first = getattr(self, "first", answer)
        return answer  # type: ignore[no-any-return]

    def test_batch(self, batch: Batch[Any]) -> Sequence[bool]:
        if self.config.fault == "answers once a batch":
            return [True]
        return super().test_batch(batch)


class SilentConfig(Config):
    """Has an option without a word about it."""

    key: str = option(default="", importance=HIGH, doc=" ")


class Silent(Predicate[SilentConfig]):
    """Has an option without a word about it."""

    def test(self, record: Record) -> bool:
        return True


def faults_of(cases: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The pairs of a fault and the test that notices it."""
    return [(fault, test) for test, faults in cases.items() for fault in faults]
