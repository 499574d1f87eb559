"""Compares the mirror with MirrorMaker 2 on the same two brokers, topics and configuration, in one run.

``python bench/mirror.py [--all] [--records N] [--quick] [--only java|sluice]``: a topic of 4 partitions with records of
100 bytes is mirrored from one embedded broker to another, by one task, with the defaults of both. Each worker runs in
standalone mode at the target, and moves laps of N records until two in a row cost the same within 5 %, then three of
which the median counts. CPU seconds and memory are those of the worker and all its processes, not of the brokers.

One or more other cases can be measured instead: ``--exactly-once``, with one distributed worker each that mirrors in
transactions; ``--latency``, the time of a record from the producer at the source to a consumer at the target, at 100
records per second; ``--rest N``, the cost of a mirror of N idle topics of one partition. ``--all`` runs all four, the
last with 1,000 topics, which takes five minutes with ``--quick``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from laps import Aim, Comparison, Run, measured, records_of, show, show_load
from own_broker import own_broker
from process_tree import ProcessTree
from race import COMMAND, Props, write_props

from equipment.workers.java_connect import DEFAULT_JVM, JavaConnect, JavaConnectJars, resolve_java_connect
from worker.embedded.broker.server import BrokerConfig
from worker.embedded.ports import any_port

_PARTITIONS = 4
_BYTES = 100
_TAIL = 200_000
_TOPIC = "orders"
_LOOK_SECONDS = 0.1
_DEADLINE_SECONDS = 120.0
_NOT_YET = (409, 500, 503)
_PER_SECOND = 100
_WARM_UP_SECONDS = 8.0
_PACED_SECONDS = 30.0
_SETTLE_SECONDS = 8.0
_REST_SECONDS = 20.0
Contenders = Mapping[str, JavaConnectJars | None]
"""The contenders, with the jars of the Java one."""

_BYTES_AS_THEY_ARE = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Race:
    """Two clusters; the first has all the records."""

    def __init__(self, folder: Path, source: str, target: str, records: int) -> None:
        self._exactly_once = False
        self._folder = folder
        self._source = source
        self._target = target
        self._records = records
        self._total = records_of(records, _TAIL)
        self._client = Consumer({"bootstrap.servers": target, "group.id": "count", "log_level": 0})
        self._there: set[str] = set()

    def laps(self, alias: str, jars: JavaConnectJars | None) -> Run:
        """Move all records, with MirrorMaker 2 if there are ``jars``, else with our worker."""
        return self._run(alias, self._running(alias, jars))

    def transactions(self, alias: str, jars: JavaConnectJars | None) -> Run:
        """Move all records exactly once."""
        self._exactly_once = True
        try:
            return self._run(alias, self._running(alias, jars))
        finally:
            self._exactly_once = False

    def latency(self, alias: str, jars: JavaConnectJars | None) -> str:
        """Measure how long records take at a slow pace."""
        topic = f"slow-{alias}"
        self._create([topic], 1)
        with contextmanager(lambda: self._running(alias, jars, topics=topic))() as pid:
            self._await_topics(f"{alias}.{topic}", 1)
            tree = ProcessTree(pid)
            try:
                self._pace(topic, f"{alias}.{topic}", _WARM_UP_SECONDS)
                before = tree.cpu()
                delays = self._pace(topic, f"{alias}.{topic}", _PACED_SECONDS)
                cuts = statistics.quantiles(delays, n=100)
                cpu = (tree.cpu() - before) / _PACED_SECONDS
                return f"p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, {cpu:.3f} cores, {tree.peak() / 1e6:.0f} MB"
            finally:
                tree.close()

    def rest(self, alias: str, jars: JavaConnectJars | None, topics: int) -> str:
        """Measure the cost of an idle mirror."""
        prefix = f"rest-{topics}-"
        self._create([f"{prefix}{number}" for number in range(topics)], 1)
        started = time.perf_counter()
        with contextmanager(lambda: self._running(alias, jars, topics=f"{prefix}.*"))() as pid:
            tree = ProcessTree(pid)
            try:
                self._await_topics(f"{alias}.{prefix}", topics)
                took = time.perf_counter() - started
                time.sleep(_SETTLE_SECONDS)
                before = tree.cpu()
                time.sleep(_REST_SECONDS)
                cpu = (tree.cpu() - before) / _REST_SECONDS
                return f"topics there after {took:.1f} s, then {cpu:.3f} cores, {tree.peak() / 1e6:.0f} MB at most"
            finally:
                tree.close()

    def close(self) -> None:
        """Release the client."""
        self._client.close()

    def _run(self, alias: str, running: Iterator[int]) -> Run:
        topic = f"{alias}.{_TOPIC}"
        started = time.perf_counter()
        with contextmanager(lambda: running)() as pid:
            tree = ProcessTree(pid)
            try:
                return measured(lambda: self._count(topic), tree, self._records, started)
            finally:
                tree.close()

    def _running(self, alias: str, jars: JavaConnectJars | None, **props: str) -> Iterator[int]:
        connector = {**self._connector(alias), **props}
        return self._sluice(alias, connector) if jars is None else self._java(alias, jars, connector)

    def _java(self, alias: str, jars: JavaConnectJars, connector: Props) -> Iterator[int]:
        folder = self._folder / alias
        files = [] if self._exactly_once else [connector]
        worker = JavaConnect(folder, jars, self._worker(alias), files, jvm=DEFAULT_JVM)
        try:
            worker.start(wait=self._exactly_once)
            if self._exactly_once:
                worker.create("mirror", connector)
            yield worker.pid
        finally:
            worker.stop()

    def _sluice(self, alias: str, connector: Props) -> Iterator[int]:
        folder = self._folder / alias
        folder.mkdir()
        url = f"http://127.0.0.1:{any_port(taken=0)}"
        file = {} if self._exactly_once else {"offset.storage.file.filename": str(folder / "offsets")}
        own = {**file, "listeners": url}
        files = [write_props(folder / "worker.properties", {**own, **self._worker(alias)})]
        if not self._exactly_once:
            files.append(write_props(folder / "mirror.properties", connector))
        mode = "distributed" if self._exactly_once else "standalone"
        with (folder / "worker.log").open("wb") as log:
            process = subprocess.Popen([COMMAND, mode, *files], stdout=log, stderr=log)
        try:
            if self._exactly_once:
                _create_connector(url, connector)
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def _worker(self, alias: str) -> Props:
        converters = {f"{role}.converter": _BYTES_AS_THEY_ARE for role in ("key", "value", "header")}
        props = {"bootstrap.servers": self._target, "offset.flush.interval.ms": "10000", **converters}
        if self._exactly_once:
            props |= {"group.id": f"connect-{alias}", "exactly.once.source.support": "enabled"}
            for kind in ("config", "offset", "status"):
                props[f"{kind}.storage.topic"] = f"connect-{alias}-{kind}s"
                props[f"{kind}.storage.replication.factor"] = "1"
        return props

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

    def _create(self, topics: Sequence[str], partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self._source})
        there = admin.list_topics(timeout=30).topics
        new = [NewTopic(topic, partitions, 1) for topic in topics if topic not in there]
        for future in (admin.create_topics(new) if new else {}).values():
            future.result(60)

    def _await_topics(self, prefix: str, count: int) -> None:
        deadline = time.perf_counter() + _DEADLINE_SECONDS
        while sum(topic.startswith(prefix) for topic in self._client.list_topics(timeout=30).topics) < count:
            if time.perf_counter() > deadline:
                raise SystemExit(f"there are no {count} topics {prefix}* at the target")
            time.sleep(_LOOK_SECONDS)

    def _pace(self, topic: str, remote: str, seconds: float) -> list[float]:
        """Write for this many seconds and read at the other end. Returns the milliseconds that each record took."""
        producer = Producer({"bootstrap.servers": self._source, "linger.ms": 0, "log_level": 0})
        place = TopicPartition(remote, 0)
        place.offset = self._client.get_watermark_offsets(place, timeout=30)[1]
        self._client.assign([place])
        delays: list[float] = []
        count, sent, started = int(seconds * _PER_SECOND), 0, time.perf_counter()
        while len(delays) < count:
            if sent < count and time.perf_counter() >= started + sent / _PER_SECOND:
                producer.produce(topic, b"%d" % time.perf_counter_ns())
                producer.poll(0)
                sent += 1
            message = self._client.poll(0.002)
            if message is not None and message.error() is None:
                delays.append((time.perf_counter_ns() - int(message.value() or b"")) / 1e6)
            if time.perf_counter() > started + seconds + _DEADLINE_SECONDS:
                raise SystemExit(f"only {len(delays)} of {count} records came")
        return delays

    def fill(self) -> None:
        """Write all records to the source."""
        self._create([_TOPIC], _PARTITIONS)
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
        # A client that has asked for an unknown topic considers it unknown for a long time.
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
            return 0  # so new that it has no leader yet


def _create_connector(url: str, connector: Props) -> None:
    deadline = time.perf_counter() + _DEADLINE_SECONDS
    body = json.dumps({"name": connector["name"], "config": dict(connector)}).encode()
    request = urllib.request.Request(f"{url}/connectors", body, {"Content-Type": "application/json"})
    while time.perf_counter() < deadline:
        try:
            with urllib.request.urlopen(request, timeout=30):
                return
        except urllib.error.HTTPError as error:
            if error.code not in _NOT_YET:
                raise SystemExit(f"the connector is refused: {error.read().decode()}") from error
            time.sleep(_LOOK_SECONDS)
        except OSError:
            time.sleep(_LOOK_SECONDS)
    raise SystemExit("the connector could not be created")


def main() -> None:
    """Run the requested cases and print them."""
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="mirror-"))
    try:
        with (
            own_broker(BrokerConfig(folder=folder / "source", port=0)) as source,
            own_broker(BrokerConfig(folder=folder / "target", port=0)) as target,
        ):
            clusters = source.bootstrap_servers, target.bootstrap_servers
            race = Race(folder, *clusters, 200_000 if options.quick else options.records)
            jars = None if options.only == "sluice" else resolve_java_connect()
            contenders = {name: jars if name == "java" else None for name in ("java", "sluice")}
            if options.only is not None:
                contenders = {options.only: contenders[options.only]}
            show_load()
            _run_cases(race, contenders, options)
            race.close()
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=500_000, help="how many are moved in a lap")
    parser.add_argument("--quick", action="store_true", help="200,000 records")
    parser.add_argument("--exactly-once", action="store_true", help="laps in transactions")
    parser.add_argument("--latency", action="store_true", help="the time that a record takes")
    parser.add_argument("--rest", type=int, default=0, metavar="N", help="what N quiet topics use")
    parser.add_argument("--all", action="store_true", help="all cases")
    parser.add_argument("--only", choices=("java", "sluice"), help="one of the two")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs, and say where it is")
    options = parser.parse_args()
    if options.all:
        options.exactly_once, options.latency, options.rest = True, True, options.rest or 1000
    return options


def _run_cases(race: Race, contenders: Contenders, options: argparse.Namespace) -> None:
    plain = options.all or not (options.exactly_once or options.latency or options.rest)
    if plain or options.exactly_once:
        race.fill()
    if plain:
        _show_laps({name: race.laps(name, jars) for name, jars in contenders.items()}, "")
        show_load()
    if options.exactly_once:
        runs = {name: race.transactions(f"{name}-once", jars) for name, jars in contenders.items()}
        _show_laps(runs, ", exactly once")
        show_load()
    if options.latency:
        print(f"\n{_PER_SECOND} records a second")
        for name, jars in contenders.items():
            print(f"  {name:<8}{race.latency(f'{name}-slow', jars)}", flush=True)
        show_load()
    if options.rest:
        print(f"\n{options.rest} quiet topics")
        for name, jars in contenders.items():
            print(f"  {name:<8}{race.rest(f'{name}-rest', jars, options.rest)}", flush=True)
        show_load()


def _show_laps(runs: dict[str, Run], how: str) -> None:
    if len(runs) > 1:
        show(Comparison(f"MirrorSourceConnector, 4 partitions{how}", Aim(), runs["java"], runs["sluice"]))
    for name, run in runs.items():
        cpus = ", ".join(f"{lap.cpu:.2f}" for lap in run.laps)
        costs = f"CPU s a million {cpus}, cold {run.warm_up[0].cpu:.2f}, {run.peak / 1e6:.0f} MB"
        print(f"  {name:<8}{run.rate:,.0f} records/s, {costs}", flush=True)


if __name__ == "__main__":
    main()
