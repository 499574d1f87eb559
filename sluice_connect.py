"""The commands of Sluice, under the one name that no other distribution has.

Its packages have names that anybody's code may have, too: ``connect``, ``connectors``, ``converters``, ``worker`` and
``rest``. Where a module of another's is found in place of one of them, these commands say which it is and what to do,
rather than fail at whatever that module lacks.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["connect_distributed", "connect_mirror_maker", "connect_standalone", "main", "strangers"]

_KNOWN_BY: Final = {
    "connect": "internals/extras.py",
    "connectors": "file/__init__.py",
    "converters": "json/__init__.py",
    "worker": "cli/main.py",
    "rest": "app.py",
}
"""A file by which each package is known to be Sluice's."""


def strangers() -> Iterator[str]:
    """Describe each package of Sluice in whose place another is found, or none at all."""
    for name, file in _KNOWN_BY.items():
        spec = importlib.util.find_spec(name)
        found = None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
        if found is None:
            yield f"{name} is missing. Install Sluice again as you have installed it, with pip's --force-reinstall"
        elif not (Path(found).parent / file).is_file():
            yield f"{name} is {found}"


def _command(name: str) -> None:
    if found := list(strangers()):
        sys.stderr.write(
            "Sluice cannot start, because other modules have the names of its packages:\n"
            + "".join(f"  {line}\n" for line in found)
            + "Python finds them first. Take their folder out of PYTHONPATH, or rename them.\n"
        )
        sys.exit(2)
    getattr(importlib.import_module("worker.cli.main"), name)()


def main() -> None:
    """Run ``sluice``."""
    _command("main")


def connect_standalone() -> None:
    """Run ``connect-standalone``."""
    _command("connect_standalone")


def connect_distributed() -> None:
    """Run ``connect-distributed``."""
    _command("connect_distributed")


def connect_mirror_maker() -> None:
    """Run ``connect-mirror-maker``."""
    _command("connect_mirror_maker")
