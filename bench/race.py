"""Compares Sluice with Apache Kafka Connect on the same broker, files and configurations, in one run.

``python bench/race.py [--records N] [--quick] [--only WORDS]``: a file to a topic (as strings; as JSON with its schema
after two transformations), a topic to a file (one task, four tasks), and the latency from file to file at 100 records
per second. Both workers run in standalone mode with Kafka's default settings, Java's with the JVM settings of Kafka's
scripts; clients and connectors of both use the defaults of the same options.

Each throughput run moves lines of 100 bytes through one worker: 2 * N to warm it up (Java compiles as it runs), then
three laps of N. The median lap counts; the minimum and maximum show the noise. A lap lies between two moments in the
middle of the stream, so it includes neither start nor end, and more lines follow than both producers buffer. CPU
seconds and memory are those of the worker and all its processes, not of the broker or this program.
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
from itertools import pairwise
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from process_tree import ProcessTree

from equipment.workers.java_connect import DEFAULT_JVM, JavaConnect, JavaConnectJars, resolve_java_connect
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

Props = Mapping[str, str]

COMMAND = Path(sys.executable).parent / "sluice"
_LINE_BYTES = 100
_LOOK_SECONDS = 0.01
_DEADLINE_SECONDS = 300.0
WARM_UP_LAPS = 2
LAPS = 3
_TAIL = 500_000
"""More records than a producer buffers, so that a reader never reaches the end of the file during a lap."""
_PER_SECOND = 100
_WARM_UP = 500
_MEASURED = 2000
_MOST_P99 = 100.0
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
class Sight:
    """An observation: the records moved, and the CPU seconds used, up to a moment."""

    records: int
    at: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Lap:
    """The cost of moving some records."""

    rate: float
    """Records per second."""
    cpu: float
    """CPU seconds per million records."""

    @classmethod
    def between(cls, begin: Sight, end: Sight) -> Lap:
        """Return the lap between two observations."""
        records = end.records - begin.records
        return cls(records / (end.at - begin.at), (end.cpu - begin.cpu) / records * 1e6)


@dataclass(frozen=True, slots=True)
class Run:
    """The run of one worker through one case."""

    start: float
    """Seconds from the start of the process to the first record."""
    cold: float
    """CPU seconds until a million records have been moved, including the start."""
    laps: Sequence[Lap]
    peak: int

    @property
    def rate(self) -> float:
        """Records per second, after warm-up."""
        return statistics.median(lap.rate for lap in self.laps)

    @property
    def cpu(self) -> float:
        """CPU seconds per million records, after warm-up."""
        return statistics.median(lap.cpu for lap in self.laps)


@dataclass(frozen=True, slots=True)
class Aim:
    """The target: how many times better Sluice should be, in records per CPU second and in memory."""

    cpu: float = 2.0
    memory: float = 3.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from a line in one file to the same line in the other."""

    median: float
    p99: float
    cpu: float
    """CPU seconds per minute at this rate."""
    peak: int


@dataclass(frozen=True, slots=True)
class Contender:
    """One of the two workers: how it is started in a folder with these connectors. Yields its process."""

    name: str
    running: Callable[[Path, Sequence[Props]], AbstractContextManager[int]]


class Race:
    """The broker, files and topics shared by both workers."""

    def __init__(self, folder: Path, bootstrap: str, records: int, jars: JavaConnectJars) -> None:
        self.folder, self.bootstrap, self.records, self._jars = folder, bootstrap, records, jars
        self.total = (WARM_UP_LAPS + LAPS) * records + _TAIL
        self.contenders = (Contender("Kafka Connect", self._java), Contender("Sluice", self._sluice))
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._client = Consumer({"bootstrap.servers": bootstrap, "group.id": "race", "log_level": 0})

    @property
    def lines(self) -> Path:
        """Return a file of all the records."""
        file = self.folder / "lines.txt"
        if not file.exists():
            with file.open("w") as stream:
                stream.writelines(f"{number:010d}{'x' * (_LINE_BYTES - 11)}\n" for number in range(self.total))
        return file

    def source(self, contender: Contender, label: str, props: Props) -> Run:
        """Measure a file to a topic of one partition."""
        topic = f"{label}-{contender.name.split()[0]}"
        self._create(topic, 1)
        connector = {"name": label, "connector.class": "FileStreamSource", "file": str(self.lines), "topic": topic}
        try:
            return self._run(contender, label, {**connector, **props}, lambda: self._count(topic))
        finally:
            self._admin.delete_topics([topic])[topic].result(30)

    def sink(self, contender: Contender, tasks: int) -> Run:
        """Measure a topic to one file."""
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
        """Measure the latency from file to file."""
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
        started = time.perf_counter()
        with contender.running(folder, [connector]) as pid:
            tree = ProcessTree(pid)
            try:
                first = await_records(moved, tree, 1)
                marks = range(self.records, self.total - _TAIL + 1, self.records)
                sights = [await_records(moved, tree, mark) for mark in marks]
            finally:
                tree.close()
        laps = [Lap.between(*pair) for pair in pairwise(sights[WARM_UP_LAPS - 1 :])]
        return Run(first.at - started, sights[0].cpu / sights[0].records * 1e6, laps, tree.peak())

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
        files = [write_props(folder / "worker.properties", {**self._worker_props(), **own})]
        files += [write_props(folder / f"{connector['name']}.properties", connector) for connector in connectors]
        with (folder / "worker.log").open("wb") as log:
            process = subprocess.Popen([COMMAND, "standalone", *files], stdout=log, stderr=log)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def _worker_props(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, "offset.flush.interval.ms": "10000", **_STRINGS}

    def _create(self, topic: str, partitions: int) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)

    def _filled(self, topic: str, partitions: int) -> str:
        """Return the topic, filled with all the records."""
        if topic in self._admin.list_topics(timeout=30).topics:
            return topic
        self._create(topic, partitions)
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20, "log_level": 0})
        with self.lines.open("rb") as stream:
            for number, line in enumerate(stream):
                while True:
                    try:
                        producer.produce(topic, line[:-1], partition=number // 100 % partitions)
                        break
                    except BufferError:
                        producer.poll(0.1)
        if producer.flush(60):
            raise SystemExit(f"topic {topic} could not be filled")
        return topic

    def _count(self, topic: str) -> int:
        try:
            return int(self._client.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])
        except KafkaException as error:
            if error.args[0].code() == KafkaError._UNKNOWN_PARTITION:
                return 0  # the client does not know the new topic yet
            raise


