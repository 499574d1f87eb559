"""Replaying through tasks that do as each test says, and what a kill in the middle leaves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from multiprocessing.connection import Pipe
from threading import Thread
from typing import ClassVar

import pytest

from connect.config import Config
from connect.data import SinkBatch, TopicPartition
from connect.sink import SinkConnector, SinkTask
from equipment.brokers.topics import create_topic, ordered_producer
from worker.messages import messages
from worker.messages.messages import decode, encode
from worker.runtime.child import run
from worker.runtime.link import Line

pytestmark = pytest.mark.integration


class ReplayConfig(Config):
    """Nothing of its own."""


class ReplayTask(SinkTask[ReplayConfig]):
    """Buffers, and writes when it is flushed; one value it cannot write, another it reports."""

    written: ClassVar[list[str]] = []
    calls: ClassVar[list[str]] = []
    rewinds: ClassVar[bool] = False
    durable: ClassVar[bool] = True

    def start(self) -> None:
        self.calls.append("start")
        self._buffer: list[str] = []

    def open(self, partitions: Collection[TopicPartition]) -> None:
        if self.rewinds:
            self.context.offset(dict.fromkeys(partitions, 7))

    def put(self, records: SinkBatch) -> None:
        for record in records:
            if record.value == "fatal":
                raise ValueError("it cannot be written")
            if record.value == "reported":
                assert self.context.errant_record_reporter is not None
                self.context.errant_record_reporter.report(record, ValueError("it is not wanted"))
            else:
                self._buffer.append(record.value)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self.written.extend(self._buffer)
        self._buffer = []
        return offsets if self.durable else {}

    def stop(self) -> None:
        self.calls.append("stop")


class ReplayConnector(SinkConnector[ReplayConfig]):
    """Its tasks do as the test says."""

    task_class = ReplayTask


@pytest.fixture(autouse=True)
def task() -> type[ReplayTask]:
    ReplayTask.written, ReplayTask.calls = [], []
    ReplayTask.rewinds, ReplayTask.durable = False, True
    return ReplayTask


Replay = Callable[..., messages.DeadLettersReplayed | messages.Refused]


@pytest.fixture
def replay(bootstrap: str, topic: str) -> Replay:
    """Has a child, in a thread, replay the values that are put into the queue first."""
    create_topic(bootstrap, topic)

    def ask(
        *values: str, selection: messages.DeadLetterSelection | None = None, limit: int = 100
    ) -> messages.DeadLettersReplayed | messages.Refused:
        producer = ordered_producer(bootstrap)
        for offset, value in enumerate(values):
            where = {"topic": "orders", "partition": 0, "offset": offset}
            headers = [(f"__connect.errors.{name}", str(item).encode()) for name, item in where.items()]
            producer.produce(topic, value.encode(), headers=headers)
        assert producer.flush(30) == 0
        config = {
            "name": topic,
            "connector.class": f"{__name__}.ReplayConnector",
            "topics": "orders",
            "errors.deadletterqueue.topic.name": topic,
        }
        worker = {
            "bootstrap.servers": bootstrap,
            "key.converter": "StringConverter",
            "value.converter": "StringConverter",
            "plugin.import.allowlist": f"{__name__}.*",
        }
        ours, theirs = Pipe()
        ours.send_bytes(
            encode(messages.ReplayDeadLetters(config, worker, "task", selection, None, limit=limit, dry_run=False))
        )
        child = Thread(target=lambda: run(Line(theirs, on_orphaned=lambda: None), log_to_worker=False))
        child.start()
        report: messages.DeadLettersReplayed | messages.Refused = decode(ours.recv_bytes())
        child.join(30)
        ours.close()
        return report

    return ask


def outcome(report: messages.DeadLettersReplayed | messages.Refused) -> tuple[list[int], list[int]]:
    assert isinstance(report, messages.DeadLettersReplayed), report
    return [item["offset"] for item in report.delivered], [item["offset"] for item in report.failed]


def test_all_are_put_together(replay: Replay, task: type[ReplayTask]) -> None:
    assert outcome(replay("a", "b", "c")) == ([0, 1, 2], [])
    assert task.written == ["a", "b", "c"]
    assert task.calls == ["start", "stop"]


def test_only_those_fail_that_must(replay: Replay, task: type[ReplayTask]) -> None:
    report = replay("a", "fatal", "reported", "b")
    assert outcome(report) == ([0, 3], [1, 2])
    assert isinstance(report, messages.DeadLettersReplayed)
    assert [item["error"] for item in report.failed] == ["TASK_PUT: it cannot be written", "TASK_PUT: it is not wanted"]
    assert task.written == ["a", "b"]
    assert outcome(replay()) == ([], [4, 5]), "those that failed are at the end of the queue, and fail again"


def test_a_long_queue_is_replayed_piece_by_piece(replay: Replay, task: type[ReplayTask]) -> None:
    first = replay("a", "b", "c", limit=2)
    assert outcome(first) == ([0, 1], [])
    assert isinstance(first, messages.DeadLettersReplayed)
    assert (first.more, first.until) == (True, {"0": 3})
    assert outcome(replay(limit=2)) == ([2], [])
    chosen = replay(selection=[(0, 0, 3)], limit=2)
    assert isinstance(chosen, messages.DeadLettersReplayed)
    assert [tuple(item) for item in chosen.rest] == [(0, 2, 3)]
    assert task.written == ["a", "b", "c", "a", "b"]


def test_what_is_not_durable_has_failed(replay: Replay, task: type[ReplayTask]) -> None:
    task.durable = False
    assert outcome(replay("a")) == ([], [0])


def test_a_task_with_offsets_of_its_own_is_not_given_old_records(replay: Replay, task: type[ReplayTask]) -> None:
    task.rewinds = True
    report = replay("a")
    assert isinstance(report, messages.Refused)
    assert report.invalid
    assert "Replay to the topic" in report.message
    assert task.written == []
    task.rewinds = False
    assert outcome(replay()) == ([0], []), "and nothing counts as replayed"
