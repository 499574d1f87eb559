"""The loop of a sink task on a real broker, with tasks that do as each test says."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition

from connect.data import SinkBatch, TopicPartition
from connect.errors import RetriableError
from equipment.brokers.topics import admin_client, committed, create_topic, produce, read_topic
from equipment.scripts.sink_script import Script, ScriptedTask
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until
from worker.messages import messages

Start = Callable[..., RunningTask]


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


def test_records_that_retention_took_between_two_runs_are_told_of(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 2))
    task = start()
    wait_until("the offset is committed", lambda: committed(bootstrap, group, topic) == [2])
    task.stop()
    produce(bootstrap, topic, numbers(2, 6))
    admin = admin_client(bootstrap)
    next(iter(admin.delete_records([ClientPartition(topic, 0, 4)]).values())).result(30)
    task = start()
    wait_until("the others are put", lambda: script.values() == ["0", "1", "4", "5"])
    task.stop()
    assert f"The records 2 to 3 of {topic}-0 were not consumed" in caplog.text


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


def test_a_task_that_goes_back_at_a_commit_gets_nothing_newer_first(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 5))
    back = iter([0])

    def flush(task: ScriptedTask, offsets: Mapping[TopicPartition, int]) -> None:
        if len(script.values()) >= 5:
            for offset in back:
                task.context.offset({TopicPartition(topic, 0): offset})
                produce(bootstrap, topic, numbers(5, 10))

    script.flush = flush
    start(worker={"offset.flush.interval.ms": "100"})
    wait_until("all has come", lambda: script.values()[-1:] == ["9"])
    assert script.values() == texts(0, 5) + texts(0, 10)


def test_a_task_that_goes_back_gets_nothing_first_that_was_consumed_with_the_batch(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in (b"0", None, b"2"):
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0
    back = iter([0])

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        if len(records):
            for offset in back:
                task.context.offset({TopicPartition(topic, 0): offset})

    script.put = put
    transformations = {
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": ".*",
        "transforms.route.replacement": "elsewhere",
        "transforms.route.predicate": "empty",
        "predicates": "empty",
        "predicates.empty.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }
    start(**transformations)
    wait_until("the first is delivered again", lambda: script.values().count("0") == 2)
    assert script.values()[:2] == ["0", "0"]


def test_what_could_not_be_flushed_is_put_again_from_where_it_was_entered(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    script.open = lambda task, partitions: task.context.offset({TopicPartition(topic, 0): 7})
    fail = once(RetriableError("the target is away"))

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


def test_a_task_that_answers_a_commit_with_no_offsets_fails_and_is_told_what_to_return(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 3))
    script.durable = lambda offsets: "all"
    trace = start().trace()
    assert "ScriptedTask returned a value of type str; it must return the offsets to commit" in trace
    assert committed(bootstrap, group, topic) == [-1001]


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


@pytest.mark.timeout(300)
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
    found = list[int]()
    script.put = lambda _, records: found.extend(records.offsets)
    before = offsets()
    task = start(worker={"consumer.isolation.level": "read_committed"})
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    task.stop()
    # Compaction goes on meanwhile.
    assert set(offsets()) <= set(found) <= set(before)
    assert found == sorted(set(found))
    assert committed(bootstrap, group, topic) == [found[-1] + 1]
    assert found[-1] + 1 < 16, "the end is a marker"


def test_a_drain_is_not_over_before_the_data_is_durable(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 5))
    script.flush = once(RetriableError("the target is away"))
    task = start(worker={"offset.flush.interval.ms": "60000"})
    task.send(messages.Drain())
    task.wait_for(messages.Drained)
    assert script.values() == texts(0, 5) * 2
    assert committed(bootstrap, group, topic) == [5]
    task.stop()


def test_a_pattern_that_matches_nothing_cannot_be_drained(start: Start, topic: str) -> None:
    keys = {"run_until": "drained", "run_until_missing_timeout_ms": "500"}
    task = start(topics_regex=f"{topic}-nothing", **keys)
    task.send(messages.Drain())
    failed = task.wait_for(messages.Failed)
    assert failed.trace.startswith(f"No topic matches topics.regex={topic}-nothing; the sink waits until one does.")


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
