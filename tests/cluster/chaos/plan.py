"""What is killed, and when: drawn from a seed before anything runs, so that the same seed gives the same kills again.

What the killed do at that moment is left to chance: no two runs of processes are the same.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Kind", "Step", "Victim", "draw"]


class Kind(enum.StrEnum):
    """What is killed."""

    UNIT = "process"
    """The process of a connector or of one of its tasks."""
    JVM = "JVM"
    """The Java process below that of a task."""
    WORKER = "worker"
    """A worker's process alone: its children have to notice."""
    MACHINE = "machine"
    """A worker and all its children at once, as when a machine fails."""
    BROKER = "broker"
    """The only broker."""


@dataclass(frozen=True, slots=True)
class Victim:
    """Something to kill: a kind, the cluster, and which one there: the units it begins like, or a role."""

    kind: Kind
    cluster: str = ""
    who: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.cluster, self.who)))


@dataclass(frozen=True, slots=True)
class Step:
    """One kill: after ``wait`` seconds; what does not come back by itself is started again ``down`` seconds later.

    ``choice``, from 0 to 1, chooses among several that would do. ``reconfigures`` says that a connector is given
    another configuration just before.
    """

    number: int
    victim: Victim
    wait: float
    down: float
    choice: float
    reconfigures: bool


_LONGEST_WAIT = 2.0
_LONGEST_DOWN = 3.0
_RECONFIGURED = 0.2


def draw(seed: int, kills: int, victims: Sequence[Victim]) -> list[Step]:
    """So many kills. Each victim comes up as often as any other, but for one, in random order."""
    chance = random.Random(seed)
    order: list[Victim] = []
    while len(order) < kills:
        order += chance.sample(victims, len(victims))
    return [
        Step(
            number,
            victim,
            wait=chance.uniform(0, _LONGEST_WAIT),
            down=chance.uniform(0, _LONGEST_DOWN),
            choice=chance.random(),
            reconfigures=chance.random() < _RECONFIGURED,
        )
        for number, victim in enumerate(order[:kills], start=1)
    ]
