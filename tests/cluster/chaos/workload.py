"""Pipelines under steady input, and the account of what came out at their far ends."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Final

from cluster.chaos.requests_in_outages import put_config
from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster

__all__ = ["RESTARTS", "Input", "Workload"]

RESTARTS: Final = {
    "restart_policy": "on-failure",
    "restart_backoff_ms": "200",
    "restart_backoff_max_ms": "1000",
    "restart_limit": "1000000",
}
_JAVA: Final = {"engine": "java", "value_converter": "StringConverter"}
_INTERVAL: Final = {"transaction_boundary": "interval", "transaction_boundary_interval_ms": "200"}
"""Java commits offsets in each transaction, too: one for each poll is too slow on a busy machine."""
_PERIOD: Final = 0.05
_LINES: Final = 10
_WIDTH: Final = 200
_FEW_LINES: Final = str(10 * _WIDTH)
"""What a producer may hold. A batch is more than that: sending it takes a moment, and does not end while the broker is
away."""
_DRAINED: Final = 180.0
_SHOWN: Final = 10


class Input:
    """Adds numbered lines, which tell their file, to files in a folder while it is entered."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder = folder
        self._names = names
        self._written = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write)
        for name in names:
            (folder / name).touch()

    def lines(self, name: str) -> list[str]:
        """What a file has."""
        return [_line(name, number) for number in range(self._written)]

    def __enter__(self) -> Input:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._end.wait(_PERIOD):
            numbers = range(self._written, self._written + _LINES)
            for name in self._names:
                with (self._folder / name).open("a") as stream:
                    stream.write("".join(f"{_line(name, number)}\n" for number in numbers))
            self._written = numbers.stop


