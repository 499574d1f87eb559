"""The proof by kills: whatever is killed, and when, a reader sees no record twice, and in the end each one once."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from connectors.spark.sink.ledger.manifest import Manifest
from equipment.proofs import EVERY_KILL, thorough
from equipment.servers.azurite import running_azurite
from equipment.servers.gcs import running_gcs
from equipment.servers.s3 import running_moto, running_versitygw, versitygw
from equipment.stores.lakes import Lake, azure_lake, gcs_lake, hdfs_lake, local_lake, s3_lake
from equipment.stores.readers import rows_of_duckdb, rows_of_spark
from equipment.waiting import wait_until
from equipment.workers.small_spark import sink_props
from equipment.workers.spark_drivers import PATIENCE, Driver
from equipment.workers.spark_kills import (
    CONNECTOR,
    PARTITIONS,
    VICTIMS,
    Loading,
    fill,
    kill_soon,
    seeded,
    watched,
)
from equipment.workers.standalone import StandaloneWorker

KILLS = int(os.environ.get("SLUICE_LAKE_KILLS", "0"))
"""How many kills there are in each store: at the named points first, the others at random moments."""
pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(900 + 120 * KILLS)]

FLUSH = 20
STORES = os.environ.get("SLUICE_LAKE_STORE", "local,s3,hdfs").split(",")
POINTS = (
    "before-staging-write:2",
    "after-staging-write:2",
    "after-manifest:2",
    "mid-rename",
    "mid-rename:3",
    "before-done:2",
    "before-offset-commit:2",
)
FEW = {
    "local": ("after-staging-write:2", "mid-rename", "before-offset-commit:2"),
    "local-others": ("before-staging-write:2", "after-manifest:2", "mid-rename:3", "before-done:2"),
    "s3": ("after-staging-write:2", "mid-rename"),
    "hdfs": ("mid-rename",),
}
"""The points of each store, where `make kills` does not ask for all. `make test` has those of the first: what is staged
is deleted, what is committed is renamed, and the group's offsets follow. At the rest other stores do as local ones."""
COMPACTING = {
    "compaction": ("mid-removal",),
    "compaction-others": ("after-compaction-staging", "mid-rename:6", "after-manifest:3"),
}
"""Those of a compaction. `make test` has the one that is a compaction's alone: loads come by the others as well."""
QUERYING = ("after-staging-write:2", "mid-rename")
"""Those where rows may come by other Spark partitions than their records; `make test` has only the first one."""
IDS = pa.schema([("id", pa.int64())])


class Target:
    """A topic, a store, and what a reader sees of it."""

    def __init__(self, bootstrap: str, topic: str, lake: Lake, records: int, props: Mapping[str, str] = {}) -> None:
        self.lake = lake
        self.records = records
        self.loading = Loading(bootstrap, topic, {**sink_props(lake.props), **props})
        self.table = f"topics/{topic}"
        fill(bootstrap, topic, [(None, json.dumps(self._record(number)).encode()) for number in range(records)])

    def _record(self, number: int) -> dict[str, Any]:
        record = {"id": number, "origin": ("EWR", "JFK", "LGA")[number % 3]}
        return {**record, "gate": number} if number > self.records // 2 else record

    @property
    def props(self) -> Mapping[str, str]:
        """The configuration of the sink."""
        return self.loading.props

    def driver(self, crash: str | None = None, java: Mapping[str, str] | None = None) -> AbstractContextManager[Driver]:
        """A driver that loads little at a time."""
        return self.loading.driver(FLUSH, crash, java)

    def rows(self) -> list[int]:
        """The ids a reader finds at this moment."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                found: list[int] = self.lake.read(self.table, IDS)["id"].to_pylist()
            except FileNotFoundError:
                # A compaction has replaced a file that was listed: a reader is told so, and reads again.
                assert time.monotonic() < deadline
            else:
                return found

    def look(self) -> None:
        """No record is there twice."""
        assert [number for number, count in Counter(self.rows()).items() if count > 1] == []

    def head(self) -> tuple[Manifest, bool]:
        """The last manifest, and whether it is marked done or has nothing to do."""
        folder, store = f"_sluice/{CONNECTOR}/manifests", self.lake.store
        last = max((name for name in store.names(folder) if name.endswith(".json")), default=None)
        if last is None:
            return Manifest(number=0, epoch=0), True
        manifest = Manifest.from_bytes(store.read(f"{folder}/{last}"), last)
        mark = f"{folder}/{last.removesuffix('.json')}.done"
        return manifest, not manifest.moves or store.size(mark) is not None

    def number(self) -> int:
        """The number of the last manifest."""
        return self.head()[0].number

    def phase(self) -> str:
        """In which phase the driver was killed, as the disk and the group's offsets tell."""
        manifest, done = self.head()
        if not done:
            renamed = sum(self.lake.store.size(move.target) is not None for move in manifest.moves)
            return f"renaming, {renamed} of {len(manifest.moves)} done"
        attempts = self.lake.paths(self.lake.store.staging(CONNECTOR))
        # Spark's Java leaves an empty file beside what describes an upload, the Python of executors does not.
        found = (path.removesuffix(".pending") for path in attempts)
        staged = {path for path in found if path.endswith(".parquet") or "/_attempts/" in path}
        if staged:
            notes = [path for path in attempts if "/committed/" in path]
            running = any("/_temporary/" in path for path in staged) or 0 < len(notes) < len(staged)
            return "staging, files being written" if running else "staged, not committed"
        if attempts:
            return "staging, before the first file"
        if self.loading.group_offset() < sum(manifest.offsets.values()):
            return "before the offset commit"
        return "nothing staged"


