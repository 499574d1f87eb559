"""The record of how long tests take names none that are gone, and a run begins with the longest."""

from __future__ import annotations

import fcntl
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from codebase import ROOT

from equipment.schedule import (
    UnitScheduling,
    collected_by,
    first_for,
    in_order,
    read_durations,
    record_of,
    rotated,
    shared_by,
    turn_to_collect,
    unit_of,
)


def test_what_is_recorded_exists() -> None:
    gone = []
    for unit in read_durations():
        file, _, test = unit.partition("::")
        name = test.partition("[")[0].rpartition("::")[2]
        path = ROOT / file
        if not path.is_file() or not re.search(rf"^ *def {name}\(" if name else "", path.read_text(), re.MULTILINE):
            gone.append(unit)
    assert not gone, "Take these out of tests/durations.txt:\n" + "\n".join(gone)


def test_a_test_is_taken_with_its_file_unless_it_is_recorded_by_itself() -> None:
    recorded = {"tests/test_a.py", "tests/test_a.py::test_long[1]"}
    tests = ("tests/test_a.py::test_long[1]", "tests/test_a.py::test_long[2]", "tests/test_b.py::TestB::test_b")
    assert [unit_of(test, recorded) for test in tests] == [tests[0], "tests/test_a.py", "tests/test_b.py"]


def test_the_longest_are_begun_first_and_all_kinds_end_together() -> None:
    busy, waiting = {"b20": 20.0, "b60": 60.0, "b40": 40.0}, {"w10": 10.0, "w30": 30.0, "w20": 20.0}
    assert in_order([*busy, *waiting], busy | waiting, busy) == ["b60", "w30", "b40", "w20", "b20", "w10"]
    assert in_order(["new", *waiting], waiting, busy) == ["w30", "w20", "w10", "new"]
    quick = {"tests/unit/a.py": 40.0, "tests/unit/b.py": 20.0}
    assert in_order([*waiting, *quick], waiting | quick, ()) == [
        "tests/unit/a.py",
        "w30",
        "w20",
        "tests/unit/b.py",
        "w10",
    ]


def test_the_files_that_share_a_java_are_taken_by_one_process() -> None:
    delta, iceberg, kills = (
        "tests/integration/connectors/test_delta_sink.py",
        "tests/integration/connectors/test_iceberg_sink.py",
        "tests/cluster/test_window_kills.py::test_windows_in_s3_survive_a_kill",
    )
    here, there = object(), object()
    homes = {"table_java": there}
    assert first_for(here, [delta, iceberg, kills], homes) == kills
    assert first_for(there, [delta, iceberg, kills], homes) == delta
    assert first_for(here, [delta, iceberg], homes) == delta, "rather than nothing"
    assert first_for(here, [iceberg, kills], {}) == iceberg


def test_the_files_that_read_all_code_are_taken_by_one_process() -> None:
    files = ("imports", "style")
    assert {shared_by(f"tests/architecture/test_{name}.py") for name in files} == {"codebase"}


def test_the_files_that_look_at_pages_are_taken_by_the_process_that_has_the_browser() -> None:
    assert {shared_by(f"tests/browser/test_{name}_pages.py") for name in ("editing", "operating")} == {"browser"}


def test_a_record_adds_up_what_is_taken_together_and_leaves_out_what_is_quick() -> None:
    measured = {"a.py::test_1": 4.0, "a.py::test_2": 3.0, "a.py::test_long": 90.0, "b.py::test_3": 1.0}
    recorded = {"a.py::test_long": 80.0, "b.py": 20.0, "kills.py": 50.0}
    lines = [line for line in record_of(measured, recorded).splitlines() if not line.startswith("#")]
    assert lines == ["90 a.py::test_long", "50 kills.py", "7 a.py"], "what was not measured keeps its seconds"


