"""The assignors, which distribute connectors and tasks over the workers. Pure functions of the state and the time.

:func:`assign` is the incremental cooperative assignor (KIP-415, KIP-726): a worker keeps its units, except those above
its fair share, and unassigned units are distributed. The units of a worker that has left wait up to
``scheduled.rebalance.max.delay.ms`` for its return: a member at the same URL, whether it is the same process under a
new member id or a new one, gets them back at once. (In Kafka Connect, they wait for the end of the delay even then.) A
unit moves to another member only in a round in which its former owner no longer reports it, so no unit runs twice. A
draining worker gives up all its units at once and gets no new
ones, as long as another worker remains. :func:`round_robin` is the eager assignor.

The state of a leader dies with it: the next leader starts from the members' reports, and treats a unit that no member
reports as new, so it is assigned at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from heapq import heapify, heapreplace
from itertools import cycle
from types import MappingProxyType
from typing import Final

from worker.unit import Unit

__all__ = ["AssignorState", "Increments", "Round", "assign", "round_robin", "units_of"]

_FIRST_BACKOFF_MS: Final = 1
_BACKOFF_FACTOR: Final = 40
_NOTHING: Final[frozenset[Unit]] = frozenset()


@dataclass(frozen=True, slots=True)
class AssignorState:
    """The state that the leader keeps from round to round.

    ``previous`` holds the units that should run after the last round, including lost ones, and ``homes`` the URL of the
    worker that runs or last ran each of them; ``scheduled`` is the time in ms until which reassigning them, or revoking
    units, is delayed; ``candidates`` are workers that have had no units since.
    """

    previous: frozenset[Unit] = _NOTHING
    homes: Mapping[Unit, str] = field(default_factory=dict)
    revoked: frozenset[Unit] = _NOTHING
    members: frozenset[str] = frozenset()
    candidates: frozenset[str] = frozenset()
    scheduled: int | None = None
    revoked_before: bool = False
    revoking_rounds: int = 0
    generation: int = -1


@dataclass(frozen=True, slots=True)
class Increments:
    """The changes for one worker."""

    assigned: frozenset[Unit] = _NOTHING
    revoked: frozenset[Unit] = _NOTHING


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a round. ``delay`` in ms; ``owners`` maps units to workers once all have applied their changes."""

    state: AssignorState
    increments: Mapping[str, Increments]
    delay: int
    owners: Mapping[Unit, str]


@dataclass(slots=True)
class _Plan:
    """A round in progress. ``takers`` are the workers that may get units, ``returned`` units that are given back."""

    loads: dict[str, set[Unit]]
    takers: frozenset[str]
    urls: Mapping[str, str]
    revoked: dict[str, set[Unit]] = field(default_factory=dict)
    returned: set[Unit] = field(default_factory=set)
    free: set[Unit] = field(default_factory=set)

    def revoke(self, worker: str, units: Iterable[Unit]) -> None:
        """Take units from a worker. Those that it was only to be given back in this round are free at once."""
        taken = self.loads[worker].intersection(units)
        self.loads[worker] -= taken
        self.free |= taken & self.returned
        self.revoked.setdefault(worker, set()).update(taken - self.returned)

    def give(self, units: Iterable[Unit]) -> None:
        """Give each unit to the worker with the fewest units of its kind."""
        given = set(units)
        for tasks in (False, True):
            least = [(_count(self.loads[worker], tasks=tasks), worker) for worker in self.takers]
            heapify(least)
            for unit in sorted(unit for unit in given if unit.is_task is tasks):
                count, worker = least[0]
                self.loads[worker].add(unit)
                heapreplace(least, (count + 1, worker))

    def give_back(self, units: Iterable[Unit], homes: Mapping[Unit, str]) -> frozenset[Unit]:
        """Give units to the members at their ``homes``; return the units that cannot be given back.

        A member that is back but being drained gets nothing: its units go to the others.
        """
        at = {self.urls[worker]: worker for worker in sorted(self.takers, reverse=True) if worker in self.urls}
        drained = frozenset(self.urls.values()) - at.keys()
        away: set[Unit] = set()
        homeless: set[Unit] = set()
        for unit in units:
            home = homes.get(unit)
            if home in at:
                self.loads[at[home]].add(unit)
                self.returned.add(unit)
            elif home in drained:
                homeless.add(unit)
            else:
                away.add(unit)
        self.give(homeless)
        return frozenset(away)

    def all_revoked(self) -> frozenset[Unit]:
        return frozenset().union(*self.revoked.values())


