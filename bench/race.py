"""Compares Sluice with Apache Kafka Connect on the same broker, files and configurations, in one run.

``python bench/race.py [--records N] [--quick] [--only WORDS] [--partitions NUMBERS]``: a file to a topic (lines as they
are, without keys; keyed by the line, with four transformations; as JSON with its schema, with two), a topic to a file
(without keys, with keys, by four tasks), with 1, 4 and 12 partitions; and the latency from file to file at 100 records
per second. On the topics that sinks read, each record is in another partition than the one before. Both workers run in
standalone mode with Kafka's default settings, Java's with the JVM settings of Kafka's scripts; clients and connectors
of both use the defaults of the same options.

Each throughput run moves lines of 100 bytes through one worker, in laps of N. A worker is warm when two laps in a row
cost the same CPU within 5 %, or after twelve laps; then three laps follow, of which the median counts, and the least
and most show the noise. A lap lies between two moments in the middle of the stream, so it includes neither start nor
end, and more lines follow than both producers buffer. CPU seconds and memory are those of the worker and all its
processes, not of the broker or this program.

Beside each case stands its floor: the CPU of confluent-kafka alone, one process that sends or reads as many records of
the same size to or from as many partitions (bench/raw_client.py). At the end all cases follow as rows of Markdown.
"""

from __future__ import annotations

import argparse
import json
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
from itertools import count
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]
from laps import Aim, Comparison, Floor, Run, measured, records_of, show, show_load, show_rows
from own_broker import own_broker
from process_tree import ProcessTree

from equipment.workers.java_connect import DEFAULT_JVM, JavaConnect, JavaConnectJars, resolve_java_connect
from worker.embedded.broker.server import BrokerConfig

Props = Mapping[str, str]

