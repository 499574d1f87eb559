"""What a worker does when the group divides its work anew, over children that are threads."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from multiprocessing.connection import Connection

import pytest

from connect.errors import ConnectError
from connect.internals.plugins import PluginRegistry
from equipment.fakes.herding import Clock, Place, WorkedInbox
from equipment.waiting import wait_until
from worker.errors import NotAssignedError, NotLeaderError, UnavailableError
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.inquiries import Inquiries
from worker.herder.settings import ClusterSettings, Stores, WorkerSettings
from worker.membership.events import Division, Joined, Lost, Refused
from worker.messages import messages
from worker.messages.messages import decode, encode
from worker.peers.leader import Publication
from worker.processes.clock import LONG_AGO
from worker.processes.lease import Lease
from worker.stores.config.store import ConfigSnapshot, MemoryConfigStore, SessionKey
from worker.stores.status.store import MemoryStatusStore, State, Status
from worker.supervisor.notices import Answered
from worker.supervisor.process import ThreadLauncher
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

DEADLINE = 10.0
CONNECTOR, TASK = Unit("source"), Unit("source", 0)


def child(connection: Connection) -> None:
    """Starts, says something when a level is set, and stops when it is told to."""
    first = decode(connection.recv_bytes())
    with contextlib.suppress(EOFError, OSError):
        connection.send_bytes(encode(messages.Started("1.0")))
        if isinstance(first, messages.RunConnector):
            connection.send_bytes(encode(messages.TaskConfigs([{"n": "0"}])))
        while not isinstance(command := decode(connection.recv_bytes()), messages.Stop):
            if isinstance(command, messages.SetLogLevel):
                say_all(connection, isinstance(first, messages.RunConnector))


def say_all(connection: Connection, is_connector: bool) -> None:
    """Say what counts only as long as this process is the one that runs its unit; the metrics come last."""
    reports = [messages.TaskConfigs([{"n": "1"}])] if is_connector else [messages.ActiveTopics(["late"])]
    for report in (*reports, messages.Metrics({"connector" if is_connector else "task": 1.0})):
        connection.send_bytes(encode(report))


class OffsetStore(MemoryConfigStore):
    """A store that knows how far it has read, and reads on when it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.offset, self.end = 5, 5

    def snapshot(self) -> ConfigSnapshot:
        return ConfigSnapshot(self.offset, super().snapshot().tasks)

    def read_to_end(self) -> Future[None]:
        self.offset = self.end
        return super().read_to_end()


