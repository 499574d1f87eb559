"""The datagen source: generated records, and the pace at which they are due."""

from __future__ import annotations

import json
import logging
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, overload

from connect.data import Column, Constant, Header, Headers, Lazy, Offset, Schema, SourceBatch, StructColumn, ValueColumn
from connect.errors import ConnectError
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.datagen.config import DatagenConfig, DatagenTaskConfig
from connectors.datagen.stream import RecordStream, RecordType

__all__ = ["DatagenConnector", "DatagenTask", "Pace"]

_log = logging.getLogger(__name__)

_LARGEST_FILE: Final = 1024 * 1024
_IDLE_SECONDS: Final = 1.0
_LONGEST_WAIT_SECONDS: Final = 1.0
_INT64: Final = Schema.int64()
_NO_KEY: Final = Schema.string(optional=True)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the stream of a task: the number of records before it, the seed, and the number of earlier starts."""

    generation: int
    iteration: int
    seed: int

    @classmethod
    def from_offset(cls, offset: Offset) -> Place:
        """Return the place after the record with this source offset."""
        check_offset(offset)
        return cls(offset.get("task.generation", 0), offset["current.iteration"], offset.get("random.seed", 0))


class PlaceOffsets(Sequence[Offset]):
    """The source offsets of consecutive records, each created on access."""

    __slots__ = ("_generation", "_iterations", "_seed")

    def __init__(self, generation: int, seed: int, iterations: range) -> None:
        self._generation = generation
        self._seed = seed
        self._iterations = iterations

    def __len__(self) -> int:
        return len(self._iterations)

    @overload
    def __getitem__(self, index: int) -> Offset: ...
    @overload
    def __getitem__(self, index: slice) -> PlaceOffsets: ...
    def __getitem__(self, index: int | slice) -> Offset | PlaceOffsets:
        if isinstance(index, slice):
            return PlaceOffsets(self._generation, self._seed, self._iterations[index])
        return {
            "task.generation": self._generation,
            "current.iteration": self._iterations[index],
            "random.seed": self._seed,
        }


class DatagenTask(SourceTask[DatagenTaskConfig]):
    """Generates the records of one task.

    Crash points: a record is a function of the seed, the task and its index, which the offsets count. So a task that
    was killed generates the same records again from the last committed offset on.
    """

    def start(self) -> None:
        config = self.config
        self._partition = {"task.id": config.task_id}
        self._type = _record_type(config)
        stored = self.context.offset_storage_reader.offset(self._partition)
        before = Place.from_offset(stored) if stored is not None else Place(-1, 0, secrets.randbits(63))
        seed = before.seed if config.random_seed is None else config.random_seed
        self._place = Place(before.generation + 1, before.iteration, seed)
        self._stream = RecordStream(self._type, seed, config.task_id)
        self._pace = Pace(config.max_interval, time.monotonic())
        self._key_schema = _key_schema(config.key_field, self._type.schema)
        self._is_drained = False

    def poll(self) -> SourceBatch | None:
        left = self._left()
        if not left:
            self._is_drained = True
            self.context.wait(_IDLE_SECONDS)
            return None
        now = time.monotonic()
        if (wait := self._pace.wait(now)) and self.config.max_interval > 0:
            if not self.context.wait(min(wait, _LONGEST_WAIT_SECONDS)):
                return None
            now = time.monotonic()
        if not (count := self._pace.due(now, left)):
            return None
        return self._batch(count)

    def drained(self) -> bool:
        """Return whether all records of ``iterations`` have been generated."""
        return self._is_drained

    def remaining(self) -> Mapping[str, int]:
        """Return the number of records left to generate, if it is limited."""
        return {"records": max(0, self.config.iterations - self._place.iteration)} if self.config.iterations > 0 else {}

    def total(self) -> Mapping[str, int]:
        """Return the number of records to generate, if it is limited."""
        return {"records": self.config.iterations} if self.config.iterations > 0 else {}

    def stop(self) -> None:
        """Do nothing: the task holds no resources."""

    def _left(self) -> int:
        """Return how many records may be generated now: at most to the end of the block or of the iterations."""
        size = self._type.block_size
        left = size - self._place.iteration % size
        return left if self.config.iterations < 1 else max(0, min(left, self.config.iterations - self._place.iteration))

    def _batch(self, count: int) -> SourceBatch:
        first = self._place.iteration
        columns = self._stream.columns(first, count)
        self._place = Place(self._place.generation, first + count, self._place.seed)
        return SourceBatch.of(
            self.config.kafka_topic,
            StructColumn(columns, self._type.schema),
            key=self._key(columns, count),
            source_partition=self._partition,
            source_offsets=PlaceOffsets(self._place.generation, self._place.seed, range(first + 1, first + count + 1)),
            headers=self._headers(first, count) if self.config.record_headers else None,
        )

    def _key(self, columns: Mapping[str, Sequence[object]], count: int) -> Column:
        name = self.config.key_field
        return ValueColumn(Constant(None, count) if name is None else columns[name], self._key_schema)

    def _headers(self, first: int, count: int) -> Sequence[Headers]:
        generation = Header("task.generation", self._place.generation, _INT64)
        task = Header("task.id", self.config.task_id, _INT64)

        def made() -> list[Headers]:
            numbers = range(first, first + count)
            return [Headers((generation, task, Header("current.iteration", number, _INT64))) for number in numbers]

        return Lazy(count, made)


def check_offset(offset: Offset) -> None:
    """Raise :class:`~connect.errors.ConnectError` for an offset that is not one of this connector's."""
    for name in ("current.iteration", "task.generation", "random.seed"):
        value = offset.get(name, 0 if name != "current.iteration" else None)
        if not isinstance(value, int) or isinstance(value, bool) or (value < 0 and name != "random.seed"):
            raise ConnectError(
                f"The value for the '{name}' key in the offset is {value!r}: give an integer; current.iteration is "
                "the number of records already generated, 0 to start over."
            )


