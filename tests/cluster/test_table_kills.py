"""The proof by kills for table formats: a reader sees exactly what the offsets beside the rows say, at any moment."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyiceberg.table import StaticTable

from equipment.brokers.dead_letters import dead_letters
from equipment.proofs import EVERY_KILL, thorough
from equipment.stores.readers import rows_of_duckdb, rows_of_spark
from equipment.waiting import wait_until
from equipment.workers.small_spark import SMALL_DELTA, sink_props
from equipment.workers.spark_drivers import PATIENCE
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

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(3600)]

FLUSH = 20
KILLS = int(os.environ.get("SLUICE_LAKE_KILLS", "2"))
COLUMNS = ("id", "number")
KEYS = 2 * FLUSH * PARTITIONS
"""How many rows there can be in a table of changes."""

Rows = list[tuple[int, int]]


class Format(Protocol):
    """A table format, as readers that are not Spark's see a table of it."""

    source: str
    """Its name."""
    points: tuple[str, ...]
    """The crash points that a driver comes by."""
    expected: Mapping[str, str]
    """The phases that some of them show."""

    def look(self, table: Path, topic: str) -> tuple[Rows, dict[int, int]]:
        """The rows in one version of a table, and the offset of each partition that the same version has."""

    def files(self, table: Path) -> set[str]:
        """The places of the data files that the table has."""

    def former_files(self, table: Path) -> set[str]:
        """The places of those that any version of the table had, and of some more."""


class Iceberg:
    """Iceberg in a Hadoop catalog, read by pyiceberg."""

    source = "iceberg"
    points = (
        "before-staging-write:2",
        "after-staging-write:2",
        "before-commit:2",
        "after-version:2",
        "after-commit:2",
        "after-claim",
        "before-offset-commit:2",
    )
    expected: Mapping[str, str] = {
        "after-staging-write:2": "files written, not committed",
        "before-offset-commit:2": "before the offset commit",
    }

    def look(self, table: Path, topic: str) -> tuple[Rows, dict[int, int]]:
        """By the version that the hint names."""
        found = self._found(table)
        snapshot = None if found is None else found.current_snapshot()
        if found is None or snapshot is None:
            return [], {}
        assert snapshot.summary is not None
        text = snapshot.summary.additional_properties[f"sluice.offsets.{CONNECTOR}"]
        assert found.properties[f"sluice.offsets.{CONNECTOR}"] == text
        progress = json.loads(text)[topic]
        offsets = {number: offset for number, offset in enumerate(progress["next"]) if offset is not None}
        return _rows(found.scan(selected_fields=COLUMNS).to_arrow()), offsets

    def files(self, table: Path) -> set[str]:
        """By the same version."""
        found = self._found(table)
        return set() if found is None else {_path(task.file.file_path) for task in found.scan().plan_files()}

    def former_files(self, table: Path) -> set[str]:
        """Those of all snapshots."""
        found = self._found(table)
        places = [] if found is None else found.inspect.all_data_files()["file_path"].to_pylist()
        return set(map(_path, places))

    @staticmethod
    def _found(table: Path) -> StaticTable | None:
        if not (table / "metadata" / "version-hint.text").exists():
            return None
        return StaticTable.from_metadata(table.as_uri())


