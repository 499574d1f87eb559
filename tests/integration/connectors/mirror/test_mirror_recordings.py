"""What MirrorMaker 2 left on two clusters, laid on two brokers: ours goes on with it, and makes the same of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from connect.data import SourceRecord
from connect.data import TopicPartition as Partition
from connect.testing import StoredOffsets, run_source, running_source
from connectors.mirror import MirrorCheckpointConnector, MirrorClient, MirrorSourceConnector, RemoteOffset
from connectors.mirror.policies import replication_policy
from connectors.mirror.records import Checkpoint
from equipment.brokers.topics import admin_client, create_topic, ordered_producer, produce
from equipment.mirror_recordings import Recorded, dumped_topics
from equipment.proofs import thorough
from equipment.waiting import wait_until
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

AGAIN: Final = "again-"
"""What the names of groups begin with that nobody has translated."""

SHORTENED: Final = ("active_active",)
"""Where the heartbeats of the two ends are not the same ones."""

Topics = Mapping[str, Mapping[int, list[Recorded]]]


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of a recording, whose clusters have all that lay there; ``props`` configure the same flow."""

    source: str
    at_source: Topics
    at_target: Topics
    props: dict[str, str]

    @property
    def checkpoints(self) -> str:
        """The topic of its checkpoints."""
        return f"{self.source}.checkpoints.internal"

    @property
    def mirrored(self) -> list[str]:
        """The topics that MirrorMaker has made at the target."""
        prefix = f"{self.source}."
        return sorted(topic for topic in self.at_target if topic.startswith(prefix) and topic != self.checkpoints)

    def committed(self) -> dict[str, dict[Partition, int]]:
        """What each group had committed at the source, as its last checkpoints say."""
        places: dict[str, dict[Partition, int]] = {}
        for each in self.at_target[self.checkpoints][0]:
            assert each.decoded is not None
            place = Partition(each.decoded["topic"].removeprefix(f"{self.source}."), each.decoded["partition"])
            places.setdefault(each.decoded["group"], {})[place] = each.decoded["upstream"]
        return places


