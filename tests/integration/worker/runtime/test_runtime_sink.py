"""The loop of a sink task on a real broker, with tasks that do as each test says."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar

import pytest
from confluent_kafka import Producer

from connect.config import Config
from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.transformation import Transformation
from equipment.brokers.topics import committed, create_topic, produce, read_topic
from equipment.scripts.sink_script import Script, ScriptedConnector, ScriptedTask
from equipment.scripts.tasks import RunningTask, class_name
from equipment.waiting import wait_until
from worker.supervisor.messages import messages

Start = Callable[..., RunningTask]


class AlwaysLater(Transformation[Config]):
    """Needs something that is away."""

    tried: ClassVar[list[int]] = []

    def apply(self, record: SinkRecord) -> SinkRecord:
        self.tried.append(record.offset)
        raise RetriableError("the registry is away")


@pytest.fixture
def script() -> Script:
    ScriptedTask.script = Script()
    return ScriptedTask.script


@pytest.fixture
def start(bootstrap: str, topic: str, script: Script) -> Iterator[Start]:
    running: list[RunningTask] = []

    def start_task(
        label: str = "a", *, worker: Mapping[str, str] | None = None, paused: bool = False, **props: str
    ) -> RunningTask:
        connector = {
            "name": topic,
            "connector.class": class_name(ScriptedConnector),
            "label": label,
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        if "topics.regex" not in connector:
            connector.setdefault("topics", topic)
        running.append(RunningTask(bootstrap, connector, worker=worker, task=len(running), paused=paused))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


@pytest.fixture
def group(topic: str) -> str:
    return f"connect-{topic}"


def numbers(first: int, end: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, end)]


def texts(first: int, end: int) -> list[str]:
    return [str(number) for number in range(first, end)]


def once(error: Exception) -> Callable[..., None]:
    """Fails the first time."""
    calls = itertools.count()

    def fail(*_: object) -> None:
        if next(calls) == 0:
            raise error

    return fail


# -- delivery -----------------------------------------------------------------------------------------------------


def test_a_batch_that_is_wanted_again_is_delivered_again_and_nothing_overtakes_it(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    tries = itertools.count()

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        if next(tries) < 3:
            raise RetriableError("the target is away", retry_after=0.05)

    script.put = put
    task = start()
    wait_until("it was tried twice", lambda: script.names().count("put") >= 2)
    produce(bootstrap, topic, numbers(10, 20))
    wait_until("all is delivered", lambda: script.values() == texts(0, 20))
    puts = [what for _, call, what in script.calls if call == "put"]
    assert puts[0] == puts[1] == puts[2] == puts[3]
    task.stop()
    assert committed(bootstrap, group, topic) == [20]


def test_nothing_is_committed_of_a_batch_that_waits(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 3))
    script.put = lambda task, records: (_ for _ in ()).throw(RetriableError("never", retry_after=0.02))
    task = start()
    wait_until("it was tried often", lambda: script.names().count("put") >= 5)
    task.stop()
    assert "flush" not in script.names()
    assert committed(bootstrap, group, topic) == [-1001]


def test_time_passes_with_an_empty_batch(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 1))
    topics: list[str] = []

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        topics.append(records.topic)
        task.context.timeout(0.01)

    script.put = put
    start()
    wait_until("it was called with nothing", lambda: [what for _, call, what in script.calls if call == "put"][1:4])
    puts = [what for _, call, what in script.calls if call == "put"]
    assert puts[0] == ["0"]
    assert puts[1] == []
    assert set(topics) == {topic}, "it is a batch like others"


def test_an_empty_batch_may_be_wanted_again(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    fail = once(RetriableError("busy", retry_after=0.01))
    script.open = lambda task, partitions: task.context.timeout(0.01)
    script.put = lambda task, records: None if len(records) else fail()
    start()
    wait_until("it was tried again", lambda: [] in [what for _, call, what in script.calls if call == "kept"])


def test_a_partition_that_the_task_pauses_waits_even_while_another_is_tried_again(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic, partitions=2)
    produce(bootstrap, topic, [b"p0"], partition=0)
    produce(bootstrap, topic, [b"p1"], partition=1)
    tries = itertools.count()

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        if list(records.value) == ["p0"] and next(tries) < 2:
            raise RetriableError("busy", retry_after=0.05)
        if list(records.value) == ["p0 again"]:
            task.context.resume(TopicPartition(topic, 1))

    script.open = lambda task, partitions: task.context.pause(TopicPartition(topic, 1))
    script.put = put
    start()
    wait_until("the other is delivered", lambda: script.values() == ["p0"])
    produce(bootstrap, topic, [b"p0 again"], partition=0)
    wait_until("it comes when it is resumed", lambda: script.values() == ["p0", "p0 again", "p1"])


# -- offsets -------------------------------------------------------------------------------------------------------


def test_a_task_that_keeps_offsets_begins_where_it_says(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    script.open = lambda task, partitions: task.context.offset({TopicPartition(topic, 0): 7})
    task = start()
    wait_until("the rest is delivered", lambda: script.values() == texts(7, 10))
    task.stop()
    assert committed(bootstrap, group, topic) == [10]


def test_a_task_may_go_back_while_it_runs(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 5))
    back = iter([3])

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        for offset in back:
            task.context.offset({TopicPartition(topic, 0): offset})

    script.put = put
    start()
    wait_until("what it went back for came again", lambda: script.values() == texts(0, 5) + texts(3, 5))


def test_what_could_not_be_flushed_is_put_again_from_where_it_was_entered(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    script.open = lambda task, partitions: task.context.offset({TopicPartition(topic, 0): 7})
    fail = once(OSError("the disk is full"))

    def flush(task: ScriptedTask, offsets: Mapping[TopicPartition, int]) -> None:
        # The first commit may come before the first records.
        if script.values():
            fail()

    script.flush = flush
    task = start()
    wait_until("it was put again", lambda: script.values() == texts(7, 10) * 2)
    wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [10])
    task.stop()


def test_a_commit_that_is_asked_for_does_not_wait_for_the_interval(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 3))
    script.put = lambda task, records: task.context.request_commit()
    start(worker={"offset.flush.interval.ms": "60000"})
    wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [3])


def test_what_was_put_before_a_failure_is_committed(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        if "7" in list(records.value):
            raise SystemExit("no more")

    script.put = put
    task = start(worker={"offset.flush.interval.ms": "60000", "consumer.max.poll.records": "1"})
    assert "SystemExit: no more" in task.trace()
    assert committed(bootstrap, group, topic) == [7]


def test_a_task_is_closed_once_and_then_left_alone(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 3))
    task = start()
    wait_until("all is delivered", lambda: script.values() == texts(0, 3))
    task.stop()
    assert script.names().count("close") == 1
    assert script.names()[-2:] == ["close", "stop"]


# -- groups --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("assignor", ["RangeAssignor", "CooperativeStickyAssignor"])
def test_two_tasks_share_the_partitions_and_nobody_puts_what_is_not_his(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, assignor: str
) -> None:
    """The first task has records, mostly of both partitions, to put again when the second one comes."""
    create_topic(bootstrap, topic, partitions=2)
    for partition in range(2):
        produce(bootstrap, topic, [f"p{partition}".encode()], partition=partition)
    away = [True]

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        if task.label == "a" and away[0]:
            raise RetriableError("the target is away", retry_after=0.02)

    script.put = put
    strategy = {"consumer.partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{assignor}"}
    first = start("a", worker=strategy)
    wait_until("it has records", lambda: any(what for _, call, what in script.calls if call == "put"))
    second = start("b", worker=strategy)
    wait_until("the second has its share", lambda: script.values("b"))
    away[0] = False
    wait_until("both are delivered", lambda: sorted(script.values()) == ["p0", "p1"])
    assert len(script.values("a")) == len(script.values("b")) == 1
    for partition in range(2):
        produce(bootstrap, topic, [f"more {partition}".encode()], partition=partition)
    wait_until("both go on", lambda: len(script.values("a")) == len(script.values("b")) == 2)
    first.stop()
    second.stop()
    assert committed(bootstrap, group, topic, 2) == [2, 2]


def test_a_paused_task_goes_on_although_its_partitions_went_and_came_meanwhile(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic, partitions=2)
    task = start("a")
    wait_until("it has both", lambda: script.names() == ["open"])
    task.send(messages.Pause())
    task.wait_for(messages.Paused)
    second = start("b")
    wait_until(
        "the second has its share", lambda: [who for who, call, _ in script.calls if call == "open"][-1:] == ["b"]
    )
    second.stop()
    for partition in range(2):
        produce(bootstrap, topic, [f"p{partition}".encode()], partition=partition)
    opened = lambda: [what for who, call, what in script.calls if (who, call) == ("a", "open")]  # noqa: E731
    wait_until("it has both again", lambda: len(opened()) > 1 and len(opened()[-1]) == 2)
    assert script.values() == []
    task.send(messages.Resume())
    wait_until("both are delivered", lambda: sorted(script.values()) == ["p0", "p1"])


def test_a_topic_that_comes_later_is_consumed(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    task = start(worker={"consumer.allow.auto.create.topics": "false"})
    task.wait_for(messages.Started)
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 3))
    wait_until("it is delivered", lambda: script.values() == texts(0, 3))


def test_a_pattern_matches_whole_names_in_the_dialect_of_java_and_python(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    for name in (f"{topic}-1", f"{topic}-22", f"{topic}-1-not", f"not-{topic}-1", f"{topic}-x"):
        create_topic(bootstrap, name)
        produce(bootstrap, name, [name.encode()])
    task = start(topics_regex=rf"(?:{topic}-\d+|none)")
    wait_until("both are delivered", lambda: len(script.values()) >= 2)
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    assert sorted(script.values()) == [f"{topic}-1", f"{topic}-22"]


# -- draining --------------------------------------------------------------------------------------------------------


def test_a_drain_ends_at_the_end_of_empty_compacted_and_transactional_partitions(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic, partitions=3)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"kept", partition=0)
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=1)
    producer.flush(30)
    producer.abort_transaction(30)
    task = start(worker={"consumer.isolation.level": "read_committed"})
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    assert script.values() == ["kept"]
    task.stop()


@pytest.mark.timeout(180)
def test_a_drain_ends_at_the_end_of_a_partition_with_compacted_gaps(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    """At its beginning, in its middle and before the marker that it ends with, offsets have no record any more."""
    compaction = {"min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0", "max.compaction.lag.ms": "1"}
    create_topic(bootstrap, topic, **{"cleanup.policy": "compact", "segment.ms": "1", **compaction})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    written = [("a", b"1"), ("b", b"1"), ("a", b"2"), ("c", b"1"), ("c", None), ("b", b"2"), ("d", b"1"), ("d", None)]
    for key, value in written:
        producer.begin_transaction()
        producer.produce(topic, value, key)
        producer.commit_transaction(30)

    def offsets() -> list[int]:
        return [message.offset() for message in read_topic(bootstrap, topic)]

    everything = list(range(0, 16, 2))
    wait_until("it is compacted", lambda: len(offsets()) <= len(everything) - 3, seconds=120)
    left = offsets()
    task = start(worker={"consumer.isolation.level": "read_committed"})
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    task.stop()
    assert len(script.values()) == len(left)
    assert committed(bootstrap, group, topic) == [left[-1] + 1]
    assert left[-1] + 1 < 16, "the end is a marker"


def test_a_drain_is_not_over_before_the_data_is_durable(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 5))
    script.flush = once(OSError("the disk is full"))
    task = start(worker={"offset.flush.interval.ms": "60000"})
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    assert script.values() == texts(0, 5) * 2
    assert committed(bootstrap, group, topic) == [5]
    task.stop()


def test_a_pattern_that_matches_nothing_is_drained(start: Start, topic: str) -> None:
    task = start(topics_regex=f"{topic}-nothing")
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    task.stop()


# -- errant records ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["put", "flush"])
def test_a_record_that_the_task_reports_goes_to_the_dead_letter_queue(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, moment: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"good", b"bad", b"good"])
    kept: list[Any] = []

    def report(task: ScriptedTask) -> None:
        reporter = task.context.errant_record_reporter
        assert reporter is not None
        for record in kept:
            if record.value == "bad":
                reporter.report(record, DataError("not fit"))
        kept.clear()

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        kept.extend(records)
        if moment == "put":
            report(task)

    script.put = put
    script.flush = lambda task, offsets: report(task)
    task = start(
        worker={"consumer.max.poll.records": "1"},
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )
    wait_until("all is committed", lambda: committed(bootstrap, group, topic) == [3])
    task.stop()
    [message] = read_topic(bootstrap, f"dlq-{topic}")
    assert (message.key(), message.value()) == (None, b"bad")
    headers = {name.removeprefix("__connect.errors."): value.decode() for name, value in message.headers()}
    assert headers.pop("exception.stacktrace").endswith("not fit\n")
    assert headers == {
        "topic": topic,
        "partition": "0",
        "offset": "1",
        "connector.name": topic,
        "task.id": "0",
        "stage": "TASK_PUT",
        "class.name": class_name(ScriptedTask),
        "exception.class.name": "connect.errors.DataError",
        "exception.message": "not fit",
    }


def test_a_dead_letter_queue_of_more_replicas_than_brokers_says_what_to_set(
    start: Start, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    trace = start(errors_deadletterqueue_topic_name=f"dlq-{topic}").trace()
    cause = trace.splitlines()[0]
    assert cause.startswith(f"Could not initialize dead letter queue with topic=dlq-{topic}: ")
    assert "Set errors.deadletterqueue.topic.replication.factor=1 for a single broker" in cause


def test_the_record_that_a_task_fails_with_is_in_the_dead_letter_queue(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"bad"])

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        assert task.context.errant_record_reporter is not None
        task.context.errant_record_reporter.report(next(iter(records)), DataError("too odd"))

    script.put = put
    task = start(
        errors_tolerance="none",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
        errors_deadletterqueue_topic_replication_factor="1",
        # Nothing goes before somebody waits for it.
        producer_override_linger_ms="20000",
    )
    assert "Tolerance exceeded in error handler: too odd" in task.trace()
    assert [message.value() for message in read_topic(bootstrap, f"dlq-{topic}")] == [b"bad"]


def test_offsets_do_not_pass_a_record_that_the_dead_letter_queue_refuses(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    create_topic(bootstrap, f"dlq-{topic}", **{"max.message.bytes": "100"})
    produce(bootstrap, topic, [b"{" + b"x" * 1000])
    task = start(
        value_converter="JsonConverter",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
    )
    assert "did not take a record" in task.trace()
    assert committed(bootstrap, group, topic) == [-1001]


@pytest.mark.parametrize(("key", "limit"), [("errors_tolerance_limit", 2), ("errors_tolerance_rate", 2)])
def test_a_task_fails_when_it_leaves_out_more_than_is_tolerated(
    start: Start, script: Script, bootstrap: str, topic: str, key: str, limit: int
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"1", b"{", b"{"])
    task = start(
        value_converter="JsonConverter",
        **{"value.converter.schemas.enable": "false", key: str(limit)},
        errors_tolerance="all",
    )
    wait_until("two are tolerated", lambda: script.values() == [1])
    produce(bootstrap, topic, [b"2", b"{"])
    assert f"{key.replace('_', '.')}={limit}" in task.trace()


def test_a_stop_while_a_record_waits_to_be_tried_again_does_not_give_it_up(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    """``errors.retry.timeout=-1`` promises that the record is never given up, ``errors.tolerance=all`` or not."""
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 3))
    tried = AlwaysLater.tried = []
    task = start(
        errors_tolerance="all",
        errors_retry_timeout="-1",
        errors_retry_delay_max_ms="30",
        transforms="later",
        **{"transforms.later.type": f"{__name__}.AlwaysLater"},
    )
    wait_until("it was tried again", lambda: len(tried) > 2)
    task.send(messages.Pause())
    before = len(tried)
    wait_until("it is tried while a pause waits", lambda: len(tried) > before + 2)
    task.stop()
    assert script.values() == []
    assert committed(bootstrap, group, topic) == [-1001]
    assert task.metric("total-records-skipped") == 0


def test_a_record_is_tried_again_for_as_long_as_is_asked(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 1))
    tried = AlwaysLater.tried = []
    task = start(
        errors_retry_timeout="200",
        errors_retry_delay_max_ms="20",
        transforms="later",
        **{"transforms.later.type": f"{__name__}.AlwaysLater"},
    )
    assert "Tolerance exceeded in error handler: the registry is away" in task.trace()
    assert len(tried) > 3


def test_an_error_of_open_fails_the_task(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)

    def fail(task: ScriptedTask, partitions: Collection[TopicPartition]) -> None:
        raise ConnectError("the table is gone")

    script.open = fail
    assert "the table is gone" in start().trace()


def test_errors_hold_no_secrets(
    start: Start, script: Script, bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 1))

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        try:
            raise OSError('login with hunter"2 failed')
        except OSError as error:
            raise ConnectError(f"no login: {error!r} {task.config.originals}") from error

    script.put = put
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter\\"2";'
    with caplog.at_level(logging.DEBUG):
        trace = start(**{"consumer.override.sasl.jaas.config": jaas}).trace()
    assert "no login" in trace
    assert "hunter" not in trace


# -- lag ------------------------------------------------------------------------------------------------------------


def lags(task: RunningTask) -> list[float | None]:
    """The lag in each report so far, ``None`` where there is none."""
    return [report.values.get("sink-record-lag") for report in task.seen(messages.Metrics)]


def test_the_lag_is_unknown_until_something_is_delivered_and_not_0(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    may_go_on = threading.Event()

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        assert may_go_on.wait(60)

    script.put = put
    task = start()
    wait_until("it is given records", lambda: "put" in script.names())
    reports = lags(task)
    assert reports, "there is a sink, and that is all that is known"
    assert set(reports) == {None}
    may_go_on.set()
    wait_until("it has caught up", lambda: lags(task)[-1] == 0)
    assert set(lags(task)) <= {None, 0}
    task.stop()


def test_records_in_the_hands_of_a_task_are_behind(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        raise RetriableError("the target is away", retry_after=0.05)

    script.put = put
    task = start()
    wait_until("they count", lambda: 10 in lags(task))
    assert 0 not in lags(task)
    script.put = lambda task, records: None
    wait_until("it has caught up", lambda: lags(task)[-1] == 0)
    task.stop()


def test_the_lag_in_an_empty_topic_is_0(start: Start, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    task = start()
    wait_until("it is known", lambda: (lags(task) or [None])[-1] == 0)
    task.stop()