class Delta:
    """Delta, read by the deltalake package."""

    source = "delta"
    expected: Mapping[str, str] = {
        "after-create": "no file written",
        "after-table-commit:2": "before the offset commit",
        "after-plan:2": "no file written",
        "before-table-commit:2": "files written, not committed",
        "before-offset-commit:2": "before the offset commit",
    }

    def __init__(self, *, merges: bool) -> None:
        # Delta writes and commits the rows of a merge in one call.
        between = () if merges else ("before-table-commit:2",)
        before = ("after-create", "before-plan:2", "after-plan:2", "after-take-over")
        self.points = (*before, *between, "after-table-commit:2", "before-offset-commit:2")

    def look(self, table: Path, topic: str) -> tuple[Rows, dict[int, int]]:
        """By the transaction identifiers of the newest version."""
        try:
            found = DeltaTable(table)
        except TableNotFoundError:
            return [], {}
        name = f"sluice/{CONNECTOR}"
        number = found.transaction_version(name)
        kind = "to" if number is not None and number % 2 else "from"
        read = (found.transaction_version(f"{name}/{topic}/{each}/{kind}") for each in range(PARTITIONS))
        offsets = {each: offset for each, offset in enumerate(read) if offset is not None}
        return _rows(found.to_pyarrow_table(columns=list(COLUMNS))), offsets

    def files(self, table: Path) -> set[str]:
        """By the newest version."""
        try:
            return {_path(uri) for uri in DeltaTable(table).file_uris()}
        except TableNotFoundError:
            return set()

    def former_files(self, table: Path) -> set[str]:
        """Those that the log has added, and the checkpoints of the log."""
        lines = [line for file in (table / "_delta_log").glob("*.json") for line in file.read_text().splitlines()]
        added = {str(table / action["add"]["path"]) for action in map(json.loads, lines) if "add" in action}
        return added | {str(path) for path in (table / "_delta_log").glob("*.parquet")}


def _rows(found: Any) -> Rows:
    return sorted(zip(*(found[name].to_pylist() for name in COLUMNS), strict=True))


def _path(place: str) -> str:
    return place.removeprefix("file://").removeprefix("file:")


@dataclass(frozen=True)
class Content:
    """What the records of a topic are, and what they make of the tables that they go to."""

    record: Callable[[int], tuple[bytes | None, bytes | None]]
    """A key and a value."""
    rows: Callable[[str, list[int]], Rows]
    """The rows that records of these numbers make of a table."""
    props: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    """The tables, if it is not the one of the topic."""


def record(number: int) -> tuple[bytes | None, bytes | None]:
    """A record whose row is added; later ones have a field more."""
    value = {"id": number, "number": number, "origin": ("EWR", "JFK", "LGA")[number % 3]}
    return None, json.dumps({**value, "gate": number} if number > FLUSH * PARTITIONS * 4 else value).encode()


def appended(_: str, numbers: list[int]) -> Rows:
    return [(number, number) for number in numbers]


def change(number: int) -> tuple[bytes | None, bytes | None]:
    """A change as Debezium tells of it: each seventh deletes the row of its key, a third of these by a tombstone."""
    key = {"id": number % KEYS}
    before = {**key, "number": number - KEYS} if number >= KEYS else None
    envelope = {"before": before, "after": {**key, "number": number}, "op": "u" if before else "c"}
    if is_deletion(number):
        envelope |= {"after": None, "op": "d"}
    return json.dumps(key).encode(), None if is_deletion(number) and number % 3 == 0 else json.dumps(envelope).encode()


def is_deletion(number: int) -> bool:
    return number % 7 == 3


def merged(_: str, numbers: list[int]) -> Rows:
    last = {number % KEYS: number for number in numbers}
    return sorted((key, number) for key, number in last.items() if not is_deletion(number))


def is_bad(number: int) -> bool:
    return number % 5 == 0