class FarLeader:
    """The leader, elsewhere, which answers when the test says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Future[None]]] = []

    def post_task_configs(
        self,
        url: str,
        connector: str,
        configs: Sequence[Mapping[str, str]],
        publication: Publication,
        key: SessionKey | None,
    ) -> Future[None]:
        self.asked.append((connector, Future()))
        return self.asked[-1][1]

    def fence(self, url: str, connector: str, key: SessionKey | None) -> Future[None]:
        raise AssertionError("nothing is fenced here")


class Member:
    """A worker whose group is the test."""

    def __init__(self) -> None:
        self.configs, self.statuses, self.place, self.lease = OffsetStore(), MemoryStatusStore(), Place(), Lease()
        self.leader, self.clock = FarLeader(), Clock()
        self.place.held, self.place.is_leader, self.place.leader_url = frozenset(), False, None
        settings = ClusterSettings(
            leader=self.leader,
            owners=None,  # type: ignore[arg-type] - nor of the others
            keys=None,
            verification_algorithms=(),
            lease=self.lease,
            sync_timeout=0.2,
            unsync_backoff=300.0,
            exactly_once=False,
        )
        self.herder = Herder(
            WorkerSettings({"group.id": "g", "config.storage.topic": "configs"}, "here:8083", cluster=settings),
            Stores(self.configs, self.statuses, None),  # type: ignore[arg-type] - no offsets are asked for here
            Inbox(self.clock),
            self.place,
            lambda notify: Supervisor(ThreadLauncher(child), notify, lambda *_: None, 5.0),
            PluginRegistry([]),
        )
        self.herder.start()
        self.settle()

    def settle(self) -> None:
        """Wait until the herder has done what it was told before."""
        self.herder.ping().result(DEADLINE)

    def join(
        self,
        *held: Unit,
        revoked: tuple[Unit, ...] = (),
        offset: int = 5,
        leads: bool = True,
        mismatch: bool = False,
        division: Division | None = None,
    ) -> None:
        generation = self.place.generation + 1
        url = "http://here:8083/" if leads else "http://leader:8083/"
        self.place.tell(
            Joined(
                generation,
                "me",
                2,
                url,
                mismatch=mismatch,
                config_offset=offset,
                held=frozenset(held),
                revoked=frozenset(revoked),
                division=(division or Division({}, frozenset())) if leads else None,
            )
        )
        self.settle()

    def create(self) -> None:
        self.configs.put_connector("source", {"name": "source", "connector.class": "C"}, None)
        self.configs.put_task_configs("source", [{"n": "0"}])

    def state(self, unit: Unit) -> State | None:
        self.settle()
        status = self.statuses.statuses().get(unit)
        return status.state if status is not None else None

    def wait_for(self, unit: Unit, state: State) -> None:
        wait_until(f"{unit} is {state}", lambda: self.state(unit) is state)


@pytest.fixture
def member() -> Iterator[Member]:
    member = Member()
    member.create()
    yield member
    member.herder.close()


def test_only_what_is_held_runs_and_what_is_revoked_stops_before_the_next_round(member: Member) -> None:
    member.join(CONNECTOR, TASK)
    member.wait_for(CONNECTOR, State.RUNNING)
    member.wait_for(TASK, State.RUNNING)
    assert member.statuses.statuses()[TASK].generation == member.place.generation
    member.place.rejoined.clear()
    member.join(CONNECTOR, revoked=(TASK,))
    member.wait_for(TASK, State.UNASSIGNED)
    wait_until("the worker joins again", lambda: member.place.rejoined == [("what was revoked is stopped", None)])
    assert member.state(CONNECTOR) is State.RUNNING


def test_new_connectors_and_tasks_are_divided_anew_once(member: Member) -> None:
    member.join(CONNECTOR)
    member.place.rejoined.clear()
    member.configs.offset = 9
    member.configs.put_connector("other", {"name": "other"}, None)
    wait_until("the worker joins again", lambda: member.place.rejoined)
    assert member.place.rejoined == [("there are other connectors or tasks", 9)]
    member.place.rejoined.clear()
    member.configs.put_connector("other", {"name": "other", "changed": "yes"}, None)
    member.settle()
    member.settle()
    assert member.place.rejoined == []


def test_an_assignment_of_newer_configurations_waits_until_they_are_read(member: Member) -> None:
    member.configs.end = 8
    member.join(CONNECTOR, offset=8)
    member.wait_for(CONNECTOR, State.RUNNING)
    assert member.configs.offset == 8


def test_a_worker_that_cannot_read_them_stays_away(member: Member) -> None:
    member.join(CONNECTOR, offset=20)
    assert member.place.left == []
    member.clock.now += 1.0
    wait_until("the worker leaves", lambda: member.place.left == [300.0])
    assert member.state(CONNECTOR) is None


def test_a_worker_that_is_lost_stops_everything_and_says_nothing_of_it(member: Member) -> None:
    member.join(CONNECTOR, TASK)
    member.wait_for(TASK, State.RUNNING)
    stopped: Future[None] = Future()
    member.place.tell(Lost(stopped, 5.0))
    stopped.result(DEADLINE)
    assert member.state(TASK) is State.RUNNING, "somebody else may run it by now (invariant I6)"
    member.join(TASK)
    wait_until(
        "the task runs again",
        lambda: (
            member.state(TASK) is State.RUNNING
            and member.statuses.statuses()[TASK].generation == member.place.generation
        ),
    )


def test_a_worker_that_has_lost_its_cluster_shows_nothing_as_running(member: Member) -> None:
    member.join(CONNECTOR, TASK)
    member.wait_for(TASK, State.RUNNING)
    stopped: Future[None] = Future()
    member.place.tell(Lost(stopped, 5.0, "the coordinator has not answered for 6.9 s"))
    stopped.result(DEADLINE)
    (trouble,) = member.herder.troubles()
    assert "lost its cluster since 20" in trouble.message
    assert "the coordinator has not answered for 6.9 s" in trouble.message
    assert "Its 1 connector and 1 task are stopped" in trouble.message
    shown = member.herder.connectors.status("source").result(DEADLINE)
    assert [shown["connector"]["state"], shown["tasks"][0]["state"]] == ["UNASSIGNED", "UNASSIGNED"]
    assert "metrics" not in shown["tasks"][0]
    expanded = member.herder.connectors.expanded().result(DEADLINE)
    assert expanded["source"]["status"]["tasks"][0]["state"] == "UNASSIGNED"
    assert member.herder.unready().result(DEADLINE) == [trouble.message]
    cluster = member.herder.cluster.view().result(DEADLINE)
    assert [worker["tasks"] for worker in cluster["workers"]] == [[]]
    assert cluster["troubles"] == [trouble.document()]
    with pytest.raises(UnavailableError, match="lost its cluster"):
        member.herder.connectors.put_config("source", {"connector.class": "C"}).result(DEADLINE)
    member.join(CONNECTOR, TASK)
    wait_until(
        "the task is shown as running again",
        lambda: member.herder.connectors.status("source").result(DEADLINE)["tasks"][0]["state"] == "RUNNING",
    )
    assert member.herder.troubles() == []
    assert member.herder.unready().result(DEADLINE) == []


def test_a_question_that_ends_with_the_cluster_blames_no_plugin() -> None:
    asked: list[int] = []
    inquiries = Inquiries(lambda number, _: asked.append(number), lambda _: None, lambda: "It has lost its cluster")
    inquiry = messages.DescribePlugin({}, "connector", "C", None)
    request = WorkedInbox().run(lambda _: inquiries.ask(inquiry, messages.PluginDescribed))
    inquiries.answered(Answered(asked[0], messages.Failed("The process ended without an answer")))
    with pytest.raises(UnavailableError, match="It has lost its cluster"):
        request.result(DEADLINE)


def test_a_round_of_the_eager_protocol_is_no_loss(member: Member) -> None:
    member.join(CONNECTOR, TASK)
    stopped: Future[None] = Future()
    member.place.tell(Lost(stopped, 5.0))
    stopped.result(DEADLINE)
    assert member.herder.troubles() == []


def test_the_leader_says_what_nobody_runs(member: Member) -> None:
    for unit, state in ((CONNECTOR, State.FAILED), (TASK, State.RUNNING), (Unit("source", 1), State.PAUSED)):
        member.statuses.put(unit, Status(state, "killed:8083", 1, version="7"))
    member.join(leads=False)
    assert member.state(TASK) is State.RUNNING, "only the leader knows who is there"
    member.join(leads=True)
    told = member.statuses.statuses()
    assert [told[unit].state for unit in (CONNECTOR, TASK)] == [State.FAILED, State.UNASSIGNED]
    assert told[Unit("source", 1)].state is State.UNASSIGNED
    assert (told[TASK].worker_id, told[TASK].generation) == ("killed:8083", member.place.generation)


def test_what_a_member_still_holds_or_gets_is_not_disowned(member: Member) -> None:
    for unit in (CONNECTOR, TASK):
        member.statuses.put(unit, Status(State.RUNNING, "other:8083", 1))
    member.join(division=Division({CONNECTOR: "http://other:8083/"}, frozenset({TASK})))
    assert [member.state(unit) for unit in (CONNECTOR, TASK)] == [State.RUNNING, State.RUNNING]


def test_a_group_with_another_config_topic_is_noticed(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    member.place.generation = -1
    request = member.herder.connectors.put_config("source", {"connector.class": "C"})
    member.join(CONNECTOR, offset=20, leads=False)
    wait_until("the worker knows", member.herder.troubles)
    (reason,) = member.herder.unready().result(DEADLINE)[:1]
    assert "led by http://leader:8083/, has read its config topic up to offset 20" in reason
    assert "ends at offset 5" in reason
    assert "another Connect cluster uses group.id=g with other topics" in reason
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [reason]
    with pytest.raises(UnavailableError, match="another Connect cluster"):
        request.result(DEADLINE)
    with pytest.raises(UnavailableError, match="another Connect cluster"):
        member.herder.connectors.put_config("source", {"connector.class": "C"}).result(DEADLINE)


def test_connectors_of_another_cluster_are_not_taken(member: Member) -> None:
    member.join(Unit("theirs"), Unit("theirs", 0), leads=False)
    assert member.place.left == [300.0]
    (trouble,) = member.herder.troubles()
    assert "has assigned connectors that are not in configs, which this worker reads: theirs" in trouble.message


def test_a_leader_that_stays_behind_is_noticed(member: Member) -> None:
    for _ in range(4):
        member.join(mismatch=True, leads=False)
    assert member.herder.troubles() == []
    member.join(mismatch=True, leads=False)
    (trouble,) = member.herder.troubles()
    assert "in 5 rounds, the leader of the group g, http://leader:8083/, could not read" in trouble.message
    member.join(CONNECTOR)
    assert member.herder.troubles() == []


def test_a_worker_whose_lease_is_over_says_nothing(member: Member) -> None:
    member.join(CONNECTOR, TASK)
    member.wait_for(TASK, State.RUNNING)
    member.lease.renew(LONG_AGO)
    member.join(CONNECTOR, revoked=(TASK,))
    wait_until("the task is gone", lambda: ("what was revoked is stopped", None) in member.place.rejoined)
    assert member.state(TASK) is State.RUNNING


@pytest.mark.parametrize("is_over", [False, True])
def test_what_processes_say_after_the_lease_is_not_acted_on(member: Member, is_over: bool) -> None:
    member.join(CONNECTOR, TASK)
    member.wait_for(TASK, State.RUNNING)
    if is_over:
        member.lease.renew(LONG_AGO)
    member.herder.loggers.set_level("a.plugin", "DEBUG").result(DEADLINE)
    both = {"connector": 1.0, "task": 1.0}
    wait_until("they have said all", lambda: member.herder.progress().result(DEADLINE)[0] == both)
    member.settle()
    kept = member.configs.connectors()["source"].task_configs
    assert (kept, member.statuses.topics("source")) == (
        (({"n": "0"},), []) if is_over else (({"n": "1"},), ["late"])
    ), "others may run them, and say something else, by now"


@pytest.mark.parametrize("is_over", [False, True])
def test_a_worker_removes_no_status_after_the_lease(member: Member, is_over: bool) -> None:
    member.join(CONNECTOR, TASK)
    member.wait_for(TASK, State.RUNNING)
    if is_over:
        member.lease.renew(LONG_AGO)
    member.configs.remove_connector("source")
    member.join(revoked=(CONNECTOR, TASK))
    wait_until("both are gone", lambda: ("what was revoked is stopped", None) in member.place.rejoined)
    assert (TASK in member.statuses.statuses()) is is_over, "it may have been made again, and run elsewhere, by now"


def test_a_worker_that_is_lost_does_not_try_on_to_have_task_configs_kept(member: Member) -> None:
    member.configs.put_task_configs("source", [])
    member.join(CONNECTOR, leads=False)
    wait_until("the leader is asked", lambda: member.leader.asked)
    stopped: Future[None] = Future()
    member.place.tell(Lost(stopped, 5.0))
    stopped.result(DEADLINE)
    member.join(leads=False)
    member.leader.asked[0][1].set_exception(ConnectError("no answer"))
    member.settle()
    member.clock.now += 100.0
    member.settle()
    member.settle()
    assert len(member.leader.asked) == 1, "whoever runs the connector now says what it wants"


def test_a_round_is_logged_with_what_this_worker_runs(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    member.join(CONNECTOR)
    assert "http://here:8083/ leads; this worker runs 1 connector or task, stops 0" in caplog.text
    member.join(CONNECTOR, TASK)
    assert "this worker runs 2 connectors or tasks, stops 0" in caplog.text


def test_a_requested_restart_is_logged(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    member.join(CONNECTOR, TASK)
    member.herder.connectors.restart_task("source", 0).result(DEADLINE)
    member.herder.connectors.restart("source", include_tasks=True).result(DEADLINE)
    member.settle()
    logged = [record.getMessage() for record in caplog.records if "as requested" in record.getMessage()]
    assert logged == [f"Restarting {TASK}, as requested", "Restarting source, as requested"]


def test_writes_are_for_the_leader_and_restarts_for_who_runs_the_unit(member: Member) -> None:
    member.join(CONNECTOR, leads=False)
    for refused in (member.herder.connectors.delete("source"), member.herder.connectors.restart_task("source", 0)):
        error = refused.exception(DEADLINE)
        assert isinstance(error, NotLeaderError)
        assert error.url == "http://leader:8083/"
    member.join(CONNECTOR, leads=True)
    error = member.herder.connectors.restart_task("source", 0).exception(DEADLINE)
    assert isinstance(error, NotAssignedError)
    assert error.url == "http://owner-of-source:8083/"


def test_a_worker_that_the_cluster_refuses_ends(member: Member) -> None:
    member.place.tell(Refused("set another group.id"))
    assert "set another group.id" in str(member.herder.drained.exception(DEADLINE))
