"""What MirrorMaker 2 left on two clusters, laid on two brokers: ours goes on with it, and makes the same of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from connect.data import SourceRecord
from connect.data import TopicPartition as Partition
from connect.testing import StoredOffsets, run_source, running_source
from connectors.mirror import MirrorCheckpointConnector, MirrorClient, MirrorSourceConnector, RemoteOffset
from connectors.mirror.records import Checkpoint
from equipment.brokers.topics import create_topic, produce
from equipment.mirror_recordings import Recorded, dumped_topics
from equipment.waiting import wait_until
from worker.embedded.broker.server import BrokerInfo

AT_SOURCE: Final = dumped_topics("one_way", "A")
AT_TARGET: Final = dumped_topics("one_way", "B")
CHECKPOINTS: Final = "A.checkpoints.internal"
MIRRORED: Final = sorted(topic for topic in AT_TARGET if topic.startswith("A.") and topic != CHECKPOINTS)
AGAIN: Final = "again-"
"""What the names of groups begin with that nobody has translated."""


@pytest.fixture(scope="module")
def props(second_broker: BrokerInfo, third_broker: BrokerInfo) -> dict[str, str]:
    """A flow as the recorded one; its clusters have all that lay there."""
    source, target = third_broker.bootstrap_servers, second_broker.bootstrap_servers
    _lay(source, AT_SOURCE)
    _lay(target, {topic: AT_TARGET[topic] for topic in (*MIRRORED, CHECKPOINTS)})
    for group, places in _committed().items():
        _commit(source, f"{AGAIN}{group}", places)
        _commit(source, group, places)
    return {
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "topics": ",".join(topic.replace(".", r"\.") for topic in AT_SOURCE),
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "consumer.poll.timeout.ms": "50",
        "emit.checkpoints.interval.seconds": "0",
    }


def _lay(bootstrap: str, topics: Mapping[str, Mapping[int, Iterable[Recorded]]]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for topic, partitions in topics.items():
        create_topic(bootstrap, topic, max(partitions) + 1, **{"retention.ms": "-1"})
        for partition, records in partitions.items():
            for each in records:
                time, headers = each.timestamp, list(each.headers)
                producer.produce(topic, each.value, each.key, partition, timestamp=time, headers=headers)
    assert producer.flush(30) == 0


def _committed() -> dict[str, dict[Partition, int]]:
    """What each group had committed at the source, as its checkpoints say."""
    places: dict[str, dict[Partition, int]] = {}
    for each in AT_TARGET[CHECKPOINTS][0]:
        assert each.decoded is not None
        place = Partition(each.decoded["topic"].removeprefix("A."), each.decoded["partition"])
        places.setdefault(each.decoded["group"], {})[place] = each.decoded["upstream"]
    return places


def _commit(bootstrap: str, group: str, places: Mapping[Partition, int]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def is_done() -> bool:
        given = [TopicPartition(*place, offset) for place, offset in places.items()]
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, given)])
        return all(each.error is None for each in asked[group].result(30).topic_partitions)

    wait_until("the offsets are committed", is_done)


def _stored(connector: str) -> dict[str, dict[str, Any]]:
    """The last source offsets of one connector, by the bytes of their partitions after its name."""
    kept = {}
    for record in chain.from_iterable(AT_TARGET["connect-b-offsets"].values()):
        assert record.key is not None
        assert record.value is not None
        if record.key.startswith(f'["{connector}",'.encode()):
            kept[record.key.decode().removeprefix(f'["{connector}",').removesuffix("]")] = json.loads(record.value)
    return kept


def _shape(record: SourceRecord) -> tuple[Any, ...]:
    headers = tuple((header.key, header.value) for header in record.headers)
    return record.topic, record.partition, record.key, record.value, headers, record.timestamp


def test_ours_makes_the_same_records_and_source_offsets(props: dict[str, str]) -> None:
    expected = [
        (topic, partition, each.key, each.value, each.headers, each.timestamp)
        for topic in MIRRORED
        for partition, records in sorted(AT_TARGET[topic].items())
        for each in records
    ]
    offsets = StoredOffsets()
    found = run_source(
        MirrorSourceConnector, props, offsets=offsets, until=lambda records: len(records) >= len(expected)
    )
    assert sorted(map(_shape, found), key=lambda shape: shape[:2]) == expected
    kept = {json.dumps(partition, separators=(",", ":")): offset for partition, offset in offsets.items()}
    assert kept == _stored("src")


def test_ours_goes_on_from_java_s_source_offsets(props: dict[str, str]) -> None:
    # The topic of runs is there or not; MirrorMaker has written none.
    offsets = StoredOffsets((json.loads(place), offset) for place, offset in _stored("src").items())
    with running_source(MirrorSourceConnector, props, offsets, max_tasks=2) as tasks:
        produce(props["source.cluster.bootstrap.servers"], "x.replica", [b"left out"])
        produce(props["source.cluster.bootstrap.servers"], "customers", [b"new"])
        wait_until("the new record comes", lambda: [found for task in tasks for found in task.poll()])
        assert [each.value for task in tasks for each in task.records] == [b"new"]
        assert offsets.offset({"cluster": "A", "partition": 0, "topic": "customers"}) == {"offset": 30}


def test_ours_translates_by_java_s_syncs_as_java_did_and_knows_its_checkpoints(props: dict[str, str]) -> None:
    last: dict[tuple[str, str, int], Checkpoint] = {}
    for record in AT_TARGET[CHECKPOINTS][0]:
        each = Checkpoint.decode(record.key, record.value)
        last[each.group, each.topic, each.partition] = each
    groups = ",".join(f"{AGAIN}{group}" for group in _committed())
    found = run_source(
        MirrorCheckpointConnector, {**props, "groups": groups}, until=lambda records: len(records) >= len(last)
    )
    # But for the names of the groups they are the same bytes.
    names = {group: group.removeprefix(AGAIN) for group in groups.split(",")}
    mine = [Checkpoint.decode(record.key, record.value) for record in found]
    renamed = [Checkpoint(names[each.group], *_rest(each)) for each in mine]
    assert {(each.key(), each.value()) for each in renamed} == {(each.key(), each.value()) for each in last.values()}
    assert len(mine) == len(last)
    # What Java has told of is not told again: only the group that has moved on since is.
    source = props["source.cluster.bootstrap.servers"]
    _commit(source, "g-remote", {Partition("C.remote", 0): 0})
    taken_over = run_source(MirrorCheckpointConnector, {**props, "groups": "g1,g2,g-remote"}, until=bool)
    assert [Checkpoint.decode(record.key, record.value) for record in taken_over] == [
        Checkpoint("g-remote", "A.C.remote", 0, 0, 0)
    ]


def _rest(checkpoint: Checkpoint) -> tuple[str, int, int, int, str]:
    return checkpoint.topic, checkpoint.partition, checkpoint.upstream, checkpoint.downstream, checkpoint.metadata


def test_the_client_reads_java_s_checkpoints(props: dict[str, str]) -> None:
    with MirrorClient({"bootstrap.servers": props["target.cluster.bootstrap.servers"]}) as client:
        # As RemoteClusterUtils answered then, in scenario.jsonl.
        assert client.translate_offsets("g1", "A") == {
            Partition("A.orders", 0): RemoteOffset(1),
            Partition("A.orders", 1): RemoteOffset(1),
            Partition("A.orders", 2): RemoteOffset(41),
            Partition("A.customers", 0): RemoteOffset(30),
        }
        assert client.translate_offsets("unknown", "A") == {}
        assert set(MIRRORED) <= client.remote_topics("A")
        assert CHECKPOINTS in client.checkpoint_topics()
