"""The line at the foot of a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from connect.internals.status_line import bar, time_left
from equipment.terminal import Terminal

SCRIPT = """
import logging
from connect.internals.status_line import IN_PLACE
from worker.log import configure_logging, log_as_json
from worker.security.redaction import Redaction

configure_logging()
logger = logging.getLogger("x")
if {as_json}:
    log_as_json(Redaction())
logger.info("first")
logger.info("half\\x1b[1A" + "." * 200, extra=IN_PLACE)
logger.info("second")
logger.info("most", extra=IN_PLACE)
{then}
"""


def shown(tmp_path: Path, then: str, *, as_json: bool = False) -> Terminal:
    """What a process leaves on a terminal."""
    script = tmp_path / "logs.py"
    script.write_text(SCRIPT.format(then=then, as_json=as_json))
    with Terminal.opened() as terminal:
        subprocess.run([sys.executable, script], stderr=terminal.stream, check=True)
    return terminal


def test_it_stays_below_the_lines_of_the_log_and_is_as_long_as_the_terminal(tmp_path: Path) -> None:
    terminal = shown(tmp_path, "")
    first, second, last = terminal.rows
    assert first.endswith("INFO [worker] first (x)")
    assert second.endswith("INFO [worker] second (x)")
    assert last == "most"
    assert f"half\\x1b[1A{'.' * 88}\r" in terminal.written, "no code of a terminal, and cut before its last column"


def test_an_empty_one_leaves_nothing(tmp_path: Path) -> None:
    *_, third, last = shown(tmp_path, "logger.info('', extra=IN_PLACE)\nlogger.info('third')").rows
    assert third.endswith("INFO [worker] third (x)")
    assert last == ""


def test_a_log_for_programs_has_none(tmp_path: Path) -> None:
    first, second, last = shown(tmp_path, "", as_json=True).rows
    assert ('"message": "first"' in first, '"message": "second"' in second, last) == (True, True, "")


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "[....................]"), (0.5, "[##########..........]"), (1.0, f"[{'#' * 20}]")]
)
def test_a_bar_has_twenty_places(share: float, text: str) -> None:
    assert bar(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "about 0 s"),
        (119.0, "about 119 s"),
        (120.0, "about 2 min"),
        (7199.0, "about 120 min"),
        (9000.0, "about 2 h"),
    ],
)
def test_a_time_is_told_in_the_unit_of_which_there_are_two(seconds: float, text: str) -> None:
    assert time_left(seconds) == f"{text} to go"
