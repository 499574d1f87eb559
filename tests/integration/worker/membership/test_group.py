"""Workers find each other through the broker's group coordinator and divide the work, each unit for one at a time."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove

from equipment.waiting import wait_until
from equipment.workers.members import Configs, MemberWorker, distributed_props
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker
from worker.processes.clock import LONG_AGO, Moment
from worker.stores.config.store import ConfigSnapshot
from worker.unit import Unit

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),  # kafka-python's import
]

SESSION = 6.0
TESTS = Path(__file__).parents[3]


@pytest.fixture
def workers(bootstrap: str, topic: str) -> Iterator[Callable[..., MemberWorker]]:
    """Makes members of one group and starts them; keys with underscores for dots."""
    made: list[MemberWorker] = []

    def make(configs: Configs, **keys: str) -> MemberWorker:
        url = f"http://w{len(made)}:8083/"
        made.append(MemberWorker(url, distributed_props(bootstrap, topic, **keys), configs))
        return made[-1].start()

    yield make
    for worker in made:
        worker.close()


def balanced(configs: Configs, *members: MemberWorker) -> bool:
    """Whether the members are at rest and run everything, each once and about as much as the others."""
    tasks = configs.snapshot(-1).result().tasks
    configured = {Unit(name, task) for name, count in tasks.items() for task in range(-1, count)}
    running = [unit for member in members for unit in member.running]
    shares = [sum(unit.is_task for unit in member.running) for member in members]
    return (
        sorted(running) == sorted(configured)
        and max(shares) - min(shares) <= 1
        and not any(member.membership.rebalancing for member in members)
        and len({member.membership.generation for member in members}) == 1
    )


def settle(configs: Configs, *members: MemberWorker) -> None:
    """Wait until the members are balanced."""
    wait_until("the members are balanced", lambda: balanced(configs, *members))


def test_two_members_share_and_follow_changes(workers: Callable[..., MemberWorker]) -> None:
    configs = Configs({"c": 4})
    first = workers(configs)
    settle(configs, first)
    second = workers(configs)
    settle(configs, first, second)

    leader, follower = (first, second) if first.membership.is_leader else (second, first)
    assert not follower.membership.is_leader
    assert follower.membership.leader_url == leader.url
    for member in (leader, follower):
        assert all(leader.membership.owner_url(unit) == member.url for unit in member.running)

    seen = {member: len(member.joined) for member in (leader, follower)}
    offset = configs.put("d", 3)
    for member in (leader, follower):
        member.membership.rejoin("there is another connector", offset)
    settle(configs, first, second)
    assert not any(event.revoked for member in seen for event in member.joined[seen[member] :])
    rounds = first.membership.generation
    first.membership.rejoin("again", offset)

    second.close()
    settle(configs, first)
    assert first.membership.generation == rounds + 1
    assert not first.lost
    assert not first.refused


def test_signs_of_life_come_more_often_than_they_have_to(workers: Callable[..., MemberWorker]) -> None:
    member = workers(Configs({"c": 1}), session_timeout_ms="300000", heartbeat_interval_ms="100000")
    wait_until("there are many", lambda: len(member.sessions) >= 5)


def test_three_members_in_turn(workers: Callable[..., MemberWorker]) -> None:
    configs = Configs({"c": 7, "d": 2})
    members = [workers(configs) for _ in range(3)]
    settle(configs, *members)
    members.pop(0).close()
    settle(configs, *members)
    sessions = members[0].sessions
    wait_until("signs of life go on", lambda: len(sessions) > 3 and sessions[-1] > Moment.now().after(SESSION / 2))
    assert sessions == sorted(sessions)
    assert max(sessions) < Moment.now().after(SESSION), "no more is claimed than is certain"


def test_what_is_revoked_is_nobody_elses_until_it_has_stopped(workers: Callable[..., MemberWorker]) -> None:
    configs = Configs({"c": 4})
    first = workers(configs)
    settle(configs, first)
    first.hold_revoked.set()
    second = workers(configs)
    revoking = wait_until("units are revoked", lambda: next((e for e in first.joined if e.revoked), None))
    # The third has the second join again, which waits for the first: for longer than its session.
    third = workers(configs)
    rounds, since = len(first.joined), Moment.now()
    wait_until(
        "signs of life are given", lambda: all(m.sessions[-1] > since.after(2 * SESSION) for m in (first, second))
    )
    assert len(first.joined) == rounds
    assert not second.running & first.running
    start = time.monotonic()
    third.close()
    assert time.monotonic() - start < 10
    first.hold_revoked.clear()
    first.release(revoking)
    settle(configs, first, second)
    assert not first.lost
    assert not second.lost


def test_a_member_that_leaves_for_a_while_comes_back(workers: Callable[..., MemberWorker]) -> None:
    configs = Configs({"c": 2})
    first, second = workers(configs), workers(configs)
    settle(configs, first, second)
    second.membership.leave(1.0)
    settle(configs, first)
    assert len(second.lost) == 1
    assert 0 < second.lost[0].within < SESSION
    settle(configs, first, second)


@pytest.mark.thorough
def test_the_delay_is_waited_for_and_a_returning_member_gets_its_work(workers: Callable[..., MemberWorker]) -> None:
    configs = Configs({"c": 2})
    keys = {"scheduled_rebalance_max_delay_ms": "10000"}
    first, second = workers(configs, **keys), workers(configs, **keys)
    settle(configs, first, second)
    # The leader is the one that knows what is lost.
    leader, follower = (first, second) if first.membership.is_leader else (second, first)
    own = follower.running
    follower.close()
    left = time.monotonic()
    third = workers(configs, **keys)
    settle(configs, leader, third)
    assert time.monotonic() - left > 9.0
    assert third.running == own


def test_eager_members_drop_everything_before_each_round(workers: Callable[..., MemberWorker]) -> None:
    configs = Configs({"c": 3})
    first = workers(configs, connect_protocol="eager")
    settle(configs, first)
    second = workers(configs, connect_protocol="eager")
    settle(configs, first, second)
    assert first.lost
    assert all(event.protocol_version == 0 for event in first.joined)


def test_a_mixed_group_speaks_what_all_know(workers: Callable[..., MemberWorker]) -> None:
    configs = Configs({"c": 3})
    first = workers(configs)
    settle(configs, first)
    assert first.joined[-1].protocol_version == 2
    second = workers(configs, connect_protocol="compatible")
    settle(configs, first, second)
    assert first.joined[-1].protocol_version == second.joined[-1].protocol_version == 1
    third = workers(configs, connect_protocol="eager")
    settle(configs, first, second, third)
    assert third.joined[-1].protocol_version == first.joined[-1].protocol_version == 0


def test_a_leader_with_old_configurations_assigns_nothing(workers: Callable[..., MemberWorker]) -> None:
    configs, old = Configs({"c": 2}), Configs({"c": 2})
    first = workers(old, worker_sync_timeout_ms="200")
    settle(old, first)
    offset = configs.put("d", 1)
    second = workers(configs)
    wait_until("the leader is behind", lambda: first.joined[-1].mismatch)
    assert first.joined[-1].held == first.running
    assert first.membership.rebalancing
    assert not second.running
    assert old.put("d", 1) == offset
    first.membership.rejoin("the configurations are read", offset)
    settle(configs, first, second)


def test_a_session_timeout_that_the_broker_refuses(workers: Callable[..., MemberWorker]) -> None:
    worker = workers(Configs({"c": 1}), session_timeout_ms="7200000")
    wait_until("it is refused", lambda: worker.refused)
    assert "session.timeout.ms" in worker.refused[0].message
    assert not worker.joined


def test_a_static_member_gets_its_work_back(workers: Callable[..., MemberWorker]) -> None:
    """Nobody else stops anything for that, and all learn where it is now."""
    configs = Configs({"c": 5})
    leader, follower = _static_pair(workers, configs)
    own, others, rounds = follower.running, leader.running, len(leader.joined)
    again = _restarted(workers, follower)
    settle(configs, leader, again)
    wait_until("the leader knows its address", lambda: leader.membership.owner_url(min(own)) == again.url)
    assert (leader.running, again.running) == (others, own)
    assert not any(event.revoked for event in leader.joined[rounds:])
    assert not leader.lost


def test_a_static_member_of_an_eager_group_gets_its_work_back_without_a_round(
    workers: Callable[..., MemberWorker],
) -> None:
    configs = Configs({"c": 5})
    leader, follower = _static_pair(workers, configs, connect_protocol="eager")
    own, rounds = follower.running, len(leader.joined)
    again = _restarted(workers, follower, connect_protocol="eager")
    settle(configs, leader, again)
    signs = {member: len(member.sessions) for member in (leader, again)}
    wait_until("both stay", lambda: all(len(member.sessions) >= before + 3 for member, before in signs.items()))
    assert (again.running, len(leader.joined)) == (own, rounds)


def test_a_static_leader_that_restarts_leads_again(workers: Callable[..., MemberWorker]) -> None:
    """At another address, too."""
    configs = Configs({"c": 5})
    leader, follower = _static_pair(workers, configs)
    again = _restarted(workers, leader)
    settle(configs, follower, again)
    wait_until("it leads", lambda: again.membership.is_leader)
    wait_until("the other knows its address", lambda: follower.membership.leader_url == again.url)


def _static_pair(
    workers: Callable[..., MemberWorker], configs: Configs, **keys: str
) -> tuple[MemberWorker, MemberWorker]:
    """The leader and the follower of a group of two static members."""
    members = []
    for name in ("one", "two"):
        # Nothing here waits for the end of a session.
        members.append(workers(configs, group_instance_id=name, session_timeout_ms="60000", **keys))
        settle(configs, *members)
    first, second = members
    return (first, second) if first.membership.is_leader else (second, first)


def _restarted(workers: Callable[..., MemberWorker], member: MemberWorker, **keys: str) -> MemberWorker:
    """End a member, and start its successor at another address."""
    member.close()
    return workers(member.configs, group_instance_id=member.instance, session_timeout_ms="60000", **keys)


def test_of_two_with_one_instance_id_the_older_is_refused(workers: Callable[..., MemberWorker]) -> None:
    configs = Configs({"c": 2})
    older = workers(configs, group_instance_id="one")
    settle(configs, older)
    newer = workers(configs, group_instance_id="one")
    wait_until("the older one is refused", lambda: older.refused)
    assert "group.instance.id" in older.refused[0].message
    assert older.lost
    settle(configs, newer)


# -- clocks, and a session that is over ------------------------------------------------------------------------------


class JumpingClock:
    """The clock of a machine that was suspended, or paused and set."""

    def __init__(self) -> None:
        self.jump = Moment(0.0, 0.0)

    def __call__(self) -> Moment:
        now = Moment.now()
        return Moment(now.booted + self.jump.booted, now.wall + self.jump.wall)


@pytest.mark.parametrize("jump", [Moment(60.0, 60.0), Moment(0.0, 60.0)])
def test_a_member_whose_machine_was_paused_drops_everything_and_comes_back(
    bootstrap: str, topic: str, jump: Moment
) -> None:
    configs, clock = Configs({"c": 3}), JumpingClock()
    worker = MemberWorker("http://w/", distributed_props(bootstrap, topic), configs, clock=clock).start()
    try:
        settle(configs, worker)
        clock.jump = jump
        wait_until("everything is dropped", lambda: worker.lost)
        wait_until("its processes are told to end", lambda: LONG_AGO in worker.sessions)
        assert worker.lost[0].within == 0
        settle(configs, worker)
        assert len(worker.lost) == 1
        wait_until("the session goes on", lambda: worker.sessions[-1] > clock())
    finally:
        worker.close()


def test_a_clock_that_is_set_back_is_no_matter(bootstrap: str, topic: str) -> None:
    configs, clock = Configs({"c": 1}), JumpingClock()
    worker = MemberWorker("http://w/", distributed_props(bootstrap, topic), configs, clock=clock).start()
    try:
        settle(configs, worker)
        clock.jump = Moment(0.0, -3600.0)
        before = len(worker.sessions)
        wait_until("signs of life go on", lambda: len(worker.sessions) > before + 5)
        assert not worker.lost
    finally:
        worker.close()


def test_the_session_is_over_at_once_when_the_group_does_not_know_a_member_any_more(
    workers: Callable[..., MemberWorker], bootstrap: str, topic: str
) -> None:
    configs = Configs({"c": 3})
    member = workers(configs)
    settle(configs, member)
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.remove_group_members(topic, [MemberToRemove(member_id=member.joined[-1].member_id)])
    wait_until("everything is dropped", lambda: member.lost)
    wait_until("its processes are told to end", lambda: LONG_AGO in member.sessions)
    settle(configs, member)
    wait_until("it has a session again", lambda: member.sessions[-1] > Moment.now())


# -- a broker that does not answer -----------------------------------------------------------------------------------


@pytest.mark.thorough
def test_everything_is_dropped_before_the_session_ends_if_the_broker_is_silent(
    broker_jars: tuple[Path, ...], topic: str, tmp_path: Path
) -> None:
    configs = Configs({"c": 3})
    with EmbeddedBroker(BrokerConfig(folder=tmp_path / "broker", port=0)).lease() as broker:
        keys = {"session_timeout_ms": "15000", "heartbeat_interval_ms": "300"}
        worker = MemberWorker("http://w/", distributed_props(broker.bootstrap_servers, topic, **keys), configs).start()
        try:
            settle(configs, worker)
            os.kill(broker.pid, signal.SIGSTOP)
            wait_until("everything is dropped", lambda: worker.lost)
            assert Moment.now() < worker.sessions[-1]
            assert 0 < worker.lost[0].within < 5
            assert not worker.running
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        settle(configs, worker)
        assert len(worker.lost) == 1
        worker.close()


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_broker_that_is_not_there_is_said_once(topic: str, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    asked: list[int] = []
    configs = CountedConfigs({"c": 1}, asked)
    worker = MemberWorker("http://w/", distributed_props(address, topic), configs).start()
    wait_until("it has tried twice", lambda: len(asked) >= 3)
    start = time.monotonic()
    worker.close()
    assert time.monotonic() - start < 10
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert address in caplog.records[0].getMessage()
    assert not worker.events
    del worker
    gc.collect()  # kafka-python leaves sockets that could not connect to it


class CountedConfigs(Configs):
    """Configurations that keep how often they were asked for: once before each attempt to join."""

    def __init__(self, tasks: dict[str, int], asked: list[int]) -> None:
        super().__init__(tasks)
        self._asked = asked

    def snapshot(self, offset: int) -> Future[ConfigSnapshot]:
        self._asked.append(offset)
        return super().snapshot(offset)


# -- processes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """What a member's process wrote: when, after which event, and the tasks it runs from then on."""

    at: float
    event: str
    tasks: frozenset[int]


