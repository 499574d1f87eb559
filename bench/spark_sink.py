"""Compares the Spark sink with other ways to load a topic into Parquet and Iceberg, in one run.

``python bench/spark_sink.py [--records N] [--rounds N] [--minutes N] [--only WORDS] [--master M] [--quick]``: records
like the flights, of about 130 bytes, in 4 partitions, as JSON, as JSON with its schema and as Avro. Each contender is a
process of its own:

- ``sluice``: Sluice's sink to Parquet, exactly once; ``sluice-iceberg`` the same to an Iceberg table
- ``streaming``: a hand-written Structured Streaming job with availableNow, to Parquet
- ``raw``: Spark's batch reader writing the bytes as they are: the ceiling of all that Spark can do here
- ``python``: one Python process with confluent-kafka and pyarrow, which keeps no offsets
- ``connect``: the Apache Iceberg sink on Apache Kafka Connect, two tasks, to an Iceberg table (no Avro: the converter
  for it is not on Maven Central)

A lap loads all records. The first one of a process is cold, the best of the others warm; ``start`` is the time until a
process is ready for its first lap. A lap of ``connect`` begins when its connector is created and ends with the commit
(every 2 s) that holds the last record. CPU seconds and memory (proportional set size) are those of the contender and
all its processes, not the broker's. All files are Snappy. A contender that has not ended after so many minutes is out.
*of raw* compares the best warm lap with that of the raw bytes, once by the clock and once by CPU seconds, which other
load changes less.

``--quick`` is for ten minutes or so: 1,000,000 records as JSON and as Avro, and the contenders that run on Spark.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Timer
from typing import Any

# When this file runs as a script, bench/converters.py would hide the package of the same name.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != _HERE]
sys.path += [str(_HERE), str(_HERE.parent / "tests")]

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from own_broker import own_broker
from process_tree import ProcessTree
from spark_contenders import AVRO_SCHEMA, CONTENDERS, Orders

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from equipment.fakes.schema_registry import MemoryRegistry, serving
from equipment.workers.java_connect import DEFAULT_JVM, JavaConnect, JavaConnectJars, resolve_java_connect
from worker.embedded.broker.server import BrokerConfig

PARTITIONS = 4
KINDS = ("json", "json+schema", "avro")
ORDER = ("raw", "sluice", "streaming", "python", "sluice-iceberg", "connect")
_TASKS = "2"
_COMMIT_MS = "2000"
_LOOK_SECONDS = 0.1
_QUICK = {"records": 1_000_000, "rounds": 3, "minutes": 2, "only": "json avro raw sluice streaming sluice-iceberg"}
_FIELDS = [
    {"field": "id", "type": "int64", "optional": False},
    {"field": "carrier", "type": "string", "optional": False},
    {"field": "origin", "type": "string", "optional": False},
    {"field": "dest", "type": "string", "optional": False},
    {"field": "tail", "type": "string", "optional": True},
    {"field": "distance", "type": "int64", "optional": False},
    {"field": "delay", "type": "double", "optional": True},
    {"field": "late", "type": "boolean", "optional": False},
]
_SCHEMA = {"type": "struct", "optional": False, "fields": _FIELDS}
_ENVELOPE = b'{"schema":' + json.dumps(_SCHEMA, separators=(",", ":")).encode() + b',"payload":%b}'


class NotHereError(Exception):
    """A contender cannot run here; the message says why."""


@dataclass(slots=True)
class Result:
    """The result of a contender."""

    start: float = 0.0
    laps: list[tuple[float, float]] = field(default_factory=list)
    """The seconds and CPU seconds of each lap, the cold one first."""
    peak: int = 0

    @property
    def warm(self) -> tuple[float, float]:
        """The best lap except the first."""
        laps = self.laps[1:] or self.laps
        return min(seconds for seconds, _ in laps), min(cpu for _, cpu in laps)


# -- records -------------------------------------------------------------------------------------------------


def flight(number: int) -> dict[str, Any]:
    """Return a record."""
    return {
        "id": number,
        "carrier": ("UA", "AA", "B6")[number % 3],
        "origin": ("EWR", "JFK", "LGA")[number % 3],
        "dest": "SFO",
        "tail": f"N{number % 5000:05d}",
        "distance": number % 3000,
        "delay": number % 97 / 2,
        "late": number % 3 > 0,
    }


def fill(bootstrap: str, topic: str, kind: str, records: int, schema_id: int) -> None:
    """Create a topic with that many records."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "compression.type": "lz4"})
    for number, value in enumerate(values(kind, records, schema_id)):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit(f"topic {topic} could not be filled")


