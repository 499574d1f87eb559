"""Kills what a plan says, starts again what does not come back by itself, and notes what each kill hit."""

from __future__ import annotations

import math
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from cluster.chaos.phases import Phase, freeze, look, state, thaw
from cluster.chaos.plan import Kind, Step, Victim
from cluster.chaos.report import Hit
from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster, ClusterWorker
from equipment.workers.processes import command_line, descendants, runs

__all__ = ["Conductor"]

_RUNS: Final = re.compile(r"process (\d+) runs (\S+)")
_PATIENCE: Final = 150.0
_AIMING: Final = 60.0
_RECONFIGURED: Final = 5.0
_JVMS: Final = ("org.apache.spark.deploy.SparkSubmit", "py4j.GatewayServer")
"""Spark's, and those of Java plugins."""
_REVIVALS: Final = 8
_TAIL: Final = 5000


@dataclass(frozen=True, slots=True)
class Process:
    """The process of a connector or task."""

    unit: str
    pid: int


class Conductor:
    """Clusters and their broker, all of which may be killed. ``reconfigure`` changes a connector's configuration."""

    def __init__(self, broker: ProxiedBroker, clusters: Mapping[str, Cluster], reconfigure: Callable[[], None]) -> None:
        self.hits: list[Hit] = []
        self._broker = broker
        self._clusters = dict(clusters)
        self._reconfigure = reconfigure
        self._began = time.monotonic()
        self._revivers = ThreadPoolExecutor(_REVIVALS)
        self._revivals: list[Future[None]] = []
        self._broker_revival: Future[None] | None = None

    def carry_out(self, step: Step) -> None:
        """One kill."""
        time.sleep(step.wait)
        self._check_revivals()
        if step.reconfigures:
            self._revivals.append(self._revivers.submit(self._reconfigure))
        victim = step.victim
        match victim.kind:
            case Kind.UNIT:
                self._kill_unit(victim, step.choice)
            case Kind.JVM:
                self._kill_jvm(victim)
            case Kind.WORKER | Kind.MACHINE:
                self._kill_worker(victim, self._worker(victim), step.down)
            case Kind.BROKER:
                self._kill_broker(step.down)

    def aim(self, phase: Phase) -> None:
        """Stop everything again and again until something is in a phase, and kill it there."""
        reconfigured = -math.inf

        def killed() -> bool:
            nonlocal reconfigured
            if phase is Phase.FENCE and self._now() - reconfigured > _RECONFIGURED:
                reconfigured = self._now()
                self._revivals.append(self._revivers.submit(self._reconfigure))
            live = [worker for cluster in self._clusters.values() for worker in cluster.live]
            return any(self._kill_in(phase, worker) for worker in live)

        wait_until(f"something is in {phase}", killed, _AIMING)

    def settle(self) -> None:
        """Wait until everything runs again: every worker answers, every task runs, and each does once."""
        wait_until("what was killed is started again", lambda: all(map(Future.done, self._revivals)), _PATIENCE)
        self._check_revivals()
        for name, cluster in self._clusters.items():
            ended = [worker.folder.name for worker in cluster.workers if not worker.lives]
            assert not ended, f"{ended} of {name} ended without being killed{cluster.tails()}"
            cluster.start()
        for cluster in self._clusters.values():
            cluster.wait_until_all_run(_PATIENCE)

    def close(self) -> None:
        """Start nothing any more."""
        self._revivers.shutdown()

    # -- kills ---------------------------------------------------------------------------------------------------------

    def _kill_unit(self, victim: Victim, choice: float) -> None:
        found = self._processes_of(victim)
        process = found[int(choice * len(found))]
        below = [Process(f"{process.unit} below", pid) for pid in descendants(process.pid)]
        pids = [each.pid for each in (process, *below)]
        freeze(pids)
        self._note(f"{Kind.UNIT} {process.unit}", [process, *below])
        _kill([process.pid])
        thaw(pids)

    def _kill_jvm(self, victim: Victim) -> None:
        def jvms() -> list[tuple[Process, int]]:
            found = [(process, pid) for process in self._processes_of(victim) for pid in descendants(process.pid)]
            return [(process, pid) for process, pid in found if any(main in command_line(pid) for main in _JVMS)]

        process, pid = wait_until("there is a JVM", jvms, _PATIENCE)[0]
        freeze([process.pid, pid])
        self._note(f"{Kind.JVM} of {process.unit}", [process])
        _kill([pid])
        thaw([process.pid])

    def _kill_worker(self, victim: Victim, worker: ClusterWorker, down: float) -> None:
        below = descendants(worker.pid)
        freeze([worker.pid, *below])
        units = _units(worker)
        felt = [Process(units.get(pid, "inquiry"), pid) for pid in below]
        self._note(str(victim), [Process("worker", worker.pid), *felt])
        _kill([worker.pid, *(below if victim.kind is Kind.MACHINE else ())])
        thaw(below)
        worker.wait()
        self._revivals.append(self._revivers.submit(_revive, worker, below, down))

    def _kill_broker(self, down: float) -> None:
        if self._broker_revival is not None:
            self._broker_revival.result(_PATIENCE)
        felt = [process for cluster in self._clusters.values() for process in _all_processes(cluster)]
        pids = [process.pid for process in felt]
        freeze(pids)
        self._note(Kind.BROKER, felt)
        self._broker.kill()
        thaw(pids)
        self._broker_revival = self._revivers.submit(self._revive_broker, down)
        self._revivals.append(self._broker_revival)

    def _kill_in(self, phase: Phase, worker: ClusterWorker) -> bool:
        """Kill a child of a worker that is in a phase now, if one is; if it fences for others, the worker, too."""
        below = descendants(worker.pid)
        freeze(below)
        pid = next((pid for pid, its_phase in look(below).items() if its_phase is phase), None)
        if pid is None:
            thaw(below)
            return False
        unit = _units(worker).get(pid)
        if unit is not None:
            self._add(Hit(self._now(), f"{Kind.UNIT} {unit}", {unit: phase}, aimed=True))
            _kill([pid])
            thaw(below)
            return True
        self._add(Hit(self._now(), f"{Kind.MACHINE} that fences for others", {"inquiry": phase}, aimed=True))
        _kill([worker.pid, *below])
        worker.wait()
        self._revivals.append(self._revivers.submit(_revive, worker, below, 0))
        return True

    # -- who -----------------------------------------------------------------------------------------------------------

    def _processes_of(self, victim: Victim) -> list[Process]:
        """The processes of the units that are named so, as soon as there is one."""
        cluster = self._clusters[victim.cluster]

        def found() -> list[Process]:
            return [process for process in _all_processes(cluster) if process.unit.startswith(victim.who)]

        return wait_until(f"{victim.who} has a process", found, _PATIENCE)

    def _worker(self, victim: Victim) -> ClusterWorker:
        """The worker that leads, one that does not, or the one that runs a unit; any, if there is no such worker."""
        cluster = self._clusters[victim.cluster]
        live = wait_until("a worker lives", lambda: cluster.live, _PATIENCE)
        leader = max(live, key=_last_generation_led)
        match victim.who:
            case "leader":
                wanted = [leader]
            case "follower":
                wanted = [worker for worker in live if worker is not leader]
            case unit:
                wanted = [worker for worker in live if any(each.unit.startswith(unit) for each in _processes(worker))]
        return (wanted or live)[0]

    # -- notes ---------------------------------------------------------------------------------------------------------

    def _note(self, victim: str, felt: Sequence[Process]) -> None:
        """Look at frozen processes, and write down what a kill of them, or of what they need, hits."""
        units = {process.pid: process.unit for process in felt}
        self._add(Hit(self._now(), victim, {units[pid]: phase for pid, phase in look(list(units)).items()}))

    def _add(self, hit: Hit) -> None:
        self.hits.append(hit)
        print(f"{len(self.hits):3}. {hit}", flush=True)

    def _check_revivals(self) -> None:
        for revival in [each for each in self._revivals if each.done()]:
            self._revivals.remove(revival)
            revival.result()

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _revive_broker(self, down: float) -> None:
        time.sleep(down)
        self._broker.start()