class MemberProcess:
    """A member in a process of its own, which can be killed and frozen."""

    def __init__(self, folder: Path, url: str, *arguments: str) -> None:
        self.url = url
        self._output = folder / f"{url.rpartition('/')[2]}.txt"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "equipment.workers.members", url, *arguments],
                cwd=TESTS,
                env={"PYTHONPATH": f"{TESTS}:{TESTS.parent}", "PATH": ""},
                stdin=subprocess.PIPE,
                stdout=output,
            )

    def lines(self) -> list[Line]:
        """What it has written."""
        lines = [line.split(" ") for line in self._output.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [
            Line(float(at), event, frozenset(int(task) for task in tasks.strip().split(",") if task.strip()))
            for _, at, event, tasks in lines
        ]

    def tasks(self) -> frozenset[int]:
        """What it runs."""
        lines = self.lines()
        return lines[-1].tasks if lines else frozenset()

    def end(self) -> None:
        """Have it leave and wait for it."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            self.process.communicate(timeout=10)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start_pair(bootstrap: str, tmp_path: Path) -> Iterator[Callable[[str], list[MemberProcess]]]:
    """Starts two members of a group in processes. They share five units: the connector and four tasks."""
    made: list[MemberProcess] = []

    def start(group: str) -> list[MemberProcess]:
        folder = tmp_path / group
        folder.mkdir()
        pair = [MemberProcess(folder, f"http://h/w{n}", bootstrap, group, "c", "4") for n in range(2)]
        made.extend(pair)
        return pair

    yield start
    for process in made:
        process.end()


def wait_for_balance(pair: list[MemberProcess]) -> None:
    wait_until("both are balanced", lambda: sorted(len(p.tasks() - {-1}) for p in pair) == [2, 2] and shared(pair))


def shared(processes: list[MemberProcess]) -> bool:
    """Whether the processes run all five units, each once."""
    return sorted(task for process in processes for task in process.tasks()) == [-1, 0, 1, 2, 3]


@pytest.mark.thorough
def test_a_killed_member_is_taken_over_after_its_session(
    start_pair: Callable[[str], list[MemberProcess]], topic: str
) -> None:
    """The member that was started first is killed in one group, the second in the other."""
    pairs = [start_pair(f"{topic}-{victim}") for victim in range(2)]
    for pair in pairs:
        wait_for_balance(pair)
    killed = []
    for victim, pair in enumerate(pairs):
        pair[victim].process.kill()
        killed.append(time.monotonic())
    for victim, pair in enumerate(pairs):
        survivor = pair[1 - victim]
        wait_until("the survivor runs everything", lambda survivor=survivor: shared([survivor]))  # type: ignore[misc]
        took = survivor.lines()[-1].at - killed[victim]
        print(f"\ntakeover {took:.2f} s")
        # The last heartbeat may be some time before the kill, and what the survivor does takes its time on a busy
        # machine, but less than a rebalance is given.
        assert SESSION - 3 < took < SESSION + 40


@pytest.mark.thorough
def test_a_frozen_member_returns_holding_nothing(start_pair: Callable[[str], list[MemberProcess]], topic: str) -> None:
    processes = start_pair(topic)
    wait_for_balance(processes)
    frozen, survivor = processes
    freeze(frozen, processes)
    before = len(frozen.lines())
    wait_until("the survivor runs everything", lambda: shared([survivor]))
    frozen.process.send_signal(signal.SIGCONT)
    woken = time.monotonic()
    wait_until("both run again", lambda: len(frozen.lines()) > before + 1 and shared(processes))
    print(f"\nreturn {frozen.lines()[-1].at - woken:.2f} s")
    after = frozen.lines()[before:]
    assert after[0].event == "Lost"
    assert after[0].tasks == frozenset()
    assert_one_owner_each(processes, since=after[0].at)


def freeze(member: MemberProcess, processes: list[MemberProcess]) -> None:
    """Freeze a member that holds its part: on a busy machine it may be lost for a moment before."""

    stat = Path(f"/proc/{member.process.pid}/stat")

    def frozen() -> bool:
        wait_until("both hold their parts", lambda: shared(processes))
        member.process.send_signal(signal.SIGSTOP)
        wait_until("it is stopped", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        if shared(processes):
            return True
        member.process.send_signal(signal.SIGCONT)
        return False

    wait_until("it is frozen while it holds its part", frozen)


def assert_one_owner_each(processes: list[MemberProcess], since: float) -> None:
    """No unit was run by two at a time. The clock is one for all processes of the machine."""
    told = sorted((line.at, number, line.tasks) for number, process in enumerate(processes) for line in process.lines())
    running: dict[int, frozenset[int]] = {}
    for at, number, tasks in told:
        running[number] = tasks
        if at >= since:
            owned = [task for tasks in running.values() for task in tasks]
            assert len(owned) == len(set(owned)), told
