"""Measures how fast a distributed worker starts, responds and shares its work, and its memory, next to the targets.

``python bench/cluster.py [--only WORDS] [--keep]`` measures the time from ``sluice standalone`` to the first record on
its topic, the first start of a distributed worker and a restart, the creation of connectors one after the other,
memory, a second worker that joins, and the REST API with 200 connectors. The broker is
the embedded one, the connectors are FileStreamSource with one task each, and the workers have Kafka Connect's timeouts.
Memory is the proportional set size. Other load on the machine makes the times longer, so CPU seconds are shown where
they are more meaningful.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]
from distributed_worker import DistributedWorker, Memory, until
from own_broker import own_broker
from race import COMMAND, write_props
from waitress import create_server

from worker.embedded.broker.server import BrokerConfig
from worker.embedded.ports import HOST
from worker.stores.config import records as config_records
from worker.stores.config.store import TargetState
from worker.stores.status import records as status_records
from worker.stores.status.store import State, Status
from worker.unit import Unit

_STARTS = 5
_ONE_BY_ONE = 20
_CONNECTORS = 60
_SHOWN = 200
_REST_SECONDS = 4.0
_COUNTED = 400
_EXPANDED = "/connectors?expand=status&expand=info"
_SETTLE_SECONDS = 1.0


class Cluster:
    """The broker, the folder, and the workers of one group at a time."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.folder, self.bootstrap = folder, bootstrap
        self.source = folder / "source.txt"
        self.source.write_text("a line\n")
        self._workers: list[DistributedWorker] = []

    def worker(self, group: str, **props: str) -> DistributedWorker:
        """Return a worker of a group, not started yet."""
        worker = DistributedWorker(self.folder / f"{group}-{len(self._workers)}", self.bootstrap, group, **props)
        self._workers.append(worker)
        return worker

    def healthy(self, worker: DistributedWorker) -> tuple[float, float]:
        """Start a worker. Returns the seconds until ``GET /`` responds and until the worker is healthy."""
        began = time.perf_counter()
        worker.start()
        until("GET / is answered", lambda: worker.answers("/"))
        first = time.perf_counter() - began
        until("the worker is healthy", lambda: worker.answers("/health"))
        return first, time.perf_counter() - began

    def config(self) -> dict[str, str]:
        """Return the configuration of a connector with one task."""
        return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(self.source), "topic": "lines"}

    def close(self) -> None:
        """Stop all workers."""
        for worker in self._workers:
            worker.stop()


