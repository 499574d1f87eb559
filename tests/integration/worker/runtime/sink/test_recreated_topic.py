"""Sinks of a topic that was deleted and created again: its offsets mean nothing for the new one."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from connect.data import TopicPartition as Partition
from equipment.brokers.topics import admin_client, committed, create_topic, make_anew, make_at_once, produce
from equipment.proofs import thorough
from equipment.scripts.sink_script import Script
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until
from worker.messages import messages

Start = Callable[..., RunningTask]
WARNING = "was deleted and created again"


def numbers(first: int, end: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, end)]


def texts(first: int, end: int) -> list[str]:
    return [str(number) for number in range(first, end)]


def consume_ten(bootstrap: str, topic: str, group: str, script: Script) -> None:
    wait_until("the former topic is put", lambda: script.values() == texts(0, 10))
    wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [10])


@pytest.mark.parametrize("new", [5, 10, 15])
@pytest.mark.parametrize("make", [make_at_once, *thorough(make_anew)])
def test_all_records_of_the_new_topic_are_put(
    start: Start,
    script: Script,
    bootstrap: str,
    topic: str,
    group: str,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[str, str], None],
    new: int,
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    # Else the consumer may create the topic first.
    task = start(consumer_override_allow_auto_create_topics="false")
    consume_ten(bootstrap, topic, group, script)
    make(bootstrap, topic)
    with caplog.at_level(logging.WARNING):
        produce(bootstrap, topic, numbers(100, 100 + new))
        wait_until("the new topic is put", lambda: script.values()[10:] == texts(100, 100 + new))
        wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [new])
    task.stop()
    told = [record.getMessage() for record in caplog.records if WARNING in record.getMessage()]
    assert len(told) == 1
    assert topic in told[0]
    assert "earliest" in told[0]


@pytest.mark.parametrize("how", ["paused", "pattern", *thorough("not created")])
def test_all_records_are_put_however_the_sink_consumes(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, how: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    props = {
        "pattern": {"topics_regex": topic + ".*"},
        "not created": {"consumer_override_allow_auto_create_topics": "false"},
    }.get(how, {})
    task = start(**props)
    consume_ten(bootstrap, topic, group, script)
    if how == "paused":
        task.send(messages.Pause())
        task.wait_for(messages.Paused)
    make_at_once(bootstrap, topic)
    produce(bootstrap, topic, numbers(100, 115))
    if how == "paused":
        task.send(messages.Resume())
    wait_until("the new topic is put", lambda: script.values()[10:] == texts(100, 115))
    wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [15])
    task.stop()


@pytest.mark.parametrize("draining", [*thorough(False), True])
def test_a_new_topic_with_just_as_many_records_is_put_after_a_restart(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, draining: bool
) -> None:
    """No record comes that would tell: the task begins where the new topic ends, by an offset that was kept."""
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    task = start(consumer_override_allow_auto_create_topics="false")
    consume_ten(bootstrap, topic, group, script)
    task.stop()
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (late,) = client.committed([TopicPartition(topic, 0)], timeout=30)
    make_anew(bootstrap, topic)
    wait_until("the former offset is deleted", lambda: committed(bootstrap, group, topic) == [-1001])
    client.commit(offsets=[late], asynchronous=False)
    client.close()
    produce(bootstrap, topic, numbers(100, 110))
    task = start()
    if draining:
        task.send(messages.Drain())
        task.wait_for(messages.Drained)
        assert script.values()[10:] == texts(100, 110)
    wait_until("the new topic is put", lambda: script.values()[10:] == texts(100, 110))
    wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [10])
    task.stop()


def test_a_commit_for_the_former_topic_that_came_late_is_recognised_by_the_next_run(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    # Else the consumer, as it closes, asks about its topic once more, and so may have it created.
    task = start(consumer_override_allow_auto_create_topics="false")
    consume_ten(bootstrap, topic, group, script)
    task.stop()
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (late,) = client.committed([TopicPartition(topic, 0)], timeout=30)
    assert late.metadata.startswith("topic-id=")
    make_anew(bootstrap, topic)
    produce(bootstrap, topic, numbers(100, 115))
    wait_until("the former offset is deleted", lambda: committed(bootstrap, group, topic) == [-1001])
    client.commit(offsets=[late], asynchronous=False)
    client.close()
    assert committed(bootstrap, group, topic) == [10]
    task = start()
    wait_until("the new topic is put", lambda: script.values()[10:] == texts(100, 115))
    wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [15])
    task.stop()


@pytest.mark.parametrize("new", [*thorough(5, 10), 15])
def test_offsets_that_are_deleted_after_a_task_began_at_them_are_still_those_of_the_former_topic(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, new: int
) -> None:
    """The task has consumed nothing yet: when it first looks, neither the former topic nor its offset exists."""
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    task = start(consumer_override_allow_auto_create_topics="false")
    consume_ten(bootstrap, topic, group, script)
    task.stop()
    task = start(consumer_override_allow_auto_create_topics="false")
    wait_until("the partition is assigned", lambda: task.metric("partition-count") == 1)
    # Else it may look for records before there are any, and begin anew since the new topic ends before its offset.
    task.send(messages.Pause())
    task.wait_for(messages.Paused)
    make_at_once(bootstrap, topic)
    wait_until("the former offset is deleted", lambda: committed(bootstrap, group, topic) == [-1001])
    produce(bootstrap, topic, numbers(100, 100 + new))
    task.send(messages.Resume())
    wait_until("the new topic is put", lambda: script.values()[10:] == texts(100, 100 + new))
    wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [new])
    task.stop()


def test_a_task_that_keeps_offsets_of_the_former_topic_fails_in_the_next_run_too(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    """It would leave out records of the new topic, as those that it has already."""
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    script.open = lambda task, partitions: task.context.offset({Partition(topic, 0): 10} if script.values() else {})
    task = start()
    consume_ten(bootstrap, topic, group, script)
    make_at_once(bootstrap, topic)
    produce(bootstrap, topic, numbers(100, 115))
    assert "keeps offsets of the former topic" in task.trace()
    assert "keeps offsets of the former topic" in start().trace()
    assert script.values() == texts(0, 10)


def test_offsets_that_others_have_committed_are_taken_as_they_are(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    client.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    client.close()
    start()
    wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [10])
    assert script.values() == texts(7, 10)


@pytest.mark.thorough
def test_two_tasks_begin_all_partitions_anew(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic, partitions=2)
    for partition in range(2):
        produce(bootstrap, topic, numbers(partition * 10, partition * 10 + 10), partition)
    tasks = [start(consumer_override_allow_auto_create_topics="false") for _ in range(2)]
    wait_until("the former topic is committed", lambda: committed(bootstrap, group, topic, 2) == [10, 10])
    make_at_once(bootstrap, topic, partitions=2)
    for partition in range(2):
        produce(bootstrap, topic, numbers(100 + partition * 100, 115 + partition * 100), partition)
    # What a consumer reads from its former offset on may be committed before the task sees that the topic is another.
    whole = set(texts(100, 115) + texts(200, 215))
    wait_until("all of the new topic is written", lambda: whole <= set(script.values()), 120)
    wait_until("the new topic is committed", lambda: committed(bootstrap, group, topic, 2) == [15, 15], 120)
    for task in tasks:
        task.stop()


@pytest.mark.parametrize("strategy", [*thorough("range"), "cooperative-sticky"])
def test_partitions_of_a_topic_that_was_missing_at_a_rebalance_are_consumed(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, strategy: str
) -> None:
    """The client's assignor gives out none of them, and sees no change in a new topic with as many."""
    create_topic(bootstrap, topic, partitions=2)
    for partition in range(2):
        produce(bootstrap, topic, numbers(partition * 10, partition * 10 + 10), partition)
    props = {
        "consumer_override_allow_auto_create_topics": "false",
        "consumer_override_partition_assignment_strategy": strategy,
    }
    first, second = start(**props), start(**props)
    wait_until("the former topic is committed", lambda: committed(bootstrap, group, topic, 2) == [10, 10])
    wait_until("the group gives out its partitions", lambda: assigned(bootstrap, group) == 2)
    admin = admin_client(bootstrap)
    admin.delete_topics([topic])[topic].result(30)
    second.stop()
    create_topic(bootstrap, topic, partitions=2)
    for partition in range(2):
        produce(bootstrap, topic, numbers(100 + partition * 100, 105 + partition * 100), partition)
    wait_until("the new topic is committed", lambda: committed(bootstrap, group, topic, 2) == [5, 5])
    assert sorted(script.values()[20:]) == [*texts(100, 105), *texts(200, 205)]
    first.stop()


