"""Delta tables from a topic on the broker to what readers of the tables see, Delta's own and one that is not."""

from __future__ import annotations

import datetime as dt
import json
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError

from connect.data import TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connectors.spark.delta.log import DeltaLog, StaleLogError
from connectors.spark.sink.target import FencedError
from equipment.brokers.dead_letters import dead_letters
from equipment.proofs import thorough, thorough_stories
from equipment.stores.targets import JSON, UPSERT, LoadedTable, TargetContract, UpsertContract, progress_of
from equipment.waiting import wait_until
from equipment.workers.small_spark import SMALL_DELTA

SparkContext = pytest.importorskip("pyspark").SparkContext
SparkSession = pytest.importorskip("pyspark.sql").SparkSession
udf = pytest.importorskip("pyspark.sql.functions").udf

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    # Connections to Java of threads that have ended are left to the garbage collector by py4j.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ENVELOPED = {"value.converter": "converters.json.JsonConverter"}


class Sink(LoadedTable):
    """A topic, and tasks that load it into a table of Delta."""

    topic_id = "an-id"
    own_props: ClassVar = {"table.format": "delta", **SMALL_DELTA}

    def table(self, name: str | None = None) -> DeltaTable:
        return DeltaTable(self.path(name))

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows that the deltalake package reads, or Spark where columns were widened, which it cannot read."""
        try:
            rows: list[dict[str, Any]] = self.table(table).to_pyarrow_table().to_pylist()
        except DeltaProtocolError:
            rows = self.sql(f"SELECT * FROM delta.`{self.path(table)}`")
        return sorted(rows, key=lambda row: row["id"])

    def files(self) -> list[str]:
        return self.table().file_uris() if (self.path() / "_delta_log").exists() else []

    def sql(self, statement: str) -> list[dict[str, Any]]:
        """What Spark answers; ``{table}`` stands for the table of the topic."""
        session = SparkSession.getActiveSession()
        assert session is not None
        rows = session.sql(statement.replace("{table}", f"delta.`{self.path()}`")).collect()
        return [row.asDict(recursive=True) for row in rows]


@pytest.fixture(scope="module", autouse=True)
def session(table_java: None) -> Iterator[None]:
    """Spark, started by the first task and kept for all tests of this file."""
    yield
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()


@pytest.fixture
def sink(bootstrap: str, topic: str, tmp_path: Path) -> Sink:
    return Sink(bootstrap, topic, tmp_path)


@thorough_stories(
    "test_what_the_first_records_of_a_large_load_do_not_show_is_found",
    "test_a_preview_shows_the_columns_that_the_table_would_get_and_fences_nobody",
    "test_topics_are_loaded_at_once_into_tables_of_their_own",
    "test_of_two_drivers_the_later_one_has_the_table",
    "test_a_first_load_without_one_usable_record_has_its_dead_letters",
    "test_a_table_follows_the_columns_of_its_source",
    "test_a_table_grows_and_another_driver_goes_on_with_it",
    "test_a_table_is_what_a_stream_of_changes_says",
)
class TestDelta(TargetContract, UpsertContract):
    @pytest.fixture
    def target(self, sink: Sink) -> Sink:
        return sink


def test_a_table_keeps_its_offsets_whoever_else_writes_to_it(sink: Sink) -> None:
    sink.records.produce([{"id": n, "at": {"gate": "B1"}} for n in range(20)])
    task = sink.task()
    sink.records.drain(task)
    files = [Path(uri.removeprefix("file://")) for uri in sink.files()]
    written = sum(file.stat().st_size for file in files)
    assert progress_of(task).bytes == written
    (metrics,) = (row["operationMetrics"] for row in sink.sql("DESCRIBE HISTORY {table} LIMIT 1"))
    assert metrics == {"numAddedFiles": "2", "numOutputRows": "20", "numOutputBytes": str(written)}

    sink.records.produce([{"id": n, "delay": n / 2, "at": {"gate": "B2", "floor": 2}} for n in range(20, 40)])
    sink.records.drain(task)
    assert sink.rows()[0] == {"id": 0, "delay": None, "at": {"gate": "B1", "floor": None}}
    assert sink.rows()[20] == {"id": 20, "at": {"gate": "B2", "floor": 2}, "delay": 10.0}

    # Delta answers such a statement by rewriting files; a checkpoint is then all that is left of the log before it.
    sink.sql("DELETE FROM {table} WHERE id < 5")
    sink.sql("OPTIMIZE {table}")
    log = sink.table()
    log.create_checkpoint()
    for version in range(log.version()):
        (sink.path() / "_delta_log" / f"{version:020}.json").unlink()

    restarted = sink.task()
    assert restarted.committed() == dict(sink.records.ends)
    sink.records.produce([{"id": 40}])
    sink.records.drain(restarted)
    assert [row["id"] for row in sink.rows()] == list(range(5, 41))
    table = sink.table()
    assert table.transaction_version("sluice/sink") % 2 == 1
    assert table.transaction_version(f"sluice/sink/{sink.topic}/0/to") == 21


def test_rows_and_offsets_are_committed_without_reading_the_list_of_files(sink: Sink) -> None:
    """For a table of many files, that is a long job."""
    sink.records.produce([{"id": 1}])
    sink.records.drain(sink.task())
    session = SparkSession.getActiveSession()
    assert session is not None
    log = DeltaLog(session, str(sink.path()))
    session.sparkContext.setJobGroup("offsets", "offsets")
    try:
        before = log.versions("sluice/sink")
        assert before
        log.set_versions("sluice/sink", before, {"sluice/sink": before["sluice/sink"] + 2}, 1)
        planned = {**before, "sluice/sink": before["sluice/sink"] + 2}
        assert log.versions("sluice/sink") == planned
        assert jobs(session, "offsets") == 0
        rows = session.createDataFrame([(2, "new")], "id long, note string").coalesce(1)
        log.append(rows, "sluice/sink", planned, {"sluice/sink": planned["sluice/sink"] + 1}, 1)
        assert log.versions("sluice/sink") == {**planned, "sluice/sink": planned["sluice/sink"] + 1}
        # The rows themselves are written by one.
        assert jobs(session, "offsets") == 1
    finally:
        session.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert [(row["id"], row["note"]) for row in sink.rows()] == [(1, None), (2, "new")]
    for stale in (log.set_versions, partial(log.append, rows)):
        with pytest.raises(StaleLogError):
            stale("sluice/sink", before, {"sluice/sink": 0}, 1)


# Delta takes the one for a conflict with another commit, and the other not.
@pytest.mark.parametrize("obstruct", [*thorough(Path.touch), Path.mkdir])
def test_commits_that_failed_but_are_in_the_log_count(sink: Sink, obstruct: Callable[[Path], None]) -> None:
    """Hadoop moves a commit to its name, and after that its checksum, for which there is no room here."""
    sink.records.produce([{"id": 1}])
    task = sink.task()
    sink.records.drain(task)
    newest = sink.table().version()
    for version in (newest + 1, newest + 2):
        obstruct(sink.path() / "_delta_log" / f".{version:020}.json.crc")
    sink.records.produce([{"id": 2}])
    sink.records.drain(task)
    assert (sink.rows(), sink.table().version()) == ([{"id": 1}, {"id": 2}], newest + 2)


def jobs(session: SparkSession, group: str) -> int:
    """How many jobs of this group Spark has run."""
    return len(session.sparkContext.statusTracker().getJobIdsForGroup(group))


@pytest.mark.thorough
def test_a_preview_of_changes_shows_the_last_of_each_key(sink: Sink) -> None:
    sink.records.produce([{"id": 0, "n": 1}, {"id": 0, "n": 2}, None], [{"id": 0}, {"id": 0}, {"id": 1}])
    (table,) = sink.previewed(UPSERT)
    assert table.schema.field_names == ("id", "n", "(deleted)")
    rows = sorted(table.rows, key=lambda row: row["id"])
    assert rows == [{"id": 0, "n": 2, "(deleted)": False}, {"id": 1, "n": None, "(deleted)": True}]
    assert not sink.path().exists()


@pytest.mark.thorough
def test_columns_are_exact_or_refused(sink: Sink) -> None:
    logical = "org.apache.kafka.connect.data"

    def enveloped(kind: str, value: Any) -> dict[str, Any]:
        fields = [
            {"field": "id", "type": kind, "optional": False},
            {"field": "price", "type": "bytes", "name": f"{logical}.Decimal", "parameters": {"scale": "2"}},
            {"field": "day", "type": "int32", "name": f"{logical}.Date"},
            {"field": "time of day", "type": "int32", "name": f"{logical}.Time"},
            {"field": "at", "type": "int64", "name": f"{logical}.Timestamp", "optional": True},
            {"field": "raw", "type": "bytes", "optional": True},
            {"field": "counts", "type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}},
        ]
        return {"schema": {"type": "struct", "fields": fields}, "payload": value}

    row = {
        "price": "AN4=",
        "day": 19000,
        "time of day": 3_600_001,
        "at": 1_600_000_000_123,
        "raw": "AAE=",
        "counts": {"a": 1},
    }
    task = sink.task(ENVELOPED)
    sink.records.produce([enveloped("int32", {**row, "id": 1})])
    sink.records.drain(task)
    restarted = sink.task(ENVELOPED)
    sink.records.produce([enveloped("int64", {**row, "id": 2**40, "at": None})])
    sink.records.drain(restarted)
    found = sink.sql("SELECT *, unix_millis(at) AS millis FROM {table} ORDER BY id")
    assert found[0] | {"at": None} == {
        "id": 1,
        "price": Decimal("2.22"),
        "day": dt.date(2022, 1, 8),
        "time of day": 3_600_001,
        "at": None,
        "raw": bytearray(b"\0\1"),
        "counts": {"a": 1},
        "millis": 1_600_000_000_123,
    }
    assert (found[1]["id"], found[1]["at"]) == (2**40, None)

    sink.records.produce([enveloped("string", {**row, "id": "text"})])
    with pytest.raises(DataError, match=r"Bad record in topic .*, partition 0, offset 2"):
        restarted.load(sink.records.ranges(restarted.committed()))
    assert len(sink.sql("SELECT * FROM {table}")) == 2


def test_records_whose_names_or_types_delta_cannot_take_are_bad_ones(sink: Sink) -> None:
    task = sink.task(sink.queue())
    sink.records.produce([{"id": 1, "old": "a", "of": {"x": 1}}])
    sink.records.drain(task)
    others = [{"id": 2, "OLD": "b"}, {"id": 3, "new": 1}, {"id": 4, "of": {"X": 1}}, {"id": 5, "NEW": 2}]
    sink.records.produce(others)
    sink.records.drain(task)
    assert sink.rows() == [
        {"id": 1, "old": "a", "of": {"x": 1}, "new": None},
        {"id": 3, "old": None, "of": None, "new": 1},
    ]
    assert len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq")) == 3
    sink.records.produce([{"id": 6, "old": "x", "OLD": "y"}])
    with pytest.raises(DataError, match=r"offset 3: The target cannot distinguish the fields OLD, old"):
        sink.records.drain(sink.task())


@pytest.mark.parametrize("name", ["_k", *thorough("k", ".k")])
def test_a_value_that_a_partition_of_delta_cannot_tell_is_a_bad_record(sink: Sink, name: str) -> None:
    task = sink.task({**sink.divided_by(name), **sink.queue()})
    good, bad = [None, "null", "a/b", "y" * 230], ["", "__HIVE_DEFAULT_PARTITION__", "y" * 300]
    for load in range(2):
        sink.records.produce([{"id": 10 * load + number, name: value} for number, value in enumerate([*good, *bad])])
        sink.records.drain(task)
    assert sink.rows() == [{"id": 10 * load + at, name: value} for load in range(2) for at, value in enumerate(good)]
    assert len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq")) == 2 * len(bad)
    sink.records.produce([{"id": 30, name: ""}])
    with pytest.raises(DataError, match=r"Bad record in topic .* whose folder readers take for null"):
        sink.records.drain(sink.task({**JSON, **sink.divided_by(name)}))


@pytest.mark.thorough
def test_a_value_that_a_table_of_others_requires_is_missed_in_a_bad_record(sink: Sink) -> None:
    task = sink.task(sink.queue())
    sink.sql("CREATE TABLE {table} (id BIGINT NOT NULL, v STRING NOT NULL, of STRUCT<a: BIGINT NOT NULL>) USING delta")
    for load in range(2):
        bad = [{"id": 2}, {"id": 3, "v": None}, {"v": "x", "of": {"a": 1}}, {"id": 4, "v": "x", "of": {"a": None}}]
        sink.records.produce([*bad, {"id": 10 + load, "v": "a", "of": {"a": 1}}])
        sink.records.drain(task)
    assert [row["id"] for row in sink.rows()] == [10, 11]
    assert len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq")) == 8
    sink.records.produce([{"id": 30}])
    with pytest.raises(DataError, match=r"Bad record in topic .* v is null, which the table does not allow"):
        sink.records.drain(sink.task())


def test_a_table_that_grows_logs_no_error_of_spark(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    task = sink.task(sink.queue())
    for values in ([{"id": 1}], [{"id": 2, "more": 1}], [{"id": 3, "more": 2, "again": 1.5}, b"not json"]):
        sink.records.produce(values)
        sink.records.drain(task)
    assert [row["id"] for row in sink.rows()] == [1, 2, 3]
    # What Java writes is read by another thread: a line of ours after it tells that all is there.
    session = SparkSession.getActiveSession()
    assert session is not None
    session._jvm.java.lang.System.err.println("|WARN| Test: the end")
    wait_until("Java's output is read", lambda: "Test: the end" in caplog.text)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.thorough
def test_a_value_for_which_delta_cannot_widen_a_column_is_a_bad_record(sink: Sink) -> None:
    def typed(number: int, kind: str, value: Any) -> dict[str, Any]:
        fields = [{"field": "id", "type": "int64"}, {"field": "v", "type": kind, "optional": True}]
        return {"schema": {"type": "struct", "fields": fields}, "payload": {"id": number, "v": value}}

    task = sink.task({**sink.queue(), "value.converter.schemas.enable": "true"})
    sink.records.produce([typed(1, "int16", 7)])
    sink.records.drain(task)
    sink.records.produce([typed(2, "float", 0.5)])
    sink.records.drain(task)
    sink.records.produce([typed(3, "int32", 2**20)])
    sink.records.drain(task)
    assert sink.sql("SELECT * FROM {table} ORDER BY id") == [{"id": 1, "v": 7}, {"id": 3, "v": 2**20}]
    assert len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq")) == 1


@pytest.mark.thorough
def test_routed_records_are_in_each_table_once_however_a_load_ends(sink: Sink) -> None:
    routed = {
        **JSON,
        "transforms": "route",
        "transforms.route.type": "ExtractTopic$Value",
        "transforms.route.field": "to",
    }
    task = sink.task(routed)
    sink.records.produce([{"id": n, "to": ("a", "b")[n % 2]} for n in range(10)])
    sink.records.drain(task)
    properties = f"delta.`{sink.path('b')}` {{}} TBLPROPERTIES ('delta.setTransactionRetentionDuration'{{}})"
    sink.sql("ALTER TABLE " + properties.format("SET", " = 'interval 1 day'"))
    sink.records.produce([{"id": n, "to": ("a", "b", "c")[n % 3], "more": 1} for n in range(10, 20)])
    with pytest.raises(ConnectError, match="would forget the connector's offsets"):
        task.load(sink.records.ranges(task.committed()))
    assert [row["id"] for row in sink.rows("a")] == [0, 2, 4, 6, 8, 12, 15, 18]
    sink.sql("ALTER TABLE " + properties.format("UNSET", ""))

    restarted = sink.task(routed)
    assert set(restarted.committed().values()) == {5}
    sink.records.produce([{"id": n, "to": "a"} for n in range(20, 24)])
    sink.records.drain(restarted)
    assert [row["id"] for row in sink.rows("a")] == [0, 2, 4, 6, 8, 12, 15, 18, 20, 21, 22, 23]
    assert [row["id"] for row in sink.rows("b")] == [1, 3, 5, 7, 9, 10, 13, 16, 19]
    assert [row["id"] for row in sink.rows("c")] == [11, 14, 17]
    assert dict(sink.task(routed).committed()) == dict(sink.records.ends)


@pytest.mark.thorough
def test_a_table_that_is_taken_over_during_a_load_does_not_get_its_rows(sink: Sink) -> None:
    from connectors.spark.sink.delta.table import DeltaTable as Table  # noqa: PLC0415 - needs pyspark

    sink.records.produce([{"id": n} for n in range(3)])
    sink.records.drain(sink.task())

    # The table is taken over just before the rows of a load are written, and while they are.
    session = SparkSession.getActiveSession()
    path, tp = str(sink.path()), TopicPartition(sink.topic, 0)
    rows = session.createDataFrame([(9,)], "id long")

    def taken_over_before(zombie: Table, application: str, version: int) -> None:
        Table(session, sink.topic, path, "sink").take_over()
        zombie.append(rows, application, version)

    def taken_over_meanwhile(zombie: Table, application: str, version: int) -> None:
        begun, over = sink.store / "begun", sink.store / "taken-over"

        def slow(number):
            begun.touch()
            while not over.exists():
                time.sleep(0.02)
            return number

        slowly = session.range(1).select(udf(slow, "long")("id").alias("id"))
        with ThreadPoolExecutor(1) as other:
            writing = other.submit(zombie.append, slowly, application, version)
            wait_until("the rows are being written", begun.exists, seconds=120)
            Table(session, sink.topic, path, "sink").take_over()
            over.touch()
            writing.result()

    for write in (taken_over_before, taken_over_meanwhile):
        zombie = Table(session, sink.topic, path, "sink")
        with pytest.raises(FencedError):
            zombie.load({tp: 2}, {tp: 3}, routed=False, ids={}, windows={}, write=partial(write, zombie))
    assert [row["id"] for row in sink.rows()] == [0, 1, 2]


def test_a_load_whose_commit_is_not_in_the_log_is_repeated(sink: Sink) -> None:
    """As where another writer has overwritten its version."""
    from connectors.spark.sink.delta.table import DeltaTable as Table  # noqa: PLC0415 - needs pyspark

    sink.records.produce([{"id": 0}])
    sink.records.drain(sink.task())
    table, tp = (
        Table(SparkSession.getActiveSession(), sink.topic, str(sink.path()), "sink"),
        TopicPartition(sink.topic, 0),
    )
    with pytest.raises(RetriableError, match="no longer in the log"):
        table.load({tp: 1}, {tp: 2}, routed=False, ids={}, windows={}, write=lambda *_: None)
    sink.records.produce([{"id": 1}])
    sink.records.drain(sink.task())
    assert [row["id"] for row in sink.rows()] == [0, 1]


def test_a_checksum_of_a_commit_that_was_replaced_is_not_believed(sink: Sink) -> None:
    """As where another writer overwrites a version: the records of the lost commit are loaded again."""
    sink.records.produce([{"id": 0}, {"id": 1}])
    sink.records.drain(sink.task())
    plan = sink.table().version()
    task = sink.task()
    sink.records.produce([{"id": 2}, {"id": 3}])
    sink.records.drain(task)
    log = sink.path() / "_delta_log"
    rows = {path: json.loads(path.read_text().splitlines()[0]) for path in log.glob("*.json")}
    newest = max(path for path in rows if int(path.stem) > plan)
    theirs = {"commitInfo": {**rows[newest]["commitInfo"], "txnId": str(uuid.uuid4()), "operation": "OPTIMIZE"}}
    newest.write_text(json.dumps(theirs) + "\n")
    (log / f".{newest.name}.crc").unlink(missing_ok=True)
    assert [row["id"] for row in sink.rows()] == [0, 1]

    restarted = sink.task()
    sink.records.drain(restarted)
    sink.records.produce([{"id": 4}, {"id": 5}])
    sink.records.drain(sink.task())
    assert [row["id"] for row in sink.rows()] == list(range(6))


@pytest.mark.thorough
def test_a_load_whose_java_was_killed_is_repeated(sink: Sink) -> None:
    sink.records.produce([{"id": 0}])
    task = sink.task()
    sink.records.drain(task)
    java = SparkContext._gateway
    assert java is not None
    java.proc.kill()  # type: ignore[attr-defined]
    java.proc.wait()  # type: ignore[attr-defined]
    sink.records.produce([{"id": 1}])
    with pytest.raises(RetriableError):
        task.load(sink.records.ranges(task.committed()))
    sink.records.drain(task)
    assert [row["id"] for row in sink.rows()] == [0, 1]
