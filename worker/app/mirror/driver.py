"""The driver of a mirror: a process for each flow of a file, restarted when it ends, and one REST API for all.

Crash points: a flow's process that is killed is restarted and resumes from its offsets; the others are not affected. If
the driver is killed, its flows see the end of their input and stop in an orderly way; the next driver starts them.
"""

from __future__ import annotations

import importlib.metadata
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from connect.errors import ConfigError, ConnectError
from connectors.mirror.flows import Flow, Flows
from connectors.mirror.lost_keys import lost_keys
from rest.mirror_driver import FlowState, create_flows_app
from rest.server.server import RestServer
from rest.server.tls import TlsSettings
from worker.app.mirror.connectors import connector_keys, worker_keys
from worker.app.mirror.flow import REFUSED, Relay, flow_path, worker_properties
from worker.app.stop_signals import StopSignals
from worker.app.worker import COULD_NOT_START, OK, WorkerProperties, log_end
from worker.config.file_access import WORKER_FILE
from worker.config.worker import DistributedConfig

__all__ = ["Driver", "End", "Restart", "after", "run_mirror"]

logger = logging.getLogger(__name__)

_STEADY_SECONDS: Final = 60.0
"""After this many seconds, the end of a process counts as the first failure of a new series."""

_LONGEST_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Restart:
    """Restart the flow after ``seconds``; ``failures`` is how many of its processes have ended in a row."""

    seconds: float
    failures: int


@dataclass(frozen=True, slots=True)
class End:
    """Stop all flows, and end the driver with ``status``."""

    status: int


def after(*, refused: bool, ran: float, failures: int, could_not_start: int) -> Restart | End:
    """Decide what follows when the process of a flow ends unasked.

    If connectors are ``refused``, a restart would not help: the file has to be corrected, so the driver ends with
    ``could_not_start``. Any other process, killed or unable to reach its cluster, is restarted, and the other flows
    continue. It had run for ``ran`` seconds, and ``failures`` processes before it had ended in a row.
    """
    if refused:
        return End(could_not_start)
    row = 1 if ran >= _STEADY_SECONDS else failures + 1
    return Restart(min(_LONGEST_SECONDS, 2.0 ** (row - 1)), row)


_INTERNAL_REST: Final = "dedicated.mode.enable.internal.rest"
_LISTENERS: Final = "listeners"
_STOP_SECONDS: Final = 60.0
_WATCH_SECONDS: Final = 5.0


def run_mirror(file: Path, targets: Sequence[str]) -> int:
    """Run the flows of a file, or only those into the clusters ``targets``, until a signal; return the exit status.

    0: stopped by a signal. 2: the file is invalid, it has no flow to run, or its listeners cannot be opened.
    """
    return log_end(_run(file, targets))


def _run(file: Path, targets: Sequence[str]) -> int:
    with StopSignals(OK) as stop, ExitStack() as stack:
        try:
            props = WorkerProperties.read(file)
            flows = _checked_flows(props, targets)
            server, relay = _server(props.resolved, stack)
        except ConnectError as error:
            logger.error("The mirror could not start: %s", error)  # noqa: TRY400 - the message says it all
            return COULD_NOT_START
        version = importlib.metadata.version("sluice-connect")
        logger.info("Sluice %s is starting the flows %s of %s", version, ", ".join(flow.name for flow in flows), file)
        driver = Driver(flows, lambda flow: _command(file, flow, relay), stop.status)
        if server is not None and relay is not None:
            server.answer_with(create_flows_app(driver.states, public=relay.public))
            logger.info("The REST API of the flows is at %s://%s:%d/", relay.scheme, relay.host, relay.port)
        stack.callback(driver.close)
        driver.start()
        stop.started()
        return stop.status.result()
    return OK


def _checked_flows(props: WorkerProperties, targets: Sequence[str]) -> tuple[Flow, ...]:
    """Return the flows to run. Raises :class:`~connect.errors.ConfigError` for a mistake in what their workers are
    given.
    """
    keys = connector_keys()
    written = {key: value for key, value in props.written.items() if key != WORKER_FILE}
    flows = Flows(written, keys)
    running = flows.running(targets)
    resolved = {key: value for key, value in props.resolved.items() if key != WORKER_FILE}
    for flow in running:
        known = Flows(resolved, keys).flow(flow.source, flow.target)
        try:
            DistributedConfig.parse(worker_properties(known, resolved, None))
        except ConfigError as error:
            raise ConnectError(
                f"The worker of flow {flow.name} is misconfigured (keys with the prefix {flow.target}.): {error}"
            ) from error
    for lost in lost_keys(written, flows, keys, worker_keys()):
        logger.warning("%s", lost)
    return running


def _server(props: Mapping[str, str], stack: ExitStack) -> tuple[RestServer | None, Relay | None]:
    """Return the server of ``listeners``, if any are set, and the address at which others reach it."""
    internal = props.get(_INTERNAL_REST, "false").strip().lower() == "true"
    urls = [url.strip() for url in props.get(_LISTENERS, "").split(",") if url.strip()]
    if not urls:
        if internal:
            raise ConfigError(
                _LISTENERS,
                None,
                f"{_INTERNAL_REST}=true needs an address, such as http://:8083. Set one, or set that key to false",
            )
        return None, None
    server = RestServer(urls, TlsSettings(props))
    stack.callback(server.close)
    own = {key: value for key, value in props.items() if key.startswith("rest.advertised.")}
    address = server.advertised(DistributedConfig.parse({**_ANY_WORKER, **own, _LISTENERS: ",".join(urls)}))
    return server, Relay(address.scheme, address.host, address.port, public=not internal)