def measure_standalone(cluster: Cluster) -> None:
    """Measure the time from the command ``sluice standalone`` to the first record on its topic."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    times = []
    for number in range(_STARTS):
        topic, folder = f"standalone-{number}", cluster.folder / f"standalone-{number}"
        folder.mkdir()
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        worker = write_props(
            folder / "worker.properties",
            {
                "bootstrap.servers": cluster.bootstrap,
                "key.converter": "StringConverter",
                "value.converter": "StringConverter",
                "offset.storage.file.filename": str(folder / "offsets"),
                "listeners": "http://127.0.0.1:0",
            },
        )
        source = write_props(
            folder / "source.properties", {"name": f"source-{number}", **cluster.config(), "topic": topic}
        )
        began = time.perf_counter()
        with (folder / "worker.log").open("wb") as log:
            process = subprocess.Popen([COMMAND, "standalone", worker, source], stdout=log, stderr=log)
        until("a record is there", partial(_end, admin, TopicPartition(topic, 0)))
        times.append(time.perf_counter() - began)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    show("sluice standalone: the first record on its topic, p50", statistics.median(times), "s", 1.5)
    show("sluice standalone: the longest", max(times), "s", None)


def _end(admin: AdminClient, place: TopicPartition) -> int:
    return int(admin.list_offsets({place: OffsetSpec.latest()})[place].result(30).offset)


def measure_start(cluster: Cluster) -> None:
    """Measure the time from the command to the first responses, and from SIGTERM to the end."""
    worker = cluster.worker("start")
    first, healthy = cluster.healthy(worker)
    show("the very first start: GET / answered", first, "s", 2.0)
    show("the very first start: healthy", healthy, "s", 2.0)
    ends = [worker.stop()]
    starts, costs = [], []
    for _ in range(_STARTS):
        starts.append(cluster.healthy(worker))
        costs.append(worker.cpu())
        ends.append(worker.stop())
    show("a start: GET / answered, p50", statistics.median(first for first, _ in starts), "s", 2.0)
    show("a start: healthy, p50", statistics.median(healthy for _, healthy in starts), "s", 2.0)
    show("a start: CPU seconds of the worker, p50", statistics.median(costs), "s", None)
    show("SIGTERM to the end, idle, p50", statistics.median(ends), "s", None)


def measure_connectors(cluster: Cluster) -> None:
    """Create connectors one after the other, as many as fit into the time.

    Measure how long each takes to run, and their memory.
    """
    worker = cluster.worker("connectors")
    cluster.healthy(worker)
    time.sleep(_SETTLE_SECONDS)
    idle = Memory.below(worker.pid)
    show("idle worker: its own process", idle[worker.pid], "MB", None)
    show("idle worker: with its fork server and spare child", sum(idle.values()), "MB", 80)
    times = [_post_to_running(cluster, worker, f"single-{number}") for number in range(_ONE_BY_ONE)]
    show("POST to RUNNING: the first", times[0] * 1000, "ms", None)
    show("POST to RUNNING: p50 of the rest", statistics.median(times[1:]) * 1000, "ms", 100)
    show("POST to RUNNING: the longest of the rest", max(times[1:]) * 1000, "ms", None)
    for number in range(_ONE_BY_ONE):
        worker.request("DELETE", f"/connectors/single-{number}")
    until("all are gone", lambda: len(Memory.below(worker.pid)) == len(idle))
    began = time.perf_counter()
    _create(cluster, worker)
    show(f"{_CONNECTORS} connectors one after the other: made", time.perf_counter() - began, "s", 3.0)
    until("all run", lambda: len(worker.running()) == _CONNECTORS)
    show(f"{_CONNECTORS} connectors one after the other: all RUNNING", time.perf_counter() - began, "s", None)
    time.sleep(_SETTLE_SECONDS)
    _show_tasks(worker, idle)
    show(f"SIGTERM to the end, with {_CONNECTORS} connectors", worker.stop(), "s", None)


def measure_rebalance(cluster: Cluster) -> None:
    """Measure a worker joining another one that has all the connectors."""
    # Without the delay, the old worker gets everything back at once when the new one leaves, which can then join again.
    old, new = (cluster.worker("rebalance", scheduled_rebalance_max_delay_ms="0") for _ in range(2))
    cluster.healthy(old)
    _create(cluster, old)
    until("all run", lambda: len(old.running()) == _CONNECTORS)
    times = []
    for _ in range(3):
        _, _ = cluster.healthy(new)
        healthy = time.perf_counter()
        until("the work is divided", lambda: _balanced(old), 0.02)
        times.append(time.perf_counter() - healthy)
        new.stop()
        until("the old one has it all", lambda: _held(old) == {old.address: 2 * _CONNECTORS}, 0.02)
    show(f"a worker joins {_CONNECTORS} connectors: balanced after healthy, p50", statistics.median(times), "s", 2.0)
    show(f"a worker joins {_CONNECTORS} connectors: the longest of 3", max(times), "s", None)


def measure_rest(cluster: Cluster) -> None:
    """Request every connector with its status and info, and compare with the maximum rate of the server."""
    _fill(cluster, "rest")
    worker = cluster.worker("rest")
    cluster.healthy(worker)
    until("all are known", lambda: len(worker.get(_EXPANDED)) == _SHOWN)
    _, body = worker.request("GET", _EXPANDED)
    began = worker.cpu()
    for _ in range(_COUNTED):
        worker.request("GET", _EXPANDED)
    cpu = (worker.cpu() - began) / _COUNTED * 1000
    asked, answered, bare = _rate(worker.address, "/"), _rate(worker.address, _EXPANDED), _bare(body)
    show(f"GET {_EXPANDED}, {_SHOWN} connectors, {len(body) / 1000:.0f} kB", answered, "/s", None)
    show("  CPU of the worker for each", cpu, "ms", None)
    show("  the same body by a bare Waitress", bare, "/s", None, f"we reach {answered / bare:.0%}")
    show("GET / by the same worker", asked, "/s", None, f"the expanded view reaches {answered / asked:.0%}")


def _post_to_running(cluster: Cluster, worker: DistributedWorker, name: str) -> float:
    began = time.perf_counter()
    worker.create(name, cluster.config())
    until(f"{name} runs", lambda: worker.runs(name))
    return time.perf_counter() - began


def _create(cluster: Cluster, worker: DistributedWorker) -> None:
    for number in range(_CONNECTORS):
        worker.create(f"connector-{number:03}", cluster.config())


def _show_tasks(worker: DistributedWorker, idle: dict[int, float]) -> None:
    pattern = "runs connector-"
    tasks = {
        int(line.rpartition("process ")[2].split()[0])
        for line in worker.log.read_text().splitlines()
        if pattern in line and "|task-" in line
    }
    now = Memory.below(worker.pid)
    of_tasks = [now[pid] for pid in tasks if now.get(pid)]
    of_connectors = [size for pid, size in now.items() if pid not in tasks and pid not in idle]
    show(f"a task process, one of {len(of_tasks)}, p50", statistics.median(of_tasks), "MB", 30)
    show(f"a connector process, one of {len(of_connectors)}, p50", statistics.median(of_connectors), "MB", None)
    more = (sum(now.values()) - sum(idle.values())) / _CONNECTORS
    show("all that a connector with one task adds", more, "MB", None)


def _held(worker: DistributedWorker) -> Counter[str]:
    return Counter(address for parts in worker.running().values() for address in parts)


def _balanced(worker: DistributedWorker) -> bool:
    held = _held(worker)
    return sum(held.values()) == 2 * _CONNECTORS and set(held.values()) == {_CONNECTORS}


def _fill(cluster: Cluster, group: str) -> None:
    """Write the topics of a cluster with 200 connectors of one task each, stopped so that they use no resources."""
    worker = cluster.worker(group)
    cluster.healthy(worker)
    worker.stop()
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(_SHOWN):
        name = f"connector-{number:03}"
        config = {"name": name, **cluster.config()}
        pairs = [
            config_records.target_state_record(name, TargetState.STOPPED),
            config_records.connector_record(name, config),
            *config_records.task_records(name, [{**config, "task.class": "FileStreamSourceTask"}]),
        ]
        for key, value in pairs:
            producer.produce(f"{group}-config", value, key)
        for unit, state in ((Unit(name), State.STOPPED), (Unit(name, 0), State.RUNNING)):
            said = status_records.status_value(Status(state, "127.0.0.1:1", 1, None, "1.0"))
            producer.produce(f"{group}-status", said, status_records.status_key(unit))
    if producer.flush(30):
        raise SystemExit("the topics could not be filled")


def _rate(address: str, path: str) -> float:
    """Return the requests per second over one connection."""
    connection = HTTPConnection(address, timeout=30)
    for warm in (True, False):
        count, began = 0, time.perf_counter()
        while (seconds := time.perf_counter() - began) < (_REST_SECONDS / 4 if warm else _REST_SECONDS):
            connection.request("GET", path)
            connection.getresponse().read()
            count += 1
    connection.close()
    return count / seconds


def _bare(body: bytes) -> float:
    """Return the requests per second of a server that does nothing but send this response."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, body), daemon=True)
    process.start()
    port = ours.recv()
    try:
        return _rate(f"{HOST}:{port}", "/")
    finally:
        process.kill()
        process.join()


