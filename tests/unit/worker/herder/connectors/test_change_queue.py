"""While a connector's offsets are altered nothing of it starts, on whatever worker, whoever asks for that."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any

import pytest

from connect.errors import AlreadyExistsError, ConnectError, NotFoundError
from connect.internals.plugins import PluginRegistry
from equipment.fakes.herding import Place
from equipment.waiting import wait_until
from worker.errors import ConflictError, NotLeaderError, RebalanceInProgressError
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.requests import Request
from worker.herder.settings import ClusterSettings, Stores, WorkerSettings
from worker.membership.events import Division, Joined, Lost
from worker.messages import messages
from worker.messages.messages import OffsetPairs, decode, encode
from worker.processes.clock import Moment
from worker.processes.lease import Lease
from worker.stores.config.store import MemoryConfigStore, TargetState
from worker.stores.status.store import MemoryStatusStore
from worker.supervisor.process import ThreadLauncher
from worker.supervisor.supervisor import Supervisor

DEADLINE = 20.0
CONFIG = {"name": "source", "connector.class": "C"}
BY_THE_CLOCK = CONFIG | {"run.until": "drained", "schedule": "0 2 * * *"}
ITEM = {"partition": {"f": "a"}, "offset": {"p": 1}}
LONG_AGO = 1_000_000_000_000


class SlowStore(MemoryConfigStore):
    """A store whose target states are written when the test says, and that tells the targets it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[TargetState] = []
        self.slow: list[tuple[TargetState, Future[None]]] | None = None

    def put_target_state(self, name: str, target: TargetState, drained: int | None = None) -> Future[None]:
        self.targets.append(target)
        if self.slow is None:
            return super().put_target_state(name, target, drained)
        self.slow.append((target, Future()))
        return self.slow[-1][1]


class Offsets:
    """Keeps what is altered."""

    def __init__(self) -> None:
        self.altered: list[OffsetPairs] = []

    def of_connector(self, _connector: str) -> Future[OffsetPairs]:
        kept: Future[OffsetPairs] = Future()
        kept.set_result([])
        return kept

    def alter(self, _connector: str, offsets: OffsetPairs) -> Future[None]:
        self.altered.append(offsets)
        done: Future[None] = Future()
        done.set_result(None)
        return done


class Leader:
    """The leader of a cluster. Its children are ``asked`` whether offsets may be set, and wait until they ``agree``."""

    def __init__(self) -> None:
        self.agree, self.asked, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.inbox, self.configs, self.offsets = Inbox(), SlowStore(), Offsets()
        self.place, self.lease = Place(), Lease()
        settings = ClusterSettings(
            leader=None,  # type: ignore[arg-type] - nothing is asked of it here
            owners=None,  # type: ignore[arg-type] - nor of the others
            keys=None,
            verification_algorithms=(),
            lease=self.lease,
            sync_timeout=30.0,
            unsync_backoff=300.0,
            exactly_once=False,
        )
        # All units run on another worker.
        self.place.held = frozenset()
        self.herder = Herder(
            WorkerSettings({}, "here:8083", cluster=settings),
            Stores(self.configs, MemoryStatusStore(), self.offsets),
            self.inbox,
            self.place,
            lambda notify: Supervisor(ThreadLauncher(self._child), notify, self._no_offsets, 5.0),
            PluginRegistry([]),
        )
        self.herder.start()

    def _no_offsets(self, _request: object, _connector: str) -> Future[messages.Command]:
        raise AssertionError("nothing runs here")

    def _child(self, connection: Connection) -> None:
        with contextlib.suppress(EOFError, OSError):
            first = decode(connection.recv_bytes())
            if isinstance(first, messages.ValidateConfig):
                infos: dict[str, Any] = {"configs": []}
                connection.send_bytes(encode(messages.Validated(infos, first.config["name"] or "")))
            if isinstance(first, messages.AlterSourceOffsets | messages.ReplayDeadLetters):
                self.asked.set()
                while not self.agree.wait(0.01):
                    if connection.poll():
                        self.ended.set()
                        return
                connection.send_bytes(encode(messages.SourceOffsetsAllowed(True, False, False)))

    def settle(self) -> None:
        """Wait until the herder has done what it was told before, and what came of that."""
        for _ in range(3):
            self.herder.ping().result(DEADLINE)

    def create(self, config: dict[str, str], drained: int | None = None) -> None:
        """Have a connector that is stopped; which type it is shows when it is validated."""
        if "source" not in self.herder.connectors.names().result(DEADLINE):
            self.herder.connectors.create("source", CONFIG, TargetState.STOPPED).result(DEADLINE)
        self.inbox.post(lambda: self.configs.put_connector("source", config, TargetState.STOPPED, drained, "source"))
        self.settle()

    def begin_to_alter(self) -> Request[dict[str, Any]]:
        """Ask for offsets, and wait until the connector's class is asked."""
        altering = self.herder.offsets.alter("source", [ITEM])
        wait_until("its class is asked", lambda: self.asked.is_set() or altering.done())
        assert not altering.done(), altering.exception()
        return altering

    def is_altered(self) -> bool:
        return self.offsets.altered == [[({"f": "a"}, {"p": 1})]]

    def joins(self, *, leads: bool) -> None:
        """There is another generation, led by this worker or another."""
        url = "http://here:8083/" if leads else "http://other:8083/"
        self.place.tell(
            Joined(
                self.place.generation + 1,
                "me",
                2,
                url,
                mismatch=False,
                config_offset=-1,
                held=frozenset(),
                revoked=frozenset(),
                division=Division({}, frozenset()) if leads else None,
            )
        )
        self.settle()