def values(kind: str, records: int, schema_id: int) -> Iterator[bytes]:
    """Return the values of a topic."""
    if kind == "avro":
        schema = fastavro.parse_schema(AVRO_SCHEMA)
        head = b"\0" + schema_id.to_bytes(4, "big")
        for number in range(records):
            stream = io.BytesIO()
            fastavro.schemaless_writer(stream, schema, flight(number))
            yield head + stream.getvalue()
        return
    for number in range(records):
        text = json.dumps(flight(number), separators=(",", ":")).encode()
        yield _ENVELOPE % text if kind == "json+schema" else text


# -- contenders ----------------------------------------------------------------------------------------------


def race(orders: Orders, log: Path, seconds: float) -> Result:
    """Run a contender from ``spark_contenders.py`` within a time limit."""
    command = [sys.executable, str(_HERE / "spark_contenders.py"), json.dumps(asdict(orders))]
    result = Result()
    started = time.perf_counter()
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True) as process,
    ):
        tree = ProcessTree(process.pid)
        limit = Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        try:
            assert process.stdout is not None
            began = (0.0, 0.0)
            for line in process.stdout:
                now = (time.perf_counter(), tree.cpu())
                match line.strip():
                    case "ready":
                        result.start = now[0] - started
                    case "begin":
                        began = now
                    case "end":
                        result.laps.append((now[0] - began[0], now[1] - began[1]))
        finally:
            limit.cancel()
            tree.close()
    result.peak = tree.peak()
    if process.returncode == -signal.SIGKILL:
        raise NotHereError(f"it was not done within {seconds:g} s (--minutes), or was killed")
    if process.returncode:
        raise NotHereError(_last_line(log))
    return result


def race_connect(orders: Orders, folder: Path, seconds: float) -> Result:
    """Run the Iceberg sink on Kafka Connect within a time limit; each lap has its own connector and table."""
    java = resolve_java_connect()
    plugin = resolve_jars(read_lock(_HERE / "iceberg_connect.jars"), home=sluice_home())
    jars = JavaConnectJars(java.java, java.class_path, plugin)
    props = {"bootstrap.servers": orders.bootstrap, "offset.flush.interval.ms": "1000"}
    props |= {"connector.client.config.override.policy": "All"}
    started = time.perf_counter()
    deadline = started + seconds
    worker = JavaConnect(folder, jars, props, jvm=DEFAULT_JVM).start()
    result = Result(start=time.perf_counter() - started)
    tree = ProcessTree(worker.pid)
    try:
        for number in range(orders.laps):
            began = (time.perf_counter(), tree.cpu())
            name = f"lap-{orders.topic}-{number}"
            worker.create(name, iceberg_sink(orders, folder / "warehouse", name))
            _await_rows(folder / "warehouse" / "lake" / name, orders.total, worker, name, deadline)
            result.laps.append((time.perf_counter() - began[0], tree.cpu() - began[1]))
            worker.delete(name)
    finally:
        tree.close()
        worker.close()
    result.peak = tree.peak()
    return result


def iceberg_sink(orders: Orders, warehouse: Path, name: str) -> dict[str, str]:
    """Return the configuration of the Iceberg sink."""
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": _TASKS,
        "topics": orders.topic,
        "consumer.override.auto.offset.reset": "earliest",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": str(orders.kind == "json+schema").lower(),
        "iceberg.tables": f"lake.{name}",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.auto-create-props.write.parquet.compression-codec": "snappy",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": warehouse.as_uri(),
        "iceberg.control.topic": "control-iceberg",
        "iceberg.control.group-id": f"control-{name}",
        "iceberg.control.commit.interval-ms": _COMMIT_MS,
        "iceberg.control.commit.timeout-ms": "10000",
    }


def _await_rows(table: Path, rows: int, worker: JavaConnect, name: str, deadline: float) -> None:
    while (found := _iceberg_rows(table)) < rows:
        if time.perf_counter() > deadline:
            raise NotHereError(f"only {found} of {rows} rows were committed in time (--minutes)")
        if failed := [task for task in worker.status(name).get("tasks", []) if task["state"] == "FAILED"]:
            raise NotHereError(str(failed[0].get("trace", "")).split("\n")[0])
        time.sleep(_LOOK_SECONDS)
    if found > rows:
        raise NotHereError(f"it wrote {found} rows of {rows} records")


def _iceberg_rows(table: Path) -> int:
    """Return the number of rows in the newest snapshot, according to the table's own metadata."""
    versions = sorted(table.glob("metadata/v*.metadata.json"), key=lambda file: int(file.name[1:].split(".")[0]))
    if not versions:
        return 0
    try:
        metadata = json.loads(versions[-1].read_text())
    except ValueError:
        return 0  # being written
    current = metadata.get("current-snapshot-id")
    snapshots = [one for one in metadata.get("snapshots", []) if one["snapshot-id"] == current]
    return int(snapshots[0]["summary"].get("total-records", 0)) if snapshots else 0


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it has ended without a word"


