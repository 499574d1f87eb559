"""The task of the mirror source alone: in transactions, with records that the target does not take, with a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from connectors.mirror.run_records import StoredRuns
from connectors.mirror.runs import Run, Runs
from equipment.brokers.topics import admin_client, create_topic, make_anew, ordered_producer, produce, read_topic
from equipment.brokers.written_flow import write
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until
from worker.embedded.broker.server import BrokerInfo
from worker.messages import messages

Start = Callable[..., RunningTask]


@pytest.fixture
def start(broker: BrokerInfo, second_broker: BrokerInfo, topic: str) -> Iterator[Start]:
    """Starts the only task of a flow of one topic to the second cluster; the topics are there already."""
    source, target = broker.bootstrap_servers, second_broker.bootstrap_servers
    create_topic(source, topic)
    create_topic(target, f"A.{topic}")
    create_topic(source, f"mm2-offset-runs.{topic}.internal", **{"cleanup.policy": "compact"})
    running: list[RunningTask] = []

    def start_task(
        worker: dict[str, str] | None = None, offsets: Any = None, commit_error: str | None = None, **props: str
    ) -> RunningTask:
        connector = {
            "name": topic,
            "connector.class": "MirrorSourceConnector",
            "source.cluster.alias": "A",
            # The names of internal topics have it, so those of this test are its own.
            "target.cluster.alias": topic,
            "source.cluster.bootstrap.servers": source,
            "target.cluster.bootstrap.servers": target,
            "task.assigned.partitions": f"{topic}-0",
            "task.index": "0",
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        running.append(RunningTask(target, connector, worker=worker, offsets=offsets or {}, commit_error=commit_error))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


@pytest.fixture
def values(second_broker: BrokerInfo, topic: str) -> Callable[[int], list[bytes]]:
    """The values at the target that are committed, once there are so many."""

    def arrived(count: int) -> list[bytes]:
        def read() -> list[bytes]:
            found = [one.value() for one in read_topic(second_broker.bootstrap_servers, f"A.{topic}")]
            return found if len(found) >= count else []

        return wait_until(f"{count} records arrive", read)

    return arrived


@pytest.fixture
def runs(bootstrap: str, topic: str) -> Callable[[], Runs]:
    """The runs that are written."""

    def read() -> Runs:
        stored = StoredRuns()
        for message in read_topic(bootstrap, f"mm2-offset-runs.{topic}.internal"):
            stored.read(message.key(), message.value())
        found = stored.runs(topic, 0)
        assert found is not None
        return found

    return read


def _with_transactions(target: str, topic: str) -> dict[str, str]:
    """A worker with exactly-once support, whose offsets topic is there."""
    create_topic(target, f"{topic}-offsets", 1, **{"cleanup.policy": "compact"})
    return {
        "group.id": f"cluster-{topic}",
        "offset.storage.topic": f"{topic}-offsets",
        "config.storage.topic": f"{topic}-configs",
        "status.storage.topic": f"{topic}-status",
        "exactly.once.source.support": "enabled",
    }


def test_records_and_offsets_are_one_transaction(
    bootstrap: str,
    second_broker: BrokerInfo,
    topic: str,
    start: Start,
    values: Callable[[int], list[bytes]],
    runs: Callable[[], Runs],
) -> None:
    offsets, target = f"{topic}-offsets", second_broker.bootstrap_servers
    worker = _with_transactions(target, topic)
    produce(bootstrap, topic, [b"0", b"1", b"2"])
    first = start(worker)
    assert values(3) == [b"0", b"1", b"2"]
    first.stop()
    stored = read_topic(target, offsets)
    assert stored[-1].key() == f'["{topic}",{{"cluster":"A","partition":0,"topic":"{topic}"}}]'.encode()
    assert stored[-1].value() == b'{"offset":2}'
    # The ends of transactions take offsets at the target, so another run begins.
    produce(bootstrap, topic, [b"3", b"4"])
    second = start(worker)
    assert values(5) == [b"0", b"1", b"2", b"3", b"4"]
    # Another topic joins while the task runs, in the transactions that it makes already.
    for servers, name in ((bootstrap, f"{topic}-new"), (target, f"A.{topic}-new")):
        create_topic(servers, name)
    produce(bootstrap, f"{topic}-new", [b"x"])
    second.send(messages.TakeConfig({**second.config, "task.assigned.partitions": f"{topic}-0,{topic}-new-0"}))
    wait_until("it joins", lambda: [one.value() for one in read_topic(target, f"A.{topic}-new")] == [b"x"])
    produce(bootstrap, topic, [b"5"])
    assert values(6)[5:] == [b"5"]
    second.stop()
    assert len(second.seen(messages.Started)) == 1
    assert [one.upstream for one in runs().runs] == [0, 3, 5]
    assert runs().downstream_of(3).is_exact  # type: ignore[union-attr]
    kept = {one.key(): one.value() for one in read_topic(target, offsets)}
    assert kept[f'["{topic}",{{"cluster":"A","partition":0,"topic":"{topic}-new"}}]'.encode()] == b'{"offset":0}'


def test_a_gap_is_marked_once_and_reading_is_held_back_in_transactions_too(
    bootstrap: str, second_broker: BrokerInfo, topic: str, start: Start, values: Callable[[int], list[bytes]]
) -> None:
    target, gaps = second_broker.bootstrap_servers, "mm2-gaps.A.internal"
    worker = _with_transactions(target, topic)
    write(target, gaps, [])
    produce(bootstrap, topic, [b"0", b"1"])
    first = start(worker)
    assert values(2) == [b"0", b"1"]
    first.stop()
    large = [b"%d" % number * 1000 for number in range(4)]
    produce(bootstrap, topic, [b"gone", *large])
    admin, place = admin_client(bootstrap), TopicPartition(topic, 0, 3)
    admin.delete_records([place])[place].result(30)
    second = start(worker, mirror_gap_policy="mark", task_bytes_per_second="3000", consumer_poll_timeout_ms="50")
    assert values(6)[2:] == large
    second.stop()
    third = start(worker, mirror_gap_policy="mark", task_bytes_per_second="6000")
    produce(bootstrap, topic, [b"last"])
    assert values(7)[6:] == [b"last"]
    third.stop()
    marks = [json.loads(one.value()) for one in read_topic(target, gaps) if topic.encode() in one.key()]
    assert [(mark["reason"], mark["first"], mark["last"], mark["next"]) for mark in marks] == [("expired", 2, 2, 3)]
    assert read_topic(target, f"{topic}-offsets")[-1].value() == b'{"offset":7}'


def test_a_record_that_the_target_does_not_take_is_left_out_if_that_is_tolerated(
    bootstrap: str, topic: str, start: Start, values: Callable[[int], list[bytes]], runs: Callable[[], Runs]
) -> None:
    producer = ordered_producer(bootstrap)
    for value in (b"a", b"x" * 600_000, b"b", b"c"):
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    task = start(errors_tolerance="all", **{"producer.override.max.request.size": "400000"})
    assert values(3) == [b"a", b"b", b"c"]
    task.stop()
    assert runs().runs == (Run(0, 0, 1, 0), Run(2, 1, 2, 2))
    assert task.metric("total-records-skipped") == 1


def test_a_record_that_is_too_large_for_the_target_becomes_a_dead_letter(
    bootstrap: str,
    second_broker: BrokerInfo,
    topic: str,
    start: Start,
    values: Callable[[int], list[bytes]],
    runs: Callable[[], Runs],
) -> None:
    target, letters, large = second_broker.bootstrap_servers, f"{topic}-letters", b"x" * 5000
    limit = ConfigEntry("max.message.bytes", "1000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, f"A.{topic}", incremental_configs=[limit])
    admin = admin_client(target)
    admin.incremental_alter_configs([resource])[resource].result(30)
    produce(bootstrap, topic, [b"a", large, b"b"])
    task = start(
        errors_tolerance="all",
        **{
            "errors.deadletterqueue.topic.name": letters,
            "errors.deadletterqueue.topic.replication.factor": "1",
        },
    )
    assert values(2) == [b"a", b"b"]
    task.stop()
    assert [letter.value() for letter in read_topic(target, letters)] == [large]
    assert [(run.upstream, run.length) for run in runs().runs] == [(0, 1), (2, 1)]


def test_records_that_have_been_at_the_target_are_left_out_and_numbers_are_told(
    bootstrap: str,
    second_broker: BrokerInfo,
    topic: str,
    start: Start,
    values: Callable[[int], list[bytes]],
    runs: Callable[[], Runs],
) -> None:
    producer = ordered_producer(bootstrap)
    producer.produce(topic, b"back", headers=[("via", topic.encode())])
    producer.produce(topic, b"own", headers=[("x", b"1")])
    producer.produce(topic, b"back again", headers=[("via", topic.encode())])
    assert producer.flush(30) == 0
    task = start(mirror_provenance_header="via", task_bytes_per_second="1000000")
    assert values(1) == [b"own"]
    (message,) = read_topic(second_broker.bootstrap_servers, f"A.{topic}")
    assert message.headers() == [("x", b"1"), ("via", b"A")]

    def told() -> dict[str, Any]:
        reports = [report for report in task.reports if isinstance(report, messages.Metrics)]
        return {name: (labels, value) for report in reports for name, labels, _, value in report.own}

    labels = ["source", "A", "target", topic, "topic", f"A.{topic}", "partition", "0"]
    wait_until("the record is counted", lambda: told().get("mirror_records_total") == (labels, 1.0))
    wait_until("nothing is left", lambda: told().get("mirror_lag_records") == (labels, 0.0))
    task.stop()
    assert runs().runs == (Run(1, 0, 1, 0),)
    # What was left out at the end is not read again.
    place = {"cluster": "A", "partition": 0, "topic": topic}
    assert task.offsets[str(place)] == {"offset": 2}


def test_a_stored_offset_is_gone_on_from(
    bootstrap: str, topic: str, start: Start, values: Callable[[int], list[bytes]]
) -> None:
    produce(bootstrap, topic, [b"0", b"1", b"2"])
    place = {"cluster": "A", "partition": 0, "topic": topic}
    task = start()
    assert values(3) == [b"0", b"1", b"2"]
    wait_until("the offset is committed", lambda: task.offsets.get(str(place)) == {"offset": 2})
    task.stop()
    again = start(offsets={str(place): {"offset": 1}})
    assert values(4) == [b"0", b"1", b"2", b"2"]
    again.stop()


@pytest.mark.parametrize("old", [0, 3])
def test_what_comes_between_two_runs_is_mirrored_though_the_first_mirrored_nothing(
    bootstrap: str, topic: str, start: Start, values: Callable[[int], list[bytes]], old: int
) -> None:
    produce(bootstrap, topic, [b"old"] * old)
    place = {"cluster": "A", "partition": 0, "topic": topic}
    task = start(source_consumer_auto_offset_reset="latest")
    wait_until("where it begins is stored", lambda: task.offsets.get(str(place)) == {"offset": old - 1})
    task.stop()
    produce(bootstrap, topic, [b"new"])
    again = start(source_consumer_auto_offset_reset="latest", offsets=task.offsets)
    assert values(1) == [b"new"]
    again.stop()


def test_a_partition_that_was_added_is_mirrored_whole_even_if_what_existed_is_left_out(
    bootstrap: str, second_broker: BrokerInfo, topic: str, start: Start, values: Callable[[int], list[bytes]]
) -> None:
    for servers, name in ((bootstrap, topic), (second_broker.bootstrap_servers, f"A.{topic}")):
        admin = admin_client(servers)
        admin.create_partitions([NewPartitions(name, 2)])[name].result(30)
    produce(bootstrap, topic, [b"first"], partition=1)
    offsets = {str({"cluster": "A", "partition": 0, "topic": topic}): {"offset": -1}}
    props = {"source_consumer_auto_offset_reset": "latest", "task_assigned_partitions": f"{topic}-0,{topic}-1"}
    task = start(offsets=offsets, **props)
    assert values(1) == [b"first"]
    task.stop()


def test_a_topic_made_anew_is_whole_whenever_all_is_killed(
    bootstrap: str, topic: str, start: Start, values: Callable[[int], list[bytes]], runs: Callable[[], Runs]
) -> None:
    place = str({"cluster": "A", "partition": 0, "topic": topic})
    produce(bootstrap, topic, [b"a", b"b", b"c"])
    first = start()
    assert values(3) == [b"a", b"b", b"c"]
    first.stop()
    assert first.offsets == {place: {"offset": 2}}
    generation = runs().generation
    # Their numbers alone do not tell that these are others.
    make_anew(bootstrap, topic)
    every = [b"%d" % number for number in range(10)]
    produce(bootstrap, topic, every)

    # Killed before it is stored that nothing of it is mirrored: nothing else has happened.
    task = start(offsets=first.offsets, commit_error="it was killed")
    wait_until("the offset is to be reset", lambda: {"offset": -1} in _committed(task))
    task.stop()
    assert len(values(3)) == 3
    assert (runs().generation, runs().runs) == (generation, (Run(0, 0, 3, 0),))

    # Killed after that, when it is written which topic there is, and records are on their way.
    reset = {place: {"offset": -1}}
    task = start(offsets=reset, commit_error="it was killed")
    assert values(13)[3:] == every
    task.stop()
    assert (runs().generation.source != generation.source, runs().runs) == (True, (Run(0, 3, 10, 0),))
    # The next start does not take a stored offset for one of the new topic.
    last = start(offsets=reset)
    assert values(23)[13:] == every
    last.stop()
    assert last.offsets == {place: {"offset": 9}}


def test_a_topic_made_anew_in_the_midst_of_it_is_read_when_its_offset_is_reset(
    bootstrap: str, topic: str, start: Start, values: Callable[[int], list[bytes]]
) -> None:
    place = str({"cluster": "A", "partition": 0, "topic": topic})
    produce(bootstrap, topic, [b"a", b"b", b"c"])
    task = start()
    assert values(3) == [b"a", b"b", b"c"]
    task.commit_error = "not now"
    make_anew(bootstrap, topic)
    wait_until("the offset is to be reset", lambda: {"offset": -1} in _committed(task))
    produce(bootstrap, topic, [b"d"])
    assert len(values(3)) == 3
    task.commit_error = None
    assert values(4)[3:] == [b"d"]
    task.stop()
    assert task.offsets == {place: {"offset": 0}}


def _committed(task: RunningTask) -> list[dict[str, Any]]:
    """The source offsets that a task has asked to be stored."""
    return [offset for report in task.seen(messages.CommitOffsets) for _, offset in report.offsets]
