"""How much of its work a connector has done, where the whole is known: a snapshot, files, topics up to their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.internals.status_line import bar

__all__ = ["Work", "last_work", "work_of", "work_of_loads"]

_TOTAL: Final = "source-total-"
_REMAINING: Final = "source-remaining-"
_DRAIN_TOTAL: Final = "sink-drain-total"
_DRAIN_LEFT: Final = "sink-drain-left"
_FIRST: Final = ("bytes", "rows", "records")
"""The units that tell most, best first. Others come after them by name."""


@dataclass(frozen=True, slots=True)
class Work:
    """``done`` of ``total`` in a unit such as ``rows``; something is left."""

    done: int
    total: int
    unit: str

    @property
    def percent(self) -> int:
        """The whole percent that are done."""
        return self.done * 100 // self.total

    @property
    def bar(self) -> str:
        """A bar for a terminal."""
        return bar(self.done / self.total)


def work_of(tasks: Sequence[Mapping[str, float]]) -> Work | None:
    """Return the work of all tasks by their metrics.

    ``None`` if nothing is left, or the whole of one of the tasks is not known: the share would be wrong.
    """
    for unit in _units(tasks):
        pairs = [_amounts(values, unit) for values in tasks]
        known = [pair for pair in pairs if pair is not None]
        left, total = sum(pair[0] for pair in known), sum(pair[1] for pair in known)
        if len(known) == len(pairs) and 0 < left <= total:
            return Work(int(total - left), int(total), unit)
    return None


def work_of_loads(loads: Iterable[Mapping[str, Any]]) -> Work | None:
    """Return the work of the loads that run, by the loads of tasks; ``None`` if their records are not known before."""
    running = [item["current"] for item in loads if item["current"] is not None and item["current"]["partitions"]]
    total = sum(load["records"] for load in running)
    done = sum(min(load["progress"]["records"], load["records"]) for load in running)
    return Work(done, total, "records") if done < total else None


def last_work(tasks: Iterable[Mapping[str, Any]]) -> list[tuple[int, Work, str]]:
    """Return what was last known of tasks of a status that tell nothing now: the task, its work, and when that was."""
    found = []
    for task in tasks:
        last = task.get("last_metrics")
        if last is not None and (work := work_of([last["values"]])) is not None:
            found.append((int(task["id"]), work, str(last["at"])))
    return found


def _units(tasks: Sequence[Mapping[str, float]]) -> Iterator[str]:
    first = tasks[0] if tasks else {}
    if _DRAIN_TOTAL in first:
        yield "offsets"
    told = sorted(name.removeprefix(_TOTAL) for name in first if name.startswith(_TOTAL))
    yield from (unit for unit in _FIRST if unit in told)
    yield from (unit for unit in told if unit not in _FIRST)


def _amounts(values: Mapping[str, float], unit: str) -> tuple[float, float] | None:
    """Return what is left and the whole, if both are known."""
    names = (_DRAIN_LEFT, _DRAIN_TOTAL) if unit == "offsets" else (f"{_REMAINING}{unit}", f"{_TOTAL}{unit}")
    left, total = (values.get(name) for name in names)
    return None if left is None or total is None else (left, total)
