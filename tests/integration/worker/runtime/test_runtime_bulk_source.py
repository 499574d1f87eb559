"""The loop of a bulk source task on a real broker, with a task that publishes from its own process."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from connect.bulk import Progress
from connect.bulk_source import BulkSourceConfig, BulkSourceTask
from connect.data import SourceBatch, SourceRecord
from connect.errors import RetriableError
from connect.source import SourceConnector
from connectors.spark.publishing.publisher import Publication, Published, Publisher, TopicsMissing, settle
from equipment.brokers.topics import read_topic
from equipment.scripts.tasks import RunningTask, class_name
from equipment.waiting import wait_until
from worker.messages import messages

Start = Callable[..., RunningTask]


class Script:
    """Batches that are still to be published, and what goes wrong before and after one is."""

    def __init__(self) -> None:
        self.batches: deque[list[SourceRecord]] = deque()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.loads = 0


class PublishingTask(BulkSourceTask[BulkSourceConfig]):
    """Publishes the script's batches as an executor would; what travels is pickled."""

    script: ClassVar[Script]

    def start(self) -> None:
        self._publication = Publication.of(self.context)

    def load(self) -> bool:
        self.script.loads += 1
        self.script.before()
        if not self.script.batches:
            return False
        outcome = self._publish(self.script.batches[0])
        self._publication = self._publication.with_topics(self.context.create_topics(outcome.missing))
        self.context.progress(Progress("publishing", records=outcome.read))
        settle(self.context, outcome)
        if not outcome.missing:
            self.script.batches.popleft()
        self.script.after()
        return True

    def _publish(self, records: list[SourceRecord]) -> Published:
        publisher = Publisher(pickle.loads(pickle.dumps(self._publication)))
        missing: tuple[str, ...] = ()
        error: Exception | None = None
        try:
            for batch in SourceBatch.from_records(records):
                publisher.publish(batch)
        except TopicsMissing as needed:
            missing = needed.topics
        except Exception as failure:
            error = failure
        publisher.acknowledge()
        outcome: Published = pickle.loads(pickle.dumps(publisher.published(missing, error)))
        return outcome


class PublishingConnector(SourceConnector[BulkSourceConfig]):
    """Its task publishes."""

    task_class = PublishingTask


@pytest.fixture
def script() -> Script:
    PublishingTask.script = Script()
    return PublishingTask.script


@pytest.fixture
def start(bootstrap: str, topic: str, script: Script) -> Iterator[Start]:
    running: list[RunningTask] = []

    def start_task(**props: str) -> RunningTask:
        connector = {
            "name": topic,
            "connector.class": class_name(PublishingConnector),
            "poll.interval.ms": "20",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "3",
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        running.append(RunningTask(bootstrap, connector))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


def records(topic: str, first: int, end: int) -> list[SourceRecord]:
    return [
        SourceRecord(topic, f"value {n}", key=f"key {n}", source_partition={"file": "a"}, source_offset={"line": n + 1})
        for n in range(first, end)
    ]


def values(bootstrap: str, topic: str) -> list[str]:
    return sorted(message.value().decode() for message in read_topic(bootstrap, topic))


def stored(task: RunningTask) -> list[Any]:
    return list(task.offsets.values())


def test_what_is_published_is_counted_and_its_offsets_are_stored(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    script.batches.append(records(topic, 0, 10))
    task = start(run_until="drained")
    task.wait_for(messages.Drained)
    assert values(bootstrap, topic) == [f"value {n}" for n in range(10)]
    assert stored(task) == [{"line": 10}]
    assert task.metric("source-record-write-total") == 10
    (last,) = [load for load in task.seen(messages.Loads)[-1].last if load["records"]]
    assert (last["records"], last["reason"], last["error"]) == (10, "new input", None)
    partitions = {message.partition() for message in read_topic(bootstrap, topic)}
    assert partitions == {0, 1, 2}


def test_a_load_that_is_to_be_tried_again_goes_on(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    left = [1]

    def away() -> None:
        if left[0]:
            left[0] -= 1
            raise RetriableError("the source is away", retry_after=0.01)

    script.before = away
    script.batches.append(records(topic, 0, 3))
    task = start(run_until="drained")
    task.wait_for(messages.Drained)
    assert values(bootstrap, topic) == [f"value {n}" for n in range(3)]
    retries = [loads.retry for loads in task.seen(messages.Loads) if loads.retry is not None]
    assert retries[-1]["error"] == "the source is away"


def test_a_record_that_cannot_be_converted_is_left_out_and_kept(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    bad = SourceRecord(topic, {"not": "text"}, source_partition={"file": "a"}, source_offset={"line": 4})
    good = SourceRecord(topic, "7", source_partition={"file": "a"}, source_offset={"line": 4})
    script.batches.append([*records(topic, 0, 3), good, bad, *records(topic, 4, 6)])
    task = start(
        run_until="drained",
        value_converter="JsonConverter",
        transforms="cut",
        transforms_cut_type="org.apache.kafka.connect.transforms.Cast$Value",
        transforms_cut_spec="int32",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"{topic}-dlq",
        errors_deadletterqueue_topic_replication_factor="1",
    )
    task.wait_for(messages.Drained)
    assert stored(task) == [{"line": 6}]
    assert len(read_topic(bootstrap, f"{topic}-dlq")) == 6
    assert [b'"payload":7' in message.value() for message in read_topic(bootstrap, topic)] == [True]
    assert task.metric("total-records-skipped") == 6


def test_a_record_that_may_not_be_left_out_ends_the_task_after_what_was_before_it(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    bad = SourceRecord(topic, "old", timestamp=-5, source_partition={"file": "b"}, source_offset={"line": 1})
    script.batches.append([*records(topic, 0, 3), bad])
    task = start()
    assert "Invalid record timestamp -5" in task.trace()
    assert values(bootstrap, topic) == [f"value {n}" for n in range(3)]
    assert stored(task) == [{"line": 3}]


def test_a_paused_task_publishes_nothing(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    task = start()
    task.send(messages.Pause())
    task.wait_for(messages.Paused)
    script.batches.append(records(topic, 0, 2))
    task.send(messages.Resume())
    task.wait_for(messages.Resumed)
    wait_until("it is published", lambda: stored(task) == [{"line": 2}])
    task.stop()
    assert values(bootstrap, topic) == ["value 0", "value 1"]


def test_offsets_that_cannot_be_stored_have_the_load_tried_again(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    task = start()
    task.wait_for(messages.Started)
    task.commit_error = "the store is full"
    script.batches.append(records(topic, 0, 2))
    wait_until("it is told", lambda: any(loads.retry for loads in task.seen(messages.Loads)))
    task.stop()
    assert stored(task) == []
    retry = next(loads.retry for loads in task.seen(messages.Loads) if loads.retry is not None)
    assert retry["error"] == "The source offsets were not stored: the store is full"
