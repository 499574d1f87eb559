from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from worker.embedded.process import (
    find_process,
    is_process,
    launch_daemon,
    server_mark,
    signal_process,
    tail,
    wait_gone,
)


def test_a_daemon_is_known_by_its_mark_and_leaves_nothing_behind(tmp_path: Path) -> None:
    mark, log = server_mark("broker", tmp_path), tmp_path / "log"
    assert find_process(mark) is None
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)", mark]
    pid = launch_daemon(sleeper, log=log, environ={})
    try:
        assert is_process(pid, mark)
        assert not is_process(pid, server_mark("broker", tmp_path / "other"))
        assert find_process(mark) == pid
        assert os.getsid(pid) != os.getsid(0)
        assert not wait_gone(pid, mark, timeout=0)
    finally:
        signal_process(pid, signal.SIGKILL)
    assert wait_gone(pid, mark, timeout=10)
    assert not is_process(pid, mark)
    signal_process(pid, signal.SIGKILL)


def test_a_process_that_got_the_id_of_a_server_is_not_it(tmp_path: Path) -> None:
    assert not is_process(os.getpid(), server_mark("broker", tmp_path))
    assert wait_gone(os.getpid(), server_mark("broker", tmp_path), timeout=0)


def test_a_process_that_is_between_two_programs_keeps_its_mark(tmp_path: Path) -> None:
    """``execve`` takes the old command line some microseconds before it gives the new one."""
    mark = server_mark("broker", tmp_path)
    script = """read go; exec /bin/sh -c 'read end' "$@" """
    for _ in range(10):
        with subprocess.Popen(["/bin/sh", "-c", script, "sh", mark], stdin=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            assert all(is_process(process.pid, mark) for _ in range(200))
            process.kill()


def test_a_daemon_inherits_no_open_file(tmp_path: Path) -> None:
    mark, log = server_mark("broker", tmp_path), tmp_path / "log"
    with (tmp_path / "held").open("wb") as held:
        os.set_inheritable(held.fileno(), True)
        command = ["/bin/sh", "-c", "ls -l /proc/$$/fd", mark]
        listing = launch_daemon(command, log=log, environ={"PATH": os.defpath})
        assert wait_gone(listing, mark, timeout=10)
    assert "/dev/null" in log.read_text(encoding="utf-8")
    assert "held" not in log.read_text(encoding="utf-8")


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert tail(log) == "(no log was written)"
    log.touch()
    assert tail(log) == "(the log is empty)"
    log.write_text("".join(f"line {number}\n" for number in range(50000)), encoding="utf-8")
    assert tail(log, lines=2) == "line 49998\nline 49999"
