"""Sluice beside Apache Kafka Connect: the same broker, files and configurations, in one run.

``python bench/race.py [--records N] [--quick] [--only WORDS]``: a file to a topic (as strings; as JSON with its schema
after two transformations), a topic to a file (one task, four tasks), and the latency from file to file at 100 records
a second. Both workers run in standalone mode, Java's with the JVM settings of Kafka's own scripts.

Each throughput run moves 2 * N lines of 100 bytes through one worker: the first N with its start, the second N warm.
CPU seconds and memory are those of the worker and all its processes, not the broker's and not this program's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from process_tree import ProcessTree

from equipment.java_connect import DEFAULT_JVM, JavaConnect, JavaConnectJars, resolve_java_connect
from worker.kafka.broker import BrokerConfig, EmbeddedBroker

Props = Mapping[str, str]

_COMMAND = Path(sys.executable).parent / "sluice"
_LINE_BYTES = 100
_LOOK_SECONDS = 0.01
_SETTLE_SECONDS = 0.5
_DEADLINE_SECONDS = 300.0
_PER_SECOND = 100
_WARM_UP = 300
_MEASURED = 1000
_STRINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
_JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "transforms": "hoist,origin",
    "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.origin.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.origin.static.field": "origin",
    "transforms.origin.static.value": "race",
}


@dataclass(frozen=True, slots=True)
class Lap:
    """What it took to move some records."""

    records: int
    seconds: float
    paid: int
    """The records that the CPU seconds were spent on: the first ones too, which came before there was a time."""
    cpu: float

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds

    @property
    def cpu_per_million(self) -> float:
        """CPU seconds for a million records."""
        return self.cpu / self.paid * 1_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """One worker's way through one case."""

    first: Lap
    warm: Lap
    peak: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from a line in one file to the same line in another."""

    median: float
    p99: float
    cpu: float
    """CPU seconds a minute at this rate."""
    peak: int


@dataclass(frozen=True, slots=True)
class Contender:
    """One of the two: how a worker with these connectors is started in a folder; its process is yielded."""

    name: str
    running: Callable[[Path, Sequence[Props]], AbstractContextManager[int]]


class Race:
    """The broker, the files and the topics that both workers share."""

    def __init__(self, folder: Path, bootstrap: str, records: int, jars: JavaConnectJars) -> None:
        self.folder, self.bootstrap, self.records, self._jars = folder, bootstrap, records, jars
        self.contenders = (Contender("Kafka Connect", self._java), Contender("Sluice", self._sluice))
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._client = Consumer({"bootstrap.servers": bootstrap, "group.id": "race", "log_level": 0})

    @property
    def lines(self) -> Path:
        """A file of twice the records."""
        file = self.folder / "lines.txt"
        if not file.exists():
            with file.open("w") as stream:
                stream.writelines(f"{number:010d}{'x' * (_LINE_BYTES - 11)}\n" for number in range(2 * self.records))
        return file

    def source(self, contender: Contender, label: str, props: Props) -> Run:
        """From the file to a topic of one partition."""
        topic = f"{label}-{contender.name.split()[0]}"
        self._create(topic, 1)
        connector = {"name": label, "connector.class": "FileStreamSource", "file": str(self.lines), "topic": topic}
        return self._run(contender, label, {**connector, **props}, lambda: self._count(topic))

    def sink(self, contender: Contender, tasks: int) -> Run:
        """From a topic to one file."""
        label = f"sink-{tasks}"
        topic = self._filled(f"lines-{tasks}", tasks)
        out = self.folder / f"{label}-{contender.name.split()[0]}.out"
        connector = {"name": f"{label}-{contender.name.split()[0]}", "connector.class": "FileStreamSink"}
        connector |= {"file": str(out), "topics": topic, "tasks.max": str(tasks)}
        try:
            return self._run(contender, label, connector, lambda: _size(out) // _LINE_BYTES)
        finally:
            out.unlink(missing_ok=True)

    def latency(self, contender: Contender) -> Latency:
        """From file to file."""
        label = contender.name.split()[0]
        topic, begin, end = f"latency-{label}", self.folder / f"{label}.begin", self.folder / f"{label}.end"
        self._create(topic, 1)
        begin.touch()
        connectors = [
            {"name": f"in-{label}", "connector.class": "FileStreamSource", "file": str(begin), "topic": topic},
            {"name": f"out-{label}", "connector.class": "FileStreamSink", "file": str(end), "topics": topic},
        ]
        with contender.running(self.folder / f"latency-{label}", connectors) as pid:
            tree = ProcessTree(pid)
            try:
                _pace(begin, end, _WARM_UP)
                before, started = tree.cpu(), time.perf_counter()
                delays = _pace(begin, end, _MEASURED)
                minutes = (time.perf_counter() - started) / 60
                cuts = statistics.quantiles(delays, n=100)
                return Latency(cuts[49], cuts[98], (tree.cpu() - before) / minutes, tree.peak())
            finally:
                tree.close()

    def _run(self, contender: Contender, label: str, connector: Props, moved: Callable[[], int]) -> Run:
        folder = self.folder / f"{label}-{contender.name.split()[0]}"
        with contender.running(folder, [connector]) as pid:
            tree = ProcessTree(pid)
            try:
                begun = _await(moved, tree, 1)
                middle = _await(moved, tree, self.records)
                _await(moved, tree, 2 * self.records)
                reached = time.perf_counter()
                time.sleep(_SETTLE_SECONDS)
                cpu = tree.cpu()
            finally:
                tree.close()
        rest = 2 * self.records - middle.records
        first = Lap(middle.records - begun.records, middle.at - begun.at, middle.records, middle.cpu)
        return Run(first, Lap(rest, reached - middle.at, rest, cpu - middle.cpu), tree.peak())

    def close(self) -> None:
        """Release the client."""
        self._client.close()

    @contextmanager
    def _java(self, folder: Path, connectors: Sequence[Props]) -> Iterator[int]:
        worker = JavaConnect(folder, self._jars, self._worker_props(), connectors, jvm=DEFAULT_JVM)
        try:
            yield worker.start(wait=False).pid
        finally:
            worker.stop()

    @contextmanager
    def _sluice(self, folder: Path, connectors: Sequence[Props]) -> Iterator[int]:
        folder.mkdir()
        own = {"offset.storage.file.filename": str(folder / "offsets"), "listeners": "http://127.0.0.1:0"}
        files = [_write(folder / "worker.properties", {**self._worker_props(), **own})]
        files += [_write(folder / f"{connector['name']}.properties", connector) for connector in connectors]
        with (folder / "worker.log").open("wb") as log:
            process = subprocess.Popen([_COMMAND, "standalone", *files], stdout=log, stderr=log)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def _worker_props(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, **_STRINGS}

    def _create(self, topic: str, partitions: int) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)

    def _filled(self, topic: str, partitions: int) -> str:
        """The topic, with twice the records in it."""
        if topic in self._admin.list_topics(timeout=30).topics:
            return topic
        self._create(topic, partitions)
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20, "log_level": 0})
        with self.lines.open("rb") as stream:
            for number, line in enumerate(stream):
                while True:
                    try:
                        producer.produce(topic, line[:-1], partition=number * partitions // (2 * self.records))
                        break
                    except BufferError:
                        producer.poll(0.1)
        if producer.flush(60):
            raise SystemExit(f"topic {topic} could not be filled")
        return topic

    def _count(self, topic: str) -> int:
        return int(self._client.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])


@dataclass(frozen=True, slots=True)
class _Sight:
    records: int
    at: float
    cpu: float


def _await(moved: Callable[[], int], tree: ProcessTree, records: int) -> _Sight:
    deadline = time.perf_counter() + _DEADLINE_SECONDS
    while (count := moved()) < records:
        if not tree.runs():
            raise SystemExit("the worker has ended; see its log (--keep)")
        if time.perf_counter() > deadline:
            raise SystemExit(f"only {count} of {records} records came within {_DEADLINE_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    return _Sight(count, time.perf_counter(), tree.cpu())


def _pace(begin: Path, end: Path, count: int) -> list[float]:
    """Append so many lines evenly, read them at the other end, and give the milliseconds each took."""
    delays: list[float] = []
    while not end.exists():
        time.sleep(_LOOK_SECONDS)
    with begin.open("ab", buffering=0) as source, end.open("rb", buffering=0) as sink:
        sink.seek(0, os.SEEK_END)
        started, sent, rest = time.perf_counter(), 0, b""
        while len(delays) < count:
            now = time.perf_counter()
            if now > started + _DEADLINE_SECONDS:
                raise SystemExit(f"only {len(delays)} of {count} lines arrived")
            if sent < count and now >= started + sent / _PER_SECOND:
                source.write(b"%d\n" % time.perf_counter_ns())
                sent += 1
            *lines, rest = (rest + sink.read()).split(b"\n")
            arrived = time.perf_counter_ns()
            delays += [(arrived - int(line)) / 1e6 for line in lines]
            time.sleep(0.001)
    return delays


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _write(file: Path, props: Props) -> Path:
    file.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
    return file


def show(name: str, java: Run, ours: Run) -> None:
    """Both, and how many times less ours takes."""
    print(f"\n{name:<44}{'records/s':>20}{'CPU s per million':>24}{'peak memory':>14}")
    print(f"{'':<44}{'first':>10}{'warm':>10}{'first':>12}{'warm':>12}{'MB':>14}")
    for label, run in (("Kafka Connect", java), ("Sluice", ours)):
        rates = f"{run.first.rate:>10,.0f}{run.warm.rate:>10,.0f}"
        cpu = f"{run.first.cpu_per_million:>12.2f}{run.warm.cpu_per_million:>12.2f}"
        print(f"  {label:<42}{rates}{cpu}{run.peak / 1e6:>14.0f}")
    rates = f"{ours.first.rate / java.first.rate:>9.2f}x{ours.warm.rate / java.warm.rate:>9.2f}x"
    cpu = f"{java.first.cpu_per_million / ours.first.cpu_per_million:>11.2f}x"
    cpu += f"{java.warm.cpu_per_million / ours.warm.cpu_per_million:>11.2f}x"
    print(f"  {'Sluice is better by':<42}{rates}{cpu}{java.peak / ours.peak:>13.1f}x", flush=True)


def show_latency(java: Latency, ours: Latency) -> None:
    """Both."""
    print(f"\n{'file to file, 100 records/s':<44}{'p50 ms':>10}{'p99 ms':>10}{'CPU s a minute':>24}{'MB':>14}")
    for label, latency in (("Kafka Connect", java), ("Sluice", ours)):
        times = f"{latency.median:>10.1f}{latency.p99:>10.1f}"
        print(f"  {label:<42}{times}{latency.cpu:>24.2f}{latency.peak / 1e6:>14.0f}")


def main() -> None:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000, help="how many are moved first, and again warm")
    parser.add_argument("--quick", action="store_true", help="200,000 records")
    parser.add_argument("--only", default="", help="the cases to run: string, json, sink1, sink4, latency")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs, and say where it is")
    options = parser.parse_args()
    records = 200_000 if options.quick else options.records
    only = options.only.replace(",", " ").split()
    folder = Path(tempfile.mkdtemp(prefix="race-"))
    try:
        jars = resolve_java_connect()
        with EmbeddedBroker(_broker_config(folder)).lease() as broker:
            race = Race(folder, broker.bootstrap_servers, records, jars)
            run_cases(race, only)
            race.close()
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _broker_config(folder: Path) -> BrokerConfig:
    # All tasks of a sink are to be there when the partitions are shared out: else the first has moved all before.
    return BrokerConfig(folder=folder / "broker", port=0, properties={"group.initial.rebalance.delay.ms": "1000"})


def run_cases(race: Race, only: Sequence[str]) -> None:
    """Each case that is wanted, Java's worker first."""
    cases: dict[str, tuple[str, Callable[[Contender], Run]]] = {
        "string": ("FileStreamSource, String", lambda one: race.source(one, "strings", {})),
        "json": ("FileStreamSource, JSON with schema, 2 transforms", lambda one: race.source(one, "json", _JSON)),
        "sink1": ("FileStreamSink, 1 task", lambda one: race.sink(one, 1)),
        "sink4": ("FileStreamSink, 4 tasks", lambda one: race.sink(one, 4)),
    }
    for name, (title, run) in cases.items():
        if not only or name in only:
            show(title, *(run(contender) for contender in race.contenders))
    if not only or "latency" in only:
        show_latency(*(race.latency(contender) for contender in race.contenders))


if __name__ == "__main__":
    main()
