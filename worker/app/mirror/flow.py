"""The worker of one flow: a distributed worker whose properties and connectors come from the file of flows.

It is a child process of the driver and ends with it: the driver holds the other end of its standard input.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connect.config import read_properties
from connectors.mirror.flows import Flow, Flows
from rest.http.paths import escaped
from worker.app.distributed import Setting, run_in_setting
from worker.app.mirror.connectors import FlowConnectors, connector_keys
from worker.app.worker import WorkerProperties
from worker.herder.herder import Herder
from worker.recent_log import RecentLog

__all__ = ["REFUSED", "Relay", "flow_path", "run_flow", "worker_properties"]

logger = logging.getLogger(__name__)

REFUSED: Final = 4
"""The exit status of a worker whose cluster refused a connector of the file."""

_HEARTBEAT: Final = "MirrorHeartbeatConnector"
_LISTENERS: Final = "listeners"
_EVERYWHERE: Final = "http://:0"
_HERE: Final = "http://127.0.0.1:0"
_ADVERTISED: Final = ("rest.advertised.host.name", "rest.advertised.port", "rest.advertised.listener")
_TLS: Final = "listeners.https."


@dataclass(frozen=True, slots=True)
class Relay:
    """The address at which the driver serves a flow's REST API, below the flow's path, to other nodes and users.

    ``public`` says whether users may use it, too.
    """

    scheme: str
    host: str
    port: int
    public: bool


def flow_path(source: str, target: str) -> str:
    """Return the path below which a flow is served, as in MirrorMaker."""
    return f"/{escaped(source)}/{escaped(target)}"


def run_flow(file: Path, source: str, target: str, relay: Relay | None, recent: RecentLog) -> int:
    """Run a worker of one flow until a signal or the end of the driver; return the exit status.

    0: stopped. 1: the worker had a defect. 2: it could not start. 4: a connector of the file was refused.
    """
    flow: list[Flow] = []

    def read() -> WorkerProperties:
        written = read_properties(file)
        flow.append(Flows(written, connector_keys()).flow(source, target))
        return WorkerProperties.of(worker_properties(flow[0], written, relay), file)

    def prepare(herder: Herder, status: Future[int]) -> None:
        kept = flow[0]
        idle = frozenset() if kept.enabled else frozenset(kept.connectors) - {_HEARTBEAT}
        FlowConnectors(herder, kept.connectors, idle, lambda message: _refuse(message, status)).start()

    threading.Thread(target=_end_with_the_driver, name="driver-watch", daemon=True).start()
    has_own = relay is None and f"{target}.{_LISTENERS}" in read_properties(file)
    setting = Setting(
        kind=f"a worker of the flow {source}->{target}",
        path="" if relay is None else flow_path(source, target),
        public=has_own if relay is None else relay.public,
        prepare=prepare,
        up=_tell_driver,
    )
    return run_in_setting(read, recent, setting)


def worker_properties(flow: Flow, written: dict[str, str], relay: Relay | None) -> dict[str, str]:
    """Return the properties of a flow's worker; ``written`` is the whole file.

    Versions of configurations are stored under a name that MirrorMaker's filters leave out. Under the default name they
    would be mirrored from cluster to cluster.
    """
    defaults = {"config.history.topic": f"mm2-configs-history.{flow.source}.internal"}
    if relay is None:
        advertised = {key: written[key] for key in _ADVERTISED[:1] if key in written}
        return {_LISTENERS: _EVERYWHERE, "admin.listeners": "", **defaults, **advertised, **flow.worker}
    trust = {key: value for key, value in written.items() if key.startswith(_TLS)}
    place = dict(zip(_ADVERTISED, (relay.host, str(relay.port), relay.scheme), strict=True))
    return {**defaults, **trust, **flow.worker, _LISTENERS: _HERE, **place}


def _refuse(message: str, status: Future[int]) -> None:
    logger.error("%s", message)
    try:
        status.set_result(REFUSED)
    except InvalidStateError:
        logger.debug("The worker is already ending")


def _tell_driver(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


def _end_with_the_driver() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
