"""The mirror source connector between two clusters: what a worker at the target makes of the topics of the source."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
)

from connectors.mirror.records import OffsetSync
from connectors.mirror.run_records import StoredRuns
from connectors.mirror.runs import Run
from equipment.brokers.proxy import Proxy
from equipment.brokers.topics import admin_client, create_topic, make_anew, ordered_producer, produce, read_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.embedded.broker.server import BrokerInfo
from worker.embedded.ports import any_port

FULL: Final = [("h", b"1"), ("h", None), ("é", b"\xff"), ("", b"")]
SECONDS: Final = 60.0


class Flow:
    """A flow from the first cluster to the second, run by one worker at the target."""

    def __init__(self, source: str, target: str, topic: str, worker: StandaloneWorker) -> None:
        self.source = source
        self.target = target
        self.topic = topic
        self.alias = f"A{topic[-12:].replace('.', '-').replace('_', '-')}"
        self.worker = worker

    @property
    def remote(self) -> str:
        """The topic at the target."""
        return f"{self.alias}.{self.topic}"

    def configure(self, **props: str) -> None:
        """Write the connector, for the next start."""
        self.worker.connector(
            "mirror",
            **{
                "connector_class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
                "tasks_max": "2",
                "source_cluster_alias": self.alias,
                "target_cluster_alias": f"{self.alias}-B",
                "source_cluster_bootstrap_servers": self.source,
                "target_cluster_bootstrap_servers": self.target,
                "topics": f"{self.topic}.*",
                "replication_factor": "1",
                "offset-syncs_topic_replication_factor": "1",
                "refresh_topics_interval_seconds": "1",
                "sync_topic_configs_interval_seconds": "1",
                **props,
            },
        )

    def mirrored(self, topic: str | None = None) -> list[Any]:
        """The messages at the target; none while there is no topic."""
        name = f"{self.alias}.{topic or self.topic}"
        known = admin_client(self.target).list_topics(timeout=30).topics
        return read_topic(self.target, name) if name in known else []

    def wait_for(self, count: int, topic: str | None = None) -> list[Any]:
        """The messages at the target, once there are that many."""
        found: list[Any] = []

        def arrived() -> bool:
            found[:] = self.mirrored(topic)
            return len(found) >= count

        wait_until(f"{count} records are mirrored", arrived, seconds=SECONDS)
        return found

    def runs(self, partition: int) -> tuple[Run, ...]:
        """The runs that are written of a partition."""
        stored = StoredRuns()
        for message in read_topic(self.source, f"mm2-offset-runs.{self.alias}-B.internal"):
            stored.read(message.key(), message.value())
        runs = stored.runs(self.topic, partition)
        return () if runs is None else runs.runs

    def syncs(self) -> list[OffsetSync]:
        """The offset syncs that are written."""
        messages = read_topic(self.source, f"mm2-offset-syncs.{self.alias}-B.internal")
        return [OffsetSync.decode(message.key(), message.value()) for message in messages]


@pytest.fixture
def flow(
    broker: BrokerInfo, second_broker: BrokerInfo, topic: str, standalone: Callable[..., StandaloneWorker]
) -> Flow:
    """A flow that is not configured yet."""
    target = second_broker.bootstrap_servers
    return Flow(broker.bootstrap_servers, target, topic, standalone(bootstrap_servers=target))


def _shape(messages: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (one.partition(), one.offset(), one.key(), one.value(), one.headers(), one.timestamp()[1]) for one in messages
    ]


def _set(bootstrap: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = admin_client(bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(30)


def _settings(bootstrap: str, topic: str) -> Mapping[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = admin_client(bootstrap)
    found = admin.describe_configs([resource])[resource].result(30)
    return {name: entry.value for name, entry in found.items() if entry.source == 1}


def test_records_topics_and_settings_come_over_and_go_on_after_a_restart(flow: Flow) -> None:
    source, topic = flow.source, flow.topic
    create_topic(source, topic, 2, **{"retention.ms": "-1", "max.message.bytes": "2000000", "min.insync.replicas": "1"})
    create_topic(source, f"{topic}-quiet")
    producer = ordered_producer(source)
    for number in range(300):
        producer.produce(topic, b"%d" % number, b"k", number % 2, timestamp=1000 + number)
    producer.produce(topic, None, None, 0, timestamp=5, headers=FULL)
    producer.produce(topic, b"", b"", 1, timestamp=6, headers=[])
    assert producer.flush(30) == 0

    flow.configure()
    flow.worker.start()
    assert _shape(flow.wait_for(302)) == _shape(read_topic(source, topic))
    assert _settings(flow.target, flow.remote) == {"retention.ms": "-1", "max.message.bytes": "2000000"}

    # What is new joins the tasks as they run, and what was changed at the source follows.
    process = flow.worker.task_pid("mirror")
    _set(source, topic, "segment.ms", "123456789")
    admin = admin_client(source)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    produce(source, topic, [b"third"], partition=2)
    create_topic(source, f"{topic}-new")
    produce(source, f"{topic}-new", [b"a", b"b"])
    assert [one.value() for one in flow.wait_for(2, f"{topic}-new")] == [b"a", b"b"]
    assert _shape(flow.wait_for(303)) == _shape(read_topic(source, topic))
    wait_until(
        "the setting follows",
        lambda: _settings(flow.target, flow.remote).get("segment.ms") == "123456789",
        seconds=60,
    )

    assert flow.worker.task_pid("mirror") == process
    assert not [line for line in flow.worker.log().splitlines() if "moves to another process" in line]

    # Stopped in order, it goes on after the last record, and the runs go on as well.
    assert flow.worker.terminate() == 0
    assert flow.runs(0) == (Run(0, 0, 151, 0),)
    produce(source, topic, [b"later"], partition=0)
    flow.worker.start()
    assert _shape(flow.wait_for(304)) == _shape(read_topic(source, topic))
    assert flow.worker.terminate() == 0
    assert [flow.runs(number) for number in range(3)] == [
        (Run(0, 0, 152, 0),),
        (Run(0, 0, 151, 0),),
        (Run(0, 0, 1, 0),),
    ]
    pairs = {(sync.partition, sync.upstream, sync.downstream) for sync in flow.syncs() if sync.topic == topic}
    assert {(0, 0, 0), (0, 101, 101), (0, 151, 151), (1, 150, 150), (2, 0, 0)} <= pairs


def test_a_topic_that_the_target_cannot_have_does_not_hold_up_the_others(flow: Flow) -> None:
    # With the alias before it, the name is longer than Kafka allows.
    source, topic = flow.source, flow.topic
    long = f"{topic}-{'x' * (248 - len(topic))}"
    produce(source, topic, [b"first"])
    flow.configure(topics=f"{topic}.*")
    flow.worker.start()
    flow.wait_for(1)

    produce(source, long, [b"never"])
    refused = f"Topic {flow.alias}.{long} cannot be created"
    wait_until("it is refused", lambda: refused in flow.worker.log())
    produce(source, f"{topic}-new", [b"a", b"b"])
    assert [one.value() for one in flow.wait_for(2, f"{topic}-new")] == [b"a", b"b"]

    # Nor does it when the tasks start.
    assert flow.worker.terminate() == 0
    produce(source, topic, [b"second"])
    flow.worker.start()
    assert [one.value() for one in flow.wait_for(2)] == [b"first", b"second"]


def test_what_is_gone_is_told_and_what_was_aborted_is_left_out(flow: Flow) -> None:
    source, topic = flow.source, flow.topic
    admin = admin_client(source)
    create_topic(source, topic)
    produce(source, topic, [b"%d" % number for number in range(10)])
    flow.configure()
    flow.worker.start()
    flow.wait_for(10)
    assert flow.worker.terminate() == 0

    # Retention was faster than the mirror. A record says so.
    flow.configure(mirror_gap_policy="mark")
    produce(source, topic, [b"%d" % number for number in range(10, 20)])
    admin.delete_records([TopicPartition(topic, 0, 15)])[TopicPartition(topic, 0)].result(30)
    flow.worker.start()
    assert [int(one.value()) for one in flow.wait_for(15)] == [*range(10), *range(15, 20)]
    assert flow.worker.terminate() == 0
    assert f"Offsets 10 to 14 of {topic}-0 were deleted before they could be mirrored" in flow.worker.log()
    (mark,) = [json.loads(one.value()) for one in read_topic(flow.target, f"mm2-gaps.{flow.alias}.internal")]
    assert [mark[key] for key in ("topic", "partition", "reason", "first", "last", "next")] == [
        topic, 0, "expired", 10, 14, 15,
    ]  # fmt: skip

    # Another topic of the same name, with more records than were mirrored of the first.
    make_anew(source, topic)
    produce(source, topic, [b"%d" % number for number in range(100, 130)])
    flow.configure(mirror_gap_policy="fail")
    flow.worker.start()
    wait_until("the task fails", lambda: "reset the offset of the partition" in flow.worker.log(), seconds=SECONDS)
    assert flow.worker.terminate() == 0
    assert len(flow.mirrored()) == 15
    flow.configure()
    flow.worker.start()
    assert [int(one.value()) for one in flow.wait_for(45)][15:] == [*range(100, 130)]

    # Only what is committed at the source comes over, unless somebody says otherwise.
    producer = Producer({"bootstrap.servers": source, "transactional.id": topic})
    producer.init_transactions(30)
    for value, end in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        assert producer.flush(30) == 0
        end(30)
    assert [one.value() for one in flow.wait_for(46)][45:] == [b"committed"]
    wait_until("the runs are written", lambda: flow.runs(0) == (Run(0, 15, 30, 0), Run(32, 45, 1, 30)))


@pytest.mark.thorough
def test_a_topic_made_anew_is_noticed_though_all_was_killed_with_the_first_offsets(flow: Flow) -> None:
    source, topic = flow.source, flow.topic
    create_topic(source, topic)
    produce(source, topic, [b"%d" % number for number in range(20)])
    flow.configure()
    flow.worker.start()
    offsets = flow.worker.folder / "offsets"
    wait_until("the offsets are stored", lambda: offsets.exists() and b'"offset":19' in offsets.read_bytes(), SECONDS)
    flow.worker.kill()
    make_anew(source, topic)
    produce(source, topic, [b"%d" % number for number in range(100, 130)])
    flow.configure(mirror_gap_policy="fail")
    flow.worker.start()
    wait_until("the task fails", lambda: "reset the offset of the partition" in flow.worker.log(), SECONDS)
    assert len(flow.mirrored()) == 20


@pytest.mark.thorough
def test_topics_made_anew_while_a_task_runs_are_noticed(flow: Flow) -> None:
    source, topic = flow.source, flow.topic
    create_topic(source, topic)
    produce(source, topic, [b"old"])
    flow.configure(mirror_topic_deletion_policy="delete", mirror_topic_deletion_grace_ms="0")
    flow.worker.start()
    flow.wait_for(1)
    # It does not see the new topic before there are more records than there were.
    task = flow.worker.task_pid("mirror")
    os.kill(task, signal.SIGSTOP)
    make_anew(source, topic)
    produce(source, topic, [b"%d" % number for number in range(50)])
    with suppress(ProcessLookupError):
        os.kill(task, signal.SIGCONT)
    # Offsets go on as if nothing had happened: only the id of the topic tells.
    every = [b"%d" % number for number in range(50)]
    wait_until(
        "all of the new topic is mirrored",
        lambda: [one.value() for one in flow.mirrored()[-50:]] == every,
        seconds=SECONDS,
    )
    assert f"Topic {topic} was recreated at the source" in flow.worker.log()

    # At the target the copies are gone: that is told, and mirroring goes on.
    target, admin = admin_client(flow.target), admin_client(source)
    target.delete_topics([flow.remote])[flow.remote].result(30)
    told = f"The topic that {topic}-0 is mirrored to was recreated at the target"
    wait_until("the new target is noticed", lambda: told in flow.worker.log(), seconds=SECONDS)
    produce(source, topic, [b"last"])
    assert [one.value() for one in flow.wait_for(1)][-1:] == [b"last"]

    # A topic that is deleted at the source is so at the target, where the policy is to delete.
    create_topic(source, f"{topic}-stays")
    admin.delete_topics([topic])[topic].result(30)
    wait_until("it is deleted", lambda: flow.remote not in target.list_topics(timeout=30).topics, seconds=SECONDS)
    assert flow.worker.terminate() == 0


def test_a_source_that_is_away_at_first_is_mirrored_when_it_comes(flow: Flow) -> None:
    create_topic(flow.source, flow.topic)
    produce(flow.source, flow.topic, [b"a"])
    port = any_port(taken=0)
    flow.configure(source_cluster_bootstrap_servers=f"127.0.0.1:{port}", refresh_topics_interval_seconds="600")
    flow.worker.start()
    wait_until("the worker tells of it", lambda: "asking again every few seconds" in flow.worker.log(), seconds=SECONDS)
    assert flow.worker.wait_for_states("mirror", "RUNNING")["tasks"] == []
    proxy = Proxy({port: int(flow.source.rpartition(":")[2])})
    try:
        assert [one.value() for one in flow.wait_for(1)] == [b"a"]
        assert flow.worker.terminate() == 0
    finally:
        proxy.close()
