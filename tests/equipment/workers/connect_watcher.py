"""The real ``kafka-connect-watcher`` from PyPI, which restarts failed connectors over the REST API.

It has its own virtual environment: it pins versions that Sluice does not use.
"""

from __future__ import annotations

import json
import subprocess
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from connect.internals.jvm.home import file_lock, sluice_home

__all__ = ["install_watcher", "watching"]

_REQUIREMENT: Final = "kafka-connect-watcher==0.6.0"


def install_watcher() -> Path:
    """Its program, installed on first use; a ``CalledProcessError`` says why that failed."""
    folder = sluice_home() / "tools" / _REQUIREMENT
    program = folder / "bin" / "kafka-connect-watcher"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name(f"{folder.name}.lock")):
        if not program.exists():
            venv.create(folder, with_pip=True, clear=True)
            pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
            subprocess.run([*pip, _REQUIREMENT], check=True, capture_output=True, text=True)
    return program


@contextmanager
def watching(program: Path, folder: Path, config: Mapping[str, Any]) -> Iterator[Path]:
    """Run it with a configuration; yields its log file."""
    (folder / "watcher.json").write_text(json.dumps(config))
    log = folder / "watcher.log"
    with log.open("wb") as out:
        command = [program, "-c", folder / "watcher.json"]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            yield log
        finally:
            process.kill()
            process.wait()
