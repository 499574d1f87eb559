"""One task in its own process, which can be killed, frozen, and told where to crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any, Final, TypeVar

from connect.internals.crash import CRASH_POINT_VARIABLE
from equipment.waiting import wait_until
from worker.messages import messages
from worker.messages.messages import Command, Report, decode, encode

__all__ = ["TaskProcess"]

R = TypeVar("R")

_TESTS: Final = Path(__file__).parents[2]
_CODE = """
import os
import sys
from multiprocessing.connection import Connection
if "PYSPARK_GATEWAY_PORT" in os.environ:
    sys.path.append(sys.argv[2])
    from equipment.scripts.spark_driver import stop_leftover
    stop_leftover()
from worker.runtime.child import run
from worker.runtime.link import Line
run(Line(Connection(int(sys.argv[1]))), log_to_worker=True)
"""


class TaskProcess:
    """Runs the code of a task's process; the test acts as the worker, and keeps the source offsets."""

    def __init__(
        self,
        connector: Mapping[str, str],
        worker: Mapping[str, str],
        *,
        task: int = 0,
        crash_point: str = "",
        offsets: dict[str, dict[str, Any] | None] | None = None,
        java: Mapping[str, str] | None = None,
    ) -> None:
        """Start it. ``java`` is the environment of a Spark JVM that survives it; executors crash at the same point."""
        self.reports: list[Report] = []
        self.offsets = {} if offsets is None else offsets
        self._ours, theirs = Pipe()
        environ = {**os.environ, **(java or {}), CRASH_POINT_VARIABLE: crash_point}
        command = [sys.executable, "-c", _CODE, str(theirs.fileno()), str(_TESTS)]
        self._process = subprocess.Popen(command, env=environ, pass_fds=[theirs.fileno()])
        theirs.close()
        config, settings = dict(connector), dict(worker)
        if java is not None:
            config[f"spark.executorEnv.{CRASH_POINT_VARIABLE}"] = crash_point
            settings["connector.spark.config.override.policy"] = "All"
        self._send(messages.RunTask(config["name"], task, config, config, settings, paused=False))
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it at once."""
        self._process.kill()
        self.join()

    def stop(self) -> None:
        """Stop the task cleanly; it must not fail meanwhile."""
        self._send(messages.Stop())
        self.join()
        assert self.seen(messages.Failed) == []

    def join(self) -> int:
        """Wait until it has ended, and return its exit status."""
        status = self._process.wait(180)
        self._listener.join(30)
        return status

    def close(self) -> None:
        """Stop everything that is running."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self.kill()
        self._ours.close()

    def seen(self, kind: type[R]) -> list[R]:
        """The reports of one kind so far."""
        return [report for report in list(self.reports) if isinstance(report, kind)]

    def wait_for(self, kind: type[R], seconds: float = 60.0) -> R:
        """Wait until there is a report of a kind."""
        return wait_until(f"the task says {kind.__name__}", lambda: self.seen(kind), seconds)[0]

    def _send(self, command: Command) -> None:
        self._ours.send_bytes(encode(command))

    def _listen(self) -> None:
        try:
            while True:
                report: Report = decode(self._ours.recv_bytes())
                if isinstance(report, messages.ReadOffsets):
                    known = [self.offsets.get(str(partition)) for partition in report.partitions]
                    self._send(messages.OffsetsRead(report.request, known, None))
                elif isinstance(report, messages.CommitOffsets):
                    self.offsets |= {str(partition): offset for partition, offset in report.offsets}
                    self._send(messages.OffsetsCommitted(report.request, None))
                elif isinstance(report, messages.ConfirmOwnership):
                    self._send(messages.OwnershipConfirmed(report.request))
                self.reports.append(report)
        except (EOFError, OSError):
            return
