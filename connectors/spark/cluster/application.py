"""The folder of a shared Spark application: who may start it, how to reach it, who uses it.

It belongs to one worker, by the fork server from which all of its connectors' processes come, and to one user of the
machine: the file that tells how to reach the application opens it to whoever can read it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from connect.errors import ConnectError
from connect.jvm.home import file_lock
from connectors.spark.cluster.terms import Terms

__all__ = ["Application", "ApplicationFolder"]

_HOST: Final = "host"
_LOCK: Final = "lock"
_STATE: Final = "application.json"


@dataclass(frozen=True, slots=True)
class Application:
    """How to reach an application that runs, and on which terms."""

    port: int
    secret: str
    java: int
    """The process id of its Java."""
    terms: Terms

    def __repr__(self) -> str:
        return f"Application(java={self.java})"


class ApplicationFolder:
    """The folder of the application ``name``, of the worker that started this process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, name: str, worker: int | None = None) -> ApplicationFolder:
        """The folder, made if it is missing. ``worker`` is the process id of the parent of all who share it."""
        top = Path(tempfile.gettempdir()) / f"sluice-spark-{os.getuid()}"
        path = top / f"{worker or os.getppid()}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(place.is_symlink() or place.stat().st_uid != os.getuid() for place in (top, path)):
            raise ConnectError(f"The folder {top} belongs to somebody else: remove it, or set TMPDIR to another place.")
        top.chmod(0o700)
        return cls(path)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Take turns with the others who join, start or end the application."""
        with file_lock(self.path / _LOCK):
            yield

    def host(self) -> int | None:
        """Claim to be the host of the application, with a descriptor to keep; ``None`` if there is one that lives."""
        descriptor = os.open(self.path / _HOST, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def has_host(self) -> bool:
        """Whether a process hosts the application."""
        if (claimed := self.host()) is None:
            return True
        os.close(claimed)
        return False

    def write(self, application: Application) -> None:
        """Say how to reach the application."""
        partial = self.path / f"{_STATE}.partial"
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(application), file)
        partial.replace(self.path / _STATE)

    def read(self) -> Application | None:
        """How to reach the application, if that is known."""
        try:
            told = json.loads((self.path / _STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return Application(**{**told, "terms": Terms(**told["terms"])})

    def clear(self) -> None:
        """Say that there is no application."""
        (self.path / _STATE).unlink(missing_ok=True)
