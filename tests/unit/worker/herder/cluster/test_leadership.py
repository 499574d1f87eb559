"""Who may write configurations."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from connect.errors import ConnectError
from equipment.fakes.herding import Place, WorkedInbox
from worker.errors import NotLeaderError
from worker.herder.cluster.leadership import KeyRotation, Leadership
from worker.herder.requests import Request, Steps
from worker.stores.config.store import MemoryConfigStore, SessionKey


class SlowStore(MemoryConfigStore):
    """A store whose reading to the end and claiming are done when the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, Future[None]]] = []
        self.keys: list[SessionKey] = []

    def read_to_end(self) -> Future[None]:
        return self._step("read")

    def claim_writes(self) -> Future[None]:
        return self._step("claim")

    def put_session_key(self, key: SessionKey) -> Future[None]:
        self.keys.append(key)
        return super().put_session_key(key)

    def _step(self, name: str) -> Future[None]:
        step: Future[None] = Future()
        self.steps.append((name, step))
        return step


@pytest.fixture
def inbox() -> WorkedInbox:
    return WorkedInbox()


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


def do(inbox: WorkedInbox, leadership: Leadership, done: list[str]) -> Request[None]:
    def steps(request: Request[None]) -> Steps[None]:
        yield from leadership.lead(request)
        done.append("done")

    return inbox.run(steps)


def test_a_new_leader_claims_the_topic_and_reads_to_its_end_before_it_writes(
    inbox: WorkedInbox, store: SlowStore
) -> None:
    leadership, done = Leadership(Place(), store, inbox), list[str]()
    leadership.changed()
    do(inbox, leadership, done)
    inbox.work()
    assert ([name for name, _ in store.steps], done) == (["claim"], [])
    store.steps[0][1].set_result(None)
    inbox.work()
    assert ([name for name, _ in store.steps], done, leadership.is_ready) == (["claim", "read"], [], False)
    store.steps[1][1].set_result(None)
    inbox.work()
    assert (done, leadership.is_ready) == (["done"], True)
    leadership.changed()
    assert len(store.steps) == 2, "the same leader need not claim again"


def test_a_worker_that_does_not_lead_says_who_does(inbox: WorkedInbox, store: SlowStore) -> None:
    leadership = Leadership(Place(is_leader=False), store, inbox)
    leadership.changed()
    with pytest.raises(NotLeaderError) as caught:
        do(inbox, leadership, []).result(0)
    assert caught.value.url == "http://leader:8083/"
    assert not store.steps


def test_what_waits_is_passed_on_when_another_worker_takes_the_lead(inbox: WorkedInbox, store: SlowStore) -> None:
    place, done = Place(), list[str]()
    leadership = Leadership(place, store, inbox)
    leadership.changed()
    request = do(inbox, leadership, done)
    place.is_leader = False
    leadership.changed()
    store.steps[0][1].set_result(None)
    inbox.work()
    assert isinstance(request.exception(0), NotLeaderError)
    assert (done, len(store.steps)) == ([], 1)


def test_a_worker_that_has_just_started_lets_requests_wait_until_it_knows_the_leader(
    inbox: WorkedInbox, store: SlowStore
) -> None:
    place = Place(is_leader=False, leader_url=None)
    place.generation = -1
    leadership = Leadership(place, store, inbox)
    leadership.changed()
    request = do(inbox, leadership, [])
    inbox.work()
    assert (request.done(), request.stage[0]) == (False, "joining the cluster")
    place.generation, place.leader_url = 1, "http://leader:8083/"
    leadership.changed()
    error = request.exception(0)
    assert isinstance(error, NotLeaderError)
    assert error.url == "http://leader:8083/"


def test_a_leader_that_may_write_no_more_claims_the_topic_again(inbox: WorkedInbox, store: SlowStore) -> None:
    leadership, done = Leadership(Place(), store, inbox), list[str]()
    leadership.changed()
    for step in range(2):
        store.steps[step][1].set_result(None)
        inbox.work()
    assert leadership.is_ready
    leadership.writes_lost()
    leadership.writes_lost()
    do(inbox, leadership, done)
    inbox.work()
    assert ([name for name, _ in store.steps[2:]], done, leadership.is_ready) == (["claim"], [], False)
    for step in range(2, 4):
        store.steps[step][1].set_result(None)
        inbox.work()
    assert (done, leadership.is_ready) == (["done"], True)


def test_a_worker_that_leads_no_more_leaves_the_topic_to_who_does(inbox: WorkedInbox, store: SlowStore) -> None:
    place = Place()
    leadership = Leadership(place, store, inbox)
    leadership.changed()
    for step in range(2):
        store.steps[step][1].set_result(None)
        inbox.work()
    place.is_leader = False
    leadership.writes_lost()
    inbox.work()
    assert (len(store.steps), leadership.is_ready) == (2, False)


def test_a_claim_that_fails_is_told_and_made_again(inbox: WorkedInbox, store: SlowStore) -> None:
    leadership = Leadership(Place(), store, inbox)
    leadership.changed()
    request = do(inbox, leadership, [])
    store.steps[0][1].set_exception(ConnectError("no broker"))
    inbox.work()
    assert "no broker" in str(request.exception(0))
    inbox.work(seconds=2)
    assert [name for name, _ in store.steps] == ["claim", "claim"]


def test_each_leader_uses_its_own_key_and_none_for_longer_than_it_is_to(inbox: WorkedInbox) -> None:
    store = MemoryConfigStore()
    leadership = Leadership(Place(), store, inbox, KeyRotation("HmacSHA256", None, 60))
    leadership.changed()
    inbox.work()
    first = store.session_key()
    assert first is not None
    assert len(first.key) == 32
    inbox.work(seconds=59)
    assert store.session_key() is first
    inbox.work(seconds=2)
    second = store.session_key()
    assert second is not None
    assert second.key != first.key