@pytest.fixture(scope="module")
def source(broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of this file alone: the mirrors of other tests make topics of the names that were recorded."""
    with EmbeddedBroker(BrokerConfig(folder=tmp_path_factory.mktemp("source"), port=0)).lease() as info:
        yield info.bootstrap_servers


@pytest.fixture(scope="module")
def target(broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another one."""
    with EmbeddedBroker(BrokerConfig(folder=tmp_path_factory.mktemp("target"), port=0)).lease() as info:
        yield info.bootstrap_servers


@pytest.fixture(
    scope="module",
    params=[
        ("one_way", "A", "B"),
        ("active_active", "A", "B"),
        *thorough(("active_active", "B", "A"), ("dedicated", "A", "B")),
    ],
    ids=lambda param: f"{param[0]}-{param[1]}-{param[2]}",
)
def flow(request: pytest.FixtureRequest, source: str, target: str) -> Iterator[Flow]:
    """A recording, laid on two clusters, and afterwards taken away."""
    name, source_alias, target_alias = request.param
    props = {
        "source.cluster.alias": source_alias,
        "target.cluster.alias": target_alias,
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "consumer.poll.timeout.ms": "50",
        "emit.checkpoints.interval.seconds": "0",
    }
    at_source, at_target = dumped_topics(name, source_alias), dumped_topics(name, target_alias)
    for topics, topic in ((at_source, "heartbeats"), (at_target, f"{source_alias}.heartbeats")):
        if name in SHORTENED:
            del topics[topic]
    for place in {place for places in Flow(source_alias, {}, at_target, {}).committed().values() for place in places}:
        # Some recordings have only the topics of the mirror itself.
        at_source.setdefault(place.topic, {}).setdefault(place.partition, [])
    props["topics"] = ",".join(topic.replace(".", r"\.") for topic in at_source)
    found = Flow(source_alias, at_source, at_target, props)
    laid = {topic: at_target[topic] for topic in (*found.mirrored, found.checkpoints)}
    _lay(source, at_source)
    _lay(target, laid)
    for group, places in found.committed().items():
        _commit(source, f"{AGAIN}{group}", places)
        _commit(source, group, places)
    yield found
    policy = replication_policy(props)
    _take_away(source, {*at_source, policy.offset_runs_topic(target_alias), policy.offset_syncs_topic(target_alias)})
    _take_away(target, set(laid))


one_way = pytest.mark.parametrize("flow", [("one_way", "A", "B")], indirect=True, ids=["one_way"], scope="module")


def _lay(bootstrap: str, topics: Mapping[str, Mapping[int, Iterable[Recorded]]]) -> None:
    producer = ordered_producer(bootstrap)
    for topic, partitions in topics.items():
        create_topic(bootstrap, topic, max(partitions) + 1, **{"retention.ms": "-1"})
        for partition, records in partitions.items():
            for each in records:
                time, headers = each.timestamp, list(each.headers)
                producer.produce(topic, each.value, each.key, partition, timestamp=time, headers=headers)
    assert producer.flush(30) == 0


def _take_away(bootstrap: str, topics: set[str]) -> None:
    admin = admin_client(bootstrap)
    there = topics & admin.list_topics(timeout=30).topics.keys()
    for future in (admin.delete_topics(sorted(there)) if there else {}).values():
        future.result(30)
    wait_until("the topics are gone", lambda: not topics & admin.list_topics(timeout=30).topics.keys())


def _commit(bootstrap: str, group: str, places: Mapping[Partition, int]) -> None:
    admin = admin_client(bootstrap)

    def is_done() -> bool:
        given = [TopicPartition(*place, offset) for place, offset in places.items()]
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, given)])
        return all(each.error is None for each in asked[group].result(30).topic_partitions)

    wait_until("the offsets are committed", is_done)


def _stored(flow: Flow, connector: str) -> dict[str, dict[str, Any]]:
    """The last source offsets of one connector, by the bytes of their partitions after its name."""
    kept = {}
    for record in chain.from_iterable(flow.at_target["connect-b-offsets"].values()):
        assert record.key is not None
        assert record.value is not None
        if record.key.startswith(f'["{connector}",'.encode()):
            kept[record.key.decode().removeprefix(f'["{connector}",').removesuffix("]")] = json.loads(record.value)
    return kept


def _shape(record: SourceRecord) -> tuple[Any, ...]:
    headers = tuple((header.key, header.value) for header in record.headers)
    return record.topic, record.partition, record.key, record.value, headers, record.timestamp


def test_ours_makes_the_same_records_and_source_offsets(flow: Flow) -> None:
    expected = [
        (topic, partition, each.key, each.value, each.headers, each.timestamp)
        for topic in flow.mirrored
        for partition, records in sorted(flow.at_target[topic].items())
        for each in records
    ]
    offsets = StoredOffsets()
    found = run_source(
        MirrorSourceConnector, flow.props, offsets=offsets, until=lambda records: len(records) >= len(expected)
    )
    assert sorted(map(_shape, found), key=lambda shape: shape[:2]) == expected
    if "connect-b-offsets" in flow.at_target:
        kept = {json.dumps(partition, separators=(",", ":")): offset for partition, offset in offsets.items()}
        assert kept == _stored(flow, "src")


@one_way
def test_ours_goes_on_from_java_s_source_offsets(flow: Flow) -> None:
    # The topic of runs is there or not; MirrorMaker has written none.
    offsets = StoredOffsets((json.loads(place), offset) for place, offset in _stored(flow, "src").items())
    with running_source(MirrorSourceConnector, flow.props, offsets, max_tasks=2) as tasks:
        produce(flow.props["source.cluster.bootstrap.servers"], "x.replica", [b"left out"])
        produce(flow.props["source.cluster.bootstrap.servers"], "customers", [b"new"])
        wait_until("the new record comes", lambda: [found for task in tasks for found in task.poll()])
        assert [each.value for task in tasks for each in task.records] == [b"new"]
        assert offsets.offset({"cluster": "A", "partition": 0, "topic": "customers"}) == {"offset": 30}


