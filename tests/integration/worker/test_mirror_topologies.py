"""``sluice mirror`` between three clusters: a hub with two spokes, one of which is active on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition

from connectors.mirror import MirrorClient
from equipment.brokers.topics import admin_client, committed, create_topic, produce, read_topic
from equipment.waiting import wait_until
from equipment.workers.mirror_node import MirrorNode
from worker.cli.mirror.command import mirror
from worker.embedded.broker.server import BrokerInfo
from worker.formatting import utc_text

SECONDS = 120.0


class Clusters:
    """The clusters, whose aliases and topic no other test uses, and the driver of the flows between them."""

    def __init__(self, folder: Path, hub: str, north: str, south: str) -> None:
        unique = uuid4().hex[:6]
        self.topic = f"orders-{unique}"
        self.hub, self.north, self.south = f"hub{unique}", f"north{unique}", f"south{unique}"
        self.at = {self.hub: hub, self.north: north, self.south: south}
        for bootstrap in self.at.values():
            create_topic(bootstrap, self.topic, 2)
        flows = [(self.north, self.hub), (self.hub, self.north), (self.south, self.hub)]
        self._folder = folder
        self.props = {
            "clusters": ", ".join(self.at),
            **{f"{alias}.bootstrap.servers": bootstrap for alias, bootstrap in self.at.items()},
            **{f"{source}->{target}.enabled": "true" for source, target in flows},
            f"{self.south}->{self.hub}.groups": f"billing-{unique}",
            "topics": rf".*orders-{unique}",
            "groups": "none",
            "refresh.topics.interval.seconds": "1",
            "refresh.groups.interval.seconds": "1",
            "emit.checkpoints.interval.seconds": "1",
            "sync.topic.acls.enabled": "false",
            "replication.factor": "1",
            **{f"{kind}.topic.replication.factor": "1" for kind in ("offset-syncs", "checkpoints", "heartbeats")},
            **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
            **{f"{kind}.storage.partitions": "1" for kind in ("offset", "status")},
            f"{self.hub}.exactly.once.source.support": "enabled",
        }
        self.group = f"billing-{unique}"

    def start(self) -> MirrorNode:
        """Start the driver."""
        return MirrorNode(self._folder / "driver", self.props)

    def values(self, alias: str, topic: str) -> list[bytes]:
        """What a topic has, and nothing if there is none."""
        bootstrap = self.at[alias]
        known = admin_client(bootstrap).list_topics(timeout=30).topics
        return [message.value() for message in read_topic(bootstrap, topic)] if topic in known else []

    def topics(self, alias: str) -> set[str]:
        """The topics of this test that a cluster has."""
        found = admin_client(self.at[alias]).list_topics(timeout=30).topics
        return {name for name in found if name.endswith(self.topic)}


@pytest.fixture
def clusters(tmp_path: Path, bootstrap: str, second_broker: BrokerInfo, third_broker: BrokerInfo) -> Clusters:
    """The three clusters of the run, without a flow so far."""
    return Clusters(tmp_path, bootstrap, second_broker.bootstrap_servers, third_broker.bootstrap_servers)


@pytest.fixture
def driver(clusters: Clusters) -> Iterator[MirrorNode]:
    """The driver, running."""
    node = clusters.start()
    yield node
    node.close()


@pytest.mark.thorough
def test_a_hub_gets_all_and_a_spoke_gets_what_is_not_its_own(clusters: Clusters, driver: MirrorNode) -> None:
    topic, hub, north, south = clusters.topic, clusters.hub, clusters.north, clusters.south
    for alias in clusters.at:
        produce(clusters.at[alias], topic, [b"%s %d" % (alias.encode(), number) for number in range(20)])
    _abort(clusters.at[south], topic)
    produce(clusters.at[south], topic, [b"last"], partition=1)
    expected = {
        (hub, topic): hub,
        (hub, f"{north}.{topic}"): north,
        (hub, f"{south}.{topic}"): south,
        (north, topic): north,
        (north, f"{hub}.{topic}"): hub,
        # Over two flows.
        (north, f"{hub}.{south}.{topic}"): south,
        (south, topic): south,
    }
    for (at, name), origin in expected.items():
        values = [b"%s %d" % (origin.encode(), number) for number in range(20)] + [b"last"] * (origin == south)
        wait_until(
            f"{name} is whole at {at}",
            lambda at=at, name=name, values=values: clusters.values(at, name) == values,
            seconds=SECONDS,
        )
    # What came from a cluster does not go back to it: there are no other topics.
    for alias in clusters.at:
        assert clusters.topics(alias) == {name for at, name in expected if at == alias}
    with MirrorClient({"bootstrap.servers": clusters.at[north]}) as client:
        wait_until("heartbeats come", lambda: client.replication_hops(hub) == 1, seconds=SECONDS)
        assert client.remote_topics(hub) >= {f"{hub}.{topic}", f"{hub}.{south}.{topic}"}

    _check_commands(clusters, driver.file)
    assert driver.stop() == 0, driver.log


def _check_commands(clusters: Clusters, file: Path) -> None:
    """The flow from the south is verified, cut over, and left; its group comes home with what it has read."""
    topic, flow = clusters.topic, f"{clusters.south}->{clusters.hub}"
    source, target, remote = clusters.at[clusters.south], clusters.at[clusters.hub], f"{clusters.south}.{topic}"
    _commit(source, clusters.group, topic, 7)
    reports = wait_until("all runs are written", lambda: _verified(file, flow), seconds=SECONDS)
    assert [(each["topic"], each["partition"], each["topic_there"], each["equal"]) for each in reports] == [
        (topic, 0, remote, 20),
        (topic, 1, remote, 1),
    ]
    (told,) = _sluice("groups", file, flow)
    assert (told["group"], told["read_again"]) == (clusters.group, 0)
    kept = {each["partition"]: each["at"] for each in _sluice("verify", file, flow, "--kept")}
    assert {each["partition"]: each["verified"] for each in told["partitions"]} == {0: utc_text(kept[0] / 1000)}
    planned = _sluice("cut-over", file, flow, "--dry-run", status=3)
    assert planned["left"] == []
    assert committed(target, clusters.group, remote) == [-1001]
    done = _sluice("cut-over", file, flow)
    assert [each["group"] for each in done["groups"]] == [clusters.group]
    (place,) = committed(target, clusters.group, remote)
    first = next(message.value() for message in read_topic(target, remote) if message.offset() >= place)
    assert first == b"%s 7" % clusters.south.encode()
    _commit(target, clusters.group, remote, place + 5)
    _sluice("cut-over", file, flow, "--back")
    assert committed(source, clusters.group, topic) == [12]
    # Somebody writes to the topic of the mirror: nothing of that is in a run, and all that is in one is still equal.
    produce(target, remote, [b"foreign"])
    assert all(each["difference"] is None for each in _sluice("verify", file, flow, "--last", "5"))


def _verified(file: Path, flow: str) -> list[dict[str, object]]:
    """The reports of the topic's partitions, once nothing of them is unknown or waits."""
    found = [each for each in _sluice("verify", file, flow) if "heartbeats" not in each["topic"]]
    assert all(each["difference"] is None for each in found)
    return found if not any(each["waiting"] or each["unknown"] for each in found) else []


def _sluice(command: str, file: Path, *words: str, status: int = 0) -> list | dict:  # type: ignore[type-arg]
    done = CliRunner().invoke(mirror, [command, str(file), *words, "-o", "json"])
    assert done.exit_code == status, done.output
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def _abort(bootstrap: str, topic: str) -> None:
    """Write records that nobody is to see."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    for partition in range(2):
        producer.produce(topic, b"aborted", partition=partition)
    producer.flush(30)
    producer.abort_transaction(30)


def _commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    admin = admin_client(bootstrap)

    def is_done() -> bool:
        asked = admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])]
        )
        return all(each.error is None for each in asked[group].result(30).topic_partitions)

    wait_until("the offset is committed", is_done)
