"""The embedded schema registry: a real Apicurio Registry with Confluent's API, run as a daemon on loopback."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from connect.errors import ConfigError
from worker.embedded.ports import HOST
from worker.embedded.process import server_mark
from worker.embedded.registry.launch import API_PATH, becomes_ready, launch_registry
from worker.embedded.registry.settings import RegistryServerConfig, RegistryState, Storage, registry_folder
from worker.embedded.server import EmbeddedServer, count_leases

__all__ = ["EmbeddedRegistry", "RegistryInfo", "RegistryServerConfig", "Storage"]


@dataclass(frozen=True, slots=True)
class RegistryInfo:
    """A running registry: its address, process and folder."""

    pid: int
    url: str
    """The value for ``schema.registry.url``."""
    folder: Path
    data: Path
    storage: Storage
    version: str
    leases: int
    explicit: bool
    """Whether it was started with ``start()`` and so outlives its leases."""


class EmbeddedRegistry(EmbeddedServer[RegistryState, RegistryInfo]):
    """The registry of one folder, whichever process started it. Several processes may use it at once."""

    def __init__(self, config: RegistryServerConfig | None = None, *, environ: Mapping[str, str] = os.environ) -> None:
        config = config or RegistryServerConfig()
        self._config = replace(config, folder=config.folder.expanduser().absolute())
        self._environ = environ
        self._place = registry_folder(self._config.folder)
        super().__init__(self._place, mark=server_mark("registry", self._place.data), kind="registry")

    def _launch(self, last: RegistryState | None) -> RegistryState:
        return launch_registry(self._config, self._place, last, self._environ)

    def _becomes_ready(self, state: RegistryState) -> bool:
        return becomes_ready(state, self._place, self._config)

    def _check_agrees(self, state: RegistryState) -> None:
        remedy = "stop it first, or use another folder"
        if self._config.port and self._config.port != state.port:
            text = f"the registry of this folder runs on {state.port}; {remedy}"
            raise ConfigError("port", self._config.port, text)
        if self._config.storage is not state.storage:
            text = f"the registry of this folder runs with {state.storage}; {remedy}"
            raise ConfigError("storage", self._config.storage, text)

    def _info(self, state: RegistryState) -> RegistryInfo:
        return RegistryInfo(
            pid=state.pid,
            url=f"http://{HOST}:{state.port}{API_PATH}",
            folder=self._place.path,
            data=self._place.data,
            storage=state.storage,
            version=state.version,
            leases=count_leases(self._place.leases),
            explicit=state.explicit,
        )
