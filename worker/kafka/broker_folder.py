"""The folder of an embedded broker: what lies where, and the state that outlives those who use it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from worker.kafka.broker_ports import Ports

__all__ = ["BrokerFolder", "BrokerState"]


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What the last process that started or stopped the broker wrote down."""

    pid: int
    ports: Ports
    version: str
    explicit: bool = False
    """Whether it was started to stay: the end of the last lease does not stop it."""
    properties: Mapping[str, str] = field(default_factory=dict)
    archive: str = ""
    """The class data archive to keep when the broker has left ``partial_archive``."""
    partial_archive: str = ""

    def as_explicit(self) -> BrokerState:
        """The state of the same broker, started to stay."""
        return replace(self, explicit=True)

    def as_stopped(self) -> BrokerState:
        """What to remember of it once it has been stopped: its address and settings."""
        return replace(self, explicit=False, archive="", partial_archive="")


@dataclass(frozen=True, slots=True)
class BrokerFolder:
    """The paths below one broker's folder."""

    path: Path

    @property
    def data(self) -> Path:
        """Kafka's log folder: topics and metadata."""
        return self.path / "data"

    @property
    def log(self) -> Path:
        """What the broker's process prints; the log of the start before is kept beside it."""
        return self.path / "broker.log"

    @property
    def properties(self) -> Path:
        """The server properties of the last start."""
        return self.path / "server.properties"

    @property
    def leases(self) -> Path:
        """One file a lease."""
        return self.path / "leases"

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops the broker."""
        return self.path / "lock"

    def read_state(self) -> BrokerState | None:
        """The state, or ``None`` where no broker was started yet."""
        try:
            fields = json.loads(self._state.read_text(encoding="utf-8"))
            return BrokerState(**{**fields, "ports": Ports(**fields["ports"])})
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            # Written by another version: the process is found by its command line, the rest is chosen anew.
            return None

    def write_state(self, state: BrokerState) -> None:
        """Replace the state, at once or not at all."""
        partial = self._state.with_suffix(".partial")
        fields = {**asdict(state), "properties": dict(state.properties)}
        partial.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
        partial.replace(self._state)

    def rotate_log(self) -> None:
        """Move the log of the start before aside."""
        if self.log.is_file():
            self.log.replace(self.log.with_suffix(".log.1"))

    @property
    def _state(self) -> Path:
        return self.path / "broker.json"