def _revive(worker: ClusterWorker, below: Sequence[int], down: float) -> None:
    """Start a killed worker again, once all its children have noticed, as a service manager does."""
    time.sleep(down)
    try:
        wait_until("the children of a killed worker are gone", lambda: not any(map(runs, below)))
    except AssertionError as error:
        left = [f"{pid} {state(pid)} {_units(worker).get(pid)} {command_line(pid)}" for pid in filter(runs, below)]
        raise AssertionError(f"{error}: {left}") from None
    worker.start()
    wait_until("a worker has started", lambda: worker.answers() or not worker.lives, _PATIENCE)
    if not worker.lives:
        assert worker.wait() == -signal.SIGKILL, f"{worker.folder} ended: {worker.log()[-_TAIL:]}"


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


def _units(worker: ClusterWorker) -> dict[int, str]:
    """The units that each process runs, as the worker's log says."""
    found: dict[int, list[str]] = {}
    for unit, pid in _places(worker).items():
        found.setdefault(pid, []).append(unit)
    return {pid: ", ".join(sorted(units)) for pid, units in found.items()}


def _places(worker: ClusterWorker) -> dict[str, int]:
    """The process in which each unit was started last."""
    return {unit: int(pid) for pid, unit in _RUNS.findall(worker.log())}


def _processes(worker: ClusterWorker) -> list[Process]:
    """The processes of the connectors and tasks of a worker."""
    below = set(descendants(worker.pid))
    return [Process(unit, pid) for unit, pid in _places(worker).items() if pid in below]


def _all_processes(cluster: Cluster) -> list[Process]:
    """Those of all live workers."""
    found = [process for worker in cluster.live for process in _processes(worker)]
    return sorted(found, key=lambda process: process.unit)


def _last_generation_led(worker: ClusterWorker) -> int:
    led = re.findall(rf"Generation (\d+): {re.escape(worker.url())} leads", worker.log())
    return int(led[-1]) if led else -1
