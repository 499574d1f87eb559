"""Tries to import plugins in separate processes, to find modules that are broken or lack dependencies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from connect.errors import PluginError
from connect.internals.plugins import PluginEntry, PluginKind, load_class

__all__ = ["OURS", "import_errors"]

_PATIENCE_SECONDS: Final = 60.0
OURS: Final = ("connect", "connectors", "converters")
"""The packages whose plugins come with Sluice."""


def import_errors(entries: Iterable[PluginEntry]) -> dict[PluginEntry, str]:
    """Import the plugins that do not come with Sluice, and return the errors of those that fail.

    Each package or folder has its own process, with its own interpreter if it has one, so that one cannot affect
    another.
    """
    foreign = sorted((entry for entry in entries if entry.home not in OURS), key=_by_home)
    errors: dict[PluginEntry, str] = {}
    for _, group in groupby(foreign, _by_home):
        members = list(group)
        errors |= dict(zip(members, _tried(members), strict=True))
    return {entry: error for entry, error in errors.items() if error}


def _by_home(entry: PluginEntry) -> tuple[str, str]:
    return str(entry.interpreter or ""), entry.home


def _tried(entries: Sequence[PluginEntry]) -> list[str]:
    """Return the error of each entry; empty if there is none."""
    described = [[entry.kind.value, entry.class_name, entry.folder and str(entry.folder)] for entry in entries]
    try:
        done = subprocess.run(
            [str(entries[0].interpreter or sys.executable), "-P", "-m", __name__],
            input=json.dumps(described),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [f"Its import does not return within {_PATIENCE_SECONDS:.0f} s."] * len(entries)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    ended = f"The process ended with status {done.returncode} while it was imported."
    return (outcomes + [ended] * len(entries))[: len(entries)]


def _try_all() -> None:
    """Import the modules named on standard input, and write an error for each to standard output."""
    with os.fdopen(os.dup(1), "w") as answers:
        # Plugins may print during their import.
        os.dup2(2, 1)
        for kind, name, folder in json.load(sys.stdin):
            try:
                load_class(PluginEntry(PluginKind(kind), name, folder=folder and Path(folder)))
                error = ""
            except PluginError as refused:
                error = str(refused)
            print(json.dumps(error), file=answers, flush=True)


if __name__ == "__main__":
    _try_all()
