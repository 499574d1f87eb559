"""A shared Spark application: its folder (who may start it, how to reach it), and what its connectors must agree on.

The folder belongs to one worker (to the fork server that starts all of its connectors' processes) and to one user of
the machine: the file in it gives access to the application to whoever can read it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from connect.errors import ConfigError, ConnectError
from connect.internals.jvm.home import file_lock

__all__ = [
    "SESSION_KEY",
    "Application",
    "ApplicationFolder",
    "Terms",
    "agree",
    "application_name",
    "session_name",
    "split_settings",
]

SESSION_KEY: Final = "spark.session"
"""The connector key that names the application it shares with others."""

_NAME: Final = re.compile(r"[\w.-]{1,100}")
_OWN: Final = ("spark.sql.", "spark.databricks.delta.")
_STATIC: Final = frozenset(
    {
        # Delta looks for it in the application's first session, too.
        "spark.sql.catalog.spark_catalog",
        "spark.sql.catalogImplementation",
        "spark.sql.extensions",
        "spark.sql.warehouse.dir",
    }
)

_HOST: Final = "host"
_LOCK: Final = "lock"
_STATE: Final = "application.json"


@dataclass(frozen=True, slots=True)
class Terms:
    """The settings of an application, as digests, and the connector it was started for."""

    connector: str
    salt: str
    digests: Mapping[str, str]

    @classmethod
    def of(cls, connector: str, salt: str, settings: Mapping[str, str]) -> Terms:
        """Return the digests of these settings; the values, which may be secrets, cannot be read from them."""
        return cls(connector, salt, {key: _digest(salt, value) for key, value in settings.items()})


@dataclass(frozen=True, slots=True)
class Application:
    """How to reach a running application, and the settings it was started with."""

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
        """Return the folder, created if missing. ``worker`` is the process id of the parent of all who share it."""
        top = Path(tempfile.gettempdir()) / f"sluice-spark-{os.getuid()}"
        path = top / f"{worker or os.getppid()}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(place.is_symlink() or place.stat().st_uid != os.getuid() for place in (top, path)):
            raise ConnectError(
                f"The folder {top} belongs to another user: remove it, or point TMPDIR to another place."
            )
        top.chmod(0o700)
        return cls(path)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Take turns with other members that join, start or end the application."""
        with file_lock(self.path / _LOCK):
            yield

    def host(self) -> int | None:
        """Claim the role of the application's host; return the descriptor to keep, or ``None`` if a live host
        exists."""
        descriptor = os.open(self.path / _HOST, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def has_host(self) -> bool:
        """Return whether a process hosts the application."""
        if (claimed := self.host()) is None:
            return True
        os.close(claimed)
        return False

    def write(self, application: Application) -> None:
        """Record how to reach the application."""
        partial = self.path / f"{_STATE}.partial"
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(application), file)
        partial.replace(self.path / _STATE)

    def read(self) -> Application | None:
        """Return how to reach the application, if known."""
        try:
            document = json.loads((self.path / _STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return Application(**{**document, "terms": Terms(**document["terms"])})

    def clear(self) -> None:
        """Remove the record of an application."""
        (self.path / _STATE).unlink(missing_ok=True)


def session_name(props: Mapping[str, str]) -> str | None:
    """Return the name of the application that a connector shares, if any."""
    name = props.get(SESSION_KEY)
    if name is not None and not _NAME.fullmatch(name):
        raise ConfigError(SESSION_KEY, name, "Use only letters, digits, dots, underscores and dashes.")
    return name


def application_name(session: str, table_format: str) -> str:
    """Return the name of the application for the connectors of a session with the same table format: Java has the
    classes and the extensions of its first connector.
    """
    return session if table_format == "parquet" else f"{session}@{table_format}"


def split_settings(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split the settings into those of the whole application and those of the connector's own session."""
    own = {key: value for key, value in settings.items() if key.startswith(_OWN) and key not in _STATIC}
    return {key: value for key, value in settings.items() if key not in own}, own


def agree(terms: Terms, session: str, connector: str, settings: Mapping[str, str]) -> None:
    """Raise :class:`~connect.errors.ConfigError` if a connector's settings differ from the application's."""
    mine = Terms.of(connector, terms.salt, settings).digests
    keys = {*mine, *terms.digests}
    if differing := sorted(key for key in keys if mine.get(key) != terms.digests.get(key)):
        raise ConfigError(
            SESSION_KEY,
            session,
            f"Connectors {terms.connector} and {connector} cannot share a Spark application: their settings "
            f"differ in {', '.join(differing)}, which apply to the whole application. Use the same values in "
            f"both, or give one of them another {SESSION_KEY}.",
        )


def _digest(salt: str, value: str) -> str:
    return hashlib.sha256(f"{salt}\n{value}".encode()).hexdigest()