def assigned(bootstrap: str, group: str) -> int:
    """How many partitions the members of a group have between them."""
    admin = admin_client(bootstrap)
    found = admin.describe_consumer_groups([group])[group].result(30)
    return sum(len(member.assignment.topic_partitions) for member in found.members)


def test_a_sink_that_begins_at_the_end_goes_on_after_the_new_topic_is_noticed(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    task = start(consumer_override_auto_offset_reset="latest", consumer_override_allow_auto_create_topics="false")
    wait_until("the partition is assigned", lambda: task.metric("partition-count") == 1)

    def is_put() -> bool:
        produce(bootstrap, topic, [b"former"])
        return "former" in script.values()

    wait_until("the former topic is put", is_put)
    wait_until("it is committed", lambda: committed(bootstrap, group, topic)[0] > 0)
    make_at_once(bootstrap, topic)

    def goes_on() -> bool:
        produce(bootstrap, topic, [b"new"])
        return "new" in script.values()

    wait_until("the new topic is put", goes_on)
    task.stop()


def test_a_sink_that_must_not_choose_where_to_begin_fails(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 10))
    start().stop()
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    client.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    client.close()
    task = start(consumer_override_auto_offset_reset="none", consumer_override_allow_auto_create_topics="false")
    wait_until("the former topic is committed", lambda: committed(bootstrap, group, topic) == [10])
    make_at_once(bootstrap, topic)
    produce(bootstrap, topic, numbers(100, 115))
    assert "auto.offset.reset" in task.trace()
    assert committed(bootstrap, group, topic) == [-1001]


def test_no_record_of_a_continuous_stream_is_lost_after_the_topic_is_created_again(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    task = start(consumer_override_allow_auto_create_topics="false")
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    written = itertools.count()

    def write(name: str, count: int) -> list[str]:
        found = []
        for _ in range(count):
            found.append(f"{name} {next(written)}")
            producer.produce(topic, found[-1].encode(), partition=0)
            assert producer.flush(30) == 0
        return found

    former = write("former", 200)
    wait_until("the former topic is put", lambda: set(former) <= set(script.values()))
    make_at_once(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    new = write("new", 1000)
    wait_until("the new topic is put", lambda: set(new) <= set(script.values()))
    wait_until("it is committed", lambda: committed(bootstrap, group, topic) == [1000])
    task.stop()
