"""The mirror beside MirrorMaker 2: the same two brokers, topics and configuration, in one run.

``python bench/mirror.py [--records N] [--quick] [--only java|sluice]``: a topic of 4 partitions with records of 100
bytes goes from one embedded broker to another, by one task, with the defaults of both. Each worker, in standalone mode
at the target, moves 2 * N records to warm up and then three laps of N, of which the median counts. CPU seconds and
memory are those of the worker and all its processes, not of the brokers.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from process_tree import ProcessTree
from race import COMMAND, LAPS, WARM_UP_LAPS, Aim, Lap, Props, Run, await_records, show, show_load, write_props

from equipment.workers.java_connect import DEFAULT_JVM, JavaConnect, JavaConnectJars, resolve_java_connect
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

_PARTITIONS = 4
_BYTES = 100
_TAIL = 200_000
_TOPIC = "orders"
_LOOK_SECONDS = 0.1
_BYTES_AS_THEY_ARE = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Race:
    """Two clusters, the first of which has all the records."""

    def __init__(self, folder: Path, source: str, target: str, records: int) -> None:
        self._folder = folder
        self._source = source
        self._target = target
        self._records = records
        self._total = records * (WARM_UP_LAPS + LAPS) + _TAIL
        self._client = Consumer({"bootstrap.servers": target, "group.id": "count", "log_level": 0})
        self._there: set[str] = set()
        self._fill()

    def java(self, jars: JavaConnectJars) -> Run:
        """The way of MirrorMaker 2."""
        return self._run("java", self._java("java", jars))

    def sluice(self) -> Run:
        """Our way."""
        return self._run("sluice", self._sluice("sluice"))

    def close(self) -> None:
        """Release the client."""
        self._client.close()

    def _run(self, alias: str, running: Iterator[int]) -> Run:
        topic = f"{alias}.{_TOPIC}"
        started = time.perf_counter()
        with contextmanager(lambda: running)() as pid:
            tree = ProcessTree(pid)
            try:
                first = await_records(lambda: self._count(topic), tree, 1)
                marks = range(self._records, self._total - _TAIL + 1, self._records)
                sights = [await_records(lambda: self._count(topic), tree, mark) for mark in marks]
            finally:
                tree.close()
        laps = [Lap.between(*pair) for pair in pairwise(sights[WARM_UP_LAPS - 1 :])]
        return Run(first.at - started, sights[0].cpu / sights[0].records * 1e6, laps, tree.peak())

    def _java(self, alias: str, jars: JavaConnectJars) -> Iterator[int]:
        folder = self._folder / alias
        worker = JavaConnect(folder, jars, self._worker(), [self._connector(alias)], jvm=DEFAULT_JVM)
        try:
            yield worker.start(wait=False).pid
        finally:
            worker.stop()

    def _sluice(self, alias: str) -> Iterator[int]:
        folder = self._folder / alias
        folder.mkdir()
        own = {"offset.storage.file.filename": str(folder / "offsets"), "listeners": "http://127.0.0.1:0"}
        files = [write_props(folder / "worker.properties", {**self._worker(), **own})]
        files.append(write_props(folder / "mirror.properties", self._connector(alias)))
        with (folder / "worker.log").open("wb") as log:
            process = subprocess.Popen([COMMAND, "standalone", *files], stdout=log, stderr=log)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def _worker(self) -> Props:
        converters = {f"{role}.converter": _BYTES_AS_THEY_ARE for role in ("key", "value", "header")}
        return {"bootstrap.servers": self._target, "offset.flush.interval.ms": "10000", **converters}

    def _connector(self, alias: str) -> Props:
        return {
            "name": "mirror",
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "tasks.max": "1",
            "source.cluster.alias": alias,
            "target.cluster.alias": f"{alias}-target",
            "source.cluster.bootstrap.servers": self._source,
            "target.cluster.bootstrap.servers": self._target,
            "topics": _TOPIC,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
        }

    def _fill(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._source})
        admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)])[_TOPIC].result(30)
        producer = Producer({"bootstrap.servers": self._source, "linger.ms": 20, "log_level": 0})
        value = bytes(_BYTES)
        for number in range(self._total):
            while True:
                try:
                    producer.produce(_TOPIC, value, partition=number // 100 % _PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
        if producer.flush(60):
            raise SystemExit("the topic could not be filled")

    def _count(self, topic: str) -> int:
        # A client that has asked for an unknown topic takes it for unknown for long.
        if topic not in self._there and topic not in self._client.list_topics(timeout=30).topics:
            time.sleep(_LOOK_SECONDS)
            return 0
        self._there.add(topic)
        try:
            return sum(
                int(self._client.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1])
                for number in range(_PARTITIONS)
            )
        except KafkaException:
            time.sleep(_LOOK_SECONDS)
            return 0  # it is so new that it has no leader yet


def main() -> None:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000, help="how many are moved in a lap")
    parser.add_argument("--quick", action="store_true", help="200,000 records")
    parser.add_argument("--only", choices=("java", "sluice"), help="one of the two")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs, and say where it is")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mirror-"))
    try:
        with (
            EmbeddedBroker(BrokerConfig(folder=folder / "source", port=0)).lease() as source,
            EmbeddedBroker(BrokerConfig(folder=folder / "target", port=0)).lease() as target,
        ):
            records = 200_000 if options.quick else options.records
            race = Race(folder, source.bootstrap_servers, target.bootstrap_servers, records)
            show_load()
            java = None if options.only == "sluice" else race.java(resolve_java_connect())
            ours = None if options.only == "java" else race.sluice()
            if java is not None and ours is not None:
                show("MirrorSourceConnector, 1 task, 4 partitions", Aim(cpu=3.0), java, ours)
            for run in filter(None, (java, ours)):
                cpus = ", ".join(f"{lap.cpu:.2f}" for lap in run.laps)
                print(
                    f"  {run.rate:,.0f} records/s, CPU s a million {cpus}, cold {run.cold:.2f}, {run.peak / 1e6:.0f} MB"
                )
            show_load()
            race.close()
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
