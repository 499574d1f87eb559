"""The shell in which the commands of a page are typed, with the workers that it starts."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from page import Commands, File, Step, prints

__all__ = ["Session"]

_WORKER: Final = re.compile(
    r"(sluice (standalone|distributed)|connect-(standalone|distributed)|sluice mirror \S+\.properties) ?"
)
_UP: Final = "REST API is at "
_SECONDS: Final = 180.0
_COMMAND_SECONDS: Final = 900.0


class Session:
    """Types the steps of one page.

    ``said`` maps what the page says to what it is here, such as addresses. Commands that match ``skipped`` are not
    typed. Workers whose file does not say where they listen do so at ``listener``, if that is given. A command that has
    not ended after ``patience`` seconds is ended, and is an ``AssertionError`` with what it has printed.
    """

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str],
        said: Mapping[str, str],
        skipped: str | None,
        listener: str | None = None,
        patience: float = _COMMAND_SECONDS,
    ) -> None:
        self._folder = folder
        self._environ = dict(environ)
        self._said = dict(said)
        self._listener = listener
        self._patience = patience
        self._skipped = re.compile(skipped) if skipped else None
        self._state = folder.parent / f"{folder.name}.state"
        self._workers: list[tuple[subprocess.Popen[bytes], Path]] = []
        self._state.write_text(f"cd {shlex.quote(str(folder))}\n")

    def say(self, said: str, here: str) -> None:
        """Take what the page says for something else here."""
        self._said[said] = here

    def find_programs(self, folder: Path) -> None:
        """Have the commands find programs of a folder, too."""
        self._environ["PATH"] = f"{folder}{os.pathsep}{self._environ['PATH']}"

    def follow(self, steps: Sequence[Step], *, slow: bool) -> None:
        """Follow the steps as a reader does; what does not come about is an ``AssertionError`` with the line."""
        for step in steps:
            if isinstance(step, File):
                self._write(step)
            elif slow or not step.slow:
                self._type(step)

    def close(self) -> None:
        """Press Ctrl-C in the terminals of the workers, which end without a complaint."""
        while self._workers:
            process, log = self._workers.pop()
            process.send_signal(signal.SIGINT)
            status = process.wait(_SECONDS)
            assert status == 0, f"a worker ended with {status}:\n{log.read_text()}"

    def kill(self) -> None:
        """End the workers of a page that has failed."""
        for process, _ in self._workers:
            process.kill()
            process.wait()

    def _write(self, file: File) -> None:
        path = self._cwd() / self._here(file.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._here(file.text), encoding="utf-8")

    def _type(self, step: Commands) -> None:
        typed = [command for command in step.commands if not (self._skipped and self._skipped.match(command))]
        for number, said in enumerate(typed):
            command = self._here(said)
            expected = (
                step.printed if said is typed[-1] and number == len(typed) - 1 and said == step.commands[-1] else None
            )
            if _WORKER.match(command):
                self._start_worker(step.line, command)
            elif expected is None:
                status, output = self._run(command)
                assert status == 0, f"line {step.line}: {command}\nended with {status}:\n{output}"
            else:
                self._expect(step.line, command, self._here(expected))

    def _expect(self, line: int, command: str, expected: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while True:
            _, output = self._run(command)
            if prints(expected, output):
                return
            assert time.monotonic() < deadline, f"line {line}: {command}\nprinted\n{output}\nand not\n{expected}"
            time.sleep(0.2)

    def _run(self, command: str) -> tuple[int, str]:
        """Run one command, in the folder and with the variables that the last one has left."""
        state = shlex.quote(str(self._state))
        script = (
            f". {state}\n{command}\nstatus=$?\n{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} > {state}\nexit $status\n"
        )
        process = subprocess.Popen(
            ["bash", "-c", script],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=self._patience)
        except subprocess.TimeoutExpired:
            # With what it has started, which would go on to install and to listen beside the next test.
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise AssertionError(f"{command}\nhas not ended after {self._patience:g} s:\n{output}") from None
        return process.returncode, output

    def _start_worker(self, line: int, command: str) -> None:
        if not command.endswith("&"):
            self.close()
        self._listen(command)
        log = self._folder.parent / f"{self._folder.name}-{line}.log"
        script = f". {shlex.quote(str(self._state))}\nexec {command.rstrip('& ')}\n"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", script], env=self._environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        self._workers.append((process, log))
        deadline = time.monotonic() + _SECONDS
        while _UP not in log.read_text():
            status = process.poll()
            assert status in (None, 0), f"line {line}: {command}\nended with {status}:\n{log.read_text()}"
            if status == 0:
                self._workers.pop()
                return
            assert time.monotonic() < deadline, f"line {line}: {command}\nis not up:\n{log.read_text()}"
            time.sleep(0.1)

    def _cwd(self) -> Path:
        """The folder that the last command has left."""
        *_, last = self._state.read_text().splitlines()
        return Path(shlex.split(last)[1])

    def _listen(self, command: str) -> None:
        file = self._cwd() / next(word for word in shlex.split(command) if word.endswith(".properties"))
        # `sluice init` writes the port that everybody has.
        text = re.sub(r"^listeners=http://localhost:8083$", "", file.read_text(), flags=re.MULTILINE)
        if self._listener is not None and not re.search(r"^listeners=", text, re.MULTILINE):
            file.write_text(f"{text}\nlisteners={self._listener}\n")

    def _here(self, text: str) -> str:
        for said, here in self._said.items():
            text = text.replace(said, here)
        return text