COMMAND = Path(sys.executable).parent / "sluice"
_LINE_BYTES = 100
_KEY_BYTES = 10
_LOOK_SECONDS = 0.01
_DEADLINE_SECONDS = 300.0
_TAIL = 500_000
"""More records than a producer buffers, so that a reader never reaches the end of the file during a lap."""
_PER_SECOND = 100
_WARM_UP = 500
_MEASURED = 2000
_MOST_P99 = 100.0
_TRANSFORMS = "org.apache.kafka.connect.transforms"
_STRINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
_KEYED = {
    "transforms": "hoist,key,line,value",
    "transforms.hoist.type": f"{_TRANSFORMS}.HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.key.type": f"{_TRANSFORMS}.ValueToKey",
    "transforms.key.fields": "line",
    "transforms.line.type": f"{_TRANSFORMS}.ExtractField$Key",
    "transforms.line.field": "line",
    "transforms.value.type": f"{_TRANSFORMS}.ExtractField$Value",
    "transforms.value.field": "line",
}
_JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "transforms": "hoist,origin",
    "transforms.hoist.type": f"{_TRANSFORMS}.HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.origin.type": f"{_TRANSFORMS}.InsertField$Value",
    "transforms.origin.static.field": "origin",
    "transforms.origin.static.value": "race",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is written to a topic."""

    title: str
    partitions: int
    props: Props


@dataclass(frozen=True, slots=True)
class Sink:
    """A topic that is written to a file."""

    title: str
    partitions: int
    tasks: int = 1
    keyed: bool = False


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

    def __init__(self, folder: Path, bootstrap: str, lap: int, jars: JavaConnectJars) -> None:
        self._folder, self._bootstrap, self._lap, self._jars = folder, bootstrap, lap, jars
        self.contenders = (Contender("Kafka Connect", self._java), Contender("Sluice", self._sluice))
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._floors: dict[tuple[str, int, bool], Floor] = {}
        self._numbers = count()
        self._lines = folder / "lines.txt"
        with self._lines.open("w") as stream:
            lines = range(records_of(lap, _TAIL))
            stream.writelines(f"{number:0{_KEY_BYTES}d}{'x' * (_LINE_BYTES - _KEY_BYTES - 1)}\n" for number in lines)

    def source(self, case: Source) -> Comparison:
        """Compare both workers as they write a file to a topic."""
        runs = [self._source_run(contender, case) for contender in self.contenders]
        floor = self._floor("produce", case.partitions, keyed=case.props is _KEYED)
        return Comparison(case.title, Aim(), *runs, floor)

    def sink(self, case: Sink) -> Comparison:
        """Compare both workers as they write a topic to a file."""
        topic = self._filled(case)
        try:
            runs = [self._sink_run(contender, case, topic) for contender in self.contenders]
            floor = self._floor("consume", case.partitions, keyed=case.keyed, topic=topic)
        finally:
            self._delete(topic)
        return Comparison(case.title, Aim(), *runs, floor)

    def latency(self, contender: Contender) -> Latency:
        """Measure the latency from file to file."""
        label = contender.name.split()[0]
        begin, end = self._folder / f"{label}.begin", self._folder / f"{label}.end"
        topic = self._create(1)
        begin.touch()
        connectors = [
            {"name": f"in-{label}", "connector.class": "FileStreamSource", "file": str(begin), "topic": topic},
            {"name": f"out-{label}", "connector.class": "FileStreamSink", "file": str(end), "topics": topic},
        ]
        with contender.running(self._folder / f"latency-{label}", connectors) as pid:
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

    def _source_run(self, contender: Contender, case: Source) -> Run:
        topic = self._create(case.partitions)
        connector = {"connector.class": "FileStreamSource", "file": str(self._lines), "topic": topic, **case.props}
        try:
            return self._run(contender, topic, connector, lambda: self._count(topic, case.partitions))
        finally:
            self._delete(topic)

    def _sink_run(self, contender: Contender, case: Sink, topic: str) -> Run:
        label = f"{contender.name.split()[0]}-{topic}"
        out = self._folder / f"{label}.out"
        connector = {"connector.class": "FileStreamSink", "file": str(out), "topics": topic}
        try:
            return self._run(
                contender, label, {**connector, "tasks.max": str(case.tasks)}, lambda: _size(out) // _LINE_BYTES
            )
        finally:
            out.unlink(missing_ok=True)

    def _run(self, contender: Contender, label: str, connector: Props, moved: Callable[[], int]) -> Run:
        started = time.perf_counter()
        with contender.running(self._folder / label, [{"name": label, **connector}]) as pid:
            tree = ProcessTree(pid)
            try:
                return measured(moved, tree, self._lap, started)
            finally:
                tree.close()

    def _floor(self, verb: str, partitions: int, *, keyed: bool, topic: str = "") -> Floor:
        """Return what the bare client takes; it is measured once for cases that are alike."""
        if (verb, partitions, keyed) not in self._floors:
            name = topic or self._create(partitions)
            file = self._lines if verb == "produce" else self._folder / "bare.out"
            program = (sys.executable, str(Path(__file__).with_name("raw_client.py")))
            command = (*program, verb, self._bootstrap, name, str(file), *(["keyed"] if keyed else []))
            answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            moved = answer["records"]
            self._floors[verb, partitions, keyed] = Floor(
                moved / answer["seconds"], (answer["cpu"] - answer["start_cpu"]) / moved * 1e6
            )
            if not topic:
                self._delete(name)
        return self._floors[verb, partitions, keyed]

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
        return {"bootstrap.servers": self._bootstrap, "offset.flush.interval.ms": "10000", **_STRINGS}

    def _create(self, partitions: int) -> str:
        """Create a topic, and return its name."""
        topic = f"race-{next(self._numbers)}"
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
        return topic

    def _delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(30)

    def _filled(self, case: Sink) -> str:
        """Return a topic filled with all the lines, each in another partition than the one before."""
        topic = self._create(case.partitions)
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20, "log_level": 0})
        with self._lines.open("rb") as stream:
            for number, line in enumerate(stream):
                key = line[:_KEY_BYTES] if case.keyed else None
                while True:
                    try:
                        producer.produce(topic, line[:-1], key, partition=number % case.partitions)
                        break
                    except BufferError:
                        producer.poll(0.1)
        if producer.flush(60):
            raise SystemExit(f"topic {topic} could not be filled")
        return topic

    def _count(self, topic: str, partitions: int) -> int:
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
        try:
            return sum(int(future.result(30).offset) for future in self._admin.list_offsets(asked).values())
        except KafkaException:
            return 0  # so new that it has no leader yet


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
    """Write a properties file."""
    file.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
    return file


def show_latency(java: Latency, ours: Latency) -> None:
    """Print both latencies."""
    print(
        f"\n{f'file to file, {_PER_SECOND} records/s':<46}{'p50 ms':>10}{'p99 ms':>10}{'CPU s a minute':>24}{'MB':>10}"
    )
    for label, latency in (("Kafka Connect", java), ("Sluice", ours)):
        times = f"{latency.median:>10.1f}{latency.p99:>10.1f}"
        print(f"  {label:<44}{times}{latency.cpu:>24.2f}{latency.peak / 1e6:>10.0f}")
    verdict = "reached" if ours.p99 < _MOST_P99 else "NOT reached"
    print(f"  {'aim':<44}{'':>10}{f'< {_MOST_P99:.0f}':>10}  {verdict}", flush=True)


def cases_of(only: Sequence[str], numbers: Sequence[int], *, quick: bool) -> list[Source | Sink]:
    """Return the requested cases. With ``quick``, only cases of the plain ones differ in their partitions."""
    some = [number for number in numbers if number > 1][:1] or list(numbers[:1])
    some = some if quick else [number for number in numbers if number > 1] or list(numbers)
    cases: dict[str, list[Source | Sink]] = {
        "string": [Source(_titled("file source, lines", n), n, {}) for n in numbers],
        "keyed": [Source(_titled("file source, keyed", n), n, _KEYED) for n in some],
        "json": [Source(_titled("file source, JSON with schema", n), n, _JSON) for n in some],
        "sink": [Sink(_titled("file sink", n), n) for n in numbers],
        "sinkkeyed": [Sink(_titled("file sink, keyed", n), n, keyed=True) for n in some],
        "sinktasks": [Sink(_titled("file sink, 4 tasks", n), n, tasks=4) for n in some],
    }
    return [case for name, found in cases.items() if not only or name in only for case in found]


def _titled(words: str, number: int) -> str:
    return f"{words}, {number} partition{'s' if number > 1 else ''}"


def main() -> None:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=500_000, help="how many are moved in a lap")
    parser.add_argument("--quick", action="store_true", help="200,000 records, 1 and 4 partitions")
    parser.add_argument("--partitions", default="", help="how many the topics have; 1,4,12 if left out")
    parser.add_argument("--only", default="", help="string, keyed, json, sink, sinkkeyed, sinktasks, latency")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs, and say where it is")
    options = parser.parse_args()
    only = options.only.replace(",", " ").split()
    numbers = [int(number) for number in (options.partitions or ("1,4" if options.quick else "1,4,12")).split(",")]
    folder = Path(tempfile.mkdtemp(prefix="race-"))
    try:
        jars = resolve_java_connect()
        with own_broker(_broker_config(folder)) as broker:
            race = Race(folder, broker.bootstrap_servers, 200_000 if options.quick else options.records, jars)
            show_load()
            _run_cases(race, cases_of(only, numbers, quick=options.quick))
            if not only or "latency" in only:
                show_latency(*(race.latency(contender) for contender in race.contenders))
            show_load()
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _broker_config(folder: Path) -> BrokerConfig:
    # All tasks of a sink must be there when partitions are assigned; otherwise the first has moved everything before.
    return BrokerConfig(folder=folder / "broker", port=0, properties={"group.initial.rebalance.delay.ms": "1000"})


def _run_cases(race: Race, cases: Sequence[Source | Sink]) -> None:
    """Run the cases, in each Java's worker first, and print them."""
    found: list[Comparison] = []
    for case in cases:
        found.append(race.source(case) if isinstance(case, Source) else race.sink(case))
        show(found[-1])
    if found:
        show_rows(found)


if __name__ == "__main__":
    main()
