"""The order in which the processes of a test run take its tests: the longest first, so that none of those starts last.

Processes take whole *units*: the tests of a file, which share sessions and clusters, or a single test that has its own
entry in the record of durations. Units that keep a core busy (Spark) and units that mostly wait for clusters alternate,
so that neither kind is left for the end. One process takes all units that share a Spark JVM, because a JVM is slow
until it is warm, a server that each process would start for itself, or the syntax trees of all code.

To collect thousands of quick tests takes a process longer than it takes to run its share of them. So only two processes
of a whole run collect those, and take them beside the others. As many processes collect at a time as there are cores,
and each begins to test as soon as it has collected.
"""

from __future__ import annotations

import fcntl
import os
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

__all__ = [
    "UNKNOWN",
    "Durations",
    "UnitScheduling",
    "collected_by",
    "first_for",
    "in_order",
    "in_turn",
    "read_durations",
    "record_of",
    "rotated",
    "shared_by",
    "turn_to_collect",
    "unit_of",
]

UNKNOWN: Final = 30.0
"""The assumed seconds of a file that starts Spark or a cluster and has no record yet."""

_TESTS: Final = Path(__file__).parents[1]
_RECORD: Final = _TESTS / "durations.txt"
_SLOW_TO_START: Final = {
    **{name: name for name in ("shared_java", "table_java", "spark_java")},
    "search": "search: SearchServer",
    "mongodb": "mongodb: MongoServer",
    "s3": "s3: S3Server",
    "browser": "open_page: Callable",
    "codebase": "from codebase import",
}
"""What each process has for itself and takes long to start, or to read, with the words by which a file is known to use
it."""

_QUICK: Final = (
    *(f"tests/{folder}/" for folder in ("architecture", "parity", "unit")),
    # Imports schemathesis, which takes longer than any other file.
    "tests/integration/rest/test_openapi.py",
)
"""The folders and files of tests that only some processes collect."""
_COLLECT_ALL: Final = 2
"""How many processes collect those, too: as many as keep two cores busy."""
_SHORT: Final = 1.0
"""The assumed seconds of any other file without a record."""
_LEAST: Final = 5.0
_HEAD: Final = """\
# How long the tests take that are begun first, in seconds; the others follow in the order of their files.
# A test with a line of its own is taken by itself, all others with the rest of their file.
# SLUICE_DURATIONS=write make test (or test-all) measures anew what it runs.
"""


def read_durations() -> dict[str, float]:
    """The seconds that each recorded unit takes."""
    lines = [line.split(maxsplit=1) for line in _RECORD.read_text().splitlines() if line and not line.startswith("#")]
    return {unit: float(seconds) for seconds, unit in lines}


def unit_of(test: str, recorded: Collection[str]) -> str:
    """The unit that a test belongs to: itself if it is recorded, or else its file."""
    return test if test in recorded else test.partition("::")[0]


def rotated(files: Sequence[str], share: float) -> list[str]:
    """The same files from another one on, which is behind this share of them."""
    first = int(len(files) * share)
    return [*files[first:], *files[:first]]


def collected_by(process: int, processes: int, files: Sequence[str]) -> list[str]:
    """The files that a process of a whole run collects: most leave the quick tests to the last two.

    Each begins with other files: pytest compiles each once, and leaves it to the processes that come later.
    """
    if process < processes - _COLLECT_ALL:
        files = [file for file in files if not file.startswith(_QUICK)]
    return rotated(files, process / processes)