@pytest.fixture
def leader() -> Iterator[Leader]:
    leader = Leader()
    yield leader
    leader.agree.set()
    leader.herder.close()


def test_a_run_by_the_clock_waits_until_offsets_are_altered(leader: Leader) -> None:
    leader.create(CONFIG)
    altering = leader.begin_to_alter()
    # By now its time has come.
    leader.create(BY_THE_CLOCK, LONG_AGO)
    leader.settle()
    assert leader.configs.targets == []
    leader.agree.set()
    altering.result(DEADLINE)
    wait_until("it runs by its schedule", lambda: leader.configs.targets == [TargetState.STARTED])


def test_a_connector_that_the_clock_is_starting_is_not_taken_for_stopped(leader: Leader) -> None:
    leader.configs.slow = []
    leader.create(BY_THE_CLOCK, LONG_AGO)
    [(_, written)] = leader.configs.slow
    altering = leader.herder.offsets.alter("source", [ITEM])
    leader.settle()
    assert not leader.asked.is_set()
    assert not altering.done()
    leader.inbox.post(lambda: MemoryConfigStore.put_target_state(leader.configs, "source", TargetState.STARTED))
    leader.inbox.post(lambda: written.set_result(None))
    with pytest.raises(ConnectError, match="must be in the STOPPED state"):
        altering.result(DEADLINE)


def test_a_resume_that_is_being_written_goes_before_what_needs_the_connector_stopped(leader: Leader) -> None:
    leader.create(CONFIG)
    leader.configs.slow = []
    resumed = leader.herder.connectors.set_target_state("source", TargetState.STARTED)
    altering = leader.herder.offsets.alter("source", [ITEM])
    leader.settle()
    [(_, written)] = leader.configs.slow
    leader.inbox.post(lambda: MemoryConfigStore.put_target_state(leader.configs, "source", TargetState.STARTED))
    leader.inbox.post(lambda: written.set_result(None))
    resumed.result(DEADLINE)
    with pytest.raises(ConnectError, match="must be in the STOPPED state"):
        altering.result(DEADLINE)


def test_deleting_and_making_it_again_wait_their_turn(leader: Leader) -> None:
    leader.create(CONFIG)
    altering = leader.begin_to_alter()
    deleted = leader.herder.connectors.delete("source")
    again = leader.herder.connectors.put_config("source", CONFIG)
    resumed = leader.herder.connectors.set_target_state("source", TargetState.STARTED)
    leader.settle()
    assert [request.done() for request in (altering, deleted, again, resumed)] == [False] * 4
    assert "modifying the offsets of connector source" in deleted.stage[0]
    assert leader.configs.connectors()["source"].target is TargetState.STOPPED
    leader.agree.set()
    altering.result(DEADLINE)
    deleted.result(DEADLINE)
    assert leader.is_altered()
    # The two came after it, in the order in which they were ready: one of them may find no connector.
    again.result(DEADLINE)
    with contextlib.suppress(NotFoundError):
        resumed.result(DEADLINE)
    assert leader.configs.connectors()["source"].target is TargetState.STARTED


def test_a_connector_of_that_name_is_not_made_twice(leader: Leader) -> None:
    leader.create(CONFIG)
    altering = leader.begin_to_alter()
    with pytest.raises(AlreadyExistsError):
        leader.herder.connectors.create("source", CONFIG).result(DEADLINE)
    with pytest.raises(ConflictError, match="offsets of connector source are being modified"):
        leader.herder.offsets.alter("source", [ITEM]).result(DEADLINE)
    leader.agree.set()
    altering.result(DEADLINE)


