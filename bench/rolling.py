"""Restarts the workers of a cluster one after the other while its connectors work, and shows what that costs them.

``python bench/rolling.py [--workers N] [--connectors N] [--kill]``: half of the connectors are file sources, the others
are file sinks for the sources' topics, with one task each, and each source gets a line a second all the time. Each
worker gets a SIGTERM and is started again, and the next one follows when all connectors and tasks run again; with
``--kill``, one more gets a SIGKILL. The workers have Kafka Connect's own timeouts.

For each restart: the seconds that the worker took to stop, until everything ran again, and the longest time in which
one of the sinks got no line (a line a second is its usual pace). In the end each sink must have each line, in order;
lines that came twice, which at least once allows after a kill, are counted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final, TypeVar

from density import Crowd
from distributed_worker import DistributedWorker, Memory
from own_broker import own_broker

from worker.embedded.broker.server import BrokerConfig

T = TypeVar("T")

_DEADLINE_SECONDS: Final = 900.0
_LOOK_SECONDS: Final = 0.25
_PACE_SECONDS: Final = 1.0
_BETWEEN_SECONDS: Final = 5.0
_CALLERS: Final = 4


class Pulse:
    """Writes a line to each source each second, and watches in a thread of its own when each sink gets one."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._sizes = dict.fromkeys(crowd.outputs, 0)
        self._grown = dict.fromkeys(crowd.outputs, time.monotonic())
        self._longest = 0.0
        self._ended = Event()
        self._threads = [Thread(target=self._write), Thread(target=self._watch)]
        self.lines = 0

    def start(self) -> None:
        """Begin to write and to watch."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Write and watch no more."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def take_longest(self) -> float:
        """Return for how many seconds a sink got no line at most since the last call."""
        longest, self._longest = self._longest, 0.0
        return longest

    def _write(self) -> None:
        while not self._ended.wait(_PACE_SECONDS):
            self._crowd.write()
            self.lines += 1

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            now = time.monotonic()
            for file, size in self._sizes.items():
                grown = file.stat().st_size if file.exists() else 0
                self._longest = max(self._longest, now - self._grown[file])
                if grown > size:
                    self._sizes[file], self._grown[file] = grown, now


class Cluster:
    """The workers of one group."""

    def __init__(self, folder: Path, bootstrap: str, workers: int) -> None:
        self.workers = [
            DistributedWorker(folder / f"worker-{number}", bootstrap, "rolling") for number in range(workers)
        ]

    def start(self) -> None:
        """Start all workers, the first one alone: it creates the internal topics."""
        for worker in self.workers:
            worker.start()
            until("the worker is healthy", lambda worker=worker: worker.answers("/health"))

    def create(self, crowd: Crowd) -> None:
        """Create all connectors, by several callers who each use a worker of their own."""
        names = list(crowd.configs)

        def create(caller: int) -> None:
            for name in names[caller::_CALLERS]:
                self.workers[caller % len(self.workers)].create(name, crowd.configs[name])

        with ThreadPoolExecutor(_CALLERS) as callers:
            list(callers.map(create, range(_CALLERS)))

    def runs(self, connectors: int, asked: DistributedWorker) -> bool:
        """Return whether all connectors and tasks run, on all workers, as one of them says."""
        running = asked.running()
        addresses = {address for parts in running.values() for address in parts}
        return len(running) == connectors and addresses == {worker.address for worker in self.workers}

    def stop(self) -> None:
        """Stop all workers."""
        with ThreadPoolExecutor(len(self.workers)) as stops:
            list(stops.map(DistributedWorker.stop, self.workers))


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Start the cluster, restart each of its workers, and count the lines."""
    with own_broker(BrokerConfig(folder=folder / "broker", port=0, heap="1g")) as broker:
        crowd = Crowd(folder / "files", broker.bootstrap_servers, "rolling", arguments.connectors)
        cluster = Cluster(folder, broker.bootstrap_servers, arguments.workers)
        try:
            cluster.start()
            began = time.monotonic()
            cluster.create(crowd)
            until("all run", lambda: cluster.runs(arguments.connectors, cluster.workers[0]))
            print(f"{arguments.workers} workers, {arguments.connectors} connectors: all ran after ", end="")
            print(f"{time.monotonic() - began:.1f} s; {os.cpu_count()} processors", flush=True)
            with beating(crowd) as pulse:
                until("each sink has a line", lambda: all(file.exists() for file in crowd.outputs))
                _restart_each(cluster, crowd, pulse, kill=arguments.kill)
            until("each line has arrived", lambda: has_line(crowd.outputs, pulse.lines))
            memory = [sum(Memory.below(worker.pid).values()) for worker in cluster.workers]
            print(f"memory of the workers: {', '.join(f'{size:.0f}' for size in memory)} MB")
        finally:
            cluster.stop()
        check(crowd.outputs, pulse.lines)