def _serve(port: Connection, body: bytes) -> None:
    def app(_: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    server = create_server(app, host=HOST, port=0)
    port.send(int(server.effective_port))
    server.run()


def show(what: str, value: float, unit: str, aim: float | None, remark: str = "") -> None:
    """Print one figure."""
    beside = remark if aim is None else f"aim {aim:g} {unit}: {'reached' if value <= aim else 'MISSED'}"
    print(
        f"{what:<76}{value:>10,.{0 if unit == '/s' else 1 if unit in ('ms', 'MB') else 2}f} {unit:<4}{beside}",
        flush=True,
    )


def run(cluster: Cluster, only: Sequence[str]) -> None:
    """Run the selected parts."""
    parts = {
        "standalone": measure_standalone,
        "start": measure_start,
        "connectors": measure_connectors,
        "rebalance": measure_rebalance,
        "rest": measure_rest,
    }
    for name, measure in parts.items():
        if not only or name in only:
            measure(cluster)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the parts to run: standalone, start, connectors, rebalance, rest")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs, and say where it is")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    try:
        with own_broker(BrokerConfig(folder=folder / "broker", port=0)) as broker:
            cluster = Cluster(folder, broker.bootstrap_servers)
            try:
                run(cluster, options.only.replace(",", " ").split())
            finally:
                cluster.close()
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