@contextmanager
def turn_to_collect(folder: Path, process: int, cores: int = os.cpu_count() or 1) -> Iterator[None]:
    """Wait until fewer processes collect than there are cores; if all did so at once, none could test meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"core-{process % cores}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def in_turn(first: Mapping[str, float], second: Mapping[str, float]) -> Iterator[str]:
    """The units of two kinds, each kind in its order, mixed so that both are finished at the same time."""
    left = [list(reversed(kind.items())) for kind in (first, second)]
    totals = [sum(kind.values()) or 1.0 for kind in (first, second)]
    done = [0.0, 0.0]
    while any(left):
        kind = min((kind for kind in (0, 1) if left[kind]), key=lambda kind: done[kind] / totals[kind])
        unit, seconds = left[kind].pop()
        done[kind] += seconds
        yield unit


def in_order(units: Iterable[str], seconds: Mapping[str, float], busy: Collection[str]) -> list[str]:
    """All units, those with known seconds before the others and the longest first.

    Busy and waiting ones alternate, and so do those that all processes collect and those that only some do.
    """
    longest = sorted(dict.fromkeys(units), key=lambda unit: -seconds.get(unit, 0.0))
    times = {unit: seconds.get(unit, _SHORT) for unit in longest}

    def mixed(some: Iterable[str]) -> dict[str, float]:
        known = [unit for unit in some if unit in seconds]
        kinds = [{unit: times[unit] for unit in known if (unit in busy) is kind} for kind in (True, False)]
        return {unit: times[unit] for unit in (*in_turn(*kinds), *(unit for unit in some if unit not in seconds))}

    kinds = [mixed([unit for unit in longest if unit.startswith(_QUICK) is kind]) for kind in (True, False)]
    return list(in_turn(*kinds))


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


def record_of(measured: Mapping[str, float], recorded: Mapping[str, float]) -> str:
    """The text of a record, from the seconds that each test took; tests with their own entry keep it.

    What was not measured, such as all that `make test` leaves out, keeps its seconds.
    """
    units: dict[str, float] = {}
    for test, seconds in measured.items():
        unit = unit_of(test, recorded)
        units[unit] = units.get(unit, 0.0) + seconds
    known = {**recorded, **units}
    long = sorted((item for item in known.items() if item[1] >= _LEAST), key=lambda item: (-item[1], item[0]))
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
    """Distributes the units of a run to its processes, in the order of collection except for what some share.

    A process begins as soon as it has collected, and runs only what it has collected.
    """

    def __init__(self, session: pytest.Session, log: Any) -> None:
        super().__init__(session.config, log)
        self.session = session
        self._recorded = frozenset(read_durations())
        self._homes: dict[str, object] = {}
        self._places: dict[object, dict[str, int]] = {}
        self._all: dict[str, int] = {}

    @property
    def collection_is_completed(self) -> bool:
        """Whether a process can begin."""
        return bool(self._places)

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to run, and no process is still to say what it has collected."""
        return len(self.registered_collections) >= self.numnodes and super().tests_finished

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Put the tests into the queue that no process had collected so far."""
        places = {test: place for place, test in enumerate(collection)}
        more, less = sorted((places, self._all), key=len, reverse=True)
        if different := less.keys() - more.keys():
            raise RuntimeError(f"Two processes have collected different tests: {sorted(different)[:5]}")
        self.registered_collections[node] = list(collection)
        for test in places.keys() - self._all.keys():
            self.workqueue.setdefault(self._split_scope(test), {})[test] = False
        self._places[node], self._all = places, more
        self.workqueue = OrderedDict(
            (unit, dict.fromkeys(sorted(tests, key=more.__getitem__), False))
            for unit, tests in sorted(self.workqueue.items(), key=lambda item: min(more[test] for test in item[1]))
        )

    def schedule(self) -> None:
        """Give work to the processes that have collected."""
        # Shares of the run are told of all tests that are known, not of those that the last process has collected.
        self.session.testscollected = len(self._all)
        for node in self.nodes:
            self._reschedule(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget a test that has run, and give its process the next unit if there is only one more test in this one."""
        test = self.registered_collections[node][item_index]
        unit, work = self._split_scope(test), self.assigned_work[node]
        del work[unit][test]
        if not work[unit]:
            del work[unit]
        self._reschedule(node)

    def remove_node(self, node: Any) -> str | None:
        """Forget a process that has ended, and what it had."""
        self._homes = {shared: home for shared, home in self._homes.items() if home is not node}
        self._places.pop(node, None)
        return super().remove_node(node)

    def _reschedule(self, node: Any) -> None:
        if node.shutting_down or node not in self._places:
            return
        # A process runs its last test when it knows what is next, or that nothing is.
        while self._pending_of(self.assigned_work[node]) < 2:
            mine = [unit for unit, tests in self.workqueue.items() if next(iter(tests)) in self._places[node]]
            if not mine:
                node.shutdown()
                return
            self._give(node, first_for(node, mine, self._homes))

    def _give(self, node: Any, unit: str) -> None:
        if shared := shared_by(unit.partition("::")[0]):
            self._homes.setdefault(shared, node)
        tests = self.workqueue.pop(unit)
        self.assigned_work[node][unit] = tests
        node.send_runtest_some([self._places[node][test] for test in tests])

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid, self._recorded)
