"""Whatever joins, leaves and changes: no unit is held twice, and in the end each is held once and evenly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from worker.membership.assignor import AssignorState, Round, assign, round_robin, units_of
from worker.unit import Unit

NAMES = st.sampled_from(["a", "b", "c", "d"])
WORKERS = st.sampled_from(["w1", "w2", "w3", "w4", "w5"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), WORKERS),
        st.tuples(st.just("leave"), WORKERS),
        st.tuples(st.just("forget"), WORKERS),
        st.tuples(st.just("return"), WORKERS),
        st.tuples(st.just("elect")),
        st.tuples(st.just("configure"), NAMES, st.integers(0, 7)),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("wait"), st.integers(0, 4000)),
        st.tuples(st.just("drain"), WORKERS),
        st.tuples(st.just("undrain"), WORKERS),
        st.tuples(st.just("unsynced")),
        st.tuples(st.just("round")),
    ),
    max_size=40,
)
DELAYS = st.sampled_from([0, 1000, 300_000])


class Cluster:
    """Workers that do as they are told, in rounds that the leader of the moment assigns."""

    def __init__(self, max_delay: int) -> None:
        self.max_delay = max_delay
        self.now = 0
        self.generation = 0
        self.completed = 0
        self.state = AssignorState()
        self.tasks: dict[str, int] = {}
        self.held: dict[str, frozenset[Unit]] = {"w0": frozenset()}
        self.draining: set[str] = set()
        self.returned = 0

    def do(self, what: str, *arguments: Any) -> None:
        match what, arguments:
            case "join", (worker,):
                self.held.setdefault(worker, frozenset())
            case "leave", (worker,):
                self.held.pop(worker, None)
                self.draining.discard(worker)
            case "drain", (worker,) if worker in self.held:
                self.draining.add(worker)
            case "undrain", (worker,):
                self.draining.discard(worker)
            case "forget", (worker,) if worker in self.held:
                self.held[worker] = frozenset()
            case "return", (worker,):
                self.returns(worker)
            case "elect", ():
                self.state = AssignorState()
            case "configure", (name, count):
                self.tasks[name] = count
            case "delete", (name,):
                self.tasks.pop(name, None)
            case "wait", (milliseconds,):
                self.now += milliseconds
            case "unsynced", ():
                self.assigned()
            case "round", ():
                self.round()

    def returns(self, worker: str) -> None:
        """Have the worker at a URL join without units, as another member than before."""
        former = [member for member in self.held if _url(member) == _url(worker)]
        for member in former:
            del self.held[member]
            self.draining.discard(member)
        self.returned += 1
        self.held[f"{_name(worker)}.{self.returned}"] = frozenset()

    def at(self, worker: str) -> frozenset[Unit]:
        """What the member at the URL of a worker holds."""
        return frozenset().union(*(units for member, units in self.held.items() if _url(member) == _url(worker)))

    def assigned(self) -> Round:
        """A round that the leader works out; what the members then get is another matter."""
        self.generation += 1
        outcome = assign(
            self.state,
            units_of(self.tasks),
            self.held,
            now=self.now,
            max_delay=self.max_delay,
            generation=self.generation,
            last_generation=self.completed,
            draining=self.draining,
            urls={member: _url(member) for member in self.held},
        )
        self.state = outcome.state
        return outcome

    def round(self) -> Round:
        """A round that every member completes."""
        before = frozenset().union(*self.held.values())
        outcome = self.assigned()
        self.completed = self.generation
        for worker, increments in outcome.increments.items():
            assert increments.revoked <= self.held[worker]
            assert not increments.assigned & before, "given away while somebody had it"
            self.held[worker] = (self.held[worker] - increments.revoked) | increments.assigned
        self.check(outcome)
        return outcome

    def check(self, outcome: Round) -> None:
        held = [unit for units in self.held.values() for unit in units]
        assert len(held) == len(set(held)), "held twice"
        assert set(held) <= units_of(self.tasks), "held and not configured"
        assert outcome.owners == {unit: worker for worker, units in self.held.items() for unit in units}
        assert 0 <= outcome.delay <= self.max_delay
        if self.draining < self.held.keys():
            assert not any(self.held[worker] for worker in self.draining), "a drained worker holds something"

    def settle(self) -> None:
        """Do what members do: join again after a revocation, and after a delay."""
        quiet = 0
        for _ in range(200):
            outcome = self.round()
            self.now += outcome.delay
            changed = any(item.assigned or item.revoked for item in outcome.increments.values())
            quiet = 0 if changed or outcome.delay else quiet + 1
            if quiet == 2:
                return
        raise AssertionError("it does not come to rest")


def _name(member: str) -> str:
    return member.partition(".")[0]


def _url(member: str) -> str:
    return f"http://{_name(member)}:8083/"


def _shares(held: Mapping[str, frozenset[Unit]], *, tasks: bool) -> list[int]:
    return [sum(unit.is_task is tasks for unit in units) for units in held.values()]


@settings(deadline=None)
@given(STEPS, DELAYS)
def test_everything_is_held_once_and_evenly_in_the_end(steps: list[tuple[Any, ...]], max_delay: int) -> None:
    cluster = Cluster(max_delay)
    for step in steps:
        cluster.do(*step)
    cluster.settle()
    held = [unit for units in cluster.held.values() for unit in units]
    assert sorted(held) == sorted(units_of(cluster.tasks))
    staying = {worker: units for worker, units in cluster.held.items() if worker not in cluster.draining}
    for tasks in (False, True):
        shares = _shares(staying or cluster.held, tasks=tasks)
        assert max(shares) - min(shares) <= 1


@given(st.dictionaries(WORKERS, st.frozensets(st.sampled_from(sorted(units_of({"a": 3, "b": 2})))), min_size=1))
def test_what_was_held_twice_is_taken_from_all(held: dict[str, frozenset[Unit]]) -> None:
    cluster = Cluster(0)
    cluster.held, cluster.tasks = dict(held), {"a": 3, "b": 2}
    cluster.settle()
    assert sorted(unit for units in cluster.held.values() for unit in units) == sorted(units_of(cluster.tasks))


def test_a_lost_unit_waits_for_its_worker_and_others_do_not() -> None:
    cluster = Cluster(1000)
    cluster.tasks = {"a": 2}
    cluster.held = {"w1": frozenset(), "w2": frozenset()}
    cluster.settle()
    del cluster.held["w2"]
    cluster.tasks["b"] = 1
    outcome = cluster.round()
    assert outcome.delay == 1000
    lost = units_of(cluster.tasks) - outcome.owners.keys()
    assert len(lost) == 1
    assert Unit("b") in outcome.owners
    cluster.now += 1000
    assert cluster.round().increments["w1"].assigned == lost


def test_a_worker_that_comes_back_without_its_work_gets_it_at_once() -> None:
    cluster = Cluster(300_000)
    cluster.tasks = {"a": 3}
    cluster.held["w1"] = frozenset()
    cluster.settle()
    cluster.held["w1"] = frozenset()
    outcome = cluster.round()
    assert outcome.delay == 0
    assert outcome.owners.keys() == units_of(cluster.tasks)


def test_a_cluster_of_one_is_not_its_own_lost_worker() -> None:
    cluster = Cluster(300_000)
    cluster.tasks = {"a": 3}
    cluster.settle()
    cluster.returns("w0")
    outcome = cluster.round()
    assert (outcome.delay, cluster.at("w0")) == (0, units_of({"a": 3}))


def test_each_worker_that_returns_gets_what_it_had_while_the_others_wait() -> None:
    """As after a hang of the broker, when every member has lost its place and they join again one after the other."""
    cluster = Cluster(300_000)
    cluster.tasks = {"a": 5}
    cluster.held = dict.fromkeys(("w0", "w1", "w2"), frozenset())
    cluster.settle()
    before = {name: cluster.held[name] for name in ("w0", "w1", "w2")}
    cluster.held = {}
    cluster.returns("w0")
    assert cluster.round().delay == 300_000
    assert cluster.at("w0") == before["w0"]
    cluster.now += 1000
    cluster.returns("w2")
    assert cluster.round().delay == 299_000
    assert {name: cluster.at(name) for name in before} == {**before, "w1": frozenset()}
    cluster.returns("w1")
    assert cluster.round().delay == 0
    assert {name: cluster.at(name) for name in before} == before


def test_one_who_returns_late_or_elsewhere_gets_nothing_back() -> None:
    cluster = Cluster(1000)
    cluster.tasks = {"a": 2}
    cluster.held["w1"] = frozenset()
    cluster.settle()
    lost = cluster.held.pop("w1")
    cluster.held["w2"] = frozenset()
    assert cluster.round().delay == 1000
    assert cluster.at("w2") == frozenset(), "another URL waits like everybody"
    cluster.now += 1000
    assert cluster.round().delay == 0
    assert cluster.at("w2") == lost
    cluster.returns("w1")
    cluster.round()
    assert cluster.at("w1") == frozenset()


def test_the_work_of_one_who_returns_drained_goes_to_the_others() -> None:
    cluster = Cluster(300_000)
    cluster.tasks = {"a": 3}
    cluster.held["w1"] = frozenset()
    cluster.settle()
    cluster.returns("w1")
    cluster.draining = {"w1.1"}
    assert cluster.round().delay == 0
    assert cluster.at("w0") == units_of({"a": 3})


def test_one_who_returns_beside_a_new_worker_shares_with_it_at_once() -> None:
    cluster = Cluster(300_000)
    cluster.tasks = {"a": 8}
    cluster.held["w1"] = frozenset()
    cluster.settle()
    cluster.returns("w1")
    cluster.held["w2"] = frozenset()
    cluster.round()
    assert all(cluster.held[worker] for worker in ("w0", "w1.1", "w2"))
    cluster.settle()
    assert sorted(_shares(cluster.held, tasks=True)) == [2, 3, 3]


def test_two_at_one_url_share_without_doubling() -> None:
    cluster = Cluster(300_000)
    cluster.tasks = {"a": 3}
    cluster.held["w1"] = frozenset()
    cluster.settle()
    cluster.returns("w1")
    cluster.held["w1.9"] = frozenset()
    assert cluster.round().delay == 0
    cluster.settle()
    held = [unit for units in cluster.held.values() for unit in units]
    assert sorted(held) == sorted(units_of({"a": 3}))


def test_the_work_of_a_drained_worker_is_run_by_others_after_two_rounds_and_comes_back() -> None:
    cluster = Cluster(300_000)
    cluster.tasks = {"a": 3}
    cluster.held["w1"] = frozenset()
    cluster.settle()
    cluster.draining = {"w1"}
    assert cluster.round().delay == 0, "nothing waits"
    assert cluster.held["w1"] == frozenset()
    assert cluster.round().owners == dict.fromkeys(units_of(cluster.tasks), "w0")
    del cluster.held["w1"]
    assert cluster.round().delay == 0, "a worker that held nothing is not waited for"
    cluster.draining, cluster.held["w1"] = set(), frozenset()
    cluster.settle()
    assert _shares(cluster.held, tasks=True) in ([1, 2], [2, 1])


def test_work_stays_where_it_is_if_every_worker_is_drained() -> None:
    cluster = Cluster(300_000)
    cluster.tasks, cluster.draining = {"a": 1}, {"w0"}
    cluster.settle()
    assert cluster.held["w0"] == units_of(cluster.tasks)


@given(st.dictionaries(NAMES, st.integers(0, 9)), st.sets(WORKERS, min_size=1))
def test_round_robin_deals_everything_evenly(tasks: dict[str, int], members: set[str]) -> None:
    hands = round_robin(units_of(tasks), members)
    assert hands.keys() == members
    assert sorted(unit for units in hands.values() for unit in units) == sorted(units_of(tasks))
    assert max(map(len, hands.values())) - min(map(len, hands.values())) <= 1
