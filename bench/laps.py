"""Measures a worker that moves records: laps after it is warm, and its cost beside that of another one.

A worker is warm when two laps in a row cost the same CPU within 5 %, or after twelve laps: Java compiles as it runs,
and what it costs before that is not what it costs users. The laps after that count: their median, the least and most.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from process_tree import ProcessTree

__all__ = ["Aim", "Comparison", "Floor", "Lap", "Run", "measured", "records_of", "show", "show_load", "show_rows"]

LAPS = 3
MOST_WARM_UP_LAPS = 12
_ALIKE = 0.05
_LOOK_SECONDS = 0.01
_DEADLINE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Sight:
    """An observation: the records moved, and the CPU seconds used, up to a moment."""

    records: int
    at: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Lap:
    """The cost of moving some records."""

    rate: float
    """Records per second."""
    cpu: float
    """CPU seconds per million records."""

    @classmethod
    def between(cls, begin: Sight, end: Sight) -> Lap:
        """Return the lap between two observations."""
        records = end.records - begin.records
        return cls(records / (end.at - begin.at), (end.cpu - begin.cpu) / records * 1e6)


@dataclass(frozen=True, slots=True)
class Run:
    """The run of one worker through one case."""

    start: float
    """Seconds from the start of the process to the first record."""
    warm_up: Sequence[Lap]
    laps: Sequence[Lap]
    peak: int

    @property
    def rate(self) -> float:
        """Records per second, when warm."""
        return statistics.median(lap.rate for lap in self.laps)

    @property
    def cpu(self) -> float:
        """CPU seconds per million records, when warm."""
        return statistics.median(lap.cpu for lap in self.laps)

    @property
    def spread(self) -> str:
        """The least and the most CPU seconds per million records of a lap, when warm."""
        cpus = [lap.cpu for lap in self.laps]
        return f"{min(cpus):.2f} to {max(cpus):.2f}"


@dataclass(frozen=True, slots=True)
class Floor:
    """What the bare client takes for the same records, without a worker."""

    rate: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Aim:
    """The target: how many times better Sluice should be, in records per CPU second and in memory."""

    cpu: float = 3.0
    memory: float = 3.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """A case, run by Java's worker and by ours."""

    name: str
    aim: Aim
    java: Run
    ours: Run
    floor: Floor | None = None

    @property
    def row(self) -> str:
        """The case as a row of a table in Markdown."""
        java, ours = self.java, self.ours
        floor = "" if self.floor is None else f"{self.floor.cpu:.2f}"
        return (
            f"| {self.name} | {java.rate:,.0f} | {ours.rate:,.0f} | {java.cpu:.2f} ({java.spread}) "
            f"| {ours.cpu:.2f} ({ours.spread}) | **{java.cpu / ours.cpu:.1f}** | {floor} "
            f"| {java.peak / 1e6:,.0f} | {ours.peak / 1e6:,.0f} |"
        )


HEAD = (
    "| | records/s: Kafka Connect | Sluice | CPU s per million: Kafka Connect | Sluice | times less | bare client "
    "| MB: Kafka Connect | Sluice |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def records_of(lap: int, tail: int) -> int:
    """Return how many records a run can take, in laps of this many, with a tail that no lap reaches."""
    return (MOST_WARM_UP_LAPS + LAPS) * lap + tail


def measured(moved: Callable[[], int], tree: ProcessTree, lap: int, started: float) -> Run:
    """Return the run of a worker that was started at ``started`` and moves records in laps of this many."""
    first = _await_records(moved, tree, 1)
    sights = [Sight(0, first.at, 0.0)]
    warm_up: list[Lap] = []
    while len(warm_up) < MOST_WARM_UP_LAPS and not _is_warm(warm_up):
        sights.append(_await_records(moved, tree, sights[-1].records + lap))
        warm_up.append(Lap.between(*sights[-2:]))
    for _ in range(LAPS):
        sights.append(_await_records(moved, tree, sights[-1].records + lap))
    laps = [Lap.between(*pair) for pair in zip(sights[-LAPS - 1 : -1], sights[-LAPS:], strict=True)]
    return Run(first.at - started, warm_up, laps, tree.peak())


def _is_warm(laps: Sequence[Lap]) -> bool:
    # The first lap includes the start.
    if len(laps) < 3:
        return False
    before, last = laps[-2].cpu, laps[-1].cpu
    return abs(last - before) <= _ALIKE * max(last, before)


def _await_records(moved: Callable[[], int], tree: ProcessTree, records: int) -> Sight:
    """Wait until so many records are moved."""
    deadline = time.perf_counter() + _DEADLINE_SECONDS
    while (count := moved()) < records:
        if not tree.runs():
            raise SystemExit("the worker has ended; see its log (--keep)")
        if time.perf_counter() > deadline:
            raise SystemExit(f"only {count} of {records} records came within {_DEADLINE_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    return Sight(count, time.perf_counter(), tree.cpu())


def show(case: Comparison) -> None:
    """Print both results, the floor, and how many times better ours is."""
    print(f"\n{case.name:<46}{'start':>8}{'records/s':>12}{'CPU s per million records':>52}{'peak':>8}")
    print(f"{'':<46}{'s':>8}{'warm':>12}{'first lap':>12}{'warm':>8}{'least to most':>18}{'laps':>14}{'MB':>8}")
    for label, run in (("Kafka Connect", case.java), ("Sluice", case.ours)):
        print(
            f"  {label:<44}{run.start:>8.1f}{run.rate:>12,.0f}{run.warm_up[0].cpu:>12.2f}{run.cpu:>8.2f}"
            f"{run.spread:>18}{_laps(run):>14}{run.peak / 1e6:>8.0f}"
        )
    if case.floor is not None:
        print(f"  {'the bare client':<44}{'':>8}{case.floor.rate:>12,.0f}{'':>12}{case.floor.cpu:>8.2f}")
    start, rate = case.java.start / case.ours.start, case.ours.rate / case.java.rate
    cold = case.java.warm_up[0].cpu / case.ours.warm_up[0].cpu
    cpu, memory = case.java.cpu / case.ours.cpu, case.java.peak / case.ours.peak
    print(f"  {'Sluice is better by':<44}{start:>7.1f}x{rate:>11.2f}x{cold:>11.2f}x{cpu:>7.2f}x{'':>32}{memory:>7.1f}x")
    print(f"  {'aim':<44}{'':>31}{case.aim.cpu:>7.2f}x {_verdict(cpu >= case.aim.cpu):<20}", end="")
    print(f"{'':>11}{case.aim.memory:>7.1f}x {_verdict(memory >= case.aim.memory)}", flush=True)


def _laps(run: Run) -> str:
    """Return how many laps the worker was warmed up, and whether that sufficed."""
    return f"{len(run.warm_up)}{'' if _is_warm(run.warm_up) else ' not even'}"


def show_rows(cases: Sequence[Comparison]) -> None:
    """Print all cases as a table in Markdown, as it stands in docs/benchmarks.md."""
    print(f"\n{HEAD}")
    for case in cases:
        print(case.row)


def show_load() -> None:
    """Print how busy the machine is: other load distorts times and, to a lesser degree, CPU seconds."""
    print(f"\n{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}", flush=True)


def _verdict(reached: bool) -> str:
    return "reached" if reached else "NOT reached"
