"""Measures the cost of many mostly idle connectors on one worker, of Sluice and of Apache Kafka Connect.

``python bench/density.py [--connectors N] [--seconds S] [--side SIDE] [--kill]``: half of the N connectors are file
sources, the others are file sinks for the sources' topics, with one task each. Both workers are distributed ones and
run one after the other on the same broker with Kafka's default settings: Java's with the JVM settings of Kafka's
scripts, Sluice's with ``task.isolation=auto`` or the value of ``--isolation``.

Memory is the proportional set size of the worker and all its processes: a page shared by several counts once. CPU
seconds and wake-ups are measured for S seconds at rest, and for S seconds in which each source gets a line per second.
A restart is a SIGTERM and a start while lines are in transit; it ends when everything runs again. With ``--kill``, a
SIGKILL and a start follow, which end when each line has arrived at the far end. In the end, every line must arrive.
Finally the open files are listed by kind and process. ``--side`` measures only one of the two workers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import requests
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from distributed_worker import DistributedWorker, Memory
from open_files import OpenFiles
from own_broker import own_broker

from equipment.workers.java_connect import DEFAULT_JVM, JavaConnect, resolve_java_connect
from worker.embedded.broker.server import BrokerConfig

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_DEADLINE_SECONDS: Final = 900.0
_LOOK_SECONDS: Final = 0.05
_SETTLE_SECONDS: Final = 120.0
"""Longer than what follows the last line: both commit offsets once a minute, and Sluice then closes idle producers."""
CALLERS: Final = 8


@dataclass(frozen=True, slots=True)
class Effort:
    """The resources used by a worker up to a moment."""

    at: float
    cpu: float
    wakes: int


@dataclass(frozen=True, slots=True)
class Density:
    """The cost of a worker."""

    runs: float
    """Seconds from the start of a worker without connectors until all connectors, created after that, run."""
    restarted: float
    killed: float
    """Seconds from a SIGKILL until each line has arrived, as statuses are outdated for a while; 0 without a kill."""
    megabytes: float
    processes: int
    threads: int
    files: OpenFiles
    rest: float
    """CPU seconds per minute."""
    wakes: float
    """How many times per second one of its threads went to sleep while nothing happened."""
    lines: float
    """CPU seconds per minute with a line per second for each source."""

    @property
    def open_files(self) -> int:
        """The number of open files."""
        return self.files.total


class Worker(Protocol):
    """A distributed worker of either kind."""

    @property
    def pid(self) -> int:
        """The process id."""

    def begin(self) -> None:
        """Start the worker and return at once."""

    def end(self) -> None:
        """Stop the worker in an orderly way, as an operator does."""

    def kill(self) -> None:
        """Kill the worker, as in a crash."""

    def url(self, path: str) -> str:
        """Return the URL of a path in its REST API."""


class KafkaConnect:
    """A worker of Apache Kafka Connect."""

    name = "Kafka Connect"

    def __init__(self, folder: Path, bootstrap: str, isolation: str) -> None:  # noqa: ARG002
        props = {"bootstrap.servers": bootstrap, **_cluster_props("java")}
        self._worker = JavaConnect(folder, resolve_java_connect(), props, jvm=DEFAULT_JVM)

    @property
    def pid(self) -> int:
        return self._worker.pid

    def begin(self) -> None:
        self._worker.start(wait=False)

    def end(self) -> None:
        self._worker.stop()

    def kill(self) -> None:
        self._worker.kill()

    def url(self, path: str) -> str:
        return self._worker.url + path.lstrip("/")


class Sluice:
    """A worker of Sluice, whose properties are given with underscores for points."""

    name = "Sluice"

    def __init__(self, folder: Path, bootstrap: str, isolation: str, **props: str) -> None:
        self._worker = DistributedWorker(folder, bootstrap, "sluice", task_isolation=isolation, **props)

    @property
    def pid(self) -> int:
        return self._worker.pid

    def begin(self) -> None:
        self._worker.start()

    def end(self) -> None:
        self._worker.stop()

    def kill(self) -> None:
        self._worker.kill()

    def url(self, path: str) -> str:
        return f"http://{self._worker.address}{path}"


def _cluster_props(group: str) -> dict[str, str]:
    kinds = ("config", "offset", "status")
    topics = {f"{kind}.storage.topic": f"{group}-{kind}" for kind in kinds}
    return {"group.id": group, **topics, **{f"{kind}.storage.replication.factor": "1" for kind in kinds}}


class Crowd:
    """The connectors of one worker, with their files and topics."""

    def __init__(self, folder: Path, bootstrap: str, label: str, connectors: int) -> None:
        folder.mkdir()
        pairs = range((connectors + 1) // 2)
        self.files = [folder / f"{number}.in" for number in pairs]
        self.outputs = [folder / f"{number}.out" for number in pairs[: connectors // 2]]
        self._written = 0
        self.configs: dict[str, dict[str, str]] = {}
        topics = [f"{label}-{number}" for number in pairs]
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
            made.result(60)
        for file, topic in zip(self.files, topics, strict=True):
            file.touch()
            self.configs[f"source-{topic}"] = {
                "connector.class": "FileStreamSource",
                "file": str(file),
                "topic": topic,
            }
        for file, topic in zip(self.outputs, topics, strict=False):
            self.configs[f"sink-{topic}"] = {"connector.class": "FileStreamSink", "file": str(file), "topics": topic}

    def write(self) -> None:
        """Append a line to the file of each source."""
        self._written += 1
        for file in self.files:
            with file.open("a") as stream:
                stream.write(f"line {self._written}\n")

    def arrived(self) -> bool:
        """Return whether each sink has written all lines."""
        return all(file.exists() and file.read_bytes().count(b"\n") >= self._written for file in self.outputs)


class Tree:
    """The processes of a worker, as shown by ``/proc``."""

    def __init__(self, root: int) -> None:
        self._root = root

    def pids(self) -> list[int]:
        """Return the ids of all processes."""
        return sorted(Memory.below(self._root))

    def megabytes(self) -> float:
        """Their memory."""
        return sum(Memory.below(self._root).values())

    def threads(self) -> int:
        """Return the number of their threads."""
        return sum(map(_threads, self.pids()))

    def files(self) -> OpenFiles:
        """Their open files."""
        return OpenFiles.of(self.pids())

    def effort(self) -> Effort:
        """Return the resources that they have used so far."""
        pids = self.pids()
        return Effort(time.monotonic(), sum(map(_cpu, pids)), sum(map(_wakes, pids)))


def _threads(pid: int) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return 0


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process, including those of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


def _wakes(pid: int) -> int:
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            lines = status.read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return total


def measure(worker: Worker, crowd: Crowd, seconds: float, *, kills: bool) -> Density:
    """Start the worker, create all connectors, and measure it while they are idle and while they have little to do."""
    started = time.monotonic()
    worker.begin()
    until("the worker is up", lambda: answer(worker, "/connectors") is not None)
    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(lambda item: create(worker, *item), crowd.configs.items()))
    until("all run", lambda: all_run(worker, crowd.configs))
    runs = time.monotonic() - started
    crowd.write()
    until("each line has arrived", crowd.arrived)
    restarted, _ = _again(worker, crowd, worker.end)
    _, killed = _again(worker, crowd, worker.kill) if kills else (0.0, 0.0)
    time.sleep(_SETTLE_SECONDS)
    tree = Tree(worker.pid)
    before = tree.effort()
    time.sleep(seconds)
    after = tree.effort()
    sizes = tree.megabytes(), len(tree.pids()), tree.threads(), tree.files()
    busy = _written_to(crowd, tree, seconds)
    rest = after.at - before.at
    return Density(runs, restarted, killed, *sizes, a_minute(before, after), (after.wakes - before.wakes) / rest, busy)


def _again(worker: Worker, crowd: Crowd, stop: Callable[[], None]) -> tuple[float, float]:
    """Stop the worker in the given way and start it again.

    Returns the seconds until everything runs and each line has arrived.
    """
    crowd.write()
    stopping = time.monotonic()
    stop()
    worker.begin()
    until("all run again", lambda: all_run(worker, crowd.configs))
    runs = time.monotonic() - stopping
    crowd.write()
    until("each line has arrived", crowd.arrived)
    return runs, time.monotonic() - stopping


def _written_to(crowd: Crowd, tree: Tree, seconds: float) -> float:
    before = tree.effort()
    for number in range(int(seconds)):
        crowd.write()
        time.sleep(max(0.0, before.at + number + 1 - time.monotonic()))
    after = tree.effort()
    until("each line has arrived", crowd.arrived)
    return a_minute(before, after)


def a_minute(before: Effort, after: Effort) -> float:
    """Return the CPU seconds a minute between two moments."""
    return (after.cpu - before.cpu) / (after.at - before.at) * 60


def answer(worker: Worker, path: str) -> Any:
    """Return the answer of a worker, or ``None`` if there is none."""
    try:
        said = requests.get(worker.url(path), timeout=60)
    except requests.RequestException:
        return None
    return said.json() if said.ok else None


def create(worker: Worker, name: str, config: Mapping[str, str]) -> None:
    """Create a connector, with patience for rebalances."""

    def created() -> bool:
        said = requests.put(worker.url(f"/connectors/{name}/config"), json=dict(config), timeout=120)
        # During a rebalance a worker may ask to wait, and Java's gives up after a while.
        if said.status_code not in (200, 201, 409, 500):
            raise SystemExit(f"{name}: {said.status_code} {said.text}")
        return said.ok

    until(f"{name} is made", created)


def all_run(worker: Worker, configs: Mapping[str, object]) -> bool:
    """Return whether these connectors run, each with a task."""
    shown = answer(worker, "/connectors?expand=status") or {}
    parts = [[item["status"]["connector"], *item["status"]["tasks"]] for item in shown.values() if "status" in item]
    running = [all_parts for all_parts in parts if len(all_parts) > 1]
    return len(running) == len(configs) and all(part["state"] == "RUNNING" for whole in running for part in whole)


def until(what: str, condition: Any) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    asked = time.monotonic()
    while not condition():
        now = time.monotonic()
        if now > deadline:
            raise SystemExit(f"within {_DEADLINE_SECONDS:g} s it did not come about that {what}")
        # Expensive checks are made less often, so that they do not slow down the processes they wait for.
        time.sleep(max(_LOOK_SECONDS, 2 * (now - asked)))
        asked = time.monotonic()


_ROWS: Final = (
    ("memory, MB", "megabytes", 0),
    ("processes", "processes", 0),
    ("threads", "threads", 0),
    ("open files", "open_files", 0),
    ("CPU s a minute at rest", "rest", 2),
    ("wake-ups a second at rest", "wakes", 0),
    ("CPU s a minute, a line a second each", "lines", 2),
    ("s until all run", "runs", 1),
    ("s of a restart until all run again", "restarted", 1),
    ("s of a kill -9 until all has arrived", "killed", 1),
)


def show(found: Mapping[str, Density]) -> None:
    """Print all figures, and the ratio of the last worker to the first."""
    print(f"{'':<40}" + "".join(f"{name:>16}" for name in found) + (f"{'ratio':>10}" if len(found) > 1 else ""))
    for title, field, digits in _ROWS:
        figures = [float(getattr(density, field)) for density in found.values()]
        ratio = f"{figures[-1] / figures[0]:>10.2f}" if len(figures) > 1 and figures[0] else ""
        print(f"{title:<40}" + "".join(f"{figure:>16,.{digits}f}" for figure in figures) + ratio, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each look at CPU and wake-ups lasts")
    parser.add_argument("--isolation", default="auto", help="task.isolation of Sluice's worker")
    parser.add_argument("--side", choices=("both", "java", "sluice"), default="both", help="which worker to measure")
    parser.add_argument("--kill", action="store_true", help="kill the workers with SIGKILL, too")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs, and say where it is")
    options = parser.parse_args()
    kinds = [kind for side, kind in (("java", KafkaConnect), ("sluice", Sluice)) if options.side in ("both", side)]
    folder = Path(tempfile.mkdtemp(prefix="density-"))
    found: dict[str, Density] = {}
    try:
        with own_broker(BrokerConfig(folder=folder / "broker", port=0)) as broker:
            for kind in kinds:
                label = kind.name.split()[-1].lower()
                worker = kind(folder / label, broker.bootstrap_servers, options.isolation)
                crowd = Crowd(folder / f"{label}-files", broker.bootstrap_servers, label, options.connectors)
                try:
                    found[kind.name] = measure(worker, crowd, options.seconds, kills=options.kill)
                finally:
                    worker.end()
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.connectors} connectors, one task each; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    show(found)
    for name, density in found.items():
        print(f"\n{name}")
        density.files.show()


if __name__ == "__main__":
    main()
