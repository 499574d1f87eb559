"""Checkpoints, heartbeats and the client of mirrors between two clusters. Syncs and runs are written here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import ConfigResource

from connect.data import SourceRecord
from connect.data import TopicPartition as Partition
from connect.testing import ConnectorTestContext, StoredOffsets, run_source, running_source
from connectors.mirror import MirrorCheckpointConnector, MirrorClient, MirrorHeartbeatConnector, RemoteOffset
from connectors.mirror.records import Checkpoint, Heartbeat
from equipment.brokers.proxy import Proxy
from equipment.brokers.topics import admin_client, committed, create_topic, produce, read_topic
from equipment.brokers.written_flow import WrittenFlow, commit, write
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until
from worker.cli.mirror.command import mirror
from worker.embedded.broker.server import BrokerInfo
from worker.embedded.ports import any_port
from worker.messages import messages


@pytest.fixture
def flow(bootstrap: str, second_broker: BrokerInfo) -> WrittenFlow:
    """A flow from the first cluster to the second."""
    return WrittenFlow(bootstrap, second_broker.bootstrap_servers)


def _checkpoints(records: Sequence[SourceRecord]) -> list[Checkpoint]:
    return [Checkpoint.decode(record.key, record.value) for record in records]


@contextmanager
def _running(flow: WrittenFlow, **props: str) -> Iterator[Callable[[Callable[[], bool]], list[Checkpoint]]]:
    """A task whose checkpoints are written to the target; what is yielded polls until something is so."""
    given = {**flow.props, **{name.replace("_", "."): value for name, value in props.items()}}
    topic = f"{flow.a}.checkpoints.internal"
    with running_source(MirrorCheckpointConnector, given, StoredOffsets()) as (run,):

        def until(is_so: Callable[[], bool]) -> list[Checkpoint]:
            first = len(run.records)

            def polled() -> bool:
                found = run.poll()
                write(flow.target, topic, [(record.key, record.value) for record in found])
                return is_so()

            wait_until("it is so", polled)
            return _checkpoints(run.records[first:])

        yield until


def test_offsets_of_a_group_come_to_the_target_exactly_where_runs_tell_them(flow: WrittenFlow) -> None:
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


def test_the_offset_of_an_empty_partition_comes_to_the_target(flow: WrittenFlow, tmp_path: Path) -> None:
    """A group that had none there would begin at the end (latest), and skip what arrived before it started."""
    flow.commit(0)
    with _running(flow, sync_group_offsets_enabled="true") as until:
        found = until(lambda: committed(flow.target, flow.group, flow.remote) == [0])
    assert found == [Checkpoint(flow.group, flow.remote, 0, 0, 0, "noted")]
    moved = _sluice("failover", str(_file(tmp_path, flow)), flow.group, "-o", "json")
    assert moved.exit_code == 0, moved.output
    assert [(row["offset_there"], row["remark"]) for row in json.loads(moved.stdout)] == [(0, "already there")]


def test_the_offset_of_a_partition_that_retention_has_emptied_comes_to_the_target(
    flow: WrittenFlow, tmp_path: Path
) -> None:
    produce(flow.source, flow.topic, [b"a", b"b", b"c"])
    admin = admin_client(flow.source)
    place = TopicPartition(flow.topic, 0, 3)
    assert admin.delete_records([place])[place].result(30).low_watermark == 3
    flow.commit(3)
    moved = _sluice("failover", str(_file(tmp_path, flow)), flow.group)
    assert moved.exit_code == 0, moved.output
    assert committed(flow.target, flow.group, flow.remote) == [0]
    commit(flow.target, flow.group, flow.remote, 0)
    assert _sluice("failback", str(_file(tmp_path, flow)), flow.group, f"{flow.a}->{flow.b}").exit_code == 0
    assert committed(flow.source, flow.group, flow.topic) == [3]


def test_a_failover_says_where_it_does_not_know_how_a_group_continues(flow: WrittenFlow, tmp_path: Path) -> None:
    produce(flow.source, flow.topic, [b"a", b"b"])
    produce(flow.target, flow.remote, [b"a", b"b"])
    flow.commit(1)
    for more in ((), ("--dry-run",)):
        done = _sluice("failover", str(_file(tmp_path, flow)), flow.group, *more)
        assert done.exit_code == 1
        assert f"It is unknown where these groups continue: {flow.group} in {flow.topic}-0." in done.output
    assert committed(flow.target, flow.group, flow.remote) == [-1001]


def _last(flow: WrittenFlow) -> Checkpoint:
    message = read_topic(flow.target, f"{flow.a}.checkpoints.internal")[-1]
    return Checkpoint.decode(message.key(), message.value())


def test_a_task_that_starts_again_moves_no_group_back(flow: WrittenFlow) -> None:
    flow.write_syncs((0, 0), (100, 100), (900, 900))
    flow.write_runs((0, 0, 1000))
    flow.commit(450)
    checkpoint = Checkpoint(flow.group, flow.remote, 0, 450, 450, "noted")
    write(flow.target, f"{flow.a}.checkpoints.internal", [(b"broken", b""), (checkpoint.key(), checkpoint.value())])
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
    flow: WrittenFlow, caplog: pytest.LogCaptureFixture
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


def test_a_group_that_is_new_gets_a_task(flow: WrittenFlow) -> None:
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
    admin = admin_client(second_broker.bootstrap_servers)
    asked = ConfigResource(ConfigResource.Type.TOPIC, "heartbeats")
    assert admin.describe_configs([asked])[asked].result(30)["cleanup.policy"].value == "compact"


def test_too_many_replicas_fail_with_the_key_to_change(flow: WrittenFlow) -> None:
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


def test_a_group_moves_over_and_comes_home_with_what_it_has_read(flow: WrittenFlow, tmp_path: Path) -> None:
    file = _file(tmp_path, flow)
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
    assert "already there" in again.stdout


def test_a_group_moves_without_its_source_by_the_last_checkpoint(flow: WrittenFlow, tmp_path: Path) -> None:
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
    write(flow.target, f"{flow.a}.checkpoints.internal", [(checkpoint.key(), checkpoint.value())])
    away = _sluice("failover", str(file), flow.group)
    assert away.exit_code == 1
    assert "--from-checkpoints" in away.output
    done = _sluice("failover", str(file), flow.group, "--from-checkpoints")
    assert done.exit_code == 0, done.output
    assert "by the last checkpoint" in done.stdout
    assert committed(flow.target, flow.group, flow.remote) == [310]
    other = _sluice("failover", str(file), "other", "--from-checkpoints")
    assert "has committed no offset" in other.stdout


def test_groups_of_the_new_protocol_are_translated_and_left_alone_while_they_have_members(
    flow: WrittenFlow, tmp_path: Path
) -> None:
    flow.write_runs((0, 0, 1000))
    settings = {"group.id": flow.group, "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    with closing(Consumer({**settings, "bootstrap.servers": flow.source})) as reading:
        reading.subscribe([flow.topic])
        wait_until("the consumer has its partition", lambda: reading.poll(0.1) or reading.assignment())
        reading.commit(offsets=[TopicPartition(flow.topic, 0, 450)], asynchronous=False)
        early = _sluice("failover", str(_file(tmp_path, flow)), flow.group)
        assert early.exit_code == 1
        assert f"has members at {flow.a}. Stop them first" in early.output
        with _running(flow, sync_group_offsets_enabled="true") as until:
            until(lambda: committed(flow.target, flow.group, flow.remote) == [450])
    commit(flow.source, flow.group, flow.topic, 460)
    with closing(Consumer({**settings, "bootstrap.servers": flow.target})) as reading:
        reading.subscribe([flow.remote])
        wait_until("the consumer has its partition there", lambda: reading.poll(0.1) or reading.assignment())
        refused = _sluice("failover", str(_file(tmp_path, flow)), flow.group)
        assert refused.exit_code == 1
        assert "has members at" in refused.output
        assert committed(flow.target, flow.group, flow.remote) == [450]


def test_a_task_waits_for_a_source_that_is_away_tells_what_a_failover_would_read_again_and_takes_new_groups(
    flow: WrittenFlow, caplog: pytest.LogCaptureFixture
) -> None:
    flow.write_syncs((0, 0), (100, 100))
    flow.commit(150)
    flow.commit(100, f"{flow.group}-2")
    create_topic(flow.target, f"{flow.a}.checkpoints.internal", **{"cleanup.policy": "compact"})
    port = any_port(taken=0)
    props = {
        **flow.props,
        "source.cluster.bootstrap.servers": f"127.0.0.1:{port}",
        "task.assigned.groups": f"{flow.group},{flow.group}-2",
        "task.index": "0",
        "name": "c",
        "connector.class": "MirrorCheckpointConnector",
        "key.converter": "ByteArrayConverter",
        "value.converter": "ByteArrayConverter",
        "admin.timeout.ms": "2000",
    }
    task = RunningTask(flow.target, props)
    with ExitStack() as stack:
        stack.callback(task.close)
        wait_until("the task tells that it is away", lambda: f"The cluster {flow.a} " in caplog.text)
        stack.callback(Proxy({port: int(flow.source.rpartition(":")[2])}).close)
        wait_until("the checkpoints come", lambda: _told(task) == {flow.group: 49, f"{flow.group}-2": 0})
        flow.write_runs((0, 0, 1000))
        wait_until("runs tell more", lambda: _last(flow) == _exact(flow, flow.group, 150))
        third = f"{flow.group}-3"
        flow.commit(30, third)
        groups = ",".join((flow.group, f"{flow.group}-2", third))
        task.send(messages.TakeConfig({**task.config, "task.assigned.groups": groups}))
        wait_until("the checkpoint of a new group comes", lambda: _last(flow) == _exact(flow, third, 30))
        wait_until("it is told of", lambda: _told(task) == {flow.group: 0, f"{flow.group}-2": 0, third: 0})
        task.stop()
        # The task has gone on: nothing was emitted twice, and it has started once.
        assert [each.upstream for each in _emitted(flow)] == [150, 100, 150, 30]
        assert len(task.seen(messages.Started)) == 1


def _exact(flow: WrittenFlow, group: str, offset: int) -> Checkpoint:
    """Of an offset that is the same at both ends."""
    return Checkpoint(group, flow.remote, 0, offset, offset, "noted")


def _told(task: RunningTask) -> dict[str, float]:
    """What each group would read again, as the task has measured it."""
    told = (each for report in task.seen(messages.Metrics) for each in report.own)
    return {labels[-1]: value for name, labels, _, value in told if name == "mirror_failover_read_again"}


def _emitted(flow: WrittenFlow) -> list[Checkpoint]:
    found = read_topic(flow.target, f"{flow.a}.checkpoints.internal")
    return [Checkpoint.decode(message.key(), message.value()) for message in found]


def _file(folder: Path, flow: WrittenFlow) -> Path:
    """A file of this flow alone."""
    file = folder / "mm2.properties"
    props = {
        "clusters": f"{flow.a}, {flow.b}",
        f"{flow.a}.bootstrap.servers": flow.source,
        f"{flow.b}.bootstrap.servers": flow.target,
        f"{flow.a}->{flow.b}.enabled": "true",
        "topics": flow.topic,
    }
    file.write_text("".join(f"{key} = {value}\n" for key, value in props.items()))
    return file
