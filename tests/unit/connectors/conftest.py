"""A task's surroundings without a runtime: offsets in a dict, and a wait that returns at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import pytest

from connect.data import Offset, SourceRecord


def _key(partition: Offset) -> str:
    return json.dumps(partition, sort_keys=True)


@dataclass
class Reporter:
    """Keeps what is reported, and raises it as well where nothing is tolerated."""

    tolerate: bool
    reported: list[tuple[SourceRecord, Exception]] = field(default_factory=list)

    def report(self, record: SourceRecord, error: Exception) -> None:
        self.reported.append((record, error))
        if not self.tolerate:
            raise error


@dataclass
class SourceContext:
    """Stands for the runtime: it keeps the offsets that a test commits."""

    errant_record_reporter: Reporter
    committed: dict[str, Offset] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    wishes: list[tuple[tuple[int, ...], float]] = field(default_factory=list)
    passed: list[tuple[Offset, Offset]] = field(default_factory=list)
    woken: threading.Event = field(default_factory=threading.Event)
    transaction_context: None = None

    @property
    def offset_storage_reader(self) -> SourceContext:
        return self

    def offset(self, partition: Offset) -> Offset | None:
        return self.committed.get(_key(partition))

    def offsets(self, partitions: Sequence[Offset]) -> list[Offset | None]:
        return [self.offset(partition) for partition in partitions]

    def commit(self, partition: Offset, offset: Offset) -> None:
        # Through JSON, as the offsets topic has them.
        self.committed[_key(partition)] = json.loads(json.dumps(dict(offset)))

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return True

    def pass_offset(self, partition: Offset, offset: Offset) -> None:
        self.passed.append((dict(partition), dict(offset)))

    def poll_when_readable(self, descriptors: Collection[int], seconds: float) -> None:
        self.wishes.append((tuple(descriptors), seconds))

    def wake(self) -> None:
        self.woken.set()


@pytest.fixture
def source_context() -> Callable[..., SourceContext]:
    """Makes contexts; ``tolerate=True`` is ``errors.tolerance=all``."""

    def make(*, tolerate: bool = False) -> SourceContext:
        return SourceContext(Reporter(tolerate))

    return make
