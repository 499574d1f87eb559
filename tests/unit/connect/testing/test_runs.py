"""Connectors are run in tests as the runtime runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from connect.config import Config
from connect.data import SinkBatch, SinkRecord, SourceRecord, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.sink import SinkConnector, SinkTask
from connect.source import SourceConnector, SourceTask
from connect.testing import ErrantRecords, StoredOffsets, TopicLog, run_sink, run_source, sink_records

FIRST, SECOND = TopicPartition("test", 0), TopicPartition("test", 1)


class Story:
    """What the plugins of these tests do, told in order, and what they should do."""

    told: ClassVar[list[Any]] = []
    polls: ClassVar[list[Callable[[], Sequence[SourceRecord]]]] = []
    on_open: ClassVar[Callable[[SinkTask[Any]], None]] = staticmethod(lambda task: None)
    on_put: ClassVar[Callable[[SinkTask[Any], SinkBatch], None]] = staticmethod(lambda task, batch: None)
    on_pre_commit: ClassVar[Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]]]


@pytest.fixture(autouse=True)
def story() -> type[Story]:
    Story.told = []
    Story.polls = []
    Story.on_open = lambda task: None
    Story.on_put = lambda task, batch: None
    Story.on_pre_commit = lambda offsets: offsets
    return Story


class TellingSourceTask(SourceTask[Config]):
    """Polls as the story says."""

    def start(self) -> None:
        Story.told.append("start")

    def poll(self) -> Sequence[SourceRecord]:
        return Story.polls.pop(0)() if Story.polls else []

    def commit_record(self, record: SourceRecord) -> None:
        Story.told.append(("acknowledged", record.value))

    def commit(self) -> None:
        Story.told.append("committed")

    def stop(self) -> None:
        Story.told.append("stop")


class TellingSource(SourceConnector[Config]):
    """Tells what is done with it."""

    task_class = TellingSourceTask

    def start(self) -> None:
        Story.told.append("start connector")

    def stop(self) -> None:
        Story.told.append("stop connector")


class TellingSinkTask(SinkTask[Config]):
    """Puts as the story says."""

    def start(self) -> None:
        Story.told.append("start")

    def open(self, partitions: Any) -> None:
        Story.told.append(("open", list(partitions)))
        Story.on_open(self)

    def put(self, records: SinkBatch) -> None:
        Story.told.append(("put", list(records.value)))
        Story.on_put(self, records)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        Story.told.append(("pre_commit", dict(offsets)))
        return Story.on_pre_commit(offsets)

    def close(self, partitions: Any) -> None:
        Story.told.append(("close", list(partitions)))

    def stop(self) -> None:
        Story.told.append("stop")


class TellingSink(SinkConnector[Config]):
    """Tells what is done with it."""

    task_class = TellingSinkTask


def record(value: int) -> SourceRecord:
    return SourceRecord("t", value, source_partition={"p": 1}, source_offset={"n": value})


class PassingTask(SourceTask[Config]):
    """Reads one record, and leaves out what follows."""

    def start(self) -> None:
        self._stored = self.context.offset_storage_reader.offset({"file": "a"})

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._stored is not None:
            return None
        self._stored = {"line": 9}
        self.context.pass_offset({"file": "a"}, self._stored)
        return [SourceRecord("t", "x", source_partition={"file": "a"}, source_offset={"line": 1})]


class PassingSource(SourceConnector[Config]):
    """Passes an offset that no record has."""

    task_class = PassingTask


def test_offsets_that_no_record_has_are_kept_after_those_of_the_records() -> None:
    offsets = StoredOffsets()
    assert [item.value for item in run_source(PassingSource, {}, offsets=offsets)] == ["x"]
    assert offsets.offset({"file": "a"}) == {"line": 9}


def test_a_source_is_run_from_start_to_stop() -> None:
    Story.polls = [lambda: [record(1), record(2)], list, lambda: [record(3)]]
    offsets = StoredOffsets()
    assert [item.value for item in run_source(TellingSource, {}, offsets=offsets)] == [1, 2, 3]
    assert offsets.offset({"p": 1}) == {"n": 3}
    acknowledged = [("acknowledged", value) for value in (1, 2, 3)]
    assert Story.told == [
        "start connector",
        "start",
        *acknowledged[:2],
        "committed",
        acknowledged[2],
        "committed",
        "stop",
        "stop connector",
    ]


def test_a_source_is_stopped_after_a_failure() -> None:
    def fail() -> Sequence[SourceRecord]:
        raise ConnectError("the source is broken")

    Story.polls = [fail]
    with pytest.raises(ConnectError, match="the source is broken"):
        run_source(TellingSource, {})
    assert Story.told[-2:] == ["stop", "stop connector"]


def test_a_source_that_asks_for_it_is_polled_again() -> None:
    def busy() -> Sequence[SourceRecord]:
        raise RetriableError("busy", retry_after=60)

    Story.polls = [busy, busy, busy, busy, lambda: [record(1)]]
    assert [item.value for item in run_source(TellingSource, {})] == [1]


def test_a_source_is_read_until_there_is_enough() -> None:
    Story.polls = [lambda: [record(1)], lambda: [record(2)], lambda: [record(3)]]
    found = run_source(TellingSource, {}, until=lambda records: len(records) >= 2)
    assert [item.value for item in found] == [1, 2]


def test_a_source_that_does_not_come_to_an_end_is_told() -> None:
    with pytest.raises(TimeoutError, match="TellingSource read 0 records"):
        run_source(TellingSource, {}, until=lambda records: False, timeout=0.05)


def test_a_sink_is_run_from_start_to_stop() -> None:
    committed = run_sink(TellingSink, {}, sink_records("abc", partitions=2), batch_size=2)
    assert committed == {FIRST: 2, SECOND: 1}
    assert Story.told == [
        "start",
        ("open", [FIRST, SECOND]),
        ("put", ["a", "c"]),
        ("pre_commit", {FIRST: 2}),
        ("put", ["b"]),
        ("pre_commit", {FIRST: 2, SECOND: 1}),
        ("pre_commit", {FIRST: 2, SECOND: 1}),
        ("close", [FIRST, SECOND]),
        "stop",
    ]


def test_tasks_of_a_sink_divide_the_partitions() -> None:
    run_sink(TellingSink, {}, sink_records("abc", partitions=2), max_tasks=2)
    assert [told for told in Story.told if told[0] == "open"] == [("open", [FIRST]), ("open", [SECOND])]


def test_a_sink_goes_on_from_what_is_committed() -> None:
    log = TopicLog(sink_records("abcd"))
    log.committed[FIRST] = 3
    run_sink(TellingSink, {}, log)
    assert [told for told in Story.told if told[0] == "put"] == [("put", ["d"])]


def test_a_sink_that_keeps_its_own_offsets_goes_on_from_those() -> None:
    Story.on_open = lambda task: task.context.offset({FIRST: 2})
    run_sink(TellingSink, {}, sink_records("abcd"))
    assert [told for told in Story.told if told[0] == "put"] == [("put", ["c", "d"])]


def test_a_batch_is_put_again_after_a_retriable_error() -> None:
    tries = iter([RetriableError("busy", retry_after=60), RetriableError("busy")])

    def put(task: SinkTask[Any], batch: SinkBatch) -> None:
        if error := next(tries, None):
            raise error

    Story.on_put = put
    assert run_sink(TellingSink, {}, sink_records("ab")) == {FIRST: 2}
    assert [told for told in Story.told if told[0] == "put"] == [("put", ["a", "b"])] * 3


def test_paused_partitions_are_left_until_they_are_resumed() -> None:
    def put(task: SinkTask[Any], batch: SinkBatch) -> None:
        if len(batch):
            task.context.pause(SECOND)
        else:
            task.context.resume(SECOND)

    Story.on_put = put
    run_sink(TellingSink, {}, sink_records("abc", partitions=2), batch_size=1)
    assert [told[1] for told in Story.told if told[0] == "put"] == [["a"], ["c"], [], ["b"]]


def test_a_sink_that_commits_what_it_was_not_given_is_told() -> None:
    Story.on_pre_commit = lambda offsets: {SECOND: 7}
    with pytest.raises(ConnectError, match="pre_commit of TellingSinkTask returned offset 7"):
        run_sink(TellingSink, {}, sink_records("a"))
    assert Story.told[-1] == "stop"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("all", "a value of type str"),
        ([(FIRST, 1)], "a value of type list"),
        ({FIRST: "1"}, r"TopicPartition\(topic='test', partition=0\): '1' among them"),
        ({"test-0": 1}, "'test-0': 1 among them"),
    ],
)
def test_a_sink_that_answers_with_no_offsets_is_told(answer: Any, fault: str) -> None:
    Story.on_pre_commit = lambda offsets: answer
    with pytest.raises(
        ConnectError, match=f"pre_commit of {TellingSinkTask.__module__}.TellingSinkTask returned {fault};"
    ):
        run_sink(TellingSink, {}, sink_records("a"))


def test_errant_records_of_a_sink_can_be_looked_at() -> None:
    def put(task: SinkTask[Any], batch: SinkBatch) -> None:
        assert task.context.errant_record_reporter is not None
        for item in batch:
            task.context.errant_record_reporter.report(item, ValueError(item.value))

    Story.on_put = put
    errant: ErrantRecords[SinkRecord] = ErrantRecords(tolerate=True)
    run_sink(TellingSink, {}, sink_records("ab"), errant_records=errant)
    assert [item.value for item, _ in errant.reported] == ["a", "b"]