@one_way
def test_another_alias_is_another_flow_from_the_beginning(flow: Flow) -> None:
    # As with MirrorMaker, whose offsets have the alias in their keys.
    offsets = StoredOffsets((json.loads(place), offset) for place, offset in _stored(flow, "src").items())
    before = offsets.items()
    props = {**flow.props, "source.cluster.alias": "other", "topics": "customers"}
    found = run_source(MirrorSourceConnector, props, offsets=offsets, until=lambda records: len(records) >= 30)
    customers = flow.at_source["customers"][0]
    assert {record.topic for record in found} == {"other.customers"}
    assert [record.value for record in found[: len(customers)]] == [each.value for each in customers]
    assert [item for item in offsets.items() if item[0]["cluster"] == "A"] == before
    admin = admin_client(flow.props["target.cluster.bootstrap.servers"])
    admin.delete_topics(["other.customers"])["other.customers"].result(30)


def test_ours_translates_by_java_s_syncs_as_java_did(flow: Flow) -> None:
    last: dict[tuple[str, str, int], Checkpoint] = {}
    for record in flow.at_target[flow.checkpoints][0]:
        each = Checkpoint.decode(record.key, record.value)
        last[each.group, each.topic, each.partition] = each
    groups = ",".join(f"{AGAIN}{group}" for group in flow.committed())
    found = run_source(
        MirrorCheckpointConnector, {**flow.props, "groups": groups}, until=lambda records: len(records) >= len(last)
    )
    # But for the names of the groups they are the same bytes.
    names = {group: group.removeprefix(AGAIN) for group in groups.split(",")}
    mine = [Checkpoint.decode(record.key, record.value) for record in found]
    renamed = [Checkpoint(names[each.group], *_rest(each)) for each in mine]
    assert {(each.key(), each.value()) for each in renamed} == {(each.key(), each.value()) for each in last.values()}
    assert len(mine) == len(last)


@one_way
def test_what_java_has_told_of_is_not_told_again(flow: Flow) -> None:
    # Only the group that has moved on since is.
    source = flow.props["source.cluster.bootstrap.servers"]
    _commit(source, "g-remote", {Partition("C.remote", 0): 0})
    taken_over = run_source(MirrorCheckpointConnector, {**flow.props, "groups": "g1,g2,g-remote"}, until=bool)
    assert [Checkpoint.decode(record.key, record.value) for record in taken_over] == [
        Checkpoint("g-remote", "A.C.remote", 0, 0, 0)
    ]


def _rest(checkpoint: Checkpoint) -> tuple[str, int, int, int, str]:
    return checkpoint.topic, checkpoint.partition, checkpoint.upstream, checkpoint.downstream, checkpoint.metadata


@one_way
def test_the_client_reads_java_s_checkpoints(flow: Flow) -> None:
    with MirrorClient({"bootstrap.servers": flow.props["target.cluster.bootstrap.servers"]}) as client:
        # As RemoteClusterUtils answered then, in scenario.jsonl.
        assert client.translate_offsets("g1", "A") == {
            Partition("A.orders", 0): RemoteOffset(1),
            Partition("A.orders", 1): RemoteOffset(1),
            Partition("A.orders", 2): RemoteOffset(41),
            Partition("A.customers", 0): RemoteOffset(30),
        }
        assert client.translate_offsets("unknown", "A") == {}
        assert set(flow.mirrored) <= client.remote_topics("A")
        assert flow.checkpoints in client.checkpoint_topics()
