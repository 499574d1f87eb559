"""The order in which the processes of a test run take its tests: the longest first, so that none of those starts last.

Processes take whole *units*: the tests of a file, which share sessions and clusters, or a single test that has its own
entry in the record of durations. Units that keep a core busy (Spark) and units that mostly wait for clusters alternate,
so that neither kind is left for the end. One process takes all units that share a Spark JVM, because a JVM is slow
until it is warm, a server that each process would start for itself, or the syntax trees of all code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

__all__ = [
    "UNKNOWN",
    "Durations",
    "UnitScheduling",
    "first_for",
    "in_turn",
    "read_durations",
    "record_of",
    "shared_by",
    "unit_of",
]

UNKNOWN: Final = 30.0
"""The assumed seconds of a file that starts Spark or a cluster and has no record yet."""

_TESTS: Final = Path(__file__).parents[1]
_RECORD: Final = _TESTS / "durations.txt"
_SLOW_TO_START: Final = {
    **{name: name for name in ("shared_java", "table_java", "spark_java")},
    "search": "search: SearchServer",
    "codebase": "from codebase import",
}
"""What each process has for itself and takes long to start, or to read, with the words by which a file is known to use
it."""

_LEAST: Final = 5.0
_HEAD: Final = """\
# How long the tests take that are begun first, in seconds; the others follow in the order of their files.
# A test with a line of its own is taken by itself, all others with the rest of their file.
# SLUICE_DURATIONS=write make test-all measures the seconds anew.
"""


def read_durations() -> dict[str, float]:
    """The seconds that each recorded unit takes."""
    lines = [line.split(maxsplit=1) for line in _RECORD.read_text().splitlines() if line and not line.startswith("#")]
    return {unit: float(seconds) for seconds, unit in lines}


def unit_of(test: str, recorded: Collection[str]) -> str:
    """The unit that a test belongs to: itself if it is recorded, or else its file."""
    return test if test in recorded else test.partition("::")[0]


def in_turn(busy: Mapping[str, float], waiting: Mapping[str, float]) -> Iterator[str]:
    """The units of two kinds, the longest of each first, mixed so that both kinds are finished at the same time."""
    left = [sorted(kind.items(), key=lambda item: item[1]) for kind in (busy, waiting)]
    totals = [sum(kind.values()) or 1.0 for kind in (busy, waiting)]
    done = [0.0, 0.0]
    while any(left):
        kind = min((kind for kind in (0, 1) if left[kind]), key=lambda kind: done[kind] / totals[kind])
        unit, seconds = left[kind].pop()
        done[kind] += seconds
        yield unit


@cache
def shared_by(file: str) -> str | None:
    """What the tests of a file share with other files in the same process, such as a Spark JVM, if anything."""
    text = (_TESTS.parent / file).read_text()
    return next((name for name, words in _SLOW_TO_START.items() if words in text), None)


def first_for(process: object, units: Iterable[str], homes: Mapping[str, object]) -> str:
    """The first unit that shares what this process has, or no process has yet; otherwise the first unit."""
    waiting = list(units)
    mine = (unit for unit in waiting if homes.get(shared_by(unit.partition("::")[0]) or "", process) is process)
    return next(mine, waiting[0])


def record_of(measured: Mapping[str, float], recorded: Collection[str]) -> str:
    """The text of a record, from the seconds that each test took; tests with their own entry keep it."""
    units: dict[str, float] = {}
    for test, seconds in measured.items():
        unit = unit_of(test, recorded)
        units[unit] = units.get(unit, 0.0) + seconds
    long = sorted((item for item in units.items() if item[1] >= _LEAST), key=lambda item: (-item[1], item[0]))
    return _HEAD + "".join(f"{seconds:.0f} {unit}\n" for unit, seconds in long)


class Durations:
    """A pytest plugin that writes a new record at the end of a run."""

    def __init__(self) -> None:
        self._measured: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a test, its setup or its teardown."""
        self._measured[report.nodeid] = self._measured.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        _RECORD.write_text(record_of(self._measured, read_durations()))


class UnitScheduling(LoadScopeScheduling):
    """Distributes the units of a run to its processes, in the order of collection except for what some share."""

    def __init__(self, config: Any, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._recorded = frozenset(read_durations())
        self._homes: dict[str, object] = {}

    def _assign_work_unit(self, node: Any) -> None:
        unit = first_for(node, self.workqueue, self._homes)
        self.workqueue.move_to_end(unit, last=False)
        if shared := shared_by(unit.partition("::")[0]):
            self._homes.setdefault(shared, node)
        super()._assign_work_unit(node)

    def remove_node(self, node: Any) -> str | None:
        """Forget a process that has ended, and what it had."""
        self._homes = {shared: home for shared, home in self._homes.items() if home is not node}
        return super().remove_node(node)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid, self._recorded)
