"""Processes of the command ``sluice``, which are forked with all imports done where they can be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Final, Protocol

from equipment.workers.nursery import Nursery

__all__ = ["CommandProcess", "start_command"]

_COMMAND: Final = Path(sys.executable).with_name("sluice")
_MODULES: Final = (
    *("worker.app.distributed", "worker.app.standalone", "worker.cli.mirror.command"),
    # What the fork server of a worker imports.
    *("converters.json", "converters.simple_header", "converters.string"),
    *("worker.runtime.child", "worker.runtime.entry"),
)
# What an interpreter, or the C library, reads once as it starts.
_READ_AT_START: Final = ("PYTHON", "LD_", "MALLOC_", "TZ")


class CommandProcess(Protocol):
    """A process, in the words of :class:`subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...


def start_command(
    arguments: Sequence[str], output: IO[bytes], environ: Mapping[str, str] | None = None, stdin: IO[str] | None = None
) -> CommandProcess:
    """Start ``sluice`` with these arguments, which prints to ``output``, and has these variables in addition."""
    given = {**os.environ, **(environ or {})}
    command = [str(_COMMAND), *arguments]
    nursery, read_before = _nursery()
    if _read_at_start(given) == read_before:
        with open(os.devnull) as nothing:  # noqa: PTH123 - a device
            streams = [(stdin or nothing).fileno(), output.fileno(), output.fileno()]
            return nursery.fork("worker.cli.main:main", command, given, streams)
    return subprocess.Popen(command, stdout=output, stderr=output, stdin=stdin or subprocess.DEVNULL, env=given)


@cache
def _nursery() -> tuple[Nursery, dict[str, str]]:
    return Nursery(_MODULES), _read_at_start(os.environ)


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in environ.items() if key.startswith(_READ_AT_START)}
