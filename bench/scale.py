"""Shows how a large cluster is rebalanced: the assignor and the leader's messages, with a clock that is simulated.

``python bench/scale.py [--tasks N] [--workers N] [--restarts N]``: connectors of 10 tasks each are distributed over the
workers, which then join, die, return, are drained and restarted one after the other, while connectors come and go. Each
round is what the leader decides from what the members report, encoded and decoded as on the wire. Nothing else runs.

For each event the table has the rounds until nothing changes any more, the units that moved, the most moves of a single
unit, and the longest round in milliseconds. An event after which a unit is held twice or by nobody, or the shares
differ by more than one, ends the run with an error; so does a unit that has moved twice.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from worker.membership.assignor import AssignorState, Round, assign, units_of
from worker.membership.protocol import VERSIONS, Assignment, decode_assignment, encode_assignment
from worker.unit import Unit

_TASKS_OF_A_CONNECTOR: Final = 10
_DELAY_MS: Final = 300_000
_MOST_ROUNDS: Final = 12
_NOTHING: Final[frozenset[Unit]] = frozenset()


@dataclass(slots=True)
class Cluster:
    """Workers that do as they are told, at once."""

    tasks: dict[str, int]
    held: dict[str, frozenset[Unit]] = field(default_factory=dict)
    draining: set[str] = field(default_factory=set)
    state: AssignorState = field(default_factory=AssignorState)
    now_ms: int = 0
    generation: int = 0

    def settle(self) -> Iterator[float]:
        """Go through rounds until nothing changes any more; yield the milliseconds of each."""
        for _ in range(_MOST_ROUNDS):
            begun = time.perf_counter()
            outcome = self._round()
            yield (time.perf_counter() - begun) * 1000
            changed = [member for member, share in outcome.increments.items() if share.revoked or share.assigned]
            if outcome.delay:
                self.now_ms += outcome.delay
            elif not any(outcome.increments[member].revoked for member in changed):
                return
        raise SystemExit(f"The cluster does not come to rest within {_MOST_ROUNDS} rounds")

    def _round(self) -> Round:
        self.generation += 1
        outcome = assign(
            self.state,
            units_of(self.tasks),
            self.held,
            now=self.now_ms,
            max_delay=_DELAY_MS,
            generation=self.generation,
            last_generation=self.generation - 1,
            draining=self.draining,
            urls={worker: f"http://{worker}:8083/" for worker in self.held},
        )
        self.state = outcome.state
        for worker, share in outcome.increments.items():
            sent = Assignment("leader", "http://leader:8083/", self.generation, share.assigned, share.revoked)
            read = decode_assignment(encode_assignment(sent, VERSIONS["sessioned"]))
            self.held[worker] = (self.held[worker] - read.revoked) | read.assigned
        return outcome


@dataclass(slots=True)
class Story:
    """Does things to a cluster, checks what comes of each, and prints it."""

    cluster: Cluster

    def event(self, name: str, happens: Callable[[], None]) -> None:
        """Let something happen, and come to rest; a unit may move once, and be nowhere only for the delay."""
        before = self._owners()
        rounds: list[float] = []
        moves: Counter[Unit] = Counter()
        happens()
        owners = before
        for milliseconds in self.cluster.settle():
            rounds.append(milliseconds)
            now = self._owners()
            moves.update(
                unit for unit, worker in now.items() if unit in before and owners.get(unit, before[unit]) != worker
            )
            owners = {**before, **now}
        self._check()
        print(
            f"| {name} | {len(rounds)} | {len(moves)} | {max(moves.values(), default=0)} | {max(rounds):.0f} |",
            flush=True,
        )
        if moves and max(moves.values()) > 1:
            raise SystemExit(f"A unit has moved more than once: {moves.most_common(1)[0]}")

    def _owners(self) -> dict[Unit, str]:
        owners: dict[Unit, str] = {}
        for worker, units in self.cluster.held.items():
            for unit in units:
                if (other := owners.setdefault(unit, worker)) != worker:
                    raise SystemExit(f"{unit} is held by {other} and {worker}")
        return owners

    def _check(self) -> None:
        if self._owners().keys() != units_of(self.cluster.tasks):
            raise SystemExit("Not every unit has an owner, or a deleted one has")
        for tasks in (False, True):
            loads = [
                sum(unit.is_task is tasks for unit in units)
                for worker, units in self.cluster.held.items()
                if worker not in self.cluster.draining
            ]
            if max(loads) - min(loads) > 1:
                raise SystemExit(
                    f"The shares are uneven: {min(loads)} to {max(loads)} {'tasks' if tasks else 'connectors'}"
                )


def restart(story: Story, worker: str) -> None:
    """Drain a worker, end it, and start it again: three events."""
    cluster = story.cluster
    story.event(f"{worker} is drained", lambda: cluster.draining.add(worker))

    def end() -> None:
        cluster.draining.remove(worker)
        del cluster.held[worker]

    story.event(f"{worker} stops", end)
    story.event(f"{worker} starts", lambda: cluster.held.update({worker: _NOTHING}))


def tell(tasks: int, workers: int, restarts: int) -> None:
    """Let the cluster live through it all."""
    connectors = {f"connector-{number}": _TASKS_OF_A_CONNECTOR for number in range(tasks // _TASKS_OF_A_CONNECTOR)}
    cluster = Cluster(connectors)
    story = Story(cluster)
    names = [f"worker-{number}" for number in range(workers)]
    print(f"{tasks} tasks of {len(connectors)} connectors on {workers} workers\n")
    print("| event | rounds | units that moved | most moves of one | longest round, ms |\n|---|---|---|---|---|")
    story.event("the workers start", lambda: cluster.held.update(dict.fromkeys(names, _NOTHING)))
    story.event("a worker joins", lambda: cluster.held.update({"late": _NOTHING}))
    kept = cluster.held["late"]
    story.event("it dies, and stays away", lambda: cluster.held.pop("late") and None)
    if not kept:
        raise SystemExit("The worker that had joined had got nothing")
    story.event("a hundred connectors come", lambda: cluster.tasks.update({f"new-{n}": 3 for n in range(100)}))
    story.event("they are deleted", lambda: [cluster.tasks.pop(f"new-{n}") for n in range(100)] and None)
    for name in names[:restarts]:
        restart(story, name)
    half = names[: workers // 2]
    story.event("half of the workers die", lambda: [cluster.held.pop(name) for name in half] and None)
    story.event("they are replaced", lambda: cluster.held.update(dict.fromkeys(half, _NOTHING)))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nAt most {megabytes:.0f} MB of memory, with all members in this one process.")


def main() -> int:
    """Parse the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument("--restarts", type=int, default=3, help="how many workers are restarted, one after the other")
    options = parser.parse_args()
    tell(options.tasks, options.workers, options.restarts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
