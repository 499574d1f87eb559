"""Compares the REST APIs of Sluice and Java with 300 connectors: requests per second and their 99th percentile.

``python bench/rest.py [--connectors N] [--seconds S]``: one distributed worker each, on the embedded broker, with
stopped connectors, so that only the API is measured. Four clients send requests at once over persistent connections. A
scrape with as many running tasks is measured in this process: the CPU seconds for producing its text.
"""

from __future__ import annotations

import argparse
import http.client
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from distributed_worker import DistributedWorker, until

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from own_broker import own_broker

from equipment.snapshots import SINK, snapshot
from equipment.workers.java_connect import JavaConnect, resolve_java_connect
from worker.embedded.broker.server import BrokerConfig
from worker.metrics.catalogue import TASK_METRICS, Dialect, Group
from worker.metrics.families import families
from worker.metrics.lifetimes import LifetimesSeen, Starts
from worker.metrics.processes import use_of
from worker.metrics.snapshot import BOUNDS, ConnectorSeen
from worker.metrics.text import exposition
from worker.stores.status.store import State, Status
from worker.unit import Unit

_CLIENTS = 4
_PATHS = (
    "/",
    "/connectors",
    "/connectors/c7/status",
    "/connectors?expand=status&expand=info",
    "/metrics",
    "/history",
)
_JAVA_HAS_NOT = ("/metrics", "/history")


class Load:
    """Clients that request one path, each over its own connection, for some seconds."""

    def __init__(self, address: str, path: str, seconds: float) -> None:
        self._address, self._path, self._seconds = address, path, seconds
        self._times: list[float] = []

    def measure(self) -> tuple[float, float]:
        """Return the requests per second, and the milliseconds within which 99 of 100 were answered."""
        began = time.perf_counter()
        clients = [threading.Thread(target=self._ask) for _ in range(_CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        spent = time.perf_counter() - began
        times = sorted(self._times)
        return len(times) / spent, times[int(len(times) * 0.99)] * 1000

    def _ask(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        deadline = time.perf_counter() + self._seconds
        while (began := time.perf_counter()) < deadline:
            connection.request("GET", self._path)
            response = connection.getresponse()
            response.read()
            if response.status != http.client.OK:
                raise SystemExit(f"GET {self._path}: {response.status}")
            self._times.append(time.perf_counter() - began)
        connection.close()


def report(name: str, address: str, paths: Sequence[str], seconds: float) -> None:
    """Print the result for each path."""
    for path in paths:
        Load(address, path, seconds / 4).measure()
        rate, slowest = Load(address, path, seconds).measure()
        print(f"{name:7} GET {path:40} {rate:8,.0f}/s   p99 {slowest:8.1f} ms", flush=True)


def config(folder: Path) -> dict[str, str]:
    """Return the configuration of each connector."""
    return {"connector.class": "FileStreamSource", "file": str(folder / "in.txt"), "topic": "t", "tasks.max": "1"}


def sluice(folder: Path, bootstrap: str, connectors: int, seconds: float) -> None:
    """Measure a Sluice worker."""
    worker = DistributedWorker(folder / "sluice", bootstrap, "rest-sluice").start()
    try:
        until("Sluice answers", lambda: worker.answers("/connectors"))
        for number in range(connectors):
            body = {"name": f"c{number}", "config": config(folder), "initial_state": "STOPPED"}
            until("it is made", lambda body=body: worker.request("POST", "/connectors", body)[0] == 201)
        until("all have a status", lambda: worker.request("GET", f"/connectors/c{connectors - 1}/status")[0] == 200)
        report("Sluice", worker.address, _PATHS, seconds)
    finally:
        worker.stop()


def java(folder: Path, bootstrap: str, connectors: int, seconds: float) -> None:
    """Measure a Kafka Connect worker."""
    (folder / "java").mkdir()
    topics = {f"{kind}.storage.topic": f"rest-java-{kind}" for kind in ("config", "offset", "status")}
    factors = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    props = {"bootstrap.servers": bootstrap, "group.id": "rest-java", **topics, **factors}
    worker = JavaConnect(folder / "java", resolve_java_connect(), props, jvm=("-Xmx1g",)).start()
    try:
        for number in range(connectors):
            name, given = f"c{number}", config(folder)
            until("it is made", lambda name=name, given=given: _made(worker, name, given))
        until("all have a status", lambda: worker.ask("GET", f"connectors/c{connectors - 1}/status").ok)
        address = worker.url.removeprefix("http://").rstrip("/")
        report("Java", address, [path for path in _PATHS if path not in _JAVA_HAS_NOT], seconds)
    finally:
        worker.close()


def _made(worker: JavaConnect, name: str, given: dict[str, str]) -> bool:
    answer = worker.ask("POST", "connectors", {"name": name, "config": given, "initial_state": "STOPPED"})
    return answer.status_code == http.client.CREATED


def scrape(tasks: int) -> None:
    """Measure the CPU time of a scrape of this many running sinks, each with all metrics that a sink reports."""
    names = [name for name, metric in TASK_METRICS.items() if metric.group is not Group.SOURCE]
    histograms = {name: (1.0, *[7.0] * (len(bounds) + 1)) for name, bounds in BOUNDS.items()}
    task = replace(SINK, values={**SINK.values, **dict.fromkeys(names, 12.5)}, histograms=histograms)
    units = [unit for number in range(tasks) for unit in (Unit(f"c{number}"), Unit(f"c{number}", 0))]
    lives = LifetimesSeen(Starts(), Starts(), dict.fromkeys(units, os.getpid()), {}, {})
    seen = replace(
        snapshot(),
        connectors={f"c{number}": ConnectorSeen("FileStreamSink", "sink") for number in range(tasks)},
        statuses=dict.fromkeys(units, Status(State.RUNNING, "here", 1)),
        tasks=dict.fromkeys([unit for unit in units if unit.is_task], task),
        lives=lives,
    )
    for openmetrics in (False, True):
        best = float("inf")
        for _ in range(5):
            began = time.process_time()
            text = exposition(families(seen, Dialect.STRIMZI, 1.0, use_of, 1, "0"), openmetrics=openmetrics)
            best = min(best, time.process_time() - began)
        kind, lines = "OpenMetrics" if openmetrics else "Prometheus", len(text.splitlines())
        print(f"a scrape of {tasks} sinks ({kind}): {lines:,} lines, {best * 1000:.0f} ms of CPU", flush=True)


def main() -> None:
    """Run the whole benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    scrape(given.connectors)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in.txt").write_text("a line\n")
        with own_broker(BrokerConfig(folder=folder / "broker", port=0)) as broker:
            sluice(folder, broker.bootstrap_servers, given.connectors, given.seconds)
            java(folder, broker.bootstrap_servers, given.connectors, given.seconds)


if __name__ == "__main__":
    main()
