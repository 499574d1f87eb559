"""Measures how fast standalone mode moves records, compared with the raw client doing the same, in one run.

``python bench/standalone.py [RECORDS]``: lines of 100 bytes from a file to a topic (as strings, and as JSON with their
schema), from a topic to a file, and from a topic to Parquet by Spark. CPU seconds are those of the process that moves
the records, including its start. The ratio is the rate relative to that of the raw client.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from own_broker import own_broker

from worker.embedded.broker.server import BrokerConfig

_BIN = Path(sys.executable).parent
_TASK = re.compile(r"^\[(\S+ \S+)\] .*process (\d+) runs bench-\S*\|task-0", re.MULTILINE)
_END = re.compile(r"^\[(\S+ \S+)\] .*All connectors are drained", re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK")
_PARTITIONS = 1


@dataclass(frozen=True)
class Measured:
    """The measurement of one way to move records: how many, in what time, at what cost."""

    name: str
    records: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.seconds


class CpuMeter:
    """Adds up the CPU seconds of a process and its descendants while they live."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, pid: int) -> None:
        """Start sampling a process, twenty times per second."""

        def look() -> None:
            while not self._stopped.wait(0.05):
                self._look(pid)

        self._thread = threading.Thread(target=look)
        self._thread.start()

    def stop(self) -> float:
        """Stop sampling and return the CPU seconds seen."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        return sum(self._seen.values())

    def _look(self, root: int) -> None:
        stats: dict[int, tuple[int, float]] = {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = file.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            stats[int(file.parent.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS
        below = {root}
        while more := {pid for pid, (parent, _) in stats.items() if parent in below} - below:
            below |= more
        self._seen |= {pid: stats[pid][1] for pid in below if pid in stats}


class Bench:
    """The broker, folder and file shared by all measurements."""

    def __init__(self, folder: Path, bootstrap: str, records: int) -> None:
        self.folder, self.bootstrap, self.records = folder, bootstrap, records
        self.lines = folder / "lines.txt"
        with self.lines.open("w") as stream:
            stream.writelines(f"{number:010d}{'x' * 89}\n" for number in range(records))

    def raw(self, verb: str, topic: str, file: Path) -> Measured:
        """Measure the raw client."""
        command = [
            sys.executable,
            str(Path(__file__).with_name("raw_client.py")),
            verb,
            self.bootstrap,
            topic,
            str(file),
        ]
        answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return Measured(f"raw client: {verb}", answer["records"], answer["seconds"], answer["cpu"])

    def sluice(
        self, name: str, connector: Mapping[str, str], worker: Mapping[str, str], records: int | None = None
    ) -> Measured:
        """Measure one connector, from the start of its task until it is drained."""
        label = re.sub(r"\W+", "-", name)
        worker_file = self._write(
            f"{label}.worker",
            {
                "bootstrap.servers": self.bootstrap,
                "key.converter": "StringConverter",
                "offset.storage.file.filename": str(self.folder / f"{label}.offsets"),
                "listeners": "http://127.0.0.1:0",
                **worker,
            },
        )
        connector_file = self._write(label, {"name": f"bench-{label}", "run.until": "drained", **connector})
        log = self.folder / f"{label}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen([_BIN / "sluice", "standalone", worker_file, connector_file], stderr=stream)
            meter = CpuMeter()
            meter.watch(process.pid)
            status = process.wait()
        cpu, text = meter.stop(), log.read_text()
        if status != 0:
            raise SystemExit(f"{name} ended with status {status}:\n{text}")
        started, ended = _time(_TASK.findall(text)[0][0]), _time(_END.findall(text)[0])
        return Measured(name, records or self.records, (ended - started).total_seconds(), cpu)

    def _write(self, name: str, props: Mapping[str, str]) -> Path:
        file = self.folder / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
        return file


def main() -> None:
    """Measure and print."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with own_broker(BrokerConfig(folder=folder / "broker", port=0)) as broker:
            measure(Bench(folder, broker.bootstrap_servers, records))


def measure(bench: Bench) -> None:
    """Measure every path next to its ceiling."""
    strings, with_schemas = {"value.converter": "StringConverter"}, {"value.converter": "JsonConverter"}
    source = {"connector.class": "FileStreamSource", "file": str(bench.lines)}
    bench.raw("produce", "warm-up", bench.lines)
    ceiling = bench.raw("produce", "raw", bench.lines)
    show_title("file to topic")
    show(ceiling, ceiling)
    show(bench.sluice("FileStreamSource, String", {**source, "topic": "strings"}, strings), ceiling)
    show(bench.sluice("FileStreamSource, JSON with schema", {**source, "topic": "json"}, with_schemas), ceiling)
    show_title("topic to file")
    ceiling = bench.raw("consume", "strings", bench.folder / "raw.out")
    show(ceiling, ceiling)
    sink = {"connector.class": "FileStreamSink", "file": str(bench.folder / "out.txt")}
    show(bench.sluice("FileStreamSink, String", {**sink, "topics": "strings"}, strings), ceiling)
    show(bench.sluice("FileStreamSink, JSON with schema", {**sink, "topics": "json"}, with_schemas), ceiling)
    show_title("topic to Parquet, the start of Spark included")
    spark = {"connector.class": "SparkSink", "store.url": str(bench.folder / "store"), "spark.master": "local[2]"}
    show(ceiling, ceiling)
    show(bench.sluice("SparkSink, String", {**spark, "topics": "strings"}, strings), ceiling)


def show_title(title: str) -> None:
    """Print the heading of a group of measurements."""
    print(f"\n{title:<44}{'records/s':>12}{'seconds':>9}{'CPU s':>8}{'of ceiling':>12}", flush=True)


def show(measured: Measured, ceiling: Measured, start: Measured | None = None) -> None:
    """Print one measurement and its share of the ceiling; given a run of few records, also without start-up."""
    share = measured.rate / ceiling.rate
    line = f"{measured.name:<44}{measured.rate:>12,.0f}{measured.seconds:>9.2f}{measured.cpu:>8.2f}{share:>11.0%}"
    if start is not None:
        records = measured.records - start.records
        each = Measured(measured.name, records, measured.seconds - start.seconds, measured.cpu - start.cpu)
        line += f"   without start: {each.cpu / records * 1e6:.2f} us CPU a record, {each.rate / ceiling.rate:.0%}"
    print(line, flush=True)


def _time(text: str) -> dt.datetime:
    return dt.datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=dt.UTC)


if __name__ == "__main__":
    main()
