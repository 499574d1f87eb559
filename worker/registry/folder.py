"""The folder of an embedded schema registry: what lies where, and the state that outlives those who use it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from worker.registry.settings import Storage

__all__ = ["RegistryFolder", "RegistryState"]


@dataclass(frozen=True, slots=True)
class RegistryState:
    """What the last process that started or stopped the registry wrote down."""

    pid: int
    port: int
    version: str
    storage: Storage = Storage.FILE
    explicit: bool = False
    """Whether it was started to stay: the end of the last lease does not stop it."""

    def as_explicit(self) -> RegistryState:
        """The state of the same registry, started to stay."""
        return replace(self, explicit=True)

    def as_stopped(self) -> RegistryState:
        """What to remember of it once it has been stopped: its address and storage."""
        return replace(self, explicit=False)


@dataclass(frozen=True, slots=True)
class RegistryFolder:
    """The paths below one registry's folder."""

    path: Path

    @property
    def data(self) -> Path:
        """The database of the registry."""
        return self.path / "data"

    @property
    def log(self) -> Path:
        """What the registry's process prints; the log of the start before is kept beside it."""
        return self.path / "registry.log"

    @property
    def leases(self) -> Path:
        """One file a lease."""
        return self.path / "leases"

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops the registry."""
        return self.path / "lock"

    def read_state(self) -> RegistryState | None:
        """The state, or ``None`` where no registry was started yet."""
        try:
            fields = json.loads(self._state.read_text(encoding="utf-8"))
            return RegistryState(**{**fields, "storage": Storage(fields["storage"])})
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            # Written by another version: the process is found by its command line, the rest is chosen anew.
            return None

    def write_state(self, state: RegistryState) -> None:
        """Replace the state, at once or not at all."""
        partial = self._state.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
        partial.replace(self._state)

    def rotate_log(self) -> None:
        """Move the log of the start before aside."""
        if self.log.is_file():
            self.log.replace(self.log.with_suffix(".log.1"))

    @property
    def _state(self) -> Path:
        return self.path / "registry.json"
