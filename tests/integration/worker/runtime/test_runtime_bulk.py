"""The loop of a bulk sink task on a real broker, with a target that remembers what was loaded into it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import ClassVar

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from connect.bulk import BulkSinkConfig, BulkSinkTask, OffsetRange, Progress
from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.sink import SinkConnector
from equipment.brokers.topics import admin_client, committed, create_topic, make_at_once, ordered_producer, produce
from equipment.proofs import thorough_rows
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until
from worker.messages import messages

Start = Callable[..., RunningTask]


class Target:
    """What was loaded, and what goes wrong before or after it is."""

    def __init__(self) -> None:
        self.loads: list[tuple[OffsetRange, ...]] = []
        self.offsets: dict[TopicPartition, int] = {}
        self.keeps_offsets = False
        self.can_begin_anew = False
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def spans(self, topic: str, partition: int = 0) -> list[tuple[int, int]]:
        """The ranges of one partition, in the order of their loads."""
        ranges = [item for load in list(self.loads) for item in load]
        return [(item.first, item.end) for item in ranges if item.topic_partition == TopicPartition(topic, partition)]


class RecordingTask(BulkSinkTask[BulkSinkConfig]):
    """Remembers the ranges."""

    target: ClassVar[Target]

    def load(self, ranges: Sequence[OffsetRange]) -> None:
        self.context.progress(Progress("writing", records=1, rows=2, bytes=3, files=4))
        self.target.before()
        self.target.loads.append(tuple(ranges))
        self.target.offsets |= {item.topic_partition: item.end for item in ranges}
        self.target.after()

    def committed(self) -> Mapping[TopicPartition, int]:
        return dict(self.target.offsets) if self.target.keeps_offsets else {}

    def begin_anew(self, topic: str) -> bool:
        return self.target.can_begin_anew


class RecordingConnector(SinkConnector[BulkSinkConfig]):
    """Its task remembers."""

    task_class = RecordingTask


@pytest.fixture
def target() -> Target:
    RecordingTask.target = Target()
    return RecordingTask.target


@pytest.fixture
def start(bootstrap: str, topic: str, target: Target) -> Iterator[Start]:
    running: list[RunningTask] = []

    def start_task(**props: str) -> RunningTask:
        connector = {
            "name": topic,
            "connector.class": f"{__name__}.RecordingConnector",
            "rotate.interval.ms": "0",
            "poll.interval.ms": "20",
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        if "topics.regex" not in connector:
            connector.setdefault("topics", topic)
        running.append(RunningTask(bootstrap, connector))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


def times(count: int, error: BaseException) -> Callable[[], None]:
    """Fails so often."""
    left = [count]

    def fail() -> None:
        if left[0]:
            left[0] -= 1
            raise error

    return fail


def fill(bootstrap: str, topic: str, count: int, partition: int = 0) -> None:
    produce(bootstrap, topic, [b"x"] * count, partition)


def test_ranges_follow_each_other_without_a_gap_and_are_committed(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic, partitions=2)
    fill(bootstrap, topic, 25)
    fill(bootstrap, topic, 3, partition=1)
    task = start(flush_size="10")
    wait_until("all is loaded", lambda: target.offsets == {TopicPartition(topic, 0): 25, TopicPartition(topic, 1): 3})
    fill(bootstrap, topic, 5, partition=1)
    wait_until("what came later is loaded", lambda: target.offsets[TopicPartition(topic, 1)] == 8)
    task.stop()
    assert target.spans(topic) == [(0, 10), (10, 20), (20, 25)]
    spans = target.spans(topic, 1)
    assert [end for _, end in spans] == [first for first, _ in spans[1:]] + [8]
    assert committed(bootstrap, f"connect-{topic}", topic, 2) == [25, 8]


@pytest.mark.parametrize("choice", ["topics", "topics_regex"])
def test_what_does_not_exist_is_told_and_ends_a_run_that_should_end(start: Start, topic: str, choice: str) -> None:
    task = start(**{choice: f"{topic}-no"}, run_until="drained", run_until_missing_timeout_ms="500")
    waiting = task.wait_for(messages.Waiting)
    what = f"Topic {topic}-no does not exist" if choice == "topics" else f"No topic matches topics.regex={topic}-no"
    assert str(waiting.reason).startswith(f"{what}; the sink waits until")
    task.send(messages.Drain())
    assert task.wait_for(messages.Failed).trace.startswith(f"{what}; the sink waits until")


def test_a_missing_topic_that_appears_is_loaded(start: Start, target: Target, bootstrap: str, topic: str) -> None:
    task = start(run_until="drained", run_until_missing_timeout_ms="60000")
    task.wait_for(messages.Waiting)
    task.send(messages.Drain())
    create_topic(bootstrap, topic)
    wait_until("it goes on", lambda: task.seen(messages.Waiting)[-1].reason is None)
    task.wait_for(messages.Drained)
    task.stop()


def test_the_last_commit_of_a_drained_task_is_tried_again(
    start: Start, target: Target, bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 5)
    # A group that has a member refuses the commits of others.
    with ExitStack() as joined:
        member = Consumer({"bootstrap.servers": bootstrap, "group.id": f"connect-{topic}"})
        joined.callback(member.close)
        member.subscribe([topic])
        wait_until("the member has joined", lambda: member.poll(0.1) is None and member.assignment())
        task = start()
        task.send(messages.Drain())
        wait_until("all is loaded", lambda: target.offsets == {TopicPartition(topic, 0): 5})
        wait_until("a commit was refused", lambda: "Offsets were not committed" in caplog.text)
        assert task.seen(messages.Drained) == []
    task.wait_for(messages.Drained)
    assert committed(bootstrap, f"connect-{topic}", topic, 1) == [5]


def test_a_kill_between_load_and_commit_goes_by_what_the_target_has(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 10)
    target.keeps_offsets = True
    target.after = times(1, SystemExit("killed"))
    assert "SystemExit: killed" in start().trace()
    assert committed(bootstrap, f"connect-{topic}", topic) == [-1001]
    task = start()
    wait_until("the group follows", lambda: committed(bootstrap, f"connect-{topic}", topic) == [10])
    fill(bootstrap, topic, 5)
    wait_until("the rest is loaded", lambda: committed(bootstrap, f"connect-{topic}", topic) == [15])
    task.stop()
    assert target.spans(topic) == [(0, 10), (10, 15)]


def test_a_load_that_is_to_be_tried_again_is_not_doubled_if_it_was_durable(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 10)
    target.keeps_offsets = True
    target.before = times(1, RetriableError("not yet", retry_after=0.01))
    target.after = times(1, RetriableError("was it done?", retry_after=0.01))
    task = start()
    wait_until("it is loaded", lambda: target.loads)
    fill(bootstrap, topic, 5)
    wait_until("the rest is loaded", lambda: committed(bootstrap, f"connect-{topic}", topic) == [15])
    task.stop()
    assert target.spans(topic) == [(0, 10), (10, 15)]


@pytest.mark.parametrize("keeps_offsets", [True, False])
def test_what_is_durable_of_a_load_that_failed_is_committed(
    start: Start, target: Target, bootstrap: str, topic: str, keeps_offsets: bool
) -> None:
    create_topic(bootstrap, topic, partitions=2)
    fill(bootstrap, topic, 10)
    fill(bootstrap, topic, 5, partition=1)
    target.keeps_offsets = keeps_offsets

    def fail() -> None:
        target.offsets[TopicPartition(topic, 0)] = 4
        raise ConnectError("a row is too long")

    target.before = fail
    assert "a row is too long" in start().trace()
    expected = [4, -1001] if keeps_offsets else [-1001, -1001]
    assert committed(bootstrap, f"connect-{topic}", topic, 2) == expected


def test_loads_are_told_while_they_run_and_when_they_are_tried_again(
    start: Start, target: Target, bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 10)
    target.before = times(1, RetriableError("the target is away", retry_after=0.01))
    task = start()
    wait_until("it is counted", lambda: task.metric("load-total") == 1)
    task.stop()
    told = task.seen(messages.Loads)
    first = next(loads.current for loads in told if loads.current is not None)
    expected = {"number": 1, "reason": "rotate.interval.ms", "topics": 1, "partitions": 1, "records": 10, "error": None}
    assert {key: first[key] for key in expected} == expected
    assert first["ranges"] == [{"topic": topic, "partition": 0, "first": 0, "end": 10}]
    (retry,) = [loads.retry for loads in told if loads.retry is not None and loads.current is None]
    assert (retry["attempts"], retry["error"]) == (1, "the target is away")
    last = told[-1]
    assert (last.current, last.retry) == (None, None)
    assert [(load["number"], load["error"]) for load in last.last] == [(2, None), (1, "the target is away")]
    assert last.last[0]["progress"] == {
        "stage": "writing", "records": 1, "rows": 2, "bytes": 3, "files": 4, "ui": None,
    }  # fmt: skip
    counted = {key: task.metric(f"load-{key}-total") for key in ("row", "byte", "file", "failure")}
    assert counted == {"row": 2, "byte": 3, "file": 4, "failure": 1}
    assert "The load will be tried again in 0.01 s: the target is away" in caplog.text
    assert "2 rows, 3 bytes, 4 files. It was due by rotate.interval.ms." in caplog.text


def test_a_load_that_takes_long_is_told_of(start: Start, target: Target, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 10)
    running: list[RunningTask] = []

    def long_load() -> None:
        wait_until("a second of it is told", lambda: any(map(_lasts, running[0].seen(messages.Loads))))

    target.before = long_load
    running.append(start())
    wait_until("it is loaded", lambda: target.offsets)
    told = [loads.current for loads in running[0].seen(messages.Loads) if _lasts(loads)]
    assert {load["progress"]["stage"] for load in told if load is not None} == {"writing"}
    running[0].stop()


def _lasts(loads: messages.Loads) -> bool:
    return loads.current is not None and loads.current["seconds"] >= 1


def test_large_records_are_loaded_a_few_at_a_time(start: Start, target: Target, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, partitions=2)
    produce(bootstrap, topic, [b"x" * 1000] * 50)
    produce(bootstrap, topic, [b"x" * 1000] * 5, 1)
    task = start(flush_bytes="20000", load_max_bytes="30000")
    both = {TopicPartition(topic, 0): 50, TopicPartition(topic, 1): 5}
    wait_until("all is loaded", lambda: target.offsets == both)
    task.stop()
    assert max(sum(map(len, load)) for load in target.loads) == 25
    assert target.spans(topic) == [(0, 20), (20, 40), (40, 50)]


def test_loads_end_where_another_window_of_record_time_begins(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    hour = 3_600_000
    producer = ordered_producer(bootstrap)
    for number in range(9):
        producer.produce(topic, b"x", partition=0, timestamp=(480_000 + number // 4) * hour + number)
    assert producer.flush(30) == 0
    props = {"rotate.record.interval.ms": str(hour), "rotate.interval.ms": "-1"}
    task = start(**props)
    wait_until("two hours are loaded", lambda: target.offsets.get(TopicPartition(topic, 0)) == 8)
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    assert target.spans(topic) == [(0, 4), (4, 8), (8, 9)]


def test_a_paused_task_loads_nothing(start: Start, target: Target, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    task = start()
    task.send(messages.Pause())
    task.wait_for(messages.Paused)
    fill(bootstrap, topic, 5)
    task.send(messages.Resume())
    task.wait_for(messages.Resumed)
    wait_until("it is loaded", lambda: target.spans(topic) == [(0, 5)])
    task.stop()


def test_topics_and_partitions_that_come_later_are_loaded(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    task = start(topics_regex=rf"{topic}-\d")
    task.wait_for(messages.Started)
    create_topic(bootstrap, f"{topic}-1")
    create_topic(bootstrap, f"{topic}-1-not")
    fill(bootstrap, f"{topic}-1", 5)
    fill(bootstrap, f"{topic}-1-not", 5)
    wait_until("it is loaded", lambda: target.spans(f"{topic}-1") == [(0, 5)])
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    assert target.spans(f"{topic}-1-not") == []


@pytest.mark.parametrize(("reset", "spans"), [("earliest", [(0, 5)]), ("latest", [(3, 5)])])
def test_a_new_connector_begins_where_auto_offset_reset_says(
    start: Start, target: Target, bootstrap: str, topic: str, reset: str, spans: list[tuple[int, int]]
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 3)
    task = start(**{"consumer.override.auto.offset.reset": reset, "rotate.interval.ms": "3600000"})
    wait_until("it has begun", lambda: any("sink-record-lag" in told.values for told in task.seen(messages.Metrics)))
    fill(bootstrap, topic, 2)
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    assert target.spans(topic) == spans


def test_what_comes_between_two_runs_is_loaded_though_the_first_loaded_nothing(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 3)
    task = start(**{"consumer.override.auto.offset.reset": "latest"})
    wait_until("the group knows where it begins", lambda: committed(bootstrap, f"connect-{topic}", topic) == [3])
    task.stop()
    fill(bootstrap, topic, 2)
    task = start(**{"consumer.override.auto.offset.reset": "latest"})
    wait_until("what came meanwhile is loaded", lambda: target.spans(topic) == [(3, 5)])
    task.stop()


def test_a_topic_that_comes_later_is_loaded_whole_even_if_what_exists_is_left_out(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    task = start(topics_regex=rf"{topic}-\d", **{"consumer.override.auto.offset.reset": "latest"})
    wait_until("it has begun", lambda: any("partition-count" in told.values for told in task.seen(messages.Metrics)))
    create_topic(bootstrap, f"{topic}-1")
    fill(bootstrap, f"{topic}-1", 5)
    wait_until("it is loaded", lambda: target.spans(f"{topic}-1") == [(0, 5)])
    task.stop()


def test_records_that_retention_took_are_told_of(
    start: Start, target: Target, bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 10)
    target.keeps_offsets = True
    target.offsets = {TopicPartition(topic, 0): 4}
    remove_before(bootstrap, topic, 7)
    task = start()
    wait_until("the rest is loaded", lambda: target.spans(topic) == [(7, 10)])
    task.stop()
    assert "The records 4 to 6 of TopicPartition" in caplog.text


def test_records_that_retention_took_fail_the_task_if_that_is_wanted(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 10)
    target.keeps_offsets = True
    target.offsets = {TopicPartition(topic, 0): 4}
    remove_before(bootstrap, topic, 7)
    trace = start(**{"consumer.override.auto.offset.reset": "none"}).trace()
    assert "were deleted before they were loaded" in trace
    assert target.loads == []


def test_a_topic_that_was_made_again_fails_the_task(start: Start, target: Target, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 3)
    target.keeps_offsets = True
    target.offsets = {TopicPartition(topic, 0): 10}
    assert "was deleted and made again" in start().trace()


def test_ranges_tell_a_topic_from_a_later_one_of_its_name(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 3)
    for _ in range(2):
        task = start()
        wait_until("they are loaded", lambda: committed(bootstrap, f"connect-{topic}", topic) == [3])
        task.stop()
        make_at_once(bootstrap, topic)
        fill(bootstrap, topic, 3)
    (first,), (second,) = target.loads
    assert first == replace(second, topic_id=first.topic_id)
    assert None not in (first.topic_id, second.topic_id)
    assert first.topic_id != second.topic_id


def test_a_topic_that_is_made_again_behind_the_back_of_a_task_is_noticed(
    start: Start, target: Target, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 3)
    task = start(poll_interval_ms="3600000")
    wait_until("they are loaded", lambda: committed(bootstrap, f"connect-{topic}", topic) == [3])
    task.send(messages.Pause())
    task.wait_for(messages.Paused)
    make_at_once(bootstrap, topic)
    fill(bootstrap, topic, 5)
    # To drain is to look at once which partitions there are.
    task.send(messages.Drain())
    task.send(messages.Resume())
    assert "was deleted and made again" in task.trace()
    assert target.spans(topic) == [(0, 3)]


@pytest.mark.parametrize(
    ("moment", "count"),
    [
        ("before a load", 2),
        ("before a load", 5),
        ("in a load", 3),
        *thorough_rows(("before a load", 3), ("in a load", 2), ("in a load", 5)),
    ],
)
def test_a_task_that_can_begins_a_topic_anew_that_is_made_again(
    start: Start, target: Target, bootstrap: str, topic: str, count: int, moment: str
) -> None:
    create_topic(bootstrap, topic)
    fill(bootstrap, topic, 3)
    target.can_begin_anew = True
    in_load, made = threading.Event(), threading.Event()
    if moment == "in a load":
        target.after = lambda: (in_load.set(), made.wait(60))[0]
    task = start()
    if moment == "in a load":
        assert in_load.wait(60)
    else:
        wait_until("they are loaded", lambda: committed(bootstrap, f"connect-{topic}", topic) == [3])
    make_at_once(bootstrap, topic)
    fill(bootstrap, topic, count)
    made.set()
    wait_until("the new topic is loaded", lambda: target.spans(topic)[-1][1] == count and len(target.loads) > 1)
    wait_until("it is committed", lambda: committed(bootstrap, f"connect-{topic}", topic) == [count])
    task.stop()
    first, *others = target.spans(topic)
    assert first == (0, 3)
    assert sorted({offset for span in others for offset in range(*span)}) == list(range(count))


def remove_before(bootstrap: str, topic: str, offset: int) -> None:
    """Delete records as retention does."""
    partition = ClientPartition(topic, 0, offset)
    admin = admin_client(bootstrap)
    admin.delete_records([partition])[partition].result(30)
