"""Fencing former tasks before new ones start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future

import pytest

from equipment.fakes.herding import Place, WorkedInbox
from worker.herder.cluster.fencing import Fencing, producers_to_fence
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.inbox import Action, Deferred
from worker.herder.inquiries import Inquiries
from worker.herder.requests import Request, Steps
from worker.herder.settings import ClusterSettings, WorkerSettings
from worker.messages import messages
from worker.messages.messages import Inquiry
from worker.peers.leader import Publication
from worker.processes.lease import Lease
from worker.stores.config.store import MemoryConfigStore, SessionKey
from worker.supervisor.notices import Answered
from worker.unit import Unit

TASK = Unit("source", 0)


@pytest.mark.parametrize(
    ("recorded", "tasks", "fenced"), [(None, 3, 0), (1, 1, 0), (1, 2, 1), (3, 1, 3), (3, 3, 3), (0, 2, 0)]
)
def test_as_many_are_fenced_as_were_recorded(recorded: int | None, tasks: int, fenced: int) -> None:
    assert list(producers_to_fence(recorded, tasks, None)) == list(range(fenced))


def test_what_goes_on_is_not_fenced() -> None:
    assert producers_to_fence(4, 4, frozenset({1, 3, 7})) == [1, 3]
    assert producers_to_fence(4, 5, frozenset()) == []


class FarLeader:
    """A leader that is asked over the network."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answers: list[Future[None]] = []

    def post_task_configs(
        self,
        url: str,
        connector: str,
        configs: Sequence[Mapping[str, str]],
        publication: Publication,
        key: SessionKey | None,
    ) -> Future[None]:
        raise AssertionError(f"nobody publishes tasks of {connector} here")

    def fence(self, url: str, connector: str, key: SessionKey | None) -> Future[None]:
        self.asked.append((url, connector))
        self.answers.append(Future())
        return self.answers[-1]


class Cluster:
    """A fencing with all that stands around it."""

    def __init__(self, *, is_leader: bool, enabled: bool = True) -> None:
        self.inbox, self.store, self.far = WorkedInbox(), MemoryConfigStore(), FarLeader()
        place = Place(is_leader=is_leader)
        leadership = Leadership(place, self.store, self.inbox)
        self.inquiries: list[tuple[int, Inquiry]] = []
        self.given_up: list[int] = []
        self.answering = Inquiries(
            lambda number, inquiry: self.inquiries.append((number, inquiry)), self.given_up.append
        )
        self.place, self.leadership = place, leadership
        self.turns = ChangeQueue(leadership, self.inbox.post)
        cluster = ClusterSettings(
            leader=self.far,
            owners=None,  # type: ignore[arg-type] - nothing is asked of it here
            keys=None,
            verification_algorithms=(),
            lease=Lease(),
            sync_timeout=30.0,
            unsync_backoff=300.0,
            exactly_once=enabled,
        )
        self.fencing = Fencing(
            WorkerSettings({}, "here:8083", cluster=cluster),
            self.store,
            place,
            leadership,
            self.answering,
            self.inbox,
            self.turns,
            lambda name: name.startswith("sink"),
        )
        leadership.changed()
        self.inbox.work()
        for name in ("source", "sink", "unknown"):
            self.store.put_connector(name, {"name": name}, None)
            self.store.put_task_configs(name, [{"n": "0"}])

    def fence(self) -> Request[None]:
        """What the leader is asked."""
        return self.inbox.run(lambda request: self.fencing.fence(request, "source"))

    def hold(self, begun: Action = lambda: None) -> Request[None]:
        """A write of the connector that goes on until the test completes it."""

        def write(request: Request[None]) -> Steps[None]:
            yield from self.turns.turn("source", request)
            begun()
            yield Deferred[None]()

        return self.inbox.run(write)

    def fenced(self) -> None:
        self.answering.answered(Answered(self.inquiries[-1][0], messages.Fenced()))
        self.inbox.work()


def test_only_source_tasks_of_new_task_configs_wait() -> None:
    cluster = Cluster(is_leader=True)
    assert cluster.fencing.may_start(Unit("source"))
    assert cluster.fencing.may_start(Unit("sink", 0))
    assert not cluster.fencing.may_start(TASK)
    assert not cluster.fencing.may_start(Unit("unknown", 0)), "it may be a source"
    assert Cluster(is_leader=True, enabled=False).fencing.may_start(TASK)


def test_the_first_tasks_need_no_fencing_but_its_record() -> None:
    cluster = Cluster(is_leader=True)
    assert not cluster.fencing.may_start(TASK)
    cluster.inbox.work()
    assert cluster.store.fenced_tasks("source") == 1
    assert cluster.fencing.may_start(TASK)
    assert not cluster.inquiries


