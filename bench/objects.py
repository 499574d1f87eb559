"""Compares the sinks of objects with a raw upload of the same bytes and with the Spark sink, and measures their memory.

``python bench/objects.py [records] [--store local|s3] [--only raw|memory|spark] [--format JsonFormat] [--rounds 3]``
needs obstore, and moto for s3. For JSON lines, Avro and Parquet it shows records a second, CPU, and the share of the
rate at which obstore puts the same objects one after the other, each at its best of some rounds; then the memory of a
task with 1,000 open folders and the CPU of its thread. Records are given to the task in batches of 500, as a worker
does; consuming and converting them is not part of it.

Beside the Spark sink, consuming and converting are part: a topic of JSON with schemas, in four partitions, goes to
files in a folder, by a standalone worker that ends when it is drained. Seconds, CPU and memory (proportional set size)
are those of all processes from their start to their end, once with no records, which is what starting costs, and once
with all.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != HERE]
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from connect.data import NO_HEADERS, Constant, Schema, SinkBatch, TimestampType, TopicPartition, ValueColumn
from connect.testing.contexts import SinkTaskTestContext
from connectors.objects.sinks import FolderSinkTask, S3SinkTask

# What only some parts need is imported there: the memory that is measured is that of the sink.
sys.path.append(str(HERE))
from process_tree import ProcessTree

BATCH = 500
FLUSH = 50_000
SCHEMA = Schema.struct(
    {
        "id": Schema.int64(),
        "carrier": Schema.string(),
        "origin": Schema.string(),
        "dest": Schema.string(optional=True),
        "delay": Schema.float64(optional=True),
        "distance": Schema.int32(),
        "note": Schema.string(),
    },
    name="flight",
)


def value_of(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "carrier": ("UA", "AA", "DL")[number % 3],
        "origin": ("EWR", "JFK", "LGA")[number % 3],
        "dest": "IAH",
        "delay": number % 97 / 2,
        "distance": number % 3000,
        "note": f"flight {number} of a day that was long and had many of them, more than anyone can remember",
    }


def batches(count: int, folders: int | None = None) -> Iterator[SinkBatch]:
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        values = [value_of(number) for number in numbers]
        if folders is not None:
            for number, value in zip(numbers, values, strict=True):
                value["carrier"] = str(number % folders)
        size = len(numbers)
        key = ValueColumn(Constant(None, size))
        yield SinkBatch(
            "t", key, ValueColumn(values, SCHEMA), Constant(0, size), Constant(1_700_000_000_000, size),
            Constant(NO_HEADERS, size), numbers, Constant(TimestampType.CREATE_TIME, size), "t", Constant(0, size),
            numbers,
        )  # fmt: skip


@contextmanager
def target(kind: str) -> Iterator[tuple[Any, dict[str, str], Any]]:
    """The class of the task, its configuration, and the same place for obstore."""
    from obstore.store import LocalStore, S3Store  # noqa: PLC0415 - as above

    from equipment.servers.s3 import running_moto  # noqa: PLC0415 - as above

    with ExitStack() as stack:
        if kind == "local":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            yield FolderSinkTask, {"store.url": folder}, LocalStore(folder)
            return
        server = stack.enter_context(running_moto())
        props = {**server.props, "s3.bucket.name": server.bucket}
        store = S3Store(
            server.bucket,
            endpoint=server.endpoint,
            region=props["s3.region"],
            access_key_id=props["aws.access.key.id"],
            secret_access_key=props["aws.secret.access.key"],
            client_options={"allow_http": True},
        )
        yield S3SinkTask, props, store


def measured(kind: str, form: str, count: int) -> Mapping[str, float]:
    import obstore  # noqa: PLC0415 - as above

    ready = list(batches(count))
    with target(kind) as (task_class, place, raw):
        config = {"name": "bench", "format.class": form, "flush.size": str(FLUSH), **place}
        config |= {"rotate.on.offset.commit": "true"}
        task = task_class(task_class.config_class.parse(config), SinkTaskTestContext())
        task.start()
        task.open([TopicPartition("t", 0)])
        # A client and its connections are made once, not for each record.
        first, *others = ready
        _finish(task, [first])
        warm = {item["path"] for page in obstore.list(raw, prefix="topics") for item in page}
        obstore.put(raw, "raw/first", b"")
        began, cpu = time.perf_counter(), time.process_time()
        _finish(task, others)
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
        task.stop()
        contents = [
            (item["path"], bytes(obstore.get(raw, item["path"]).bytes()))
            for page in obstore.list(raw, prefix="topics")
            for item in page
            if item["path"] not in warm
        ]
        began, cpu = time.perf_counter(), time.process_time()
        for path, data in contents:
            obstore.put(raw, f"raw/{path}", data)
            if kind == "local":
                # The sink's files are durable when their offsets are committed.
                with open(f"{place['store.url']}/raw/{path}", "rb") as file:  # noqa: PTH123
                    os.fsync(file.fileno())
        raw_seconds = time.perf_counter() - began
    size = sum(len(data) for _, data in contents)
    return {"seconds": seconds, "cpu": used, "raw": raw_seconds, "bytes": size}


def _finish(task: Any, given: Sequence[SinkBatch]) -> None:
    """Have a task write batches, until they are in the store."""
    for batch in given:
        task.put(batch)
    expected = {TopicPartition("t", 0): given[-1].original_offsets[-1] + 1}
    while task.pre_commit(expected) != expected:
        pass


def open_folders(count: int = 1000) -> None:
    """Keep files open in so many folders, and print the memory of the process."""
    folder = tempfile.mkdtemp()
    config = {
        "name": "bench",
        "store.url": folder,
        "format.class": os.environ["BENCH_FORMAT"],
        "flush.size": "100000000",
        "partitioner.class": "FieldPartitioner",
        "partition.field.name": "carrier",
    }
    task = FolderSinkTask(FolderSinkTask.config_class.parse(config), SinkTaskTestContext())
    task.start()
    task.open([TopicPartition("t", 0)])
    used = 0.0
    for batch in batches(count * 50, count):
        began = time.thread_time()
        task.put(batch)
        used += time.thread_time() - began
    files = sum(len(writer._open.files) for writer in task._writers.values() if writer._open is not None)
    # What getrusage tells is at least the memory of the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    print(json.dumps({"files": files, "peak MB": round(peak), "us CPU a record": round(used / count / 50 * 1e6, 1)}))
    task.stop()
    shutil.rmtree(folder)


SINKS = {
    "objects": {"connector.class": "FolderSink", "flush.size": "50000", "rotate.on.offset.commit": "true"},
    "spark": {"connector.class": "SparkSink", "spark.master": "local[2]"},
}


def beside_spark(count: int) -> None:
    """Have both sinks write a topic to files of each format, and print what that costs."""
    from own_broker import own_broker  # noqa: PLC0415 - as above
    from spark_sink import fill  # noqa: PLC0415 - as above

    from worker.embedded.broker.server import BrokerConfig  # noqa: PLC0415 - as above

    with (
        tempfile.TemporaryDirectory() as name,
        own_broker(BrokerConfig(Path(name) / "kafka", port=0)) as found,
    ):
        for records in (0, count):
            fill(found.bootstrap_servers, f"flights-{records}", "json+schema", records, 0)
        for form in ("JsonFormat", "AvroFormat", "ParquetFormat"):
            for kind in SINKS:
                started, _, _ = drained(Path(name), found.bootstrap_servers, kind, form, 0)
                seconds, cpu, peak = drained(Path(name), found.bootstrap_servers, kind, form, count)
                rate = f"{count / (seconds - started):9.0f}" if seconds > started else "too many"
                print(
                    f"{form:14} {kind:8} {seconds:6.1f} s, {rate} records/s after {started:.1f} s of starting; "
                    f"{cpu / count * 1e6:6.2f} us CPU a record, {peak / 1e6:.0f} MB"
                )


def drained(folder: Path, bootstrap: str, kind: str, form: str, count: int) -> tuple[float, float, int]:
    """Run a worker to its end, and return its seconds, CPU seconds and memory."""
    name = f"{kind}-{form}-{count}"
    connector = {
        "name": name,
        "topics": f"flights-{count}",
        "tasks.max": "1",
        "store.url": str(folder / name),
        "format.class": form,
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "true",
        "consumer.override.auto.offset.reset": "earliest",
        "run.until": "drained",
        **SINKS[kind],
    }
    worker = {"bootstrap.servers": bootstrap, "offset.storage.file.filename": str(folder / f"{name}.offsets")}
    worker |= {
        "listeners": "http://127.0.0.1:0",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
    }
    files = []
    for about, props in (("worker", worker), ("connector", connector)):
        files.append(folder / f"{name}.{about}.properties")
        files[-1].write_text("".join(f"{key}={value}\n" for key, value in props.items()))
    began = time.perf_counter()
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([Path(sys.executable).with_name("sluice"), "standalone", *files], stderr=log)
        tree = ProcessTree(process.pid)
        status = process.wait()
        seconds, cpu = time.perf_counter() - began, tree.cpu()
        tree.close()
    if status:
        raise SystemExit(f"{name} ended with {status}:\n" + (folder / f"{name}.log").read_text()[-4000:])
    return seconds, cpu, tree.peak()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("records", nargs="?", type=int, default=300_000)
    parser.add_argument("--store", default="local", choices=["local", "s3"])
    parser.add_argument("--only", choices=["raw", "memory", "spark"])
    parser.add_argument("--format", default="JsonFormat,AvroFormat,ParquetFormat")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.only in (None, "raw"):
        beside_raw(given)
    if given.only in (None, "memory"):
        with_open_folders()
    if given.only in (None, "spark"):
        beside_spark(given.records)


def beside_raw(given: argparse.Namespace) -> None:
    """Compare each format with obstore."""
    print(f"{given.records} records to {given.store}, {FLUSH} a file")
    for form in given.format.split(","):
        found = [measured(given.store, form, given.records) for _ in range(given.rounds)]
        # On a machine that has other work, too, the least of each is what it takes.
        best = {name: min(each[name] for each in found) for name in found[0]}
        rate, raw = given.records / best["seconds"], given.records / best["raw"]
        print(
            f"{form:14} {rate:9.0f} records/s {best['bytes'] / best['seconds'] / 1e6:6.0f} MB/s "
            f"{best['cpu'] / given.records * 1e6:5.2f} us CPU a record; raw {raw:9.0f} records/s: {rate / raw:.0%}"
        )


def with_open_folders() -> None:
    """Measure the memory of tasks with many open folders."""
    for form in ("JsonFormat", "AvroFormat", "ParquetFormat"):
        environ = {**os.environ, "BENCH_FORMAT": form}
        command = [sys.executable, __file__, "--open-folders"]
        shown = subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout
        print(f"{form:14} with 1,000 folders: {shown.strip()}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--open-folders"]:
        open_folders()
    else:
        main()
