"""Children look for garbage seldom, and find it all the same."""

from __future__ import annotations

import gc
import json
import weakref
from multiprocessing.connection import Connection
from pathlib import Path

from connect.internals.garbage_collection import COLLECT_AFTER
from equipment.waiting import wait_until
from worker.supervisor.process import ForkServerLauncher

CYCLES = 400_000


class Knot:
    """Holds itself, so that only the garbage collector can end it."""

    def __init__(self) -> None:
        self.itself = self


def most_alive() -> int:
    """How many cycles that nobody holds there are at the most."""
    alive = most = 0

    def gone() -> None:
        nonlocal alive
        alive -= 1

    for _ in range(CYCLES):
        weakref.finalize(Knot(), gone)
        alive += 1
        most = max(most, alive)
    return most


def tell(connection: Connection, path: str | None) -> None:
    """What a child runs here: it writes down how its collector is set, and what it does."""
    assert path is not None
    told = {"after": gc.get_threshold(), "apart": gc.get_freeze_count(), "enabled": gc.isenabled()}
    part = Path(path).with_suffix(".part")
    part.write_text(json.dumps(told | {"most alive": most_alive()}))
    part.rename(path)


def test_a_child_begins_with_all_imports_set_apart_and_collects_seldom(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    launcher = ForkServerLauncher(tell, str(answer))
    child = launcher.launch("garbage")
    try:
        wait_until("the child has told", answer.exists)
    finally:
        child.kill()
        child.join()
        launcher.close()
    told = json.loads(answer.read_text())
    assert tuple(told["after"]) == COLLECT_AFTER
    assert told["apart"] > 10_000
    assert told["enabled"]
    assert told["most alive"] < 2 * COLLECT_AFTER[0]