@contextmanager
def beating(crowd: Crowd) -> Iterator[Pulse]:
    """Write a line a second to each source during the block."""
    pulse = Pulse(crowd)
    pulse.start()
    try:
        yield pulse
    finally:
        pulse.end()


def _restart_each(cluster: Cluster, crowd: Crowd, pulse: Pulse, *, kill: bool) -> None:
    print(f"{'':<16}{'s to stop':>12}{'s until all run':>18}{'longest silence':>18}{'load':>8}")
    for number, worker in enumerate(cluster.workers):
        _restart(f"restart {number + 1}", worker.stop, worker, cluster, crowd, pulse)
    if kill:
        _restart("kill -9", lambda: worker.kill() or 0.0, worker, cluster, crowd, pulse)


def _restart(
    title: str,
    stop: Callable[[], float],
    worker: DistributedWorker,
    cluster: Cluster,
    crowd: Crowd,
    pulse: Pulse,
) -> None:
    time.sleep(_BETWEEN_SECONDS)
    pulse.take_longest()
    began = time.monotonic()
    stopping = stop()
    worker.start()
    until("the worker is healthy", lambda: worker.answers("/health"))
    until("all run again", lambda: cluster.runs(len(crowd.configs), worker))
    again = time.monotonic() - began
    lines = pulse.lines
    until("each line so far has arrived", lambda: has_line(crowd.outputs, lines))
    print(
        f"{title:<16}{stopping:>12.1f}{again:>18.1f}{pulse.take_longest():>18.1f}{os.getloadavg()[0]:>8.1f}", flush=True
    )


def until(what: str, condition: Callable[[], T]) -> T:
    """Wait for the first true result of a condition and return it."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise SystemExit(f"within {_DEADLINE_SECONDS:g} s it did not come about that {what}")
        time.sleep(_LOOK_SECONDS)
    return found


def has_line(outputs: Sequence[Path], line: int) -> bool:
    """Return whether each sink has a line; others may have come twice, so their number says nothing."""
    wanted = f"line {line}\n"
    return all(wanted in file.read_text() for file in outputs)


def check(outputs: Sequence[Path], lines: int) -> None:
    """Refuse a sink that lacks a line or has them in another order; count those that came twice."""
    wanted = [f"line {number + 1}" for number in range(lines)]
    doubled = 0
    for file in outputs:
        found = file.read_text().splitlines()
        assert list(dict.fromkeys(found)) == wanted, file
        doubled += len(found) - len(wanted)
    print(f"{len(outputs):,} sinks, {lines * len(outputs):,} lines: none lost, each in order, {doubled} twice")


def main() -> None:
    """Run it and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--connectors", type=int, default=500)
    parser.add_argument("--kill", action="store_true", help="kill the last worker with SIGKILL afterwards")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs, and say where it is")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sluice-rolling-"))
    try:
        run(arguments, folder)
    finally:
        if arguments.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