def test_former_producers_are_fenced_once_for_all_who_ask() -> None:
    cluster = Cluster(is_leader=True)
    cluster.store.put_fenced_tasks("source", 3)
    cluster.store.put_task_configs("source", [{"n": "0"}, {"n": "1"}])
    requests = [cluster.fence(), cluster.fence()]
    assert [inquiry for _, inquiry in cluster.inquiries] == [messages.FenceProducers({"name": "source"}, {}, [0, 1, 2])]
    assert not requests[0].done()
    cluster.fenced()
    assert all(request.done() and request.exception(0) is None for request in requests)
    assert cluster.store.fenced_tasks("source") == 2
    assert cluster.fencing.may_start(Unit("source", 1))


def test_tasks_that_change_during_a_round_are_not_recorded() -> None:
    cluster = Cluster(is_leader=True)
    cluster.store.put_fenced_tasks("source", 2)
    cluster.store.put_task_configs("source", [{"n": "0"}])
    request = cluster.fence()
    cluster.store.put_task_configs("source", [{"n": "0"}, {"n": "1"}, {"n": "2"}])
    cluster.fenced()
    assert "were changed while" in str(request.exception(0))
    assert cluster.store.pending_fencing("source")


def test_tasks_that_are_being_written_are_not_taken_for_fenced() -> None:
    cluster = Cluster(is_leader=True)
    cluster.store.put_fenced_tasks("source", 2)
    cluster.store.put_task_configs("source", [{"n": "0"}])
    begun: list[bool] = []
    asked = cluster.fence()
    slow = cluster.hold()
    cluster.hold(lambda: begun.append(asked.done()))
    cluster.fenced()
    assert not asked.done(), "a write is under way: it may be one of task configs"
    cluster.store.put_task_configs("source", [{"n": "0"}, {"n": "1"}])
    slow.set_result(None)
    cluster.inbox.work()
    assert "were changed while" in str(asked.exception(0))
    assert cluster.store.pending_fencing("source")
    assert begun == [True], "what waited comes after the record"


def test_who_needs_the_connector_stopped_may_wait_for_its_former_tasks_to_be_fenced() -> None:
    cluster = Cluster(is_leader=True)
    cluster.store.put_fenced_tasks("source", 2)
    cluster.store.put_task_configs("source", ())

    def alter(request: Request[None]) -> Steps[None]:
        yield from cluster.turns.turn("source", request, exclusive=True)
        yield cluster.fencing.former_fenced("source")

    asked, write, alters = cluster.fence(), cluster.hold(), cluster.inbox.run(alter)
    write.set_result(None)
    cluster.inbox.work()
    cluster.fenced()
    assert asked.done()
    assert alters.exception(0) is None
    assert not cluster.store.pending_fencing("source")


def test_a_record_that_waits_for_its_turn_is_left_to_the_next_leader() -> None:
    cluster = Cluster(is_leader=True)
    cluster.store.put_fenced_tasks("source", 2)
    cluster.store.put_task_configs("source", [{"n": "0"}])
    asked, write = cluster.fence(), cluster.hold()
    cluster.fenced()
    cluster.place.is_leader = False
    cluster.leadership.changed()
    write.set_result(None)
    cluster.inbox.work()
    assert "Another worker leads" in str(asked.exception(0))
    assert cluster.store.pending_fencing("source")


def test_a_leader_that_leads_no_more_fences_nobody() -> None:
    cluster = Cluster(is_leader=True)
    cluster.store.put_fenced_tasks("source", 2)
    cluster.store.put_task_configs("source", [{"n": "0"}])
    request = cluster.fence()
    cluster.place.is_leader = False
    cluster.leadership.changed()
    assert "lost the lead" in str(request.exception(0)), "what runs by now may be the next leader's"
    assert cluster.given_up == [cluster.inquiries[-1][0]]
    gone: list[str] = []
    cluster.answering.all_ended().add_done_callback(lambda _: gone.append("its process"))
    assert gone == []
    cluster.fenced()
    assert gone == ["its process"]
    assert cluster.store.pending_fencing("source")


def test_a_follower_asks_the_leader_until_it_is_done() -> None:
    cluster = Cluster(is_leader=False)
    assert not cluster.fencing.may_start(TASK)
    assert not cluster.fencing.may_start(TASK)
    assert cluster.far.asked == [("http://leader:8083/", "source")]
    for asked, wait in enumerate((1, 2, 4, 8, 16, 16), start=1):
        cluster.far.answers[-1].set_exception(OSError("connection refused"))
        cluster.inbox.work()
        cluster.inbox.work(seconds=wait * 0.9)
        assert len(cluster.far.asked) == asked
        cluster.inbox.work(seconds=wait * 0.2)
        assert len(cluster.far.asked) == asked + 1
    cluster.store.put_fenced_tasks("source", 1)
    cluster.far.answers[-1].set_result(None)
    cluster.inbox.work()
    assert cluster.fencing.may_start(TASK)
