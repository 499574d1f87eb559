"""The folder of an embedded broker, and the state in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from worker.embedded.broker.ports import Ports
from worker.embedded.folder import ServerFolder

__all__ = ["BrokerFolder", "BrokerState", "broker_folder"]


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What the last process that started or stopped the broker wrote down."""

    pid: int
    ports: Ports
    version: str
    explicit: bool = False
    """Whether it was started to stay: the end of the last lease does not stop it."""
    properties: dict[str, str] = field(default_factory=dict)
    archive: str = ""
    """The class data archive to keep when the broker has left ``partial_archive``."""
    partial_archive: str = ""

    def as_explicit(self) -> BrokerState:
        """The state of the same broker, started to stay."""
        return replace(self, explicit=True)

    def as_stopped(self) -> BrokerState:
        """What to remember of it once it has been stopped: its address and settings."""
        return replace(self, explicit=False, archive="", partial_archive="")


BrokerFolder: TypeAlias = ServerFolder[BrokerState]


def broker_folder(path: Path) -> BrokerFolder:
    """The folder of the broker at ``path``."""
    return ServerFolder(path, "broker", _parse)


def _parse(fields: Mapping[str, Any]) -> BrokerState:
    return BrokerState(**{**fields, "ports": Ports(**fields["ports"])})
