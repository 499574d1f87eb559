"""A distributed worker as seen by the benchmarks: its process, its REST API over one connection, and its memory."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from worker.embedded.ports import HOST, any_port

__all__ = ["DistributedWorker", "Memory", "until"]

T = TypeVar("T")

_COMMAND = Path(sys.executable).parent / "sluice"
_LOOK_SECONDS = 0.002
_PATIENCE_SECONDS = 90.0
_MEGABYTE = 1e6


class Memory:
    """The proportional set size of processes in MB: a page shared by several processes is divided among them."""

    @staticmethod
    def of(pid: int) -> float:
        """Return the memory of one process, or 0 if it has ended."""
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            return 0.0
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")) / _MEGABYTE

    @staticmethod
    def below(root: int) -> dict[int, float]:
        """Return the memory of a process and each of its descendants."""
        parents = {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(file.parent.name)] = int(file.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
        below = {root}
        while more := {pid for pid, parent in parents.items() if parent in below} - below:
            below |= more
        return {pid: Memory.of(pid) for pid in below}


class DistributedWorker:
    """A ``sluice distributed`` process with Kafka Connect's own timeouts. Used by one thread."""

    def __init__(self, folder: Path, bootstrap: str, group: str, **props: str) -> None:
        folder.mkdir()
        self.address = f"{HOST}:{any_port(taken=0)}"
        self.log = folder / "worker.log"
        self._file = folder / "worker.properties"
        all_props = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "key.converter": "StringConverter",
            "value.converter": "StringConverter",
            "listeners": f"http://{self.address}",
            **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")},
            **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        self._file.write_text("".join(f"{key}={value}\n" for key, value in all_props.items()))
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: http.client.HTTPConnection | None = None

    def start(self) -> DistributedWorker:
        """Start the process like a user does, with cached byte code."""
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen([_COMMAND, "distributed", self._file], stdout=log, stderr=log, env=environ)
        return self

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> float:
        """Stop the process in an orderly way. Returns how many seconds that took."""
        if self._process is None or self._process.poll() is not None:
            return 0.0
        began = time.perf_counter()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self._forget()
        return time.perf_counter() - began

    def kill(self) -> None:
        """Kill the process, as in a crash. Its descendants end by themselves."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(60)
        self._forget()

    def answers(self, path: str) -> bool:
        """Return whether a path responds with 200. Raises if the worker has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise SystemExit(f"the worker has ended:\n{self.log.read_text()}")
        try:
            return self.request("GET", path)[0] == 200
        except OSError:
            return False

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        """Return the status and body of a response.

        If the worker has closed the connection meanwhile, retry once on a new one.
        """
        kept = self._connection is not None
        try:
            return self._ask(method, path, body)
        except ConnectionError:
            if not kept:
                raise
            return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.address, timeout=_PATIENCE_SECONDS)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._forget()
            raise ConnectionError(str(error)) from error

    def get(self, path: str) -> Any:
        """Return the body of a response."""
        status, body = self.request("GET", path)
        if status != 200:
            raise SystemExit(f"GET {path}: {status} {body!r}")
        return json.loads(body)

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector; during a rebalance the worker may ask to try again later (409)."""

        def created() -> bool:
            status, body = self.request("POST", "/connectors", {"name": name, "config": dict(config)})
            if status not in (201, 409):
                raise SystemExit(f"POST {name}: {status} {body!r}")
            return status == 201

        until(f"{name} is made", created)

    def running(self) -> dict[str, list[str]]:
        """Return each connector that runs with all its tasks, with the addresses of the workers that run them."""
        shown = self.get("/connectors?expand=status")
        statuses = {name: item["status"] for name, item in shown.items() if "status" in item}
        parts = {name: [status["connector"], *status["tasks"]] for name, status in statuses.items()}
        return {
            name: [part["worker_id"] for part in all_parts]
            for name, all_parts in parts.items()
            if len(all_parts) > 1 and all(part["state"] == "RUNNING" for part in all_parts)
        }

    def runs(self, name: str) -> bool:
        """Return whether a connector and its task run."""
        status, body = self.request("GET", f"/connectors/{name}/status")
        if status != 200:
            return False
        shown = json.loads(body)
        parts = [shown["connector"], *shown["tasks"]]
        return len(parts) > 1 and all(part["state"] == "RUNNING" for part in parts)

    def cpu(self) -> float:
        """Return the CPU seconds used by the worker's own process so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def until(what: str, condition: Callable[[], T], look: float = _LOOK_SECONDS) -> T:
    """Wait for the first true result of a condition and return it."""
    deadline = time.perf_counter() + _PATIENCE_SECONDS
    while not (answer := condition()):
        if time.perf_counter() > deadline:
            raise SystemExit(f"within {_PATIENCE_SECONDS:g} s it did not come about that {what}")
        time.sleep(look)
    return answer
