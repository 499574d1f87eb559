"""Sinks that leave out what exists: they lose none of what comes after their start."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import NewPartitions

from equipment.brokers.topics import admin_client, committed, create_topic, make_at_once, produce
from equipment.scripts.sink_script import Script
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until

Start = Callable[..., RunningTask]
LATEST = {"consumer_override_auto_offset_reset": "latest", "consumer_override_metadata_max_age_ms": "1000"}


def test_what_comes_between_two_runs_is_put_though_the_first_consumed_nothing(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"old", b"older"])
    task = start(**LATEST)
    wait_until("the group knows where it begins", lambda: committed(bootstrap, group, topic) == [2])
    task.stop()
    produce(bootstrap, topic, [b"new"])
    task = start(**LATEST)
    wait_until("what came meanwhile is put", lambda: script.values() == ["new"])
    task.stop()


def test_a_partition_that_is_added_begins_at_its_first_record(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"old"])
    task = start(**LATEST)
    wait_until("the group knows where it begins", lambda: committed(bootstrap, group, topic) == [1])
    admin = admin_client(bootstrap)
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    produce(bootstrap, topic, [b"first"], partition=1)
    wait_until("its first record is put", lambda: script.values() == ["first"])
    task.stop()


def test_a_topic_that_comes_later_begins_at_its_first_record(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    task = start(topics_regex=topic + ".*", **LATEST)
    wait_until("the task waits for a topic", lambda: task.metric("partition-count") == 0)
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"first"])
    wait_until("its first record is put", lambda: script.values() == ["first"])
    task.stop()


def test_offsets_at_which_it_began_are_not_taken_for_those_of_a_later_topic(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"old"])
    task = start(**LATEST)
    wait_until("the group knows where it begins", lambda: committed(bootstrap, group, topic) == [1])
    make_at_once(bootstrap, topic)

    def is_put() -> bool:
        produce(bootstrap, topic, [b"new"])
        return "new" in script.values()

    wait_until("the new topic is put", is_put)
    task.stop()


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_task_without_records_is_given_no_offset_to_make_durable(
    start: Start, script: Script, bootstrap: str, topic: str, reset: str
) -> None:
    create_topic(bootstrap, topic)
    task = start(consumer_override_auto_offset_reset=reset)
    wait_until("the end is reached", lambda: task.metric("sink-record-lag") == 0)
    task.stop()
    assert "flush" not in script.names()
