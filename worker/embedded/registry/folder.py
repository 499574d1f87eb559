"""The folder of an embedded schema registry, and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from worker.embedded.folder import ServerFolder
from worker.embedded.registry.settings import Storage

__all__ = ["RegistryFolder", "RegistryState", "registry_folder"]


@dataclass(frozen=True, slots=True)
class RegistryState:
    """The state, written by the last process that started or stopped the registry."""

    pid: int
    port: int
    version: str
    storage: Storage = Storage.FILE
    explicit: bool = False
    """Whether it was started explicitly, so that the end of the last lease does not stop it."""

    def as_explicit(self) -> RegistryState:
        """Return the state of the same registry, started explicitly."""
        return replace(self, explicit=True)

    def as_stopped(self) -> RegistryState:
        """Return the state to keep after the registry has stopped: its address and storage."""
        return replace(self, explicit=False)


RegistryFolder: TypeAlias = ServerFolder[RegistryState]


def registry_folder(path: Path) -> RegistryFolder:
    """Return the folder of the registry at ``path``."""
    return ServerFolder(path, "registry", _parse)


def _parse(fields: Mapping[str, Any]) -> RegistryState:
    return RegistryState(**{**fields, "storage": Storage(fields["storage"])})