def units_of(tasks: Mapping[str, int]) -> frozenset[Unit]:
    """Return the units of all connectors and tasks, from the number of tasks of each connector."""
    return frozenset(Unit(name, task) for name, count in tasks.items() for task in range(-1, count))


def round_robin(configured: Iterable[Unit], members: Iterable[str]) -> dict[str, frozenset[Unit]]:
    """Distribute all units anew, connectors first, over the members in their order (the eager protocol)."""
    hands: dict[str, set[Unit]] = {member: set() for member in sorted(members)}
    ordered = sorted(configured, key=lambda unit: (unit.is_task, unit))
    for member, unit in zip(cycle(hands), ordered, strict=False):
        hands[member].add(unit)
    return {member: frozenset(units) for member, units in hands.items()}


def assign(
    state: AssignorState,
    configured: frozenset[Unit],
    held: Mapping[str, frozenset[Unit]],
    *,
    now: int,
    max_delay: int,
    generation: int,
    last_generation: int,
    draining: Set[str] = frozenset(),
    urls: Mapping[str, str] = MappingProxyType({}),
) -> Round:
    """Run one round: turn the units that each worker reports into its changes. Times in ms.

    ``urls`` has the URLs at which the workers say that they are; one without a URL is never one that has returned.
    Workers that are ``draining`` lose their units, unless all workers are draining. ``last_generation`` is the last
    generation this worker completed. If it is not that of ``state``, there were rounds in between, and the state is
    dropped.
    """
    if state.generation != last_generation:
        state = AssignorState()
    active = frozenset().union(*held.values())
    # If a revocation was not carried out, the workers' reports take precedence.
    previous = active if state.revoked & active else state.previous
    deleted = (previous | active) - configured
    lost = previous - active - deleted
    takers = frozenset(held) - draining or frozenset(held)
    plan = _Plan({worker: set(units) for worker, units in held.items()}, takers, urls)
    _revoke_unwanted(plan, deleted | _held_twice(held))
    _revoke_drained(plan)
    if lost and not (lost := plan.give_back(lost, state.homes)):
        state = replace(state, scheduled=None)
    state, reassigned, delay = _handle_lost(replace(state, revoked=_NOTHING), plan, lost, now, max_delay)
    if delay == 0:
        state, delay = _balance(state, plan, configured, now, max_delay)
    plan.give((configured - previous - active) | reassigned | plan.free)
    return _finished(state, plan, held, lost, delay, generation)


def _finished(
    state: AssignorState,
    plan: _Plan,
    held: Mapping[str, frozenset[Unit]],
    lost: frozenset[Unit],
    delay: int,
    generation: int,
) -> Round:
    revoked = plan.all_revoked()
    assigned = frozenset().union(*plan.loads.values())
    owners = {unit: worker for worker, units in plan.loads.items() for unit in units}
    at = {unit: plan.urls[worker] for unit, worker in owners.items() if worker in plan.urls}
    state = replace(
        state,
        previous=((assigned - revoked) | lost),
        homes={unit: home for unit, home in state.homes.items() if unit in lost} | at,
        revoked=revoked,
        members=frozenset(held),
        generation=generation,
    )
    increments = {
        worker: Increments(frozenset(plan.loads[worker] - units), frozenset(plan.revoked.get(worker, ())))
        for worker, units in held.items()
    }
    return Round(state, increments, delay, owners)


def _held_twice(held: Mapping[str, frozenset[Unit]]) -> frozenset[Unit]:
    counts = Counter(unit for units in held.values() for unit in units)
    return frozenset(unit for unit, count in counts.items() if count > 1)


