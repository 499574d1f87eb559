"""Two workers share a config topic; what one writes the other sees, in order, and again after a restart."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]

from connect.config.errors import ConfigRuleError
from connect.errors import ConnectError
from equipment.brokers.topics import admin_client, create_topic, ordered_producer, read_topic
from equipment.fakes.inbox import Inbox
from equipment.waiting import wait_until
from worker.config.worker import DistributedConfig
from worker.errors import BadRequestError, FencedError
from worker.stores.config import records
from worker.stores.config.kafka import KafkaConfigStore
from worker.stores.config.store import (
    ConfigChange,
    ConnectorChanged,
    ConnectorEntry,
    ConnectorRemoved,
    FencedTasksChanged,
    LoggerLevelChanged,
    RestartRequested,
    SessionKey,
    SessionKeyChanged,
    TargetState,
    TargetStateChanged,
    TasksChanged,
    WritesLost,
)

pytestmark = pytest.mark.integration

CONFIG = {"name": "c", "tasks.max": "2"}
TASKS = ({"n": "0"}, {"n": "1"})


class Worker:
    """A store and the thread its view belongs to."""

    def __init__(self, props: dict[str, str], inbox: Inbox) -> None:
        self.inbox = inbox
        self.told: list[ConfigChange] = []
        self.store = KafkaConfigStore(DistributedConfig.parse(props), props, inbox.post)

    def start(self) -> Worker:
        self.store.start(self.told.append)
        return self

    def done(self, put: Callable[[], Future[None]]) -> None:
        """Put something from the thread of the view, and wait for it outside of it."""
        self.inbox.ask(put).result(40)

    def entries(self) -> dict[str, ConnectorEntry]:
        return self.inbox.ask(lambda: dict(self.store.connectors()))


@pytest.fixture
def worker(props: dict[str, str], inbox: Callable[[], Inbox]) -> Iterator[Callable[..., Worker]]:
    made: list[Worker] = []

    def make(**more: str) -> Worker:
        made.append(Worker(props | {key.replace("_", "."): value for key, value in more.items()}, inbox()))
        return made[-1]

    yield make
    for item in made:
        item.store.close()


def produce(props: dict[str, str], *pairs: tuple[bytes, bytes | None]) -> None:
    producer = ordered_producer(props["bootstrap.servers"])
    for key, value in pairs:
        producer.produce(props["config.storage.topic"], value=value, key=key)
    assert producer.flush(30) == 0


def on_topic(props: dict[str, str]) -> list[tuple[str, object]]:
    messages = read_topic(props["bootstrap.servers"], props["config.storage.topic"])
    return [(item.key().decode(), item.value() and json.loads(item.value())) for item in messages]


def test_what_one_worker_writes_all_see_in_order(props: dict[str, str], worker: Callable[..., Worker]) -> None:
    one, other = worker().start(), worker().start()
    key = SessionKey(b"0123456789abcdef", "HmacSHA256", 1700000000123)
    one.done(lambda: one.store.put_session_key(key))
    one.done(lambda: one.store.put_connector("c", CONFIG, TargetState.PAUSED))
    assert one.entries() == {"c": ConnectorEntry(CONFIG, TargetState.PAUSED)}
    one.done(lambda: one.store.put_task_configs("c", TASKS))
    one.done(lambda: one.store.put_target_state("c", TargetState.STOPPED))
    one.done(lambda: one.store.put_restart("c", include_tasks=True, only_failed=False))
    one.done(lambda: one.store.put_logger_level("root", "DEBUG"))
    one.done(lambda: one.store.put_fenced_tasks("c", 2))
    other.done(other.store.read_to_end)
    assert other.entries() == {"c": ConnectorEntry(CONFIG, TargetState.STOPPED, TASKS, CONFIG)}
    assert other.inbox.ask(other.store.session_key) == key
    assert other.inbox.ask(lambda: other.store.fenced_tasks("c")) == 2
    one.done(lambda: one.store.remove_connector("c"))
    other.done(other.store.read_to_end)
    assert other.entries() == {}
    assert (
        one.told
        == other.told
        == [
            SessionKeyChanged(),
            ConnectorChanged("c"),
            TasksChanged("c"),
            TargetStateChanged("c"),
            RestartRequested("c", include_tasks=True, only_failed=False),
            LoggerLevelChanged("root", "DEBUG"),
            FencedTasksChanged("c"),
            ConnectorRemoved("c"),
        ]
    )
    assert one.inbox.ask(one.store.snapshot) == other.inbox.ask(other.store.snapshot)
    assert [name for name, _ in on_topic(props)] == [
        "session-key",
        "target-state-c",
        "connector-c",
        "task-c-0",
        "task-c-1",
        "commit-c",
        "target-state-c",
        "restart-connector-c",
        "logger-cluster-root",
        "tasks-fencing-c",
        "connector-c",
        "target-state-c",
    ]


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_what_is_larger_than_a_record_is_refused_and_nothing_else_harmed(
    support: str, worker: Callable[..., Worker]
) -> None:
    one = worker(exactly_once_source_support=support).start()
    one.done(one.store.claim_writes)
    with pytest.raises(BadRequestError, match="larger than a record of the config topic may be"):
        one.done(lambda: one.store.put_connector("c", CONFIG | {"a": "a" * 2**20}, None))
    one.done(lambda: one.store.put_connector("c", CONFIG, None))
    assert one.entries()["c"].config == CONFIG


def test_a_restart_reads_all_there_is_and_tells_nobody(worker: Callable[..., Worker]) -> None:
    first = worker().start()
    assert first.inbox.ask(first.store.snapshot).offset == -1
    first.done(lambda: first.store.put_connector("c", CONFIG, None))
    first.done(lambda: first.store.put_task_configs("c", TASKS))
    first.done(lambda: first.store.put_restart("c", include_tasks=True, only_failed=True))
    again = worker().start()
    assert again.entries() == first.entries() == {"c": ConnectorEntry(CONFIG, TargetState.STARTED, TASKS, CONFIG)}
    assert again.inbox.ask(again.store.snapshot) == first.inbox.ask(first.store.snapshot)
    assert again.inbox.ask(again.store.snapshot).offset == 5
    assert again.told == []


def test_a_compacted_topic_leaves_a_connector_without_tasks_and_says_so_once(
    props: dict[str, str], worker: Callable[..., Worker], caplog: pytest.LogCaptureFixture
) -> None:
    worker().start()
    _, second, commit = records.task_records("c", TASKS)
    produce(props, records.connector_record("c", CONFIG), second, commit)
    produce(props, (b"connector-c", b"nonsense"), (b"unheard-of", b"{}"), (b"task-", None))
    with caplog.at_level(logging.WARNING, "worker.stores.config.kafka"):
        store = worker().start()
        assert store.inbox.ask(store.store.snapshot).tasks == {"c": 0}
        store.done(lambda: store.store.put_target_state("c", TargetState.PAUSED))
    assert store.entries() == {"c": ConnectorEntry(CONFIG, TargetState.PAUSED)}
    mine = [text for text in caplog.messages if "has no task configs" in text]
    assert len([text for text in caplog.messages if "Ignoring record" in text]) >= 3
    assert len(mine) in (1, 2), "once for each of the two workers at most"
    store.done(lambda: store.store.put_task_configs("c", TASKS))
    assert store.inbox.ask(store.store.snapshot).tasks == {"c": 2}


def test_the_topic_is_made_as_configured(props: dict[str, str], worker: Callable[..., Worker]) -> None:
    worker(config_storage_segment_ms="123456").start()
    resource = ConfigResource(ConfigResource.Type.TOPIC, props["config.storage.topic"])
    admin = admin_client(props["bootstrap.servers"])
    settings = admin.describe_configs([resource])[resource].result(30)
    assert settings["cleanup.policy"].value == "compact"
    assert settings["segment.ms"].value == "123456"


def test_a_topic_of_several_partitions_is_refused(props: dict[str, str], worker: Callable[..., Worker]) -> None:
    create_topic(props["bootstrap.servers"], props["config.storage.topic"], 2, **{"cleanup.policy": "compact"})
    with pytest.raises(ConfigRuleError, match="required to have a single partition"):
        worker().start()


def test_a_topic_that_is_not_just_compacted_is_refused(props: dict[str, str], worker: Callable[..., Worker]) -> None:
    create_topic(props["bootstrap.servers"], props["config.storage.topic"], 1, **{"cleanup.policy": "compact,delete"})
    with pytest.raises(ConfigRuleError, match=r"cleanup\.policy=compact"):
        worker().start()


def test_too_few_brokers_are_an_error_that_names_the_key(worker: Callable[..., Worker]) -> None:
    with pytest.raises(ConfigRuleError, match=r"Set config\.storage\.replication\.factor to at most") as refused:
        worker(**{"config.storage.replication.factor": "3"}).start()
    assert refused.value.key == "config.storage.replication.factor"


@pytest.mark.parametrize("support", ["preparing", "enabled"])
def test_a_new_leader_fences_the_one_before(support: str, worker: Callable[..., Worker]) -> None:
    old = worker(exactly_once_source_support=support).start()
    new = worker(exactly_once_source_support=support).start()
    with pytest.raises(FencedError, match="claiming"):
        old.done(lambda: old.store.put_connector("c", CONFIG, None))
    old.done(old.store.claim_writes)
    old.done(lambda: old.store.put_connector("c", CONFIG, TargetState.PAUSED))
    old.done(lambda: old.store.put_task_configs("c", TASKS))
    new.done(new.store.claim_writes)
    with pytest.raises(FencedError, match="Another worker"):
        old.done(lambda: old.store.put_connector("d", CONFIG, None))
    with pytest.raises(FencedError, match="claiming"):
        old.done(lambda: old.store.put_target_state("c", TargetState.STARTED))
    new.done(lambda: new.store.put_connector("e", CONFIG, None))
    expected = {"c": ConnectorEntry(CONFIG, TargetState.PAUSED, TASKS, CONFIG), "e": ConnectorEntry(CONFIG)}
    assert new.entries() == expected
    wait_until("the old leader sees what the new one wrote", lambda: old.entries() == expected)


@pytest.mark.parametrize("large", [0, 1])
def test_task_configs_that_cannot_all_be_written_change_nothing(large: int, worker: Callable[..., Worker]) -> None:
    one = worker().start()
    one.done(lambda: one.store.put_connector("c", CONFIG, None))
    one.done(lambda: one.store.put_task_configs("c", TASKS))
    changed = [dict(task) for task in TASKS]
    changed[large]["tables"] = "t," * 1_000_000
    with pytest.raises(ConnectError, match=r"larger than a record of the config topic may be"):
        one.done(lambda: one.store.put_task_configs("c", changed))
    one.done(one.store.read_to_end)
    assert one.entries()["c"].task_configs == TASKS
    assert worker().start().entries()["c"].task_configs == TASKS


def test_a_leader_that_was_fenced_by_mistake_is_told_and_claims_again(worker: Callable[..., Worker]) -> None:
    one, other = (worker(exactly_once_source_support="enabled").start() for _ in range(2))
    for leader in (one, other, one):
        leader.done(leader.store.claim_writes)
        leader.done(lambda store=leader.store: store.put_connector("c", CONFIG, None))
    other.told.clear()
    with pytest.raises(FencedError, match="Another worker"):
        other.done(lambda: other.store.put_connector("d", CONFIG, None))
    wait_until("the one that was fenced is told", lambda: WritesLost() in other.inbox.ask(lambda: list(other.told)))
    assert WritesLost() not in one.inbox.ask(lambda: list(one.told)[-1:])
    other.done(other.store.claim_writes)
    other.done(lambda: other.store.put_connector("d", CONFIG, None))
    wait_until("both see it", lambda: set(one.entries()) == set(other.entries()) == {"c", "d"})


def test_a_thousand_connectors_are_written_and_read(worker: Callable[..., Worker]) -> None:
    one = worker().start()
    futures = [one.inbox.ask(lambda name=f"c{n}": one.store.put_connector(name, CONFIG, None)) for n in range(1000)]
    for future in futures:
        future.result(30)
    assert len(one.entries()) == 1000
    assert len(worker().start().entries()) == 1000
