"""The folder of an embedded server: its paths, and the state that outlives the processes using it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from dataclasses import Field

__all__ = ["ServerFolder", "ServerState"]


class ServerState(Protocol):
    """The state written by the last process that started or stopped a server: a dataclass with JSON fields."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def pid(self) -> int:
        """The process id."""

    @property
    def explicit(self) -> bool:
        """Whether it was started explicitly, so that the end of the last lease does not stop it."""

    def as_explicit(self) -> Self:
        """Return the same state, for a server that was started explicitly."""

    def as_stopped(self) -> Self:
        """Return the state to keep after the server has stopped."""


S = TypeVar("S", bound=ServerState)


@dataclass(frozen=True, slots=True)
class ServerFolder(Generic[S]):
    """The paths in the folder of a server of a ``kind``; ``parse`` parses its state."""

    path: Path
    kind: str
    parse: Callable[[Mapping[str, Any]], S]

    @property
    def data(self) -> Path:
        """The server's data."""
        return self.path / "data"

    @property
    def log(self) -> Path:
        """The output of its process; the log of the previous start is kept next to it."""
        return self.path / f"{self.kind}.log"

    @property
    def properties(self) -> Path:
        """The properties of the last start, for servers that take a properties file."""
        return self.path / "server.properties"

    @property
    def leases(self) -> Path:
        """A folder with one file for each lease."""
        return self.path / "leases"

    @property
    def lock(self) -> Path:
        """The lock held by a process while it starts or stops the server."""
        return self.path / "lock"

    def read_state(self) -> S | None:
        """Return the state; ``None`` if no server was started yet."""
        try:
            return self.parse(json.loads(self._state.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            # Written by another version: the process is found by its command line, everything else is chosen again.
            return None

    def write_state(self, state: S) -> None:
        """Replace the state atomically."""
        partial = self._state.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
        partial.replace(self._state)

    def rotate_log(self) -> None:
        """Move the log of the previous start aside."""
        if self.log.is_file():
            self.log.replace(self.log.with_suffix(".log.1"))

    @property
    def _state(self) -> Path:
        return self.path / f"{self.kind}.json"