def routed_record(number: int) -> tuple[bytes | None, bytes | None]:
    """A record that says which table it is for, or a bad one."""
    value = json.dumps({"id": number, "number": number, "to": ("a", "b")[number // PARTITIONS % 2]}).encode()
    return None, b"{%d" % number if is_bad(number) else value


def routed(table: str, numbers: list[int]) -> Rows:
    return [(n, n) for n in numbers if not is_bad(n) and ("a", "b")[n // PARTITIONS % 2] == table]


APPENDS = Content(record, appended)
KEYED = {"key.converter": "converters.json.JsonConverter", "key.converter.schemas.enable": "false"}
UPSERTS = Content(change, merged, {"write.mode": "upsert", "upsert.envelope": "debezium", **KEYED})
ROUTE = {
    "transforms": "to",
    "transforms.to.type": "ExtractTopic$Value",
    "transforms.to.field": "to",
    "header.converter": "converters.simple_header.SimpleHeaderConverter",
}
ROUTED = Content(routed_record, routed, {"errors.tolerance": "all", **ROUTE}, ("a", "b"))


class Lake:
    """A topic, a store, and what readers see of its tables."""

    def __init__(
        self, table_format: Format, content: Content, bootstrap: str, topic: str, store: Path, records: int
    ) -> None:
        self.format = table_format
        self.content = content
        self.topic = topic
        self.records = records
        props = {**sink_props({"store.url": str(store)}), "table.format": table_format.source, **content.props}
        props |= SMALL_DELTA
        if content.props.get("errors.tolerance"):
            props["errors.deadletterqueue.topic.name"] = f"{topic}-dlq"
        self.loading = Loading(bootstrap, topic, props)
        self.tables = [store / "topics" / name for name in content.tables or (topic,)]
        self.left: set[str] = set()
        fill(bootstrap, topic, list(map(content.record, range(records))))

    def look(self) -> None:
        """A reader sees exactly what the records make that the offsets beside the rows say, whatever has happened."""
        self.loaded()

    def loaded(self) -> int:
        """How many records are loaded into the first table, after a look."""
        found = []
        for table in self.tables:
            rows, offsets = self.format.look(table, self.topic)
            numbers = [n for n in range(self.records) if n // PARTITIONS < offsets.get(n % PARTITIONS, 0)]
            assert rows == self.content.rows(table.name, numbers)
            found.append(sum(offsets.values()))
        return found[0]

    def phase(self) -> str:
        """In which phase the driver was killed, as the disk and the group's offsets tell."""
        files = {str(path) for table in self.tables for path in table.rglob("*.parquet")}
        staged = files - self.left - {place for table in self.tables for place in self.format.former_files(table)}
        self.left |= staged
        if self.loading.group_offset() < self.loaded():
            # Files that no version has are then of an attempt that was given up, as where a record has a new field.
            return "before the offset commit"
        return "files written, not committed" if staged else "no file written"

    def check_all(self) -> None:
        """Every record is loaded."""
        for table in self.tables:
            assert self.format.look(table, self.topic)[0] == self.content.rows(table.name, list(range(self.records)))

    def check_other_readers(self) -> None:
        """DuckDB, by the files that a table has, and Spark see the same."""
        for table in self.tables:
            expected = self.content.rows(table.name, list(range(self.records)))
            assert rows_of_duckdb(sorted(self.format.files(table)), COLUMNS) == expected
            assert rows_of_spark(self.loading.props, self.format.source, str(table), COLUMNS) == expected


CHOSEN = os.environ.get("SLUICE_LAKE_STORE")
EVERY = CHOSEN.split(",") if CHOSEN else ["iceberg", *thorough("delta", "iceberg-upserts", "delta-upserts")]
# Upserts are committed as appends are.
APPENDING = EVERY if EVERY_KILL else ["iceberg", "delta"]
CHOSEN_POINTS: Mapping[str, tuple[str, ...]] = {
    "iceberg": ("after-staging-write:2", "before-commit:2", "after-version:2"),
    "iceberg-others": ("before-staging-write:2", "after-claim"),
    "iceberg-upserts": ("after-commit:2",),
    "delta": ("after-plan:2", "before-table-commit:2"),
    "delta-others": ("after-create", "before-plan:2", "after-take-over"),
    "delta-upserts": ("after-table-commit:2",),
}
"""Where `make test-all` kills: at each point of a format once, whatever the rows are; `make test` where files or a plan
are left. What all formats have in common, the commit of the group's offsets, is in ``test_spark_kills.py``, and dead
letters in ``test_dead_letter_kills.py``."""
NAMED = EVERY if EVERY_KILL else [*EVERY, *thorough("iceberg-others", "delta-others")]


def format_of(kind: str) -> Format:
    return Iceberg() if kind.startswith("iceberg") else Delta(merges=kind.endswith("-upserts"))


def lake_of(kind: str, bootstrap: str, topic: str, store: Path, records: int) -> Lake:
    """A lake of a format, with upserts or without."""
    return Lake(format_of(kind), UPSERTS if kind.endswith("-upserts") else APPENDS, bootstrap, topic, store, records)


@pytest.mark.parametrize("kind", NAMED)
def test_kills_at_every_named_point(
    kind: str, bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str]
) -> None:
    lake = lake_of(kind, bootstrap, topic, tmp_path, 40 * FLUSH)
    phases: dict[str, str] = {}
    # Spark has nothing to do at any of these points: they are the driver's own.
    points = lake.format.points if EVERY_KILL else CHOSEN_POINTS[kind]
    with watched(lake.look):
        for point in points:
            with lake.loading.driver(FLUSH, point, spark_java) as process:
                assert process.wait() == -signal.SIGKILL, point
            phases[point] = lake.phase()
        lake.loading.drain(lake.records, spark_java)
        lake.check_all()
    for point, phase in phases.items():
        print(f"killed at {point:24} -> {phase}")
    assert phases == {point: lake.format.expected.get(point, phase) for point, phase in phases.items()}


BETWEEN: Mapping[str, tuple[str, ...]] = {
    "iceberg": ("before-dead-letters", "after-dead-letters:2", "between-tables", "between-tables:2"),
    "delta": ("after-table-commit", "after-table-commit:3"),
}


@pytest.mark.parametrize("kind", [*thorough("iceberg"), "delta"])
def test_kills_between_tables_and_around_dead_letters(
    kind: str, bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str]
) -> None:
    lake = Lake(format_of(kind), ROUTED, bootstrap, topic, tmp_path, 20 * FLUSH)
    # Each load comes by these points twice. All formats have the same dead letters.
    points = BETWEEN[kind] if EVERY_KILL else BETWEEN[kind][-1:]
    with watched(lake.look):
        for point in points:
            with lake.loading.driver(FLUSH, point, spark_java) as process:
                assert process.wait() == -signal.SIGKILL, point
            assert max(told(lake).values(), default=1) == 1, point
        lake.loading.drain(lake.records, spark_java)
    lake.check_all()
    assert told(lake) == Counter(filter(is_bad, range(lake.records)))


def told(lake: Lake) -> Counter[int]:
    """The numbers in the dead letter queue."""
    letters = dead_letters(lake.loading.bootstrap, f"{lake.topic}-dlq")
    return Counter(int((letter.value() or b"")[1:]) for letter in letters)


@pytest.mark.skipif(not CHOSEN, reason="make lake-kills STORE=iceberg kills at random moments, or STORE=delta")
@pytest.mark.parametrize("kind", EVERY)
def test_kills_at_random_moments(
    kind: str, bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str]
) -> None:
    moments = seeded()
    lake = lake_of(kind, bootstrap, topic, tmp_path, 40_000)
    phases: Counter[str] = Counter()
    with watched(lake.look) as reader:
        for number in range(KILLS):
            kind = VICTIMS[number % len(VICTIMS)]
            # What a killed driver has told Java to do, one that survives it goes on with.
            with lake.loading.driver(FLUSH, java=spark_java if kind == "driver" else None) as process:
                loads = lake.loaded() + PARTITIONS * FLUSH * moments.choice((0, 1, 1, 2))
                wait_until("loads are committed", lambda at=loads: lake.loaded() >= at, seconds=PATIENCE)
                killed = kill_soon(process, kind, moments.uniform(0, 2.5))
            phase = f"{killed}: {lake.phase()}"
            print(f"kill {number + 1}, of {phase}", flush=True)
            phases[phase] += 1
        lake.loading.drain(lake.records, spark_java)
        lake.check_all()
    for phase, count in sorted(phases.items()):
        print(f"{count:3} kills of {phase}")
    print(f"{reader.looks} looks")
    if CHOSEN:
        lake.check_other_readers()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", APPENDING)
def test_a_driver_that_was_frozen_commits_nothing(
    kind: str, bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str]
) -> None:
    lake = lake_of(kind, bootstrap, topic, tmp_path, 120 * FLUSH)
    with watched(lake.look), lake.loading.driver(FLUSH) as frozen:
        wait_until("a load is committed", lambda: lake.loaded() > 0, seconds=PATIENCE)
        # Its Java goes on with what it was told, as that of a driver does whose machine has too little memory.
        os.kill(frozen.pid, signal.SIGSTOP)
        lake.loading.drain(lake.records, spark_java)
        os.kill(frozen.pid, signal.SIGCONT)
        assert frozen.wait() != 0
    lake.check_all()