def check(target: Target) -> None:
    """What a reader sees after a kill: no record twice, and of each partition a beginning without gaps."""
    seen = sorted(target.rows())
    assert len(seen) == len(set(seen))
    manifest, done = target.head()
    if done:
        loaded = {tp.partition: offset for tp, offset in manifest.offsets.items()}
        expected = [n for n in range(target.records) if n // PARTITIONS < loaded.get(n % PARTITIONS, 0)]
        assert seen == expected


def drain(target: Target, java: Mapping[str, str] | None = None) -> None:
    """Start once more, load all that is left, and compare with the topic."""
    target.loading.drain(target.records, java)
    assert sorted(target.rows()) == list(range(target.records))
    assert target.phase() == "nothing staged"


def check_other_readers(target: Target) -> None:
    """DuckDB, which needs files, and Spark see each record once."""
    store, expected = target.lake.store, [(number,) for number in range(target.records)]
    assert rows_of_spark(target.props, "parquet", store.uri(target.table), ["id"]) == expected
    if "://" not in target.props["store.url"]:
        place = Path(target.props["store.url"]) / target.table
        assert rows_of_duckdb([str(path) for path in place.rglob("*.parquet")], ["id"]) == expected


@pytest.fixture(params=[*STORES[:1], *thorough(*STORES[1:], *([] if EVERY_KILL else ["local-others"]))])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """A store of each kind."""
    folder = f"kills-{uuid4().hex[:12]}"
    with ExitStack() as stack:
        match request.param:
            case "s3":
                program = versitygw()
                server = stack.enter_context(running_versitygw(program) if program else running_moto())
                yield stack.enter_context(s3_lake(server, folder))
            case "azure":
                yield stack.enter_context(azure_lake(stack.enter_context(running_azurite()), folder))
            case "gcs":
                yield stack.enter_context(gcs_lake(stack.enter_context(running_gcs()), folder))
            case "hdfs":
                yield stack.enter_context(hdfs_lake(request.getfixturevalue("hdfs"), folder))
            case _:
                yield stack.enter_context(local_lake(tmp_path))


def kills_at_random() -> list[str]:
    """What to kill; by default only what is not killed at the named points, which are the driver's own."""
    return [VICTIMS[number % len(VICTIMS)] for number in range(KILLS - len(POINTS))] if KILLS else list(VICTIMS[1:])


def test_kills_at_every_named_point(
    bootstrap: str, topic: str, lake: Lake, request: pytest.FixtureRequest, spark_java: Mapping[str, str]
) -> None:
    points = POINTS if EVERY_KILL else FEW.get(request.node.callspec.params["lake"], POINTS)
    target = Target(bootstrap, topic, lake, 40 * FLUSH)
    phases: dict[str, str] = {}
    # Spark has nothing to do at any of these points: they are the driver's own.
    with watched(target.look, target.lake.pause):
        for point in points:
            with target.driver(crash=point, java=spark_java) as process:
                assert process.wait() == -signal.SIGKILL, point
                phases[point] = target.phase()
                check(target)
        drain(target, spark_java)
    for point, phase in phases.items():
        print(f"killed at {point:24} -> {phase}")
    some, all_ = "renaming, 1 of 2 done", f"renaming, {PARTITIONS} of {PARTITIONS} done"
    expected = {
        "after-staging-write:2": {"staged, not committed"},
        "after-manifest:2": {f"renaming, 0 of {PARTITIONS} done"},
        # A store that publishes several files at once may have got further.
        "mid-rename": {some, all_} if lake.store.concurrency > 1 else {some},
        "before-done:2": {all_},
        "before-offset-commit:2": {"before the offset commit"},
    }
    for point in expected.keys() & phases.keys():
        assert phases[point] in expected[point], point


@pytest.mark.parametrize("points", ["compaction", *thorough("compaction-others")])
def test_kills_while_tables_are_compacted(
    bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str], points: str
) -> None:
    with local_lake(tmp_path) as lake:
        target = Target(bootstrap, topic, lake, 20 * FLUSH, {"compact.interval.ms": "1"})
        kill_while_compacting(target, spark_java, COMPACTING[points])


