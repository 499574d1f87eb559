"""Measures what connectors of Java cost that rest, on a worker of Sluice and on one of Apache Kafka Connect.

``python bench/java_units.py [--connectors 1,30] [--seconds S] [--keep]``: for each number, both workers run that many
of Kafka's own file connectors (sources and sinks in turn, one task each), one after the other on the same broker:
Sluice with ``engine=java`` and the default options of its JVMs, Kafka Connect with those of its own scripts. Both are
distributed workers.

Memory is the proportional set size of the worker and all its processes. It and the CPU are measured for S seconds at
rest. The first start is that of one connector on a worker that runs nothing yet: with Sluice, this includes the start
of a JVM.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from density import CALLERS, Crowd, KafkaConnect, Sluice, Tree, Worker, a_minute, all_run, answer, create, until
from own_broker import own_broker

from equipment.workers.java_plugins import file_plugin
from worker.embedded.broker.server import BrokerConfig

_SETTLE_SECONDS: Final = 90.0
"""Longer than a JVM that has validated a configuration waits for another one."""
_ROWS: Final = (
    ("s of the worker's start", "up", 1),
    ("s of the first connector's start", "first", 1),
    ("s of the start of all others", "others", 1),
    ("memory, MB", "megabytes", 0),
    ("processes", "processes", 0),
    ("threads", "threads", 0),
    ("CPU s a minute at rest", "rest", 2),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a worker: seconds of starts, memory, and CPU seconds per minute at rest."""

    up: float
    first: float
    others: float
    megabytes: float
    processes: int
    threads: int
    rest: float


def measure(worker: Worker, configs: Mapping[str, Mapping[str, str]], crowd: Crowd, seconds: float) -> Cost:
    """Start the worker and its connectors, and measure it at rest."""
    laps = [time.monotonic()]
    worker.begin()
    until("the worker is up", lambda: answer(worker, "/connectors") is not None)
    laps.append(time.monotonic())
    first, *others = configs.items()
    create(worker, *first)
    until("the first runs", lambda: all_run(worker, dict([first])))
    laps.append(time.monotonic())
    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(lambda item: create(worker, *item), others))
    until("all run", lambda: all_run(worker, configs))
    laps.append(time.monotonic())
    crowd.write()
    until("each line has arrived", crowd.arrived)
    time.sleep(_SETTLE_SECONDS)
    tree = Tree(worker.pid)
    before = tree.effort()
    time.sleep(seconds)
    rest = a_minute(before, tree.effort())
    up, first_seconds, other_seconds = (after - begun for begun, after in pairwise(laps))
    return Cost(up, first_seconds, other_seconds, tree.megabytes(), len(tree.pids()), tree.threads(), rest)


def show(count: int, found: Mapping[str, Cost]) -> None:
    """Print the figures of both workers, and the ratio of Sluice's to Java's."""
    print(f"\n{f'{count} connectors of Java':<40}" + "".join(f"{name:>16}" for name in found) + f"{'ratio':>10}")
    for title, field, digits in _ROWS:
        figures = [float(getattr(cost, field)) for cost in found.values()]
        ratio = f"{figures[-1] / figures[0]:>10.2f}" if figures[0] else ""
        print(f"{title:<40}" + "".join(f"{figure:>16,.{digits}f}" for figure in figures) + ratio, flush=True)


def run(count: int, folder: Path, bootstrap: str, seconds: float) -> dict[str, Cost]:
    """Measure both workers with this many connectors."""
    found = {}
    plugins = file_plugin(folder / f"plugins-{count}")
    workers = (
        (KafkaConnect(folder / f"java-{count}", bootstrap, "auto"), {}),
        (Sluice(folder / f"sluice-{count}", bootstrap, "auto", plugin_path=str(plugins)), {"engine": "java"}),
    )
    for worker, more in workers:
        label = f"{worker.name.split()[-1].lower()}-{count}"
        crowd = Crowd(folder / f"{label}-files", bootstrap, label, count)
        configs = {name: {**config, **more} for name, config in crowd.configs.items()}
        try:
            found[worker.name] = measure(worker, configs, crowd, seconds)
        finally:
            worker.end()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", default="1,30", help="the numbers of connectors, with commas")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long a worker rests")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs, and say where it is")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="java-units-"))
    try:
        for count in map(int, options.connectors.split(",")):
            with own_broker(BrokerConfig(folder=folder / f"broker-{count}", port=0)) as broker:
                show(count, run(count, folder, broker.bootstrap_servers, options.seconds))
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