def test_tasks_that_may_run_elsewhere_are_waited_for(leader: Leader) -> None:
    leader.create(CONFIG)
    leader.place.run_elsewhere = {"source"}
    altering = leader.herder.offsets.alter("source", [ITEM])
    leader.settle()
    assert altering.stage[0] == "waiting for the tasks of connector source to stop"
    assert not leader.asked.is_set()
    leader.place.run_elsewhere = set()
    leader.agree.set()
    altering.result(DEADLINE)
    assert leader.is_altered()


@pytest.mark.parametrize("how", ["another leads", "the group is lost", "the worker ends"])
def test_what_was_begun_ends_with_the_lead_and_is_told(leader: Leader, how: str) -> None:
    leader.create(CONFIG)
    altering = leader.begin_to_alter()
    resumed = leader.herder.connectors.set_target_state("source", TargetState.STARTED)
    leader.settle()
    stopped: Future[None] = Future()
    if how == "another leads":
        leader.joins(leads=False)
    elif how == "the group is lost":
        leader.place.tell(Lost(stopped, 0))
    else:
        leader.herder.close()
    with pytest.raises(ConnectError, match=r"cancelled while modifying the offsets .* It may be partly done"):
        altering.result(DEADLINE)
    with pytest.raises((NotLeaderError, RebalanceInProgressError)):
        resumed.result(DEADLINE)
    assert leader.ended.wait(DEADLINE), "its process is ended"
    if how == "the group is lost":
        stopped.result(DEADLINE)
    leader.agree.set()
    assert leader.offsets.altered == []
    assert leader.configs.targets == []


def test_a_replay_to_the_topic_ends_with_the_lead_too(leader: Leader) -> None:
    leader.herder.connectors.create("sink", CONFIG | {"name": "sink"}).result(DEADLINE)
    replaying = leader.herder.dead_letters.replay("sink", {"to": "topic", "selection": "all"})
    wait_until("it is under way", leader.asked.is_set)
    leader.joins(leads=False)
    with pytest.raises(ConnectError, match=r"cancelled while replaying records .* It may be partly done"):
        replaying.result(DEADLINE)
    assert leader.ended.wait(DEADLINE), "the next leader may be asked for it again"


def test_a_leader_that_leads_again_knows_nothing_of_what_was_before(leader: Leader) -> None:
    leader.create(CONFIG)
    altering = leader.begin_to_alter()
    leader.joins(leads=False)
    assert altering.exception(DEADLINE) is not None
    leader.joins(leads=True)
    leader.agree.set()
    leader.herder.offsets.alter("source", [ITEM]).result(DEADLINE)
    assert leader.is_altered()


@pytest.mark.parametrize("removed", [True, False])
def test_what_another_writer_starts_or_removes_is_left_alone(leader: Leader, removed: bool) -> None:
    leader.create(CONFIG)
    altering = leader.begin_to_alter()

    def another() -> None:
        if removed:
            leader.configs.remove_connector("source")
        else:
            leader.configs.put_target_state("source", TargetState.STARTED)

    leader.inbox.post(another)
    with pytest.raises(ConnectError, match="started or removed by another worker"):
        altering.result(DEADLINE)
    assert leader.ended.wait(DEADLINE)
    assert leader.offsets.altered == []


def test_a_leader_whose_lease_is_over_writes_nothing(leader: Leader) -> None:
    leader.create(CONFIG)
    leader.lease.renew(Moment.now().after(-1))
    for request in (
        leader.herder.connectors.set_target_state("source", TargetState.STARTED),
        leader.herder.offsets.alter("source", [ITEM]),
        leader.herder.connectors.delete("source"),
    ):
        with pytest.raises(RebalanceInProgressError):
            request.result(DEADLINE)
    leader.create(BY_THE_CLOCK, LONG_AGO)
    leader.settle()
    assert (leader.configs.targets, leader.offsets.altered) == ([], [])


def test_what_waits_for_its_turn_is_not_done_after_the_lease(leader: Leader) -> None:
    leader.create(CONFIG)
    altering = leader.begin_to_alter()
    resumed = leader.herder.connectors.set_target_state("source", TargetState.STARTED)
    leader.settle()
    leader.lease.renew(Moment.now().after(-1))
    leader.agree.set()
    altering.result(DEADLINE)
    with pytest.raises(RebalanceInProgressError):
        resumed.result(DEADLINE)
    assert leader.configs.targets == []


def test_a_request_that_was_broken_off_keeps_that_answer() -> None:
    request: Request[str] = Request()
    request.break_off(ConnectError("broken off"))
    request.set_result("too late")
    request.set_exception(ConnectError("later still"))
    assert str(request.exception(0)) == "broken off"