def kill_while_compacting(target: Target, java: Mapping[str, str], points: Sequence[str]) -> None:
    """Kill a driver that compacts after each load, at these points of a compaction."""
    with watched(target.look, target.lake.pause):
        for point in points:
            with target.driver(crash=point, java=java) as process:
                assert process.wait() == -signal.SIGKILL, point
                print(f"killed at {point:26} -> {target.phase()}, {len(target.lake.paths(target.table))} files")
                check(target)
        drain(target, java)
    assert len(target.lake.paths(target.table)) == PARTITIONS


@pytest.mark.thorough
def test_kills_where_the_rows_are_the_result_of_a_query(
    bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str]
) -> None:
    with local_lake(tmp_path) as lake:
        # Grouped, the rows come by other Spark partitions than the records.
        query = {"sql": "SELECT id, count(*) AS times FROM records GROUP BY id"}
        target = Target(bootstrap, topic, lake, 40 * FLUSH, query)
        with watched(target.look, target.lake.pause):
            for point in QUERYING if EVERY_KILL else QUERYING[:1]:
                with target.driver(crash=point, java=spark_java) as process:
                    assert process.wait() == -signal.SIGKILL, point
                    check(target)
            drain(target, spark_java)


# `make lake-kills` makes them in every store; where files come over a network all of it costs more.
@pytest.mark.parametrize("lake", STORES if KILLS else ["local"], indirect=True)
@pytest.mark.thorough
def test_kills_at_random_moments(bootstrap: str, topic: str, lake: Lake, spark_java: Mapping[str, str]) -> None:
    moments = seeded()
    target = Target(bootstrap, topic, lake, 12_000)
    phases: Counter[str] = Counter()
    with watched(target.look, target.lake.pause):
        for number, kind in enumerate(kills_at_random()):
            # What a killed driver has told Java to do, one that survives it goes on with.
            with target.driver(java=spark_java if kind == "driver" else None) as process:
                loads = target.number() + moments.choice((0, 1, 1, 2))
                wait_until("loads are committed", lambda at=loads: target.number() >= at, seconds=PATIENCE)
                killed = kill_soon(process, kind, moments.uniform(0, 0.9))
            phase = f"{killed}: {target.phase()}"
            print(f"kill {number + 1}, of {phase}", flush=True)
            phases[phase] += 1
            check(target)
        drain(target, spark_java)
    for phase, count in sorted(phases.items()):
        print(f"{count:3} kills of {phase}")
    if KILLS:
        check_other_readers(target)


@pytest.mark.thorough
def test_kills_of_a_real_worker_and_of_its_task(bootstrap: str, topic: str, tmp_path: Path) -> None:
    with local_lake(tmp_path / "store") as lake:
        target = Target(bootstrap, topic, lake, 600)
    moments = seeded()
    # The options of Spark's JVM, which make it small, are the operator's to allow.
    worker = StandaloneWorker(tmp_path / "worker", bootstrap, connector_spark_config_override_policy="All")
    props = {
        "connector.class": "SparkSink",
        "topics": topic,
        "flush.size": str(FLUSH),
        "rotate.interval.ms": "0",
        "run.until": "drained",
        **target.props,
    }
    worker.connector(CONNECTOR, **props)
    try:
        with watched(target.look, target.lake.pause):
            for number, kind in enumerate(("task", "worker") if EVERY_KILL else ("worker",)):
                worker.start()
                wait_until("a load is committed", lambda at=2 + 4 * number: target.number() > at, seconds=PATIENCE)
                time.sleep(moments.uniform(0, 0.9))
                if kind == "task":
                    os.kill(worker.task_pid(CONNECTOR), signal.SIGKILL)
                worker.kill()
                print(f"killed the {kind} -> {target.phase()}")
                check(target)
            worker.connector(CONNECTOR, **props | {"flush.size": "1000"})
            assert worker.run(seconds=PATIENCE) == 0, worker.log()
    finally:
        worker.close()
    assert sorted(target.rows()) == list(range(target.records))
    assert target.phase() == "nothing staged"
