"""A real Apache Kafka broker at hand: a single KRaft node, run as a daemon of the user on loopback.

``EmbeddedBroker().lease()`` is for tests and short jobs: whoever comes first starts the broker, the last to
go stops it. ``start()`` and ``stop()`` are for people: a broker that was started stays until it is stopped.
Data and address are kept in the broker's folder from one start to the next.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from connect.errors import ConfigError, ConnectError
from connect.jvm.file_lock import file_lock
from worker.kafka.broker_archive import keep_archive
from worker.kafka.broker_folder import BrokerFolder, BrokerState
from worker.kafka.broker_launch import becomes_ready, launch_broker
from worker.kafka.broker_leases import Lease, count_leases
from worker.kafka.broker_process import broker_mark, is_broker, signal_broker, wait_gone
from worker.kafka.broker_settings import BrokerConfig

__all__ = ["BrokerConfig", "BrokerInfo", "EmbeddedBroker"]

_STOP_SECONDS = 30.0
_KILL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker that runs: how to reach it and what it is."""

    pid: int
    bootstrap_servers: str
    folder: Path
    data: Path
    version: str
    leases: int
    explicit: bool
    """Whether it was started with ``start()`` and so outlives its leases."""


class EmbeddedBroker:
    """The broker of one folder, whichever process started it. Any number of processes may use it at once."""

    def __init__(self, config: BrokerConfig | None = None, *, environ: Mapping[str, str] = os.environ) -> None:
        config = config or BrokerConfig()
        self._config = replace(config, folder=config.folder.expanduser().absolute())
        self._environ = environ
        self._folder = BrokerFolder(self._config.folder)
        self._mark = broker_mark(self._folder.data)

    def start(self) -> BrokerInfo:
        """Start the broker, to run until ``stop()``; one that runs already is kept and stays, too."""
        with file_lock(self._folder.lock):
            state = self._ensure_running()
            if not state.explicit:
                state = replace(state, explicit=True)
                self._folder.write_state(state)
            return self._info(state)

    def stop(self, timeout: float = _STOP_SECONDS) -> bool:
        """Stop the broker whoever uses it, in good order or after ``timeout`` seconds by force.

        Tells whether there was one to stop.
        """
        if not self._folder.path.is_dir():
            return False
        with file_lock(self._folder.lock):
            state = self._running()
            if state is None:
                return False
            self._stop(state, timeout)
            return True

    def kill(self) -> None:
        """End the broker with SIGKILL, as a crash would; what was acknowledged is there after a start."""
        state = self._running()
        if state is None:
            return
        signal_broker(state.pid, signal.SIGKILL)
        if not wait_gone(state.pid, self._mark, _KILL_SECONDS):
            raise ConnectError(f"The embedded broker, process {state.pid}, does not end though it was killed.")

    def status(self) -> BrokerInfo | None:
        """The broker if it runs, else ``None``."""
        state = self._running()
        return None if state is None else self._info(state)

    @contextmanager
    def lease(self) -> Iterator[BrokerInfo]:
        """Use the broker within a ``with``: started if it does not run, stopped when the last lease ends.

        A broker that was started with ``start()`` is not stopped. A lease ends with its process, too.
        """
        with file_lock(self._folder.lock):
            state = self._ensure_running()
            lease = Lease(self._folder.leases)
            info = self._info(state)
        try:
            yield info
        finally:
            self._end(lease)

    def _end(self, lease: Lease) -> None:
        with file_lock(self._folder.lock):
            lease.release()
            state = self._running()
            if state is not None and not state.explicit and count_leases(self._folder.leases) == 0:
                self._stop(state, _STOP_SECONDS)

    def _ensure_running(self) -> BrokerState:
        state = self._running()
        if state is not None:
            self._check_agrees(state)
            if becomes_ready(state, self._folder, self._config):
                return state
        return launch_broker(self._config, self._folder, self._folder.read_state(), self._environ)

    def _check_agrees(self, state: BrokerState) -> None:
        port, remedy = self._config.port, "stop it first, or use another folder"
        if port and port != state.ports.broker:
            raise ConfigError("port", port, f"the broker of this folder runs on {state.ports.broker}; {remedy}")
        for key in sorted({*state.properties, *self._config.properties}):
            wanted, has = self._config.properties.get(key), state.properties.get(key)
            if wanted != has:
                raise ConfigError(key, wanted, f"the broker of this folder runs with {has}; {remedy}")

    def _running(self) -> BrokerState | None:
        state = self._folder.read_state()
        return state if state is not None and is_broker(state.pid, self._mark) else None

    def _stop(self, state: BrokerState, timeout: float) -> None:
        signal_broker(state.pid, signal.SIGTERM)
        if wait_gone(state.pid, self._mark, timeout):
            if state.partial_archive:
                keep_archive(Path(state.partial_archive), Path(state.archive))
        else:
            self.kill()
            if state.partial_archive:
                Path(state.partial_archive).unlink(missing_ok=True)
        self._folder.write_state(replace(state, explicit=False, archive="", partial_archive=""))

    def _info(self, state: BrokerState) -> BrokerInfo:
        return BrokerInfo(
            pid=state.pid,
            bootstrap_servers=state.ports.bootstrap_servers,
            folder=self._folder.path,
            data=self._folder.data,
            version=state.version,
            leases=count_leases(self._folder.leases),
            explicit=state.explicit,
        )
