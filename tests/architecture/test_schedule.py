"""The record of how long tests take names none that are gone, and a run begins with the longest."""

from __future__ import annotations

import re

from codebase import ROOT

from equipment.schedule import first_for, in_turn, read_durations, record_of, shared_by, unit_of


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


def test_the_longest_are_begun_first_and_both_kinds_end_together() -> None:
    busy, waiting = {"b20": 20.0, "b60": 60.0, "b40": 40.0}, {"w10": 10.0, "w30": 30.0, "w20": 20.0}
    assert list(in_turn(busy, waiting)) == ["b60", "w30", "b40", "w20", "b20", "w10"]
    assert list(in_turn({}, waiting)) == ["w30", "w20", "w10"]


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


def test_a_record_adds_up_what_is_taken_together_and_leaves_out_what_is_quick() -> None:
    measured = {"a.py::test_1": 4.0, "a.py::test_2": 3.0, "a.py::test_long": 90.0, "b.py::test_3": 1.0}
    lines = [line for line in record_of(measured, {"a.py::test_long"}).splitlines() if not line.startswith("#")]
    assert lines == ["90 a.py::test_long", "7 a.py"]
