"""Two workers share a status topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from equipment.brokers.topics import read_topic
from equipment.fakes.inbox import Inbox
from equipment.waiting import wait_until
from worker.config.worker import DistributedConfig
from worker.stores.status import records
from worker.stores.status.kafka import KafkaStatusStore
from worker.stores.status.store import State, Status
from worker.unit import Unit

pytestmark = pytest.mark.integration

CONNECTOR, TASK = Unit("c"), Unit("c", 0)


class Worker:
    """A store and the thread its view belongs to."""

    def __init__(self, worker_id: str, props: dict[str, str], inbox: Inbox) -> None:
        self.id, self.inbox = worker_id, inbox
        self.store = KafkaStatusStore(worker_id, DistributedConfig.parse(props), props, inbox.post)

    def put(self, unit: Unit, state: State, generation: int = 1) -> None:
        self.inbox.ask(lambda: self.store.put(unit, Status(state, self.id, generation)))

    def states(self) -> dict[Unit, tuple[State, str]]:
        statuses = self.inbox.ask(self.store.statuses)
        return {unit: (status.state, status.worker_id) for unit, status in statuses.items()}

    def topics(self) -> list[str]:
        return self.inbox.ask(lambda: self.store.topics("c"))


def read_statuses(props: dict[str, str]) -> dict[Unit, tuple[State, str]]:
    """The last status of each unit on the topic."""
    found: dict[Unit, tuple[State, str]] = {}
    for message in read_topic(props["bootstrap.servers"], props["status.storage.topic"]):
        match records.parse(message.key(), message.value()):
            case records.StatusRecord(unit, Status(state, worker_id)):
                found[unit] = state, worker_id
    return found


@pytest.fixture
def worker(props: dict[str, str], inbox: Callable[[], Inbox]) -> Iterator[Callable[[str], Worker]]:
    made: list[Worker] = []

    def make(worker_id: str) -> Worker:
        made.append(Worker(worker_id, props, inbox()))
        made[-1].store.start()
        return made[-1]

    yield make
    for item in made:
        item.store.close()


def test_a_status_shows_at_once_and_at_the_other_worker_soon(worker: Callable[[str], Worker]) -> None:
    one, other = worker("one"), worker("other")
    one.put(TASK, State.RUNNING)
    assert one.states() == {TASK: (State.RUNNING, "one")}
    wait_until("the other sees it", lambda: other.states() == {TASK: (State.RUNNING, "one")})
    other.put(TASK, State.RUNNING, 2)
    wait_until("the first sees who has it now", lambda: one.states() == {TASK: (State.RUNNING, "other")})


def test_a_worker_that_lost_its_work_does_not_speak_over_the_new_one(worker: Callable[[str], Worker]) -> None:
    old, new = worker("old"), worker("new")
    old.put(TASK, State.RUNNING, 1)
    wait_until("the new one knows", lambda: new.states() == {TASK: (State.RUNNING, "old")})
    new.put(TASK, State.RUNNING, 2)
    wait_until("the old one knows", lambda: old.states() == {TASK: (State.RUNNING, "new")})
    old.put(TASK, State.UNASSIGNED, 1)
    old.put(TASK, State.FAILED, 1)
    old.put(CONNECTOR, State.PAUSED, 1)
    wait_until("what is not safe was written", lambda: CONNECTOR in new.states())
    assert new.states()[TASK] == old.states()[TASK] == (State.RUNNING, "new")
    old.put(TASK, State.FAILED, 2)
    wait_until("an equal generation may", lambda: new.states()[TASK] == (State.FAILED, "old"))


def test_what_a_cut_off_worker_gets_through_too_late_does_not_stand(
    worker: Callable[[str], Worker], props: dict[str, str]
) -> None:
    """Its client goes on trying while the brokers are away, and may reach them after its successor."""
    new = worker("new")
    new.put(TASK, State.RUNNING, 2)
    new.put(CONNECTOR, State.RUNNING, 2)
    new.put(CONNECTOR, State.UNASSIGNED, 2)
    written = {CONNECTOR: (State.UNASSIGNED, "new"), TASK: (State.RUNNING, "new")}
    wait_until("it is on the topic", lambda: read_statuses(props) == written)
    late = Producer({"bootstrap.servers": props["bootstrap.servers"], "partitioner": "murmur2_random"})
    for unit in (CONNECTOR, TASK):
        value = records.status_value(Status(State.FAILED, "old", 1))
        late.produce(props["status.storage.topic"], value, records.status_key(unit))
    late.flush(30)
    told = {CONNECTOR: (State.FAILED, "old"), TASK: (State.RUNNING, "new")}
    wait_until("the task's worker has said it again", lambda: read_statuses(props) == told)
    assert worker("third").states() == told


def test_statuses_and_topics_outlive_the_workers(worker: Callable[[str], Worker], props: dict[str, str]) -> None:
    one = worker("one")
    one.put(CONNECTOR, State.RUNNING)
    one.put(TASK, State.RUNNING)
    one.inbox.ask(lambda: one.store.put_topics(TASK, ["t2", "t1"]))
    one.inbox.ask(lambda: one.store.put_topics(TASK, ["t1"]))
    one.put(CONNECTOR, State.UNASSIGNED)
    one.store.close()
    again = worker("again")
    assert again.states() == {CONNECTOR: (State.UNASSIGNED, "one"), TASK: (State.RUNNING, "one")}
    assert again.topics() == ["t1", "t2"]
    keys = [item.key() for item in read_topic(props["bootstrap.servers"], props["status.storage.topic"])]
    assert keys.count(b"status-topic-t1:connector-c") == 1


def test_what_is_removed_is_gone_everywhere(worker: Callable[[str], Worker]) -> None:
    one, other = worker("one"), worker("other")
    one.put(TASK, State.RUNNING)
    one.inbox.ask(lambda: one.store.put_topics(TASK, ["t"]))
    wait_until("the other sees it", lambda: other.topics() == ["t"] and TASK in other.states())
    one.inbox.ask(lambda: one.store.remove(TASK))
    one.inbox.ask(lambda: one.store.remove_topics("c"))
    assert (one.states(), one.topics()) == ({}, [])
    wait_until("the other sees that it is gone", lambda: (other.states(), other.topics()) == ({}, []))


def test_many_quick_changes_end_with_the_last(worker: Callable[[str], Worker]) -> None:
    one, other = worker("one"), worker("other")
    for _ in range(100):
        one.put(TASK, State.RUNNING)
        one.put(TASK, State.PAUSED)
        assert one.states() == {TASK: (State.PAUSED, "one")}
    one.put(CONNECTOR, State.RUNNING)
    one.put(TASK, State.RUNNING)
    wait_until("the other sees the last", lambda: other.states().get(TASK) == (State.RUNNING, "one"))


def test_nonsense_is_read_over(worker: Callable[[str], Worker], props: dict[str, str]) -> None:
    one = worker("one")
    producer = Producer({"bootstrap.servers": props["bootstrap.servers"]})
    for key, value in ((b"status-task-c-0", b"{"), (b"\xff", b"{}"), (b"status-topic-x", None), (None, b"x")):
        producer.produce(props["status.storage.topic"], value=value, key=key)
    assert producer.flush(30) == 0
    one.put(TASK, State.RUNNING)
    assert worker("again").states() in ({TASK: (State.RUNNING, "one")}, {})
    wait_until("the view goes on", lambda: one.states() == {TASK: (State.RUNNING, "one")})
