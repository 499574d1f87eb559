"""Checkpoints, heartbeats and the client of mirrors between two clusters. Syncs and runs are written here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from connect.data import SourceRecord
from connect.data import TopicPartition as Partition
from connect.testing import ConnectorTestContext, StoredOffsets, run_source, running_source
from connectors.mirror import MirrorCheckpointConnector, MirrorClient, MirrorHeartbeatConnector, RemoteOffset
from connectors.mirror.records import Checkpoint, Heartbeat, OffsetSync
from connectors.mirror.run_records import RunWriter
from connectors.mirror.runs import Runs
from equipment.brokers.topics import committed, create_topic, read_topic
from equipment.waiting import wait_until
from worker.cli.mirror.command import mirror
from worker.embedded.broker.server import BrokerInfo


class Flow:
    """A flow between the two clusters of the run, with aliases and topics of its own."""

    def __init__(self, source: str, target: str) -> None:
        unique = uuid4().hex[:8]
        self.source, self.target = source, target
        self.a, self.b = f"a{unique}", f"b{unique}"
        self.topic, self.group = f"orders-{unique}", f"group-{unique}"
        self.remote = f"{self.a}.{self.topic}"
        self._runs = Runs()
        self._writer = RunWriter(self.topic, 0)
        create_topic(source, self.topic)
        create_topic(target, self.remote)

    @property
    def props(self) -> dict[str, str]:
        """What its connectors are configured with."""
        return {
            "source.cluster.alias": self.a,
            "target.cluster.alias": self.b,
            "source.cluster.bootstrap.servers": self.source,
            "target.cluster.bootstrap.servers": self.target,
            "topics": self.topic,
            "groups": f"{self.group}.*",
            "consumer.poll.timeout.ms": "50",
            "emit.checkpoints.interval.seconds": "0",
            "sync.group.offsets.interval.seconds": "0",
            "checkpoints.topic.replication.factor": "1",
            "heartbeats.topic.replication.factor": "1",
        }

    def write_syncs(self, *pairs: tuple[int, int]) -> None:
        """Write offset syncs as the source task does."""
        syncs = [OffsetSync(self.topic, 0, upstream, downstream) for upstream, downstream in pairs]
        _write(self.source, f"mm2-offset-syncs.{self.b}.internal", [(sync.key(), sync.value()) for sync in syncs])

    def write_runs(self, *added: tuple[int, int, int]) -> None:
        """Write runs as the source task does."""
        for run in added:
            self._runs.add(*run)
        _write(self.source, f"mm2-offset-runs.{self.b}.internal", list(self._writer.records(self._runs)))

    def commit(self, offset: int, group: str | None = None) -> None:
        """Have a group at the source get on."""
        commit(self.source, group or self.group, self.topic, offset)


def _write(bootstrap: str, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
    if topic not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics:
        create_topic(bootstrap, topic, **{"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in records:
        producer.produce(topic, value, key, partition=0)
    assert producer.flush(30) == 0


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """Commit an offset for a group that nobody uses."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def is_done() -> bool:
        place = TopicPartition(topic, 0, offset, "noted")
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [place])])
        (done,) = asked[group].result(30).topic_partitions
        # A broker that has only just started has no coordinator yet.
        return done.error is None

    wait_until("the offset is committed", is_done)


@pytest.fixture
def flow(bootstrap: str, second_broker: BrokerInfo) -> Flow:
    """A flow from the first cluster to the second."""
    return Flow(bootstrap, second_broker.bootstrap_servers)


def _checkpoints(records: Sequence[SourceRecord]) -> list[Checkpoint]:
    return [Checkpoint.decode(record.key, record.value) for record in records]


@contextmanager
def _running(flow: Flow, **props: str) -> Iterator[Callable[[Callable[[], bool]], list[Checkpoint]]]:
    """A task whose checkpoints are written to the target; what is yielded polls until something is so."""
    given = {**flow.props, **{name.replace("_", "."): value for name, value in props.items()}}
    topic = f"{flow.a}.checkpoints.internal"
    with running_source(MirrorCheckpointConnector, given, StoredOffsets()) as (run,):

        def until(is_so: Callable[[], bool]) -> list[Checkpoint]:
            first = len(run.records)

            def polled() -> bool:
                found = run.poll()
                _write(flow.target, topic, [(record.key, record.value) for record in found])
                return is_so()

            wait_until("it is so", polled)
            return _checkpoints(run.records[first:])

        yield until


