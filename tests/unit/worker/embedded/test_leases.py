from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from worker.embedded.server import ServerLease, count_leases

HOLD = """
import sys
from pathlib import Path
from worker.embedded.server import ServerLease
lease = ServerLease(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_counts_leases_until_they_are_released(tmp_path: Path) -> None:
    assert count_leases(tmp_path / "leases") == 0
    first, second = ServerLease(tmp_path / "leases"), ServerLease(tmp_path / "leases")
    assert count_leases(tmp_path / "leases") == 2
    first.release()
    first.release()
    assert count_leases(tmp_path / "leases") == 1
    second.release()
    assert count_leases(tmp_path / "leases") == 0
    assert list((tmp_path / "leases").iterdir()) == []


def test_a_holder_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert count_leases(tmp_path) == 1
        holder.kill()
        holder.wait()
        assert count_leases(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_program_started_by_the_holder_does_not_hold_the_lease(tmp_path: Path) -> None:
    lease = ServerLease(tmp_path)
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, close_fds=False):
        # The file stays, as after a crash; only the lock tells.
        (path,) = tmp_path.iterdir()
        lease.release()
        path.touch()
        assert count_leases(tmp_path) == 0
