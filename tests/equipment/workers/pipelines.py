"""A continuous load on a cluster: lines from files through topics to files, and ticks of many tasks."""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from equipment.brokers.topics import create_topic, read_so_far
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster

__all__ = ["Pipelines"]

_PERIOD = 0.2


class Pipelines:
    """This many ``pipelines`` of a file source, a topic and a file sink, and one source with ``ticks`` tasks.

    Lines are added to the files inside the ``with`` block. Afterwards :meth:`check` finds out whether any were lost.
    """

    def __init__(self, cluster: Cluster, bootstrap: str, pipelines: int, ticks: int) -> None:
        self._cluster = cluster
        self._bootstrap = bootstrap
        self._prefix = cluster.folder.name
        self._folder = cluster.folder / "files"
        self._folder.mkdir()
        self._names = [f"line{number:02}" for number in range(pipelines)]
        self._ticks = ticks
        self._written = 0
        self._end = threading.Event()
        self._writer: threading.Thread | None = None

    @property
    def ticks_topic(self) -> str:
        """The topic of the ticks."""
        return f"{self._prefix}-ticks"

    def create(self) -> None:
        """Create the topics and the connectors, and wait until all tasks run."""
        topics = [f"{self._prefix}-{name}" for name in self._names] + [self.ticks_topic]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda topic: create_topic(self._bootstrap, topic), topics))
        connectors = {}
        for name, topic in zip(self._names, topics, strict=False):
            self._file(name, "in").touch()
            connectors[name] = ("Lines", 1, {"file": str(self._file(name, "in")), "topic": topic})
            connectors[f"{name}-sink"] = ("Writer", 1, {"file": str(self._file(name, "out")), "topics": topic})
        connectors["ticks"] = ("Ticks", self._ticks, {"topic": self.ticks_topic})
        self._cluster.create_all(connectors)
        self._cluster.wait_until_all_run()

    def __enter__(self) -> Pipelines:
        self._end.clear()
        self._writer = threading.Thread(target=self._write)
        self._writer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        assert self._writer is not None
        self._writer.join()

    def check(self) -> None:
        """Wait until every written line has arrived at the far end, and check that no tick is missing."""
        wanted = {str(number) for number in range(self._written)}
        for name in self._names:
            try:
                wait_until("all lines are there", lambda name=name: wanted <= self._out(name), seconds=60)  # type: ignore[misc]
            except AssertionError:
                missing = sorted(wanted - self._out(name), key=int)
                raise AssertionError(
                    f"{name} lacks {len(missing)} lines: {missing[:20]}{self._cluster.tails()}"
                ) from None
        self._check_ticks()

    def _check_ticks(self) -> None:
        values = read_so_far(self._bootstrap, self.ticks_topic)
        seen: defaultdict[int, set[int]] = defaultdict(set)
        for task, number in map(_tick, values):
            seen[task].add(number)
        gaps = {task: sorted(set(range(1, max(numbers))) - numbers) for task, numbers in seen.items()}
        assert not any(gaps.values()), gaps
        wait_until("every task ticks", lambda: self._tick_after(len(values)) == set(range(self._ticks)))

    def _tick_after(self, offset: int) -> set[int]:
        return {task for task, _ in map(_tick, read_so_far(self._bootstrap, self.ticks_topic, offset))}

    def _write(self) -> None:
        while not self._end.wait(_PERIOD):
            for name in self._names:
                with self._file(name, "in").open("a") as stream:
                    stream.write(f"{self._written}\n")
            self._written += 1

    def _out(self, name: str) -> set[str]:
        file = self._file(name, "out")
        return set(file.read_text().splitlines()) if file.exists() else set()

    def _file(self, name: str, end: str) -> Path:
        return self._folder / f"{name}.{end}"


def _tick(value: bytes) -> tuple[int, int]:
    task, number = map(int, value.split())
    return task, number