def test_offsets_of_a_group_come_to_the_target_exactly_where_runs_tell_them(flow: Flow) -> None:
    flow.write_syncs((0, 0), (100, 100), (900, 900))
    flow.commit(450)
    with _running(flow, sync_group_offsets_enabled="true") as until:
        # By the syncs alone, of which few are kept, as MirrorMaker 2 has it.
        assert until(lambda: committed(flow.target, flow.group, flow.remote) == [1]) == [
            Checkpoint(flow.group, flow.remote, 0, 450, 1, "noted")
        ]
        flow.write_runs((0, 0, 1000))
        assert until(lambda: committed(flow.target, flow.group, flow.remote) == [450]) == [
            Checkpoint(flow.group, flow.remote, 0, 450, 450, "noted")
        ]
        # Rewound on purpose: a checkpoint says so, and the offset at the target is never moved back.
        flow.commit(30)
        flow.commit(77, f"{flow.group}-2")
        rewound = Checkpoint(flow.group, flow.remote, 0, 30, 30, "noted")
        found: list[Checkpoint] = []
        until(lambda: _last(flow) == rewound)
        flow.commit(600)
        found = until(lambda: committed(flow.target, flow.group, flow.remote) == [600])
        assert found == [Checkpoint(flow.group, flow.remote, 0, 600, 600, "noted")]


def _last(flow: Flow) -> Checkpoint:
    message = read_topic(flow.target, f"{flow.a}.checkpoints.internal")[-1]
    return Checkpoint.decode(message.key(), message.value())


def test_a_task_that_starts_again_moves_no_group_back(flow: Flow) -> None:
    flow.write_syncs((0, 0), (100, 100), (900, 900))
    flow.write_runs((0, 0, 1000))
    flow.commit(450)
    checkpoint = Checkpoint(flow.group, flow.remote, 0, 450, 450, "noted")
    _write(flow.target, f"{flow.a}.checkpoints.internal", [(b"broken", b""), (checkpoint.key(), checkpoint.value())])
    with _running(flow, sync_group_offsets_enabled="true") as until:
        # It is known already, so nothing is emitted; it is committed all the same.
        assert until(lambda: committed(flow.target, flow.group, flow.remote) == [450]) == []
    with MirrorClient({"bootstrap.servers": flow.target}) as client:
        places = {Partition(flow.remote, 0): RemoteOffset(450, "noted")}
        assert client.translate_offsets(flow.group, flow.a) == places
        assert client.remote_consumer_offsets(re.compile("group-.*"), flow.a) == {flow.group: places}
        assert client.translate_offsets("other", flow.a) == {}
        assert client.translate_offsets(flow.group, flow.b) == {}
        assert flow.remote in client.remote_topics(flow.a)
        assert f"{flow.a}.checkpoints.internal" in client.checkpoint_topics()
        # The alias that nobody has made a checkpoint for has got no topic by the question.
        assert f"{flow.b}.checkpoints.internal" not in client.checkpoint_topics()


