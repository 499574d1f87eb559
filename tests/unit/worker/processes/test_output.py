"""What children print: lines, and the stacks of faulthandler."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.messages import messages
from worker.processes.output import OUTPUT, Output
from worker.processes.stacks import Silence, hang_place, hang_places, last_words

STACKS = """Thread 0x0000000000000002 (most recent call first):
  File "/python/threading.py", line 331 in wait

Thread 0x0000000000000001 (most recent call first):
  File "{python}/ssl.py", line 1100 in read
  File "/plugins/bad.py", line 22 in _fetch
  File "/plugins/bad.py", line 12 in poll
  File "{root}/worker/runtime/source/loop.py", line 178 in _poll
  File "{python}/multiprocessing/process.py", line 108 in run
""".format(root=Path(__file__).parents[4], python=Path(os.__file__).parent)


class Pipe:
    """An output, and the end that a child writes to."""

    def __init__(self) -> None:
        reader, self.writer = os.pipe()
        self.output = Output(reader)

    def write(self, text: str | bytes) -> list[messages.Report]:
        """What the output makes of it."""
        os.write(self.writer, text.encode() if isinstance(text, str) else text)
        return list(self.output.receive())

    def end(self) -> list[messages.Report]:
        """What it makes of the end."""
        os.close(self.writer)
        return list(self.output.drain())


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.output.close()


def texts(reports: list[messages.Report]) -> list[str]:
    assert all(isinstance(report, messages.LogRecord) and report.logger == OUTPUT for report in reports)
    return [report.text for report in reports if isinstance(report, messages.LogRecord)]


def test_lines_come_whole_however_they_are_written(pipe: Pipe) -> None:
    assert texts(pipe.write("one\ntw")) == ["one"]
    assert texts(pipe.write("o\r\n\n  \nthree")) == ["two"]
    assert texts(pipe.end()) == ["three"]
    assert pipe.output.descriptor is None


def test_a_line_without_an_end_is_cut_and_bytes_that_are_no_text_are_told(pipe: Pipe) -> None:
    assert [len(text) for text in texts(pipe.write(b"x" * 20_000))] == [8192, 8192, 3616]
    assert texts(pipe.write(b"caf\xe9\n")) == ["caf\\xe9"]


def test_nothing_to_read_is_no_end(pipe: Pipe) -> None:
    assert list(pipe.output.receive()) == []
    assert pipe.output.descriptor is not None
    assert texts(pipe.write("a\n")) == ["a"]


def test_the_end_does_not_wait_for_others_who_hold_the_pipe(pipe: Pipe) -> None:
    other = os.dup(pipe.writer)
    assert texts(pipe.write("a\n")) == ["a"]
    assert pipe.end() == []
    os.close(other)


def test_silence_is_reported_when_all_of_its_stacks_are_there(pipe: Pipe) -> None:
    assert pipe.write(f"Timeout (0:01:30)!\n{STACKS}") == []
    silent, *printed = pipe.write("printed later\n  indented\n")
    assert isinstance(silent, messages.Silent)
    assert silent.seconds == 90
    assert hang_place(silent.stacks) == ("poll", "bad.py:22")
    assert texts(printed) == ["printed later", "  indented"]
    assert pipe.write(f"Timeout (0:00:01)!\n{STACKS}") == []
    (silent,) = pipe.write(f"Timeout (0:00:00.250000)!\n{STACKS}")
    assert isinstance(silent, messages.Silent)
    assert silent.seconds == 1
    (silent,) = pipe.end()
    assert isinstance(silent, messages.Silent)
    assert silent.seconds == 0.25


def test_what_looks_like_stacks_for_ever_is_printed(pipe: Pipe) -> None:
    assert pipe.write("Timeout (0:01:30)!\n") == []
    said = pipe.write("  x\n" * 2_000)
    assert isinstance(said[0], messages.Silent)
    assert len(texts(said[1:])) == 1_001


def test_a_crash_is_kept(pipe: Pipe) -> None:
    crash = (
        f"Fatal Python error: Segmentation fault\n\n{STACKS.replace('Thread 0x0000000000000001', 'Current thread 0x1')}"
    )
    assert texts(pipe.write(f"the last line\n{crash}")) == ["the last line"]
    assert pipe.end() == []
    assert pipe.output.crash == crash.rstrip("\n")
    assert last_words("It died", pipe.output.crash).startswith("It died, in poll: bad.py:22\n\nFatal Python error")


def test_a_crash_in_a_thread_without_python_is_not_blamed_on_the_plugin() -> None:
    assert last_words("It died", STACKS).startswith("It died\n\n")


def test_who_may_let_no_python_run_is_in_code_of_a_plugin(tmp_path: Path) -> None:
    """Not who waits by the runtime, whatever of the plugin has called it, and no thread of the runtime's."""
    runtime = Path(__file__).parents[4] / "worker" / "runtime"
    waits = f'  File "{runtime}/control.py", line 9 in wait\n'
    polls = f'  File "{tmp_path}/bad.py", line 22 in poll\n  File "{runtime}/source/loop.py", line 7 in _poll\n'
    of_python = f'  File "{threading.__file__}", line 3 in run\n'
    stacks = {1: waits + of_python, 2: waits + polls, 3: of_python + polls, 4: polls, 5: of_python}
    text = "\n".join(f"Thread 0x{number:016x} (most recent call first):\n{there}" for number, there in stacks.items())
    assert hang_places(text) == {3: ("poll", "bad.py:22"), 4: ("poll", "bad.py:22")}


