"""The proof by kills: whatever ends the files of an object sink, each record is in them once.

``make object-kills KILLS=30 STORE=s3,gcs,azure,local`` kills at each named point and at random moments, in each store;
``make test`` kills at the named points, in a folder.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq
import pytest

from connect.internals.crash import CRASH_POINT_VARIABLE
from equipment.brokers.topics import create_topic, ordered_producer
from equipment.scripts import object_sink_run
from equipment.scripts.object_sink_run import value_of
from equipment.stores.object_targets import ObjectTarget, object_target
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(1800)]

KILLS: Final = int(os.environ.get("SLUICE_OBJECT_KILLS", "0"))
STORES: Final = os.environ.get("SLUICE_OBJECT_STORE", "local").split(",")
RECORDS: Final = 1200
PATIENCE: Final = 120
POINTS: Final = (
    "objects-before-cut:2",
    "objects-after-cut:3",
    "objects-after-file:4",
    "objects-after-files:3",
    "objects-before-commit:2",
)
BY_CLOCK: Final = {
    "rotate.schedule.interval.ms": "40",
    "file.max.bytes": "6000",
    "partitioner.class": "FieldPartitioner",
}
MODES: Final[Mapping[str, Mapping[str, str]]] = {
    "records": {"flush.size": "40", "format.class": "JsonFormat"},
    "fields": {
        "flush.size": "50",
        "format.class": "ParquetFormat",
        "partitioner.class": "FieldPartitioner",
        "partition.field.name": "origin",
    },
    "clock": {**BY_CLOCK, "format.class": "AvroFormat", "partition.field.name": "origin"},
    "wallclock": {
        "rotate.schedule.interval.ms": "60",
        "format.class": "JsonFormat",
        "partitioner.class": "TimeBasedPartitioner",
        "partition.duration.ms": "1000",
        "path.format": "'second'=ss",
        "store.kafka.keys": "true",
        "store.kafka.headers": "true",
        "keys.format.class": "JsonFormat",
        "headers.format.class": "JsonFormat",
    },
    "commits": {"format.output.type": "jsonl", "format.output.fields": "key,value,offset,timestamp,headers"},
    "combined": {
        "combine.partitions": "true",
        "flush.size": "60",
        "format.class": "JsonFormat",
        "store.kafka.keys": "true",
        "keys.format.class": "JsonFormat",
    },
    "combined by clock": {
        **BY_CLOCK,
        "combine.partitions": "true",
        "format.class": "ParquetFormat",
        "partition.field.name": "origin",
    },
}
"""What ends the files."""
WITH_CUTS: Final = ("clock", "wallclock", "commits", "combined", "combined by clock")


@pytest.fixture(params=STORES)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectTarget]:
    with object_target(request.param, tmp_path) as opened:
        yield opened


class Sink:
    """A task that is killed and started again."""

    def __init__(self, target: ObjectTarget, folder: Path, mode: str) -> None:
        self.target = target
        self.offsets = folder / "offsets.json"
        props = {"name": mode, "topics": object_sink_run.TOPIC, "retry.backoff.ms": "10", **target.props, **MODES[mode]}
        self.order: dict[str, Any] = {
            "class": f"connectors.objects.{target.connector}",
            "props": props,
            "records": RECORDS,
            "offsets": str(self.offsets),
        }

    def start(self, crash: str | None = None) -> subprocess.Popen[bytes]:
        """Start the task; it says when it runs."""
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        if crash is not None:
            environ[CRASH_POINT_VARIABLE] = crash
        command = [sys.executable, "-m", "equipment.scripts.object_sink_run", json.dumps(self.order)]
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, crash: str | None = None) -> int:
        """Run to the end, or to a kill, and return how it ended."""
        with self.start(crash) as process:
            _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        return process.returncode

    def kill_after(self, seconds: float) -> int:
        """Kill it some time after it has begun."""
        with self.start() as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
        return process.returncode

    def numbers(self) -> list[int]:
        """The ids of the records in all visible files."""
        return [value["id"] for path, data in self.target.files("").items() for value in _values(path, data)]

    def check(self) -> None:
        """Each record is there once, as it was, and beside it what belongs to it."""
        assert self.run() == 0
        counts = Counter(self.numbers())
        assert [number for number, count in counts.items() if count > 1] == [], "twice"
        assert sorted(counts) == list(range(RECORDS))
        for path, data in self.target.files("").items():
            for value in _values(path, data):
                assert value == value_of(value["id"])
            if ".keys." in path:
                values = self.target.store.read(path.replace(".keys.", "."))
                beside = [json.loads(line) for line in data.splitlines()]
                assert beside == [str(value["id"]) for value in _values("x.json", values)]


def _values(path: str, data: bytes) -> Sequence[Mapping[str, Any]]:
    if ".keys." in path or ".headers." in path or path.startswith("_sluice"):
        return []
    if path.endswith(".parquet"):
        rows: list[Mapping[str, Any]] = pq.read_table(BytesIO(data)).to_pylist()
        return rows
    if path.endswith(".avro"):
        return list(fastavro.reader(BytesIO(data)))  # type: ignore[arg-type]
    return [found.get("value", found) for found in map(json.loads, data.splitlines())]


@pytest.mark.parametrize("mode", MODES if KILLS else ["clock", "combined"])
def test_kills_at_named_points(target: ObjectTarget, tmp_path: Path, mode: str) -> None:
    sink = Sink(target, tmp_path, mode)
    points = POINTS if "clock" in mode and mode != "wallclock" else [point.partition(":")[0] for point in POINTS]
    if mode not in WITH_CUTS:
        points = [point for point in points if "cut" not in point]
    for point in points:
        ended = sink.run(point)
        print(f"{target.kind} {mode}: {point} -> {ended}")
        assert ended == -signal.SIGKILL, point
        assert [number for number, count in Counter(sink.numbers()).items() if count > 1] == [], point
    sink.check()


@pytest.mark.skipif(not KILLS, reason="make object-kills kills at random moments")
@pytest.mark.parametrize("mode", MODES)
def test_kills_at_random(target: ObjectTarget, tmp_path: Path, mode: str) -> None:
    seed = int(os.environ.get("SLUICE_OBJECT_SEED", random.randrange(1 << 30)))
    chance, killed = random.Random(seed), 0
    print(f"SLUICE_OBJECT_SEED={seed}")
    sink = Sink(target, tmp_path, mode)
    for _ in range(-(-KILLS // len(MODES))):
        sink.order["pause"] = 0.01
        killed += sink.kill_after(chance.random() * 0.3) == -signal.SIGKILL
        counts = Counter(sink.numbers())
        assert [number for number, count in counts.items() if count > 1] == []
    del sink.order["pause"]
    sink.check()
    print(f"{target.kind} {mode}: killed {killed} times at random, {RECORDS} records once")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["s3", *(["gcs", "azure"] if KILLS else [])])
def test_kills_between_parts(kind: str, tmp_path: Path) -> None:
    """Nobody sees a file of which only some parts were sent, and what S3 keeps of it is removed."""
    with object_target(kind, tmp_path) as target:
        sink = Sink(target, tmp_path, "records")
        sink.order |= {"width": 16_000, "props": {**sink.order["props"], "flush.size": "400"}}
        for count in (1, 2):
            assert sink.run(f"objects-after-part:{count}") == -signal.SIGKILL
            found = sink.numbers()
            assert len(found) == len(set(found))
            assert len(found) in (0, 400), "whole files alone"
        assert sink.run() == 0
        assert sorted(sink.numbers()) == list(range(RECORDS))
        if kind == "s3":
            assert target.store.uploads("topics") == []


def test_kills_of_a_worker(bootstrap: str, topic: str, tmp_path: Path) -> None:
    """With Kafka, and a worker that is killed with all its processes: records once, and offsets behind them."""
    create_topic(bootstrap, topic, 3)
    producer = ordered_producer(bootstrap)
    worker = StandaloneWorker(tmp_path, bootstrap, offset_flush_interval_ms="700")
    worker.connector(
        "files",
        **{
            "connector.class": "FolderSink",
            "topics": topic,
            "store.url": str(tmp_path / "store"),
            "format.class": "JsonFormat",
            "rotate.schedule.interval.ms": "250",
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "false",
            "consumer.override.auto.offset.reset": "earliest",
        },
    )
    folder, rounds = tmp_path / "store/topics" / topic, 6 if KILLS else 2

    def found() -> Counter[int]:
        lines = (line for file in folder.rglob("*.json") for line in file.read_text().splitlines())
        return Counter(json.loads(line)["id"] for line in lines)

    try:
        for kill in range(rounds):
            for number in range(kill * 500, kill * 500 + 500):
                producer.produce(topic, json.dumps({"id": number}).encode(), partition=number % 3)
            assert producer.flush(30) == 0
            worker.start()
            wait_until("files", lambda expected=kill * 500 + 1: len(found()) >= expected, seconds=60)  # type: ignore[misc]
            worker.kill()
        worker.start()
        wait_until("all records", lambda: len(found()) == rounds * 500, seconds=60)
    finally:
        worker.close()
    assert set(found().values()) == {1}
