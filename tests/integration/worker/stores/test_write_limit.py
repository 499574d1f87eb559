"""A worker that is cut off from the broker, or may not write any more: what it has put does not come later."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connect.errors import RetriableError
from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import read_topic
from equipment.fakes.inbox import Inbox
from equipment.proofs import thorough
from equipment.waiting import wait_until
from worker.config.worker import DistributedConfig
from worker.kafka.topics.compacted_clients import WriteLimit
from worker.stores.config.kafka import KafkaConfigStore
from worker.stores.config.store import TargetState
from worker.stores.offset.kafka import KafkaOffsetStore
from worker.stores.offset.store import offset_key

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

KEY = offset_key("c", {"file": "f"})
SECONDS = 6.0


class Member:
    """A worker's right to write, which the test takes away."""

    def __init__(self) -> None:
        self.until = time.monotonic() + 1000.0
        self.lapses = 0
        self.limit = WriteLimit(SECONDS, lambda seconds: time.monotonic() + seconds <= self.until, lambda: self.lapses)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory, broker_jars: tuple[Path, ...]) -> Iterator[ProxiedBroker]:
    """A broker that a worker reaches by a way of its own."""
    with ProxiedBroker.running(tmp_path_factory.mktemp("limit") / "broker", broker_jars, 1) as running:
        yield running


@pytest.fixture
def relayed(far: ProxiedBroker, props: dict[str, str]) -> dict[str, str]:
    """The properties of that worker."""
    return props | {"bootstrap.servers": far.bootstrap_of(0), "offset.storage.partitions": "1"}


def values(far: ProxiedBroker, topic: str) -> list[bytes | None]:
    """What is on a topic, in order."""
    return [record.value() for record in read_topic(far.bootstrap, topic)]


def test_offsets_that_a_worker_could_not_deliver_in_time_are_not_delivered_later(
    far: ProxiedBroker, relayed: dict[str, str]
) -> None:
    member = Member()
    with closing(KafkaOffsetStore(DistributedConfig.parse(relayed), relayed, member.limit)) as store:
        store.start()
        store.put({KEY: b'{"position":1}'})
        far.proxy.cut(far.port(0))
        began = time.monotonic()
        with pytest.raises(RetriableError):
            store.put({KEY: b'{"position":2}'})
        assert time.monotonic() - began < 25, "well before the answer is given up"
        far.proxy.heal(far.port(0))
        assert store.get([KEY]) == [b'{"position":1}']
        store.put({KEY: b'{"position":3}'})
        assert values(far, relayed["offset.storage.topic"]) == [b'{"position":1}', b'{"position":3}']


def test_a_worker_that_may_not_write_for_long_enough_writes_no_offset(
    far: ProxiedBroker, relayed: dict[str, str]
) -> None:
    member = Member()
    with closing(KafkaOffsetStore(DistributedConfig.parse(relayed), relayed, member.limit)) as store:
        store.start()
        member.until = time.monotonic() + SECONDS / 2
        with pytest.raises(RetriableError, match="has not heard from its cluster for a while"):
            store.put({KEY: b'{"position":2}'})
        member.until = time.monotonic() + 1000.0
        store.put({KEY: b'{"position":3}'})
        assert values(far, relayed["offset.storage.topic"]) == [b'{"position":3}']


@pytest.mark.parametrize("lost", [*thorough("its lease"), "the lead"])
def test_a_target_state_that_the_leader_could_not_deliver_is_not_delivered_once_another_may_lead(
    far: ProxiedBroker, relayed: dict[str, str], lost: str
) -> None:
    member, inbox = Member(), Inbox()
    store = KafkaConfigStore(DistributedConfig.parse(relayed), relayed, inbox.post, member.limit)
    with closing(inbox), closing(store):
        store.start(lambda _: None)
        inbox.ask(lambda: store.put_target_state("c", TargetState.STOPPED)).result(30)
        far.proxy.cut(far.port(0))
        late = inbox.ask(lambda: store.put_target_state("c", TargetState.STARTED))
        if lost == "its lease":
            member.lapses += 1
        else:
            inbox.post(store.cease_writes)
        began = time.monotonic()
        with pytest.raises(RetriableError):
            late.result(40)
        assert time.monotonic() - began < 25, "well before the answer is given up"
        far.proxy.heal(far.port(0))
        member.until = 0.0
        refused = inbox.ask(lambda: store.put_target_state("c", TargetState.PAUSED))
        member.lapses += 1
        with pytest.raises(RetriableError):
            refused.result(40)
        member.until = time.monotonic() + 1000.0
        inbox.ask(lambda: store.put_target_state("c", TargetState.STOPPED)).result(40)
        assert [b'"STOPPED"' in (value or b"") for value in values(far, relayed["config.storage.topic"])] == [
            True,
            True,
        ]


def test_task_configs_that_the_leader_could_not_deliver_at_once_are_delivered_while_it_leads(
    far: ProxiedBroker, relayed: dict[str, str]
) -> None:
    member, inbox = Member(), Inbox()
    store = KafkaConfigStore(DistributedConfig.parse(relayed), relayed, inbox.post, member.limit)
    with closing(inbox), closing(store):
        store.start(lambda _: None)
        inbox.ask(lambda: store.put_connector("c", {"name": "c"}, None)).result(30)
        far.proxy.cut(far.port(0))
        began = time.monotonic()
        written = inbox.ask(lambda: store.put_task_configs("c", [{"n": "0"}, {"n": "1"}]))
        wait_until("it took longer than one attempt may", lambda: time.monotonic() - began > 1.5 * SECONDS)
        assert not written.done()
        far.proxy.heal(far.port(0))
        written.result(40)
        assert inbox.ask(lambda: store.connectors()["c"].task_configs) == ({"n": "0"}, {"n": "1"})
        member.until = time.monotonic() + SECONDS / 2
        paused = inbox.ask(lambda: store.put_target_state("c", TargetState.PAUSED))
        member.until = time.monotonic() + 1000.0
        paused.result(40)