def await_records(moved: Callable[[], int], tree: ProcessTree, records: int) -> Sight:
    deadline = time.perf_counter() + _DEADLINE_SECONDS
    while (count := moved()) < records:
        if not tree.runs():
            raise SystemExit("the worker has ended; see its log (--keep)")
        if time.perf_counter() > deadline:
            raise SystemExit(f"only {count} of {records} records came within {_DEADLINE_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    return Sight(count, time.perf_counter(), tree.cpu())


def _pace(begin: Path, end: Path, count: int) -> list[float]:
    """Append lines at a steady pace and read them at the other end. Returns the milliseconds that each took."""
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


def write_props(file: Path, props: Props) -> Path:
    file.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
    return file


def show(name: str, aim: Aim, java: Run, ours: Run) -> None:
    """Print both results, and how many times better ours is."""
    print(f"\n{name:<48}{'start':>8}{'records/s':>12}{'CPU s per million records':>36}{'peak':>10}")
    print(f"{'':<48}{'s':>8}{'warm':>12}{'cold':>10}{'warm':>8}{'least..most':>18}{'MB':>10}")
    for label, run in (("Kafka Connect", java), ("Sluice", ours)):
        cpus = [lap.cpu for lap in run.laps]
        spread = f"{min(cpus):.2f}..{max(cpus):.2f}"
        print(
            f"  {label:<46}{run.start:>8.1f}{run.rate:>12,.0f}{run.cold:>10.2f}{run.cpu:>8.2f}{spread:>18}"
            f"{run.peak / 1e6:>10.0f}"
        )
    start, rate, cold = java.start / ours.start, ours.rate / java.rate, java.cold / ours.cold
    cpu, memory = java.cpu / ours.cpu, java.peak / ours.peak
    print(f"  {'Sluice is better by':<46}{start:>7.1f}x{rate:>11.2f}x{cold:>9.2f}x{cpu:>7.2f}x{'':>18}{memory:>9.1f}x")
    print(f"  {'aim':<46}{'':>30}{aim.cpu:>7.2f}x{_verdict(cpu >= aim.cpu):>18}{aim.memory:>9.1f}x", end="")
    print(f"  {_verdict(memory >= aim.memory)}", flush=True)


def show_latency(java: Latency, ours: Latency) -> None:
    """Print both latencies."""
    print(
        f"\n{f'file to file, {_PER_SECOND} records/s':<48}{'p50 ms':>10}{'p99 ms':>10}{'CPU s a minute':>24}{'MB':>10}"
    )
    for label, latency in (("Kafka Connect", java), ("Sluice", ours)):
        times = f"{latency.median:>10.1f}{latency.p99:>10.1f}"
        print(f"  {label:<46}{times}{latency.cpu:>24.2f}{latency.peak / 1e6:>10.0f}")
    print(f"  {'aim':<46}{'':>10}{f'< {_MOST_P99:.0f}':>10}  {_verdict(ours.p99 < _MOST_P99)}", flush=True)


def show_load() -> None:
    """Print how busy the machine is: other load distorts times and, to a lesser degree, CPU seconds."""
    print(f"\n{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}", flush=True)


def _verdict(reached: bool) -> str:
    return "reached" if reached else "NOT reached"


def main() -> None:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000, help="how many are moved in a lap")
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
            show_load()
            run_cases(race, only)
            show_load()
            race.close()
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _broker_config(folder: Path) -> BrokerConfig:
    # All tasks of a sink must be there when partitions are assigned; otherwise the first has moved everything before.
    return BrokerConfig(folder=folder / "broker", port=0, properties={"group.initial.rebalance.delay.ms": "1000"})


def run_cases(race: Race, only: Sequence[str]) -> None:
    """Run each requested case, Java's worker first."""
    cases: dict[str, tuple[str, Aim, Callable[[Contender], Run]]] = {
        "string": ("FileStreamSource, String", Aim(), lambda one: race.source(one, "strings", {})),
        "json": (
            "FileStreamSource, JSON with schema, 2 transforms",
            Aim(cpu=3.0),
            lambda one: race.source(one, "json", _JSON),
        ),
        "sink1": ("FileStreamSink, 1 task", Aim(), lambda one: race.sink(one, 1)),
        "sink4": ("FileStreamSink, 4 tasks", Aim(), lambda one: race.sink(one, 4)),
    }
    for name, (title, aim, run) in cases.items():
        if not only or name in only:
            show(title, aim, *(run(contender) for contender in race.contenders))
    if not only or "latency" in only:
        show_latency(*(race.latency(contender) for contender in race.contenders))


if __name__ == "__main__":
    main()
