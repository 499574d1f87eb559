"""What the processes of a worker use."""

from __future__ import annotations

import os

from worker.metrics.processes import ProcessUse, processes_document, with_jvms
from worker.unit import Unit

USES = {1: ProcessUse(1.5, 100, 3, 0.0), 2: ProcessUse(0.5, 200, 4, 0.0), os.getpid(): ProcessUse(9.0, 50, 5, 0.0)}


def test_the_worker_comes_first_and_then_who_has_the_most_memory() -> None:
    found = processes_document({Unit("c"): 1, Unit("c", 0): 2, Unit("gone", 0): 3}, USES.get)
    assert [(item["pid"], item["connector"], item["task"], item["resident_bytes"]) for item in found] == [
        (os.getpid(), None, None, 50),
        (2, "c", 0, 200),
        (1, "c", None, 100),
    ]
    assert found[1] == {
        "pid": 2,
        "connector": "c",
        "task": 0,
        "units": 1,
        "resident_bytes": 200,
        "cpu_seconds": 0.5,
        "open_files": 4,
    }


def test_a_process_that_several_share_is_counted_once() -> None:
    shared = {Unit("a"): 1, Unit("b", 0): 1, Unit("c"): 2, Unit("c", 1): 2}
    found = [(item["connector"], item["task"], item["units"]) for item in processes_document(shared, USES.get)]
    assert found == [(None, None, 0), ("c", None, 2), (None, None, 2)]


def test_a_jvm_counts_with_its_process() -> None:
    of_jvms = with_jvms(USES.get, {1: 2, 2: 7})
    assert of_jvms(1) == ProcessUse(2.0, 300, 7, 0.0)
    assert of_jvms(2) == USES[2], "its JVM has just ended"
    assert of_jvms(3) is None
