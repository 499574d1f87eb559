"""A real ``sluice standalone`` process, with its files in its own folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar, Final

import requests

from equipment.terminal import Terminal
from equipment.waiting import wait_until
from equipment.workers.commands import CommandProcess, start_command
from equipment.workers.processes import descendants, runs

__all__ = ["LOG_NAME", "PATIENT", "StandaloneWorker"]

LOG_NAME: Final = "worker.log"
"""The file in a worker's folder to which it logs."""

PATIENT: Final = {"consumer_session_timeout_ms": "45000", "consumer_heartbeat_interval_ms": "3000"}
"""Properties of workers whose consumers no test kills: on a busy machine a short session ends by itself, and records
come twice."""

_ISOLATION = os.environ.get("SLUICE_TEST_ISOLATION")
_UP = re.compile(r"REST API is at (https?://[^ ]+:\d+/)")


class StandaloneWorker:
    """One worker. It may be started again after it has ended, and then continues where it stopped."""

    mode: ClassVar = "standalone"

    def __init__(self, folder: Path, bootstrap: str, **props: str) -> None:
        self.folder = folder
        self.log_file = folder / LOG_NAME
        self._connectors: list[Path] = []
        self._process: CommandProcess | None = None
        defaults = {
            "bootstrap.servers": bootstrap,
            "key.converter": "StringConverter",
            "value.converter": "StringConverter",
            "offset.flush.interval.ms": "100",
            # A broker of a busy machine may take long to answer the first question.
            "default.api.timeout.ms": "120000",
            "listeners": "http://127.0.0.1:0",
            # A killed consumer is removed after this time; by default 45 s.
            "consumer.session.timeout.ms": "2000",
            "consumer.heartbeat.interval.ms": "500",
        }
        if _ISOLATION is not None:
            defaults["task.isolation"] = _ISOLATION
        self._worker_file = self._write("worker.properties", defaults | self.mode_props() | _dotted(props))

    def mode_props(self) -> dict[str, str]:
        """The properties that a worker of this mode needs in addition to the common ones."""
        return {"offset.storage.file.filename": str(self.folder / "offsets")}

    def connector(self, name: str, **props: str) -> None:
        """Add a connector, or change it for the next start."""
        file = self._write(f"{name}.properties", {"name": name, **_dotted(props)})
        if file not in self._connectors:
            self._connectors.append(file)

    def connector_file(self, name: str, text: str) -> None:
        """Add a connector with a file of this text."""
        self._connectors.append(self.folder / name)
        self._connectors[-1].write_text(text)

    def start(self, environ: Mapping[str, str] | None = None, stdin: IO[str] | None = None) -> StandaloneWorker:
        """Start the process."""
        with self.log_file.open("ab") as log:
            self._process = start_command(self._arguments, log, environ, stdin)
        return self

    def start_on(self, terminal: Terminal) -> StandaloneWorker:
        """Start the process on a terminal, to which it then logs."""
        self._process = start_command(self._arguments, terminal.stream)
        return self

    @property
    def _arguments(self) -> list[str]:
        return [self.mode, str(self._worker_file), *map(str, self._connectors)]

    def wait(self, seconds: float = 60.0) -> int:
        """The exit status, once the process has ended by itself."""
        assert self._process is not None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker did not end within {seconds} s; its log:\n{self.log()}") from None

    def run(self, environ: Mapping[str, str] | None = None, seconds: float = 60.0) -> int:
        """Start the process and wait for its end."""
        return self.start(environ).wait(seconds)

    def terminate(self) -> int:
        """Stop the process with SIGTERM, as an operator would."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Kill only the worker's process; returns when its children are gone too."""
        orphans = descendants(self.pid)
        self.signal(signal.SIGKILL)
        self.wait()
        wait_until("the children of a killed worker are gone", lambda: not any(map(runs, orphans)))

    def close(self) -> None:
        """Stop everything that is running."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def signal(self, number: int) -> None:
        """Send a signal to the worker's process."""
        assert self._process is not None
        self._process.send_signal(number)

    @property
    def pid(self) -> int:
        """The worker's process."""
        assert self._process is not None
        return self._process.pid

    def get(self, path: str, seconds: float = 60.0) -> requests.Response:
        """Ask the REST API, once it is up."""
        return requests.get(self.url() + path.lstrip("/"), timeout=seconds)

    def ask(self, method: str, path: str, body: object = None, seconds: float = 200.0) -> Any:
        """Send the REST API a request that has to succeed, and return the document of the answer."""
        answer = requests.request(method, self.url() + path, json=body, timeout=seconds)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def url(self) -> str:
        """The URL of the REST API."""
        match = wait_until("the worker is up", lambda: _UP.findall(self.log()))
        return str(match[-1])

    def status(self, name: str) -> dict[str, Any]:
        """The status of a connector."""
        return dict(self.get(f"connectors/{name}/status").json())

    def wait_for_states(self, name: str, *states: str) -> dict[str, Any]:
        """Wait until the connector and its tasks have these states."""

        def reached() -> dict[str, Any] | None:
            status = self.status(name)
            if "connector" not in status:
                return None
            seen = (status["connector"]["state"], *(task["state"] for task in status["tasks"]))
            return status if seen == states else None

        return wait_until(f"{name} is {states}", reached)

    def task_pid(self, name: str, task: int = 0) -> int:
        """The process of a task."""
        title = f"{name}|task-{task}"
        found = wait_until(f"{title} runs", lambda: self._titled(title))
        return found[0]

    def log(self) -> str:
        """Everything logged so far."""
        return self.log_file.read_text() if self.log_file.exists() else ""

    def _titled(self, title: str) -> list[int]:
        pattern = re.compile(rf"process (\d+) runs {re.escape(title)} ")
        return [int(pid) for pid in pattern.findall(self.log()) if runs(int(pid))][-1:]

    def _write(self, name: str, props: Mapping[str, str]) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / name
        lines = [f"{key}={value}" for key, value in props.items()]
        file.write_text("\n".join(lines).replace("\\", "\\\\") + "\n")
        return file


def _dotted(props: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in props.items()}
