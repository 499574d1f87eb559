"""A worker that lacks one of the rights that docs/kafka-security.md lists for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from uuid import uuid4

import pytest
from rights import RIGHTS, MakeWorker, clients, named, names_of

from connect.errors import ConnectError
from connect.internals.kafka.settings.client import ClientKind
from equipment.brokers.acls import Acl
from equipment.brokers.secured import SecuredBroker
from equipment.fakes.inbox import Inbox
from equipment.waiting import wait_until
from worker.config.worker import DistributedConfig
from worker.kafka.clients.roles import internal_properties
from worker.kafka.topics.compacted import CompactedTopic
from worker.kafka.topics.internal import ensure_internal_topic
from worker.membership.events import Event, Refused
from worker.membership.group import GroupMember
from worker.stores.config.kafka import KafkaConfigStore
from worker.stores.config.store import ConfigSnapshot, TargetState
from worker.stores.versions.kafka import KafkaVersionStore
from worker.stores.versions.version import Seen, Version

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

CHAPTERS = ("A worker", "A worker with exactly-once support")
TOPICS = {"$CONFIGS": "config.storage.", "$OFFSETS": "offset.storage.", "$STATUSES": "status.storage."}
ON_TOPICS = [acl for acl in RIGHTS["A worker"] if acl.resource == "topic"]


def props_without(secured: SecuredBroker, *missing: Acl) -> tuple[dict[str, str], dict[str, str]]:
    """The properties of a worker that may do everything but this, and the names of the page."""
    user, group = secured.new_user(), f"group-{uuid4().hex[:12]}"
    names = names_of(group, WORKER=user.name)
    lacking = [acl.named(names) for acl in missing]
    secured.allow(acl for acl in named(names, *CHAPTERS) if acl not in lacking)
    return {**worker_props(secured, names), **user.login}, names


def worker_props(secured: SecuredBroker, names: Mapping[str, str]) -> dict[str, str]:
    topics = {
        f"{prefix}{key}": value
        for variable, prefix in TOPICS.items()
        for key, value in {"topic": names[variable.removeprefix("$")], "replication.factor": "1"}.items()
    }
    return {
        "bootstrap.servers": secured.addresses["SASL_PLAINTEXT"],
        "group.id": names["GROUP"],
        "key.converter": "JsonConverter",
        "value.converter": "JsonConverter",
        "session.timeout.ms": "6000",
        **topics,
    }


@pytest.mark.parametrize("acl", ON_TOPICS, ids=str)
def test_a_topic_of_the_worker_that_it_has_no_right_to(secured: SecuredBroker, acl: Acl) -> None:
    props, names = props_without(secured, acl)
    topic, prefix = acl.named(names).name, TOPICS[acl.name]
    if acl.operation == "DescribeConfigs":
        use(props, prefix, topic)
        return
    with pytest.raises(ConnectError) as caught:
        use(props, prefix, topic)
    assert f"Topic '{topic}'" in str(caught.value)
    assert f"the right {acl.operation} on topic {topic}: kafka-acls.sh" in str(caught.value)


@pytest.mark.parametrize("acl", RIGHTS["The history of configurations"], ids=str)
def test_a_right_that_the_history_of_configurations_lacks(secured: SecuredBroker, acl: Acl) -> None:
    user, group = secured.new_user(), f"group-{uuid4().hex[:12]}"
    names = names_of(group, WORKER=user.name)
    secured.allow(item for item in named(names, "The history of configurations") if item != acl.named(names))
    props = {**worker_props(secured, names), **user.login}
    store = KafkaVersionStore(DistributedConfig.parse(props), props)
    with pytest.raises(ConnectError) as caught:
        store.append([Version(1, Seen("c", 1, 0, None, {}))], [])
        store.versions("c")
    store.close()
    assert f"the right {acl.operation} on topic {names['HISTORY']}: kafka-acls.sh" in str(caught.value)


def use(props: Mapping[str, str], prefix: str, topic: str) -> None:
    """Create the topic, read it, and write to it, as all three stores do."""
    ensure_internal_topic(props, prefix, partitions=1, replication_factor=1, purpose="what is kept")
    opened = CompactedTopic(
        topic,
        internal_properties(props, ClientKind.CONSUMER, "reader"),
        internal_properties(props, ClientKind.PRODUCER, "writer"),
        lambda _: None,
    )
    try:
        opened.start(30)
        opened.write([(b"k", b"v")], 30).result(60)
    finally:
        opened.close(0)


def test_a_worker_that_may_not_read_what_is_on_its_topic(secured: SecuredBroker) -> None:
    read = next(acl for acl in ON_TOPICS if acl.name == "$CONFIGS" and acl.operation == "Read")
    props, names = props_without(secured)
    use(props, TOPICS["$CONFIGS"], names["CONFIGS"])
    secured.forbid([read.named(names)])
    with pytest.raises(ConnectError, match=f"the right Read on topic {names['CONFIGS']}: kafka-acls.sh"):
        use(props, TOPICS["$CONFIGS"], names["CONFIGS"])


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    made = Inbox()
    yield made
    made.close()


def test_a_leader_that_may_not_use_its_transactional_id(secured: SecuredBroker, inbox: Inbox) -> None:
    props, names = props_without(secured, *RIGHTS["A worker with exactly-once support"])
    props["exactly.once.source.support"] = "enabled"
    store = KafkaConfigStore(DistributedConfig.parse(props), props, inbox.post)
    try:
        store.start(lambda _: None)
        with pytest.raises(ConnectError) as caught:
            store.claim_writes().result(60)
    finally:
        store.close()
    name = f"connect-cluster-{names['GROUP']}"
    assert f"the right Write on transactional id {name}: kafka-acls.sh" in str(caught.value)


def test_a_worker_that_loses_the_right_to_write_says_so_and_goes_on_when_it_is_back(
    secured: SecuredBroker, inbox: Inbox
) -> None:
    write = next(acl for acl in ON_TOPICS if acl.name == "$CONFIGS" and acl.operation == "Write")
    props, names = props_without(secured)
    store = KafkaConfigStore(DistributedConfig.parse(props), props, inbox.post)
    try:
        store.start(lambda _: None)
        store.put_target_state("c", TargetState.PAUSED).result(60)
        secured.forbid([write.named(names)])
        with pytest.raises(ConnectError, match=f"the right Write on topic {names['CONFIGS']}: kafka-acls.sh"):
            store.put_target_state("c", TargetState.STARTED).result(60)
        assert store.refusal is None, "it can be read"
        secured.allow([write.named(names)])
        wait_until("it is written", lambda: store.put_target_state("c", TargetState.STARTED).exception(60) is None)
    finally:
        store.close()


def test_a_worker_that_loses_the_right_to_read_tells_that_until_it_is_back(
    secured: SecuredBroker, inbox: Inbox
) -> None:
    read = next(acl for acl in ON_TOPICS if acl.name == "$CONFIGS" and acl.operation == "Read")
    props, names = props_without(secured)
    store = KafkaConfigStore(DistributedConfig.parse(props), props, inbox.post)
    try:
        store.start(lambda _: None)
        secured.forbid([read.named(names)])
        told = wait_until("the refusal is known", lambda: store.refusal, 60)
        assert f"the right Read on topic {names['CONFIGS']}: kafka-acls.sh" in told
        secured.allow([read.named(names)])
        store.put_target_state("c", TargetState.STARTED).exception(60)
        wait_until("it is read again", lambda: store.refusal is None, 60)
    finally:
        store.close()


def refusal(props: Mapping[str, str]) -> str:
    """What a worker is told that wants to join its group."""
    told: Future[Event] = Future()

    def snapshot(_offset: int) -> Future[ConfigSnapshot]:
        answer: Future[ConfigSnapshot] = Future()
        answer.set_result(ConfigSnapshot(0, {}))
        return answer

    tell: Callable[[Event], None] = lambda event: None if told.done() else told.set_result(event)  # noqa: E731
    member = GroupMember(DistributedConfig.parse(props), props, "http://127.0.0.1:1/", tell, snapshot)
    member.start()
    event = told.result(60)
    member.close()
    member.join(30)
    assert isinstance(event, Refused), event
    return event.message


def test_a_worker_that_may_not_join_its_group(secured: SecuredBroker) -> None:
    group = next(acl for acl in RIGHTS["A worker"] if acl.resource == "group")
    props, names = props_without(secured, group)
    assert f"the right Read on group {names['GROUP']}: kafka-acls.sh" in refusal(props)


def test_a_worker_process_ends_and_says_which_right_it_lacks(
    secured: SecuredBroker, secured_worker: MakeWorker
) -> None:
    create = next(acl for acl in ON_TOPICS if acl.name == "$OFFSETS" and acl.operation == "Create")
    user, group = secured.new_user(), f"group-{uuid4().hex[:12]}"
    names = names_of(group, WORKER=user.name)
    secured.allow(acl for acl in named(names, *CHAPTERS) if acl != create.named(names))
    worker = secured_worker(group, clients(user, user, user)).start()
    assert worker.wait() == 2
    assert f"The worker could not start: Topic '{names['OFFSETS']}' of the 'offset.storage.topic'" in worker.log()
    assert f"the right Create on topic {names['OFFSETS']}: kafka-acls.sh" in worker.log()
    assert user.password not in worker.log()
