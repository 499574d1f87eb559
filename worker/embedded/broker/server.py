"""The embedded broker: a real Apache Kafka with a single KRaft node, run as a daemon of the user on loopback."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from connect.errors import ConfigError
from worker.embedded.broker.archive import keep_archive
from worker.embedded.broker.folder import BrokerState, broker_folder
from worker.embedded.broker.launch import becomes_ready, launch_broker
from worker.embedded.broker.settings import BrokerConfig
from worker.embedded.process import server_mark
from worker.embedded.server import EmbeddedServer, count_leases

__all__ = ["BrokerConfig", "BrokerInfo", "EmbeddedBroker"]


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A running broker: its address, process and folder."""

    pid: int
    bootstrap_servers: str
    folder: Path
    data: Path
    version: str
    leases: int
    explicit: bool
    """Whether it was started with ``start()`` and so outlives its leases."""


class EmbeddedBroker(EmbeddedServer[BrokerState, BrokerInfo]):
    """The broker of one folder, whichever process started it. Several processes may use it at once."""

    def __init__(self, config: BrokerConfig | None = None, *, environ: Mapping[str, str] = os.environ) -> None:
        config = config or BrokerConfig()
        self._config = replace(config, folder=config.folder.expanduser().absolute())
        self._environ = environ
        self._place = broker_folder(self._config.folder)
        super().__init__(self._place, mark=server_mark("broker", self._place.data), kind="broker")

    def _launch(self, last: BrokerState | None) -> BrokerState:
        return launch_broker(self._config, self._place, last, self._environ)

    def _becomes_ready(self, state: BrokerState) -> bool:
        return becomes_ready(state, self._place, self._config)

    def _check_agrees(self, state: BrokerState) -> None:
        port, remedy = self._config.port, "stop it first, or use another folder"
        if port and port != state.ports.broker:
            raise ConfigError("port", port, f"the broker of this folder runs on {state.ports.broker}; {remedy}")
        for key in sorted({*state.properties, *self._config.properties}):
            wanted, has = self._config.properties.get(key), state.properties.get(key)
            if wanted != has:
                raise ConfigError(key, wanted, f"the broker of this folder runs with {has}; {remedy}")

    def _after_stop(self, state: BrokerState, *, in_good_order: bool) -> None:
        if not state.partial_archive:
            return
        if in_good_order:
            keep_archive(Path(state.partial_archive), Path(state.archive))
        else:
            Path(state.partial_archive).unlink(missing_ok=True)

    def _info(self, state: BrokerState) -> BrokerInfo:
        return BrokerInfo(
            pid=state.pid,
            bootstrap_servers=state.ports.bootstrap_servers,
            folder=self._place.path,
            data=self._place.data,
            version=state.version,
            leases=count_leases(self._place.leases),
            explicit=state.explicit,
        )
