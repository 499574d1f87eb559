"""What was killed, and in which phases that was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cluster.chaos.phases import AIMED, Phase

__all__ = ["Hit", "missed", "report"]

_COUNTED = "all"
_NONE = "none of these"


@dataclass(frozen=True, slots=True)
class Hit:
    """A kill: what it was, when, and which phase each of the units that felt it was in."""

    at: float
    victim: str
    phases: Mapping[str, Phase]
    aimed: bool = False

    def __str__(self) -> str:
        felt = ", ".join(f"{unit}: {phase}" for unit, phase in sorted(self.phases.items()))
        return f"{self.at:6.1f} s {'(aimed) ' if self.aimed else ''}{self.victim} [{felt or _NONE}]"


def missed(hits: Iterable[Hit], phases: Iterable[Phase] = AIMED) -> list[Phase]:
    """The phases that have to be hit and were not."""
    found = {phase for hit in hits for phase in hit.phases.values()}
    return [phase for phase in phases if phase not in found]


def report(seed: int, hits: Sequence[Hit]) -> str:
    """How many kills hit which phase, by what was killed. A kill may hit several units, in several phases."""
    kinds = sorted({_kind(hit) for hit in hits})
    counts: Counter[tuple[str, str]] = Counter()
    for hit in hits:
        for phase in set(hit.phases.values()) or {_NONE}:
            counts[phase, _kind(hit)] += 1
    totals = Counter(map(_kind, hits))
    rows = [(phase, {kind: counts[phase, kind] for kind in kinds}) for phase in (*Phase, _NONE)]
    rows.append((_COUNTED, {kind: totals[kind] for kind in kinds}))
    aimed = sum(hit.aimed for hit in hits)
    lines = [f"SLUICE_CHAOS_SEED={seed}: {len(hits)} kills, {aimed} of them aimed at a phase that chance had left out"]
    lines.append(_row("kills that hit", [*kinds, "sum"]))
    lines += [_row(name, [*(str(found[kind]) for kind in kinds), str(sum(found.values()))]) for name, found in rows]
    return "\n".join(lines)


def _kind(hit: Hit) -> str:
    return hit.victim.split()[0]


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:14}" + "".join(f"{cell:>9}" for cell in cells)