def _record_type(config: DatagenTaskConfig) -> RecordType:
    file = config.schema_filename
    made = _type_of_file(file) if file else RecordType(config.schema_text)
    if made.unknown:
        _log.warning("Ignoring unknown annotations in the schema: %s.", ", ".join(made.unknown))
    if config.key_field is not None and made.schema.field(config.key_field) is None:
        raise ConnectError(f"The schema has no field {config.key_field}. Correct schema.keyfield.")
    return made


def _type_of_file(name: str) -> RecordType:
    """Return the record type described by the schema in a file.

    No error shows the content of the file (I8): whoever creates a connector could name any existing file.
    """
    path = Path(name)
    try:
        if not path.is_file():
            raise ConnectError(
                f"{name} is not an existing file. Correct schema.filename, or copy the file to this worker."
            )
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConnectError(
            f"The file {name} cannot be read: {error.strerror}. Correct schema.filename, or make the file readable "
            "for the worker's user."
        ) from error
    try:
        return RecordType(data.decode())
    except (ConnectError, UnicodeDecodeError):
        raise ConnectError(
            f"The file {name} is not a usable Avro schema. To see why, validate a connector with the schema in "
            "schema.string."
        ) from None


def _key_schema(name: str | None, schema: Schema) -> Schema:
    field = schema.field(name) if name is not None else None
    return field.schema if field is not None else _NO_KEY


class DatagenConnector(SourceConnector[DatagenConfig]):
    """Generates records of a schema, for demonstrations, tests and measurements."""

    task_class = DatagenTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return as many tasks as allowed; each generates its own records."""
        return [{**self.config.originals, "task.id": str(task)} for task in range(max_tasks)]

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str | None]] | None:
        """Return a split for each task with records left to generate; ``None`` without ``iterations``: there is no
        end.
        """
        if self.config.iterations < 1:
            return None
        tasks = range(min(max_splits, int(self.config.originals.get("tasks.max") or 1)))
        kept = self.context.offset_storage_reader.offsets([{"task.id": task} for task in tasks])
        return [
            {**self.config.originals, "task.id": str(task)}
            for task, offset in zip(tasks, kept, strict=True)
            if offset is None or Place.from_offset(offset).iteration < self.config.iterations
        ]

    @classmethod
    def exactly_once_support(cls, config: DatagenConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Supported: records are identified by their index."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: DatagenConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Accept any number of records from 0 on, for any task."""
        for partition, offset in offsets.items():
            if not isinstance((json.loads(partition) or {}).get("task.id"), int):
                raise ConnectError("Partition objects should contain the key 'task.id', the number of a task.")
            if offset is not None:
                check_offset(offset)
        return True


_MOST_BEHIND_SECONDS: Final = 1.0


class Pace:
    """Spaces records by random intervals of up to ``max_interval_ms``, as if the task waited before each.

    Records that became due while others were being sent come together, so that short intervals keep their average. A
    delay of more than a second, because the task was paused or Kafka too slow, is not caught up with.
    """

    def __init__(self, max_interval_ms: int, now: float) -> None:
        self._seconds = max_interval_ms / 1000
        self._random = random.Random()  # noqa: S311 - it spreads records in time
        self._due = now + self._interval()

    def due(self, now: float, most: int) -> int:
        """Return the number of records to generate now, at most ``most``, and count them as generated."""
        if self._seconds <= 0:
            return most
        self._due = max(self._due, now - _MOST_BEHIND_SECONDS)
        count = 0
        while count < most and self._due <= now:
            self._due += self._interval()
            count += 1
        return count

    def wait(self, now: float) -> float:
        """Return the seconds until the next record."""
        return max(0.0, self._due - now)

    def _interval(self) -> float:
        return self._seconds * self._random.random()