_DYING = """
import ctypes, faulthandler, pathlib, sys

def poll():
    while file.read_text().count("Timeout") < 3:
        faulthandler.dump_traceback_later(0.05, repeat=True, file=stream)
        # Code that holds the GIL: the stacks of a thread that runs Python cannot be read safely.
        ctypes.PyDLL(None).usleep(120_000)
        faulthandler.cancel_dump_traceback_later()
    faulthandler.enable(stream)
    ctypes.string_at(0)

file = pathlib.Path(sys.argv[1])
with file.open("w") as stream:
    poll()
"""


def test_the_stacks_that_this_python_writes_are_understood(pipe: Pipe, tmp_path: Path) -> None:
    """Their form changes between versions of Python."""
    (tmp_path / "dying.py").write_text(_DYING)
    subprocess.run([sys.executable, tmp_path / "dying.py", tmp_path / "stacks"], check=False, timeout=60)
    said = [*pipe.write((tmp_path / "stacks").read_bytes()), *pipe.end()]
    assert len(said) >= 3
    for silent in said:
        assert isinstance(silent, messages.Silent)
        assert silent.seconds == 0.05
        # Nothing of the runtime is in them, so the outermost counts as what it has called.
        assert hang_place(silent.stacks)[0] == "<module>"
    crash = pipe.output.crash or ""
    assert crash.startswith("Fatal Python error: Segmentation fault")
    assert "in poll" in last_words("It died", crash)


def test_a_silent_process_is_judged_by_how_often_it_says_so() -> None:
    silence = Silence()
    silence.watched(messages.Watched(60.0, 120.0))
    silent = messages.Silent(30.0, STACKS)
    assert silence.heard(silent) is None, "it may have been suspended"
    hanging = silence.heard(silent)
    assert isinstance(hanging, messages.Hanging)
    assert (hanging.method, hanging.seconds, hanging.line) == ("poll", 60.0, "bad.py:22")
    assert silence.heard(silent) is None
    failed = silence.heard(silent)
    assert isinstance(failed, messages.Failed)
    assert failed.trace.startswith("poll has not returned for 120 s: bad.py:22 (task.hang.timeout.ms)")


def test_a_process_that_goes_on_is_judged_anew() -> None:
    silence = Silence()
    silence.watched(messages.Watched(60.0, 60.0))
    for _ in range(10):
        assert silence.heard(messages.Silent(60.0, STACKS)) is None
        assert not silence.over()
