"""A REST server in its own process, whose memory can be measured: ``python -m equipment.workers.rest_process``."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from flask import Flask, request

from rest.server.server import RestServer

_TESTS = Path(__file__).parents[1]
_HANGS_SECONDS = 600.0


class RestProcess:
    """Runs the server. ``/connectors/hang`` never answers, all other paths answer at once.

    It may open as many files as this process, or as it is given, and writes its log to ``log``.
    """

    def __init__(self, open_files: int | None = None, log: Path | None = None) -> None:
        paths = os.pathsep.join((str(_TESTS.parent), str(_TESTS)))
        command = [sys.executable, "-m", "equipment.workers.rest_process"]
        with nullcontext() if log is None else log.open("wb") as errors:
            self._process = subprocess.Popen(
                command if open_files is None else ["prlimit", f"--nofile={open_files}", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": paths},
                text=True,
            )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def peak(self) -> int:
        """Its peak memory in bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    def cpu(self) -> float:
        """Its CPU seconds."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def app() -> Flask:
    """Answers with the size of the request body."""
    made = Flask("rest_process", static_folder=None)

    @made.route("/<path:path>", methods=["GET", "POST", "PUT"])
    def answer(path: str) -> Any:
        if path == "connectors/hang":
            threading.Event().wait(_HANGS_SECONDS)
        return {"path": path, "bytes": len(request.get_data())}

    return made


def main() -> None:
    """Serve until stdin ends."""
    server = RestServer(["http://127.0.0.1:0"])
    server.answer_with(app())
    print(server.port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