# -- the run -------------------------------------------------------------------------------------------------


def rivals(kind: str) -> Sequence[str]:
    """Return the contenders for a kind of records; the raw bytes of each kind are a ceiling of their own."""
    return [name for name in ORDER if not (kind == "avro" and name == "connect")]


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Fill the topics and run the contenders."""
    only = arguments.only.replace(",", " ").split()
    kinds = [kind for kind in KINDS if kind in only or not set(only) & set(KINDS)]
    names = [name for name in ORDER if name in only or not set(only) & set(ORDER)]
    with broker_of(folder) as bootstrap, serving(MemoryRegistry()) as registry:
        schema_id = registry.add("avro-value", AVRO_SCHEMA)
        AdminClient({"bootstrap.servers": bootstrap}).create_topics([NewTopic("control-iceberg", 1, 1)])
        for kind in kinds:
            topic = kind.replace("+", "-")
            fill(bootstrap, topic, kind, arguments.records, schema_id)
            orders = Orders(
                *("", kind, topic, bootstrap, registry.url, arguments.records // PARTITIONS, PARTITIONS),
                *(arguments.rounds + 1, arguments.master, ""),
            )
            show_head(kind, arguments.records)
            ceiling: Result | None = None
            for name in [name for name in rivals(kind) if name in names]:
                place = folder / f"{topic}-{name}"
                place.mkdir()
                try:
                    own = replace(orders, contender=name, folder=str(place))
                    seconds = arguments.minutes * 60
                    result = (
                        race_connect(own, place, seconds) if name == "connect" else race(own, place / "log", seconds)
                    )
                except (NotHereError, ConnectError, AssertionError) as error:
                    print(f"  {name:<16}did not run: {str(error).splitlines()[0]}", flush=True)
                    continue
                ceiling = result if name == "raw" else ceiling
                show(name, result, orders.total, ceiling)
                if not arguments.keep:
                    shutil.rmtree(place)


@contextmanager
def broker_of(folder: Path) -> Iterator[str]:
    """Provide a broker with the records of all topics."""
    with own_broker(BrokerConfig(folder=folder / "broker", port=0)) as broker:
        yield broker.bootstrap_servers


def show_head(kind: str, records: int) -> None:
    """Print the columns of a table."""
    print(f"\n{records:,} records, {kind}; {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    print(
        f"  {'':<16}{'start s':>8}{'records/s':>12}{'':>12}{'of raw':>8}{'CPU s per million':>20}{'':>8}"
        f"{'of raw':>8}{'peak MB':>10}"
    )
    print(f"  {'':<16}{'':>8}{'cold':>12}{'warm':>12}{'warm':>8}{'cold':>20}{'warm':>8}{'warm':>8}", flush=True)


def show(name: str, result: Result, records: int, ceiling: Result | None) -> None:
    """Print the row of a contender."""
    (cold, cold_cpu), (warm, warm_cpu) = result.laps[0], result.warm
    share, cpu_share = ("", "")
    if ceiling is not None:
        share, cpu_share = f"{ceiling.warm[0] / warm:.2f}", f"{ceiling.warm[1] / warm_cpu:.2f}"
    print(
        f"  {name:<16}{result.start:>8.1f}{records / cold:>12,.0f}{records / warm:>12,.0f}{share:>8}"
        f"{cold_cpu / records * 1e6:>20.1f}{warm_cpu / records * 1e6:>8.1f}{cpu_share:>8}{result.peak / 1e6:>10,.0f}",
        flush=True,
    )


def main() -> None:
    """Run it and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000, help="of each kind")
    parser.add_argument("--rounds", type=int, default=2, help="warm laps")
    parser.add_argument("--minutes", type=float, default=10, help="most for a contender with one kind of records")
    parser.add_argument("--master", default="local[2]", help="spark.master")
    parser.add_argument("--only", default="", help=f"kinds ({', '.join(KINDS)}) and contenders ({', '.join(ORDER)})")
    parser.add_argument("--keep", action="store_true", help="keep the folder with tables and logs, and say where it is")
    parser.add_argument("--quick", action="store_true", help="ten minutes or so; see above")
    arguments = parser.parse_args()
    if arguments.quick:
        vars(arguments).update(_QUICK)
    arguments.records -= arguments.records % PARTITIONS
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    assert set(ORDER) == {*CONTENDERS, "connect"}
    try:
        run(arguments, folder)
    finally:
        if arguments.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