def test_a_group_that_is_used_at_the_target_is_left_alone_and_told_of_once(
    flow: Flow, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    flow.write_runs((0, 0, 1000))
    flow.commit(450)
    consumer = Consumer({"bootstrap.servers": flow.target, "group.id": flow.group, "auto.offset.reset": "earliest"})
    consumer.subscribe([flow.remote])
    try:
        wait_until("the consumer has its partition", lambda: consumer.poll(0.1) or consumer.assignment())
        with _running(flow, sync_group_offsets_enabled="true") as until:
            until(lambda: "it has members at" in caplog.text)
            rounds = iter(range(3))
            until(lambda: next(rounds, None) is None)
            assert caplog.text.count("it has members at") == 1
            assert committed(flow.target, flow.group, flow.remote) == [-1001]
            consumer.close()
            until(lambda: committed(flow.target, flow.group, flow.remote) == [450])
            assert "are committed at" in caplog.text
    finally:
        consumer.close()


def test_a_group_that_is_new_gets_a_task(flow: Flow) -> None:
    props = {**flow.props, "name": "c", "connector.class": "c", "refresh.groups.interval.seconds": "0"}
    context = ConnectorTestContext(StoredOffsets())
    connector = MirrorCheckpointConnector(MirrorCheckpointConnector.config_class.parse(props), context)
    connector.start()
    try:
        assert connector.task_configs(2) == []
        flow.commit(1)
        wait_until("the group is found", lambda: context.reconfigurations)
        assert [task["task.assigned.groups"] for task in connector.task_configs(2)] == [flow.group]
        flow.commit(1, f"{flow.group}-2")
        wait_until("the other group is found", lambda: context.reconfigurations > 1)
        assert [task["task.assigned.groups"] for task in connector.task_configs(1)] == [f"{flow.group},{flow.group}-2"]
    finally:
        context.stop()
        connector.stop()


def test_heartbeats_are_written_to_a_compacted_topic(second_broker: BrokerInfo, topic: str) -> None:
    props = {
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "target.cluster.bootstrap.servers": second_broker.bootstrap_servers,
        "emit.heartbeats.interval.seconds": "0",
        "heartbeats.topic.replication.factor": "1",
        "replication.policy.class": "DefaultReplicationPolicy",
    }
    records = run_source(MirrorHeartbeatConnector, props, until=lambda found: len(found) >= 2)
    for record in records:
        heartbeat = Heartbeat.decode(record.key, record.value)
        assert heartbeat == Heartbeat("A", "B", record.timestamp or 0)
        assert (record.topic, record.partition) == ("heartbeats", 0)
        assert list(record.source_partition.items()) == [("sourceClusterAlias", "A"), ("targetClusterAlias", "B")]
    admin = AdminClient({"bootstrap.servers": second_broker.bootstrap_servers})
    asked = ConfigResource(ConfigResource.Type.TOPIC, "heartbeats")
    assert admin.describe_configs([asked])[asked].result(30)["cleanup.policy"].value == "compact"


def test_too_many_replicas_fail_with_the_key_to_change(flow: Flow) -> None:
    props = {**flow.props, "name": "c", "connector.class": "c", "checkpoints.topic.replication.factor": "3"}
    context = ConnectorTestContext(StoredOffsets())
    connector = MirrorCheckpointConnector(MirrorCheckpointConnector.config_class.parse(props), context)
    connector.start()
    try:
        wait_until("the connector has failed", lambda: context.errors)
    finally:
        context.stop()
        connector.stop()
    assert re.search(rf"checkpoints\.topic\.replication\.factor.*{flow.b} has fewer brokers", str(context.errors[0]))


def _sluice(*words: str) -> Result:
    return CliRunner().invoke(mirror, list(words))


def test_a_group_moves_over_and_comes_home_with_what_it_has_read(flow: Flow, tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    props = {
        "clusters": f"{flow.a}, {flow.b}",
        f"{flow.a}.bootstrap.servers": flow.source,
        f"{flow.b}.bootstrap.servers": flow.target,
        f"{flow.a}->{flow.b}.enabled": "true",
        "topics": flow.topic,
    }
    file.write_text("".join(f"{key} = {value}\n" for key, value in props.items()))
    # Ten offsets of the source have no record, such as those of aborted transactions.
    flow.write_runs((0, 0, 300), (310, 300, 190))
    flow.commit(320)

    planned = _sluice("failover", str(file), flow.group, "--dry-run", "-o", "json")
    assert planned.exit_code == 3, planned.output
    assert json.loads(planned.stdout) == [
        {
            "topic": flow.topic,
            "partition": 0,
            "offset": 320,
            "topic_there": flow.remote,
            "offset_there": 310,
            "read_again": 0,
            "commit": True,
            "remark": "exact",
        }
    ]
    assert committed(flow.target, flow.group, flow.remote) == [-1001]
    done = _sluice("failover", str(file), flow.group)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].split() == [flow.topic, "0", "320", flow.remote, "310", "0", "exact"]
    assert committed(flow.target, flow.group, flow.remote) == [310]

    commit(flow.target, flow.group, flow.remote, 490)
    back = _sluice("failback", str(file), flow.group, f"{flow.a}->{flow.b}")
    assert back.exit_code == 0, back.output
    assert committed(flow.source, flow.group, flow.topic) == [500]
    again = _sluice("failback", str(file), flow.group, "--dry-run")
    assert again.exit_code == 0
    assert "is there already" in again.stdout


def test_a_group_moves_without_its_source_by_the_last_checkpoint(flow: Flow, tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    props = {
        "clusters": f"{flow.a}, {flow.b}",
        f"{flow.a}.bootstrap.servers": "127.0.0.1:1",
        f"{flow.b}.bootstrap.servers": flow.target,
        f"{flow.a}->{flow.b}.enabled": "true",
        "admin.timeout.ms": "1000",
    }
    file.write_text("".join(f"{key} = {value}\n" for key, value in props.items()))
    checkpoint = Checkpoint(flow.group, flow.remote, 0, 320, 310, "noted")
    _write(flow.target, f"{flow.a}.checkpoints.internal", [(checkpoint.key(), checkpoint.value())])
    away = _sluice("failover", str(file), flow.group)
    assert away.exit_code == 1
    assert "--from-checkpoints" in away.output
    done = _sluice("failover", str(file), flow.group, "--from-checkpoints")
    assert done.exit_code == 0, done.output
    assert "by the last checkpoint" in done.stdout
    assert committed(flow.target, flow.group, flow.remote) == [310]
    other = _sluice("failover", str(file), "other", "--from-checkpoints")
    assert "has committed no offset" in other.stdout