_ANY_WORKER: Final = {
    "bootstrap.servers": "unused:9092",
    "group.id": "unused",
    "key.converter": "unused",
    "value.converter": "unused",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "status",
}
"""The least a worker configuration needs, used where only the address is of interest."""


def _command(file: Path, flow: Flow, relay: Relay | None) -> list[str]:
    behind = []
    if relay is not None:
        behind = [
            "--behind",
            f"{relay.scheme}://{relay.host}:{relay.port}",
            "--public" if relay.public else "--internal",
        ]
    return [sys.executable, "-m", "worker.cli.main", "mirror", "run-flow", *behind, str(file), flow.source, flow.target]


@dataclass(frozen=True, slots=True)
class _Up:
    """A flow's worker answers at this URL."""

    flow: str
    url: str


@dataclass(frozen=True, slots=True)
class _Ended:
    """A flow's process has ended."""

    flow: str
    status: int


@dataclass(slots=True)
class _Running:
    """A flow with its current process, if it has one."""

    flow: Flow
    process: subprocess.Popen[str] | None = None
    since: float = 0.0
    failures: int = 0
    again_at: float | None = None
    url: str | None = None
    watch: threading.Thread | None = None


class Driver:
    """Keeps a process for each flow. One thread owns them all; ``status`` is set when they cannot continue.

    ``command`` returns the command line for a flow. Its process writes the URL of its worker to standard output once
    that is up, and stops when its standard input ends.
    """

    def __init__(self, flows: Sequence[Flow], command: Callable[[Flow], list[str]], status: Future[int]) -> None:
        self._flows = {flow.name: _Running(flow) for flow in flows}
        self._command = command
        self._status = status
        self._inbox: SimpleQueue[_Up | _Ended | None] = SimpleQueue()
        self._states: tuple[FlowState, ...] = ()
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name="driver")

    def start(self) -> None:
        """Start the processes."""
        self._thread.start()

    def close(self) -> None:
        """Stop all processes in an orderly way, and kill those that have not ended after a minute."""
        self._inbox.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def states(self) -> tuple[FlowState, ...]:
        """Return the current states of the flows. Never waits; any thread may call it."""
        return self._states

    # -- in the driver's thread ----------------------------------------------------------------------------------------

    def _loop(self) -> None:
        for running in self._flows.values():
            self._launch(running)
        while not self._closing:
            self._publish()
            self._handle_next()
        self._stop_all()

    def _handle_next(self) -> None:
        due = [running.again_at for running in self._flows.values() if running.again_at is not None]
        try:
            event = self._inbox.get(timeout=max(0.0, min(due) - time.monotonic()) if due else None)
        except Empty:
            now = time.monotonic()
            for running in self._flows.values():
                if running.again_at is not None and running.again_at <= now:
                    self._launch(running)
            return
        match event:
            case None:
                self._closing = True
            case _Up(flow, url):
                self._flows[flow].url = url
            case _Ended(flow, status):
                self._ended(self._flows[flow], status)

    def _launch(self, running: _Running) -> None:
        running.again_at, running.url, running.since = None, None, time.monotonic()
        running.process = subprocess.Popen(
            self._command(running.flow), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        logger.info("Starting the worker of flow %s: pid %d", running.flow.name, running.process.pid)
        running.watch = threading.Thread(target=self._watch, args=(running.flow.name, running.process), daemon=True)
        running.watch.start()

    def _watch(self, flow: str, process: subprocess.Popen[str]) -> None:
        """Report the output and the end of a process; runs in a thread of its own."""
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._inbox.put(_Up(flow, line.strip()))
        self._inbox.put(_Ended(flow, process.wait()))

    def _ended(self, running: _Running, status: int) -> None:
        self._let_go(running)
        decision = after(
            refused=status == REFUSED,
            ran=time.monotonic() - running.since,
            failures=running.failures,
            could_not_start=COULD_NOT_START,
        )
        match decision:
            case End(worst):
                try:
                    self._status.set_result(worst)
                except InvalidStateError:
                    logger.debug("The driver is already ending")
            case Restart(seconds, failures):
                running.failures, running.again_at = failures, time.monotonic() + seconds
                logger.warning(
                    "The worker of flow %s has ended (%s) and is restarted in %g s",
                    running.flow.name,
                    _ending(status),
                    seconds,
                )

    def _stop_all(self) -> None:
        for running in self._flows.values():
            if running.process is not None and running.process.poll() is None:
                running.process.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        for running in self._flows.values():
            if running.process is None:
                continue
            try:
                running.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                logger.warning("The worker of flow %s has not stopped in time and is killed", running.flow.name)
                running.process.kill()
                running.process.wait()
            self._let_go(running)

    def _let_go(self, running: _Running) -> None:
        process, running.process, running.url = running.process, None, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
        if running.watch is not None:
            running.watch.join(_WATCH_SECONDS)

    def _publish(self) -> None:
        self._states = tuple(
            FlowState(
                running.flow.source,
                running.flow.target,
                flow_path(running.flow.source, running.flow.target),
                running.url,
                running.failures,
            )
            for running in self._flows.values()
        )


def _ending(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"