class Workload:
    """Two clusters, as exactly-once support is a matter of a whole cluster.

    ``exact``: two files become two topics in transactions, and these a table whose offsets are in the table's database.
    ``plain``: a file becomes a topic at least once, and the two topics of ``exact`` the lines of one file. Beside them
    it has a ``crowd`` of tasks whose files stay empty. With ``java`` Kafka's own connectors make the topics of
    ``exact`` and the lines of the file.
    """

    def __init__(
        self, folder: Path, bootstrap: str, exact: Cluster, plain: Cluster, crowd: int = 0, *, java: bool = False
    ) -> None:
        self._folder = folder
        self._bootstrap = bootstrap
        self._exact = exact
        self._plain = plain
        self._crowd = crowd
        self._java = java
        self._topics = ("exact-0", "exact-1")
        self._batch_sizes = itertools.cycle(("20", "40"))
        self.input = Input(folder, (*self._topics, "plain"))

    def create(self) -> None:
        """Create the topics and the connectors, and wait until all tasks run."""
        for topic in (*self._topics, "plain"):
            create_topic(self._bootstrap, topic)
        for name, (plugin, tasks, config) in self._sources().items():
            self._exact.create(name, plugin, tasks, watched=not self._java, **config)
        sink = {"topics": ",".join(self._topics), "consumer_override_isolation_level": "read_committed", **RESTARTS}
        sink["value_converter"] = "TardyConverter"
        self._exact.create("table", "Table", 2, database=str(self._folder / "table"), **sink)
        source = {"file": str(self._folder / "plain"), "topic": "plain", "batch_size": "20", **RESTARTS}
        source["producer_override_buffer_memory"] = _FEW_LINES
        self._plain.create("lines", "Lines", 1, value_converter="TardyConverter", **source)
        self._create_out(sink)
        if self._crowd:
            for number in range(self._crowd):
                (self._folder / f"idle-{number}").touch()
            self._plain.create("idle", "Files", self._crowd, file=str(self._folder / "idle"), topic="idle", **RESTARTS)
        for cluster in (self._exact, self._plain):
            cluster.wait_until_all_run()

    def reconfigure(self) -> None:
        """Give the exactly-once source another configuration, so that the tasks of the former one are fenced."""
        for name, (plugin, tasks, config) in self._sources().items():
            put_config(self._exact, name, self._exact.config(plugin, tasks, **config))

    def account(self) -> list[str]:
        """Wait until all that was written has come out; see that each line is where it has to be, as often as it may.

        What was doubled where that is allowed.
        """
        lines = {name: self.input.lines(name) for name in (*self._topics, "plain")}
        for topic in self._topics:
            self._exactly(f"topic {topic}", lines[topic], lambda topic=topic: self._texts(topic))  # type: ignore[misc]
            self._exactly(f"table {topic}", lines[topic], lambda topic=topic: self._rows(topic))  # type: ignore[misc]
        return [
            f"{len(lines['plain'])} lines a file",
            self._at_least("topic plain", lines["plain"], lambda: self._texts("plain")),
            self._at_least("file out", [line for topic in self._topics for line in lines[topic]], self._out),
        ]

    def _create_out(self, sink: Mapping[str, str]) -> None:
        """Create the sink of the file. Two of Java's tasks would write into each other's lines."""
        plugin, tasks, own = ("FileStreamSink", 1, _JAVA) if self._java else ("Writers", 2, {})
        config = {**sink, "file": str(self._folder / "out"), **own}
        self._plain.create("out", plugin, tasks, watched=not self._java, **config)

    def _sources(self) -> dict[str, tuple[str, int, dict[str, str]]]:
        """The connectors that read files exactly once, each with its plugin and the number of its tasks."""
        common = {"batch_size": next(self._batch_sizes), "exactly_once_support": "required", **RESTARTS}
        if not self._java:
            own = {
                "transaction_boundary": "poll",
                "value_converter": "TardyConverter",
                "producer_override_buffer_memory": _FEW_LINES,
            }
            return {"files": ("Files", 2, {**common, **own, "file": str(self._folder / "exact"), "topic": "exact"})}
        # Kafka's own has one task, of one file.
        return {
            f"files-{topic}": (
                "FileStreamSource",
                1,
                {**common, **_JAVA, **_INTERVAL, "file": str(self._folder / topic), "topic": topic},
            )
            for topic in self._topics
        }

    def _exactly(self, what: str, lines: Sequence[str], found: Callable[[], list[str]]) -> None:
        """Every line once, in order."""
        seen: list[str] = []

        def all_there() -> bool:
            seen[:] = found()
            return len(seen) >= len(lines)

        try:
            wait_until("all lines are there", all_there, _DRAINED)
        except AssertionError:
            missing = sorted(set(lines) - set(seen))
            raise AssertionError(f"{what} lacks {len(missing)} lines: {_shown(missing)}{self._tails()}") from None
        doubled = [line for line, count in Counter(seen).items() if count > 1]
        assert not doubled, f"{what} has {len(doubled)} lines twice: {_shown(doubled)}{self._tails()}"
        assert seen == list(lines), f"{what} is not in order"

    def _at_least(self, what: str, lines: Sequence[str], found: Callable[[], list[str]]) -> str:
        """Every line once, or more often."""
        wanted = set(lines)
        lacking = wanted

        def all_there() -> bool:
            nonlocal lacking
            lacking = wanted - set(found())
            return not lacking

        try:
            wait_until("all lines are there", all_there, _DRAINED)
        except AssertionError:
            raise AssertionError(f"{what} lacks {len(lacking)} lines: {_shown(lacking)}{self._tails()}") from None
        seen = Counter(found())
        # A kill in the middle of a write leaves the beginning of a line behind; the whole line comes again.
        foreign = [line for line in seen.keys() - wanted if not any(whole.startswith(line) for whole in wanted)]
        assert not foreign, f"{what} has lines that it was not given: {_shown(foreign)}"
        return f"{what} has {seen.total() - len(wanted)} lines more than it was given"

    def _texts(self, topic: str) -> list[str]:
        return [message.value().decode() for message in read_topic(self._bootstrap, topic)]

    def _rows(self, topic: str) -> list[str]:
        with closing(sqlite3.connect(self._folder / "table", timeout=30)) as database:
            rows = database.execute("SELECT line FROM lines WHERE topic = ? ORDER BY offset, rowid", (topic,))
            return [line for (line,) in rows]

    def _out(self) -> list[str]:
        file = self._folder / "out"
        return file.read_text().splitlines() if file.exists() else []

    def _tails(self) -> str:
        return self._exact.tails() + self._plain.tails()


def _line(name: str, number: int) -> str:
    return f"{name} {number:07}".ljust(_WIDTH, ".")


def _shown(lines: Iterable[str]) -> list[str]:
    return [line.rstrip(".") for line in sorted(lines)[:_SHOWN]]