def _revoke_unwanted(plan: _Plan, unwanted: frozenset[Unit]) -> None:
    for worker, units in list(plan.loads.items()):
        if units & unwanted:
            plan.revoke(worker, unwanted)


def _revoke_drained(plan: _Plan) -> None:
    for worker, units in list(plan.loads.items()):
        if units and worker not in plan.takers:
            plan.revoke(worker, frozenset(units))


def _handle_lost(
    state: AssignorState, plan: _Plan, lost: frozenset[Unit], now: int, max_delay: int
) -> tuple[AssignorState, frozenset[Unit], int]:
    """Decide about lost units. Return the units to assign now, and how long the others wait."""
    at_rest = replace(state, candidates=frozenset(), scheduled=None)
    if not lost and not state.revoked_before:
        return at_rest, _NOTHING, 0
    nobody_left = state.members <= plan.loads.keys()
    if max_delay == 0 or (state.scheduled is None and (nobody_left or not lost)):
        return state, lost, 0
    if state.scheduled is not None and now >= state.scheduled:
        # The delay is over, and with it the pause between revocations.
        remaining = _give_to_candidates(plan, state.candidates, lost)
        return replace(at_rest, revoked_before=False), remaining, 0
    candidates = state.candidates | {worker for worker in plan.takers if not plan.loads[worker]}
    delay = max_delay if state.scheduled is None else state.scheduled - now
    return replace(state, candidates=frozenset(candidates), scheduled=now + delay), _NOTHING, delay


def _give_to_candidates(plan: _Plan, candidates: frozenset[str], lost: frozenset[Unit]) -> frozenset[Unit]:
    """Give the lost units to candidates that still have none; return the units if there are no such candidates."""
    workers = [worker for worker in sorted(candidates & plan.takers) if not plan.loads[worker]]
    if not workers:
        return lost
    for tasks in (False, True):
        ordered = sorted(unit for unit in lost if unit.is_task is tasks)
        for worker, unit in zip(cycle(workers), ordered, strict=False):
            plan.loads[worker].add(unit)
    return _NOTHING


def _balance(
    state: AssignorState, plan: _Plan, configured: frozenset[Unit], now: int, max_delay: int
) -> tuple[AssignorState, int]:
    """Revoke units from workers above their fair share. Repeated revocations wait longer and longer."""
    excess = _excess(plan, configured)
    if not excess:
        return (replace(state, revoked_before=False, revoking_rounds=0) if state.revoked_before else state), 0
    if state.revoked_before:
        rounds = state.revoking_rounds + 1
        state = replace(state, revoking_rounds=rounds)
        if delay := min(_FIRST_BACKOFF_MS * _BACKOFF_FACTOR ** min(rounds, 10), max_delay):
            return replace(state, scheduled=now + delay), delay
    for worker, units in excess.items():
        plan.revoke(worker, units)
    return replace(state, revoked_before=True), 0


def _excess(plan: _Plan, configured: frozenset[Unit]) -> dict[str, set[Unit]]:
    excess: dict[str, set[Unit]] = {}
    if not any(plan.loads.values()):
        return excess
    for tasks in (False, True):
        total = _count(configured, tasks=tasks)
        loads = {w: sorted(unit for unit in plan.loads[w] if unit.is_task is tasks) for w in plan.takers}
        for worker, units in _excess_of_kind(loads, total).items():
            excess.setdefault(worker, set()).update(units)
    return excess


def _excess_of_kind(loads: Mapping[str, list[Unit]], total: int) -> dict[str, list[Unit]]:
    least, extras = divmod(total, len(loads))
    excess: dict[str, list[Unit]] = {}
    for worker, units in sorted(loads.items()):
        allowed = least
        if len(units) > least and extras:
            extras -= 1
            allowed += 1
        if len(units) > allowed:
            excess[worker] = units[allowed:]
    return excess


def _count(units: Iterable[Unit], *, tasks: bool) -> int:
    return sum(unit.is_task is tasks for unit in units)