def test_each_process_begins_with_other_files_and_only_two_collect_the_quick_tests() -> None:
    assert [rotated(["a", "b", "c", "d"], process / 2) for process in (0, 1)] == [list("abcd"), list("cdab")]
    files = ["tests/cluster/test_a.py", "tests/integration/test_b.py", "tests/unit/test_c.py"]
    assert [len(collected_by(process, 4, files)) for process in range(4)] == [2, 2, 3, 3]
    assert sorted(collected_by(4, 4, files)) == files, "one that replaces another"
    assert sorted(collected_by(0, 1, files)) == files


def test_as_many_processes_collect_at_a_time_as_there_are_cores(tmp_path: Path) -> None:
    def collect() -> bool:
        with turn_to_collect(tmp_path, 2, cores=2):
            return True

    with ThreadPoolExecutor(1) as waiting:
        with turn_to_collect(tmp_path, 0, cores=2), turn_to_collect(tmp_path, 1, cores=2):
            third = waiting.submit(collect)
            with (tmp_path / "core-0").open() as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert not third.done()
        assert third.result(60)


class Process:
    """What a scheduler sees of a process."""

    def __init__(self, *tests: str) -> None:
        self.tests, self.given, self.shutting_down = tests, list[str](), False
        self.gateway = SimpleNamespace(id="gw")

    def send_runtest_some(self, places: list[int]) -> None:
        self.given += [self.tests[place] for place in places]

    def shutdown(self) -> None:
        self.shutting_down = True


def _scheduling(*processes: Process) -> UnitScheduling:
    config: Any = SimpleNamespace(getvalue={"tx": ["popen"] * len(processes)}.get)
    session: Any = SimpleNamespace(config=config, testscollected=0)
    scheduling = UnitScheduling(session, None)
    for process in processes:
        scheduling.add_node(process)
    return scheduling


def _collected(scheduling: UnitScheduling, process: Process) -> None:
    scheduling.add_node_collection(process, process.tests)
    scheduling.schedule()


def _run(scheduling: UnitScheduling, process: Process) -> None:
    """Run all that a process is given, in turn."""
    for test in process.given:
        scheduling.mark_test_complete(process, process.tests.index(test))


LAKE, LINES, UNIT = (
    f"tests/{file}.py::test_1"
    for file in ("cluster/test_clock", "cluster/test_kills", "unit/worker/test_worker_imports")
)


def test_a_process_begins_when_it_has_collected_and_runs_nothing_else() -> None:
    light, full = Process(LAKE, LINES), Process(LAKE, UNIT, LINES)
    scheduling = _scheduling(light, full)
    assert not scheduling.collection_is_completed
    _collected(scheduling, light)
    assert scheduling.collection_is_completed and light.given == [LAKE, LINES], (
        "the last but one runs, the last is next"
    )
    _run(scheduling, light)
    assert light.shutting_down and not scheduling.tests_finished, "the other one may have collected more"
    _collected(scheduling, full)
    assert full.given == [UNIT]
    assert scheduling.session.testscollected == 3, "shares are those of the whole"
    assert full.shutting_down and scheduling.tests_finished, "nothing is left but what runs"


def test_a_process_that_is_replaced_leaves_its_tests_to_others() -> None:
    first, second = Process(LAKE, LINES, UNIT), Process(LAKE, LINES, UNIT)
    scheduling = _scheduling(first, second)
    _collected(scheduling, first)
    assert first.given == [LAKE, LINES]
    scheduling.mark_test_complete(first, 0)
    assert first.given == [LAKE, LINES, UNIT]
    assert scheduling.remove_node(first) == LINES, "which it ran"
    _collected(scheduling, second)
    assert second.given == [LINES, UNIT] and not scheduling.tests_finished
    scheduling.mark_test_complete(second, 1)
    assert second.shutting_down and scheduling.tests_finished, "nothing is left but what runs"


def test_processes_that_collect_different_tests_end_the_run() -> None:
    first, second = Process(LAKE, LINES), Process(LAKE, UNIT)
    scheduling = _scheduling(first, second)
    _collected(scheduling, first)
    with pytest.raises(RuntimeError, match=r"different tests: \['tests/cluster/test_kills\.py"):
        _collected(scheduling, second)
