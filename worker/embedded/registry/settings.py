"""The settings of an embedded schema registry, its folder and its state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from connect.errors import ConfigError
from connect.internals.jvm.home import sluice_home
from worker.embedded.folder import ServerFolder
from worker.embedded.ports import HOST

__all__ = [
    "DEFAULT_HEAP",
    "RegistryFolder",
    "RegistryServerConfig",
    "RegistryState",
    "Storage",
    "registry_folder",
    "system_properties",
]

DEFAULT_HEAP = "256m"

_LARGEST_PORT = 65535
_HEAP = re.compile(r"[1-9][0-9]*[kKmMgG]?")


class Storage(StrEnum):
    """Where a registry stores its schemas."""

    FILE = "file"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class RegistryServerConfig:
    """The settings of an embedded schema registry."""

    folder: Path = field(default_factory=lambda: sluice_home() / "registry")
    """The folder for its data, log and state; each registry needs its own."""
    port: int | None = None
    """The port for clients, on loopback: 0 for any free one, ``None`` for 8081 if that is free, else any.
    The choice is stored in the folder and kept."""
    storage: Storage = Storage.FILE
    """Whether schemas survive a restart (``file``) or not (``memory``)."""
    heap: str = DEFAULT_HEAP
    """The maximum heap of the JVM, as ``-Xmx`` takes it."""
    start_timeout: float = 120.0
    """How many seconds the registry may take to get ready after its launch."""

    def __post_init__(self) -> None:
        if _HEAP.fullmatch(self.heap) is None:
            raise ConfigError("heap", self.heap, "not a size; set it to one such as 256m or 1g")
        if self.port is not None and not 0 <= self.port <= _LARGEST_PORT:
            raise ConfigError("port", self.port, f"not a port; set it to a number from 0 to {_LARGEST_PORT}")


def system_properties(config: RegistryServerConfig, port: int, management_port: int, data: Path) -> list[str]:
    """Return the JVM arguments that make the registry listen only on loopback and store its schemas in ``data``."""
    properties = {
        "quarkus.http.host": HOST,
        "quarkus.http.port": str(port),
        "quarkus.http.access-log.enabled": "false",
        "quarkus.management.host": HOST,
        "quarkus.management.port": str(management_port),
        "apicurio.storage.kind": "sql",
        "apicurio.storage.sql.kind": "h2",
    }
    if config.storage is Storage.FILE:
        # Without a delay, so that an acknowledged schema survives a kill and its id is not assigned again.
        properties["apicurio.datasource.url"] = f"jdbc:h2:file:{data / 'registry'};WRITE_DELAY=0"
    return [f"-D{key}={value}" for key, value in properties.items()]


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
