"""Iceberg tables from a topic on the broker to what readers that are not Spark see of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from connect.bulk import OffsetRange
from connect.data import Schema, TopicPartition
from connect.errors import RetriableError
from connectors.spark.decoding.changes import CHANGE_COLUMN
from connectors.spark.iceberg.catalog import Change, IcebergCatalog, TableName
from connectors.spark.sink import make_target
from connectors.spark.sink.compaction import compact
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.iceberg.layout import write_options
from connectors.spark.sink.iceberg.staging import Staged
from connectors.spark.sink.target import FencedError
from equipment.proofs import thorough, thorough_stories
from equipment.servers.iceberg_rest import rest_catalog
from equipment.stores.iceberg_lake import ENVELOPED, IcebergLake, iceberg_session
from equipment.stores.targets import UPSERT, TargetContract, UpsertContract, progress_of

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.timeout(1200),
    # Connections to Java of threads that have ended are left to the garbage collector by py4j.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DIGITS = {"version": 1, "parameters": {"scale": "2", "connect.decimal.precision": "9"}}


@pytest.fixture(scope="module", autouse=True)
def session(table_java: None) -> Iterator[Any]:
    """Spark, kept for all tests of this file."""
    with iceberg_session() as spark:
        yield spark


@pytest.fixture
def lake(bootstrap: str, topic: str, tmp_path: Path) -> IcebergLake:
    return IcebergLake(bootstrap, topic, tmp_path)


@thorough_stories(
    "test_a_preview_shows_the_columns_that_the_table_would_get_and_fences_nobody",
    "test_topics_are_loaded_at_once_into_tables_of_their_own",
    "test_of_two_drivers_the_later_one_has_the_table",
    "test_a_first_load_without_one_usable_record_has_its_dead_letters",
    "test_the_files_of_loads_are_merged_and_the_offsets_stay",
)
class TestIceberg(TargetContract, UpsertContract):
    upsert_props: ClassVar = {"iceberg.tables.default-partition-by": "bucket(3, id), origin"}

    @pytest.fixture
    def target(self, lake: IcebergLake) -> IcebergLake:
        return lake

    def check(self, target: IcebergLake) -> None:
        offsets = target.table().properties["sluice.offsets.lake"]
        assert offsets == json.dumps(target.offsets(), separators=(",", ":"))
        assert not any(task.delete_files for task in target.table().scan().plan_files())

    @pytest.mark.thorough
    def test_what_the_first_records_of_a_large_load_do_not_show_is_found(self, target: IcebergLake) -> None:
        super().test_what_the_first_records_of_a_large_load_do_not_show_is_found(target)
        # Of the attempt that knew only the first records nothing is left.
        assert target.files_there() == set(target.files())
        assert all("-c00" in name for name in target.files())


def test_commits_carry_the_offsets(lake: IcebergLake) -> None:
    lake.records.produce([{"id": n} for n in range(20)])
    task = lake.task()
    lake.records.drain(task)
    assert lake.offsets() == {lake.topic: {"next": [10, 10]}}
    files = [item.file for item in lake.table().scan().plan_files()]
    assert progress_of(task).bytes == sum(file.file_size_in_bytes for file in files)

    lake.records.produce([{"id": n} for n in range(20, 40)])
    lake.records.drain(task)
    assert len(lake.table().metadata.snapshots) == 2
    assert lake.offsets() == {lake.topic: {"next": [20, 20]}}
    assert lake.table().properties["sluice.offsets.lake"] == json.dumps(lake.offsets(), separators=(",", ":"))


def test_a_small_load_of_changes_writes_one_file(lake: IcebergLake) -> None:
    lake.records.produce([{"id": n} for n in range(300)], keys=[{"id": n} for n in range(300)])
    lake.records.drain(lake.task(UPSERT))
    assert lake.table().scan().to_arrow().num_rows == 300
    assert len(lake.files()) == 1


DECLARED: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "id": ("int64", range(4)),
    "small": ("int8", [1, -1, None, 3]),
    "short": ("int16", [300, None, -5, 0]),
    "number": ("int32", [7, 8, 9, None]),
    "ratio": ("float", [0.5, None, -1.5, 2.0]),
    "delay": ("double", [0.1, -2.5, None, 1e300]),
    "late": ("boolean", [True, False, None, True]),
    "name": ("string", ["x" * 40, "\u00e9", None, ""]),
    "raw": ("bytes", ["AAEC", "/w==", None, ""]),
    "price": (
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", **DIGITS},
        ["MDk=", "z8c=", None, "AA=="],
    ),
    "day": ({"type": "int32", "name": "org.apache.kafka.connect.data.Date"}, [0, 19_000, None, -1]),
    "clock": ({"type": "int32", "name": "org.apache.kafka.connect.data.Time"}, [0, 1000, None, 5]),
    "at": ({"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}, [0, 1_700_000_000_123, None, -1]),
    "tags": ({"type": "array", "items": {"type": "int16", "optional": True}}, [[1, 2], [], None, [None]]),
    "gate": (
        {"type": "struct", "fields": [{"field": "floor", "type": "int8", "optional": True}]},
        [{"floor": 1}, {"floor": None}, None, {"floor": 2}],
    ),
    "counts": (
        {"type": "map", "keys": {"type": "string"}, "values": {"type": "int64", "optional": True}},
        [{"a": 1}, {}, None, {"b": None}],
    ),
}
"""Fields of every kind, each with four values."""


def declared_records() -> list[dict[str, Any]]:
    fields = [
        {"field": name, "optional": True, **(kind if isinstance(kind, dict) else {"type": kind})}
        for name, (kind, _) in DECLARED.items()
    ]
    schema = {"type": "struct", "fields": fields}
    return [
        {"schema": schema, "payload": {name: values[number] for name, (_, values) in DECLARED.items()}}
        for number in range(4)
    ]


def test_the_files_of_executors_are_those_that_spark_would_write(
    lake: IcebergLake, bootstrap: str, session: Any
) -> None:
    of_spark = IcebergLake(bootstrap, f"{lake.topic}-spark", lake.store)
    # A property that says how files are written leaves them to Spark.
    ways = ((lake, {}), (of_spark, {"iceberg.tables.auto-create-props.write.parquet.page-size-bytes": "1048576"}))
    for each, own in ways:
        each.records.produce(declared_records())
        each.records.drain(each.task({**ENVELOPED, **own, "topics": each.topic}))
    assert all("-c00" in name for name in lake.files())
    assert not any("-c00" in name for name in of_spark.files())
    assert repr(lake.rows()) == repr(of_spark.rows())
    assert lake.table().schema() == of_spark.table().schema()
    assert lake.statistics() == of_spark.statistics()
    seen = [session.read.format("iceberg").load(str(each.store / "topics" / each.topic)) for each, _ in ways]
    assert seen[0].schema == seen[1].schema
    assert repr(sorted(seen[0].collect())) == repr(sorted(seen[1].collect()))
    # Spark finds the same files by their statistics.
    assert [frame.where("id = 3 AND at < timestamp_millis(0)").count() for frame in seen] == [1, 1]


def test_a_column_that_others_have_renamed_keeps_its_values(lake: IcebergLake, session: Any) -> None:
    lake.records.produce([{"id": 1, "origin": "EWR"}])
    task = lake.task()
    lake.records.drain(task)
    table = IcebergCatalog(session, task.config).table(TableName(("topics",), lake.topic))
    assert table is not None
    table.java_table.updateSchema().renameColumn("origin", "airport").commit()
    lake.records.produce([{"id": 2, "origin": "JFK"}])
    again = lake.task()
    lake.records.drain(again)
    assert lake.rows() == [
        {"id": 1, "airport": "EWR", "origin": None},
        {"id": 2, "airport": None, "origin": "JFK"},
    ]
    assert all("-c00" in name for name in lake.files())


def change_of(session: Any, rows: Sequence[tuple[int, str | None]]) -> tuple[Any, Schema]:
    """Changes as the executors make them: rows by id, deleted where there is no name, and their schema."""
    about = "struct<deleted:boolean,partition:bigint,offset:bigint,key:struct<id:bigint>>"
    data = [(n, name, (name is None, 0, at, (n,))) for at, (n, name) in enumerate(rows)]
    frame = session.createDataFrame(data, f"id bigint, name string, {CHANGE_COLUMN} {about}")
    key = Schema.struct({"id": Schema.int64()})
    change = Schema.struct({"deleted": Schema.boolean(), "key": key})
    fields = {"id": Schema.int64(optional=True), "name": Schema.string(optional=True), CHANGE_COLUMN: change}
    return frame, Schema.struct(fields)


def test_a_merge_writes_few_files_anew_and_not_those_that_others_have_changed_meanwhile(
    lake: IcebergLake, session: Any
) -> None:
    config = SparkSinkConfig.parse(lake.props(UPSERT))
    catalog = IcebergCatalog(session, config)
    name = TableName(("topics",), lake.topic)
    columns = Schema.struct({"id": Schema.int64(optional=True), "name": Schema.string(optional=True)})

    def merged(change: Change, rows: Sequence[tuple[int, str | None]]) -> Staged:
        staged = Staged(change, "main", columns, write_options(config))
        frame, schema = change_of(session, rows)
        written = staged.merge(frame, schema)
        assert sum(file.recordCount() for file in written.files) == written.rows
        staged.files, staged.replaced = list(written.files), list(written.replaced)
        return staged

    def committed(staged: Staged) -> None:
        staged.change.add_snapshot(staged.files, staged.replaced, "main", {})
        staged.change.commit()

    def change() -> Change:
        table = catalog.table(name)
        assert table is not None
        return table.change()

    def there() -> list[tuple[int, str, int]]:
        now = change()
        with now.rows(now.planned("main", {})) as rows:
            return sorted((row.id, row.name, row._row_id) for row in rows.collect())

    # The newest format knows of each row which one it is, also when its file is written anew.
    committed(merged(catalog.new_table(name, columns, (), {"format-version": "3"}), [(1, "a"), (2, "b"), (2, "c")]))
    committed(merged(change(), [(10, "j"), (11, "k"), (12, None)]))
    before = there()
    assert [row[:2] for row in before] == [(1, "a"), (2, "c"), (10, "j"), (11, "k")]
    several = merged(change(), [(2, None), (3, "d"), (7, None)])
    assert len(several.replaced) == 1
    # Nothing comes of changes that change nothing.
    assert merged(change(), [(5, None)]).files == []
    committed(merged(change(), [(20, "x")]))
    with pytest.raises(RetriableError, match="were changed during"):
        several.repeat_on(change())
    committed(merged(change(), [(2, None), (3, "d"), (7, None)]))
    after = there()
    assert [row[:2] for row in after] == [(1, "a"), (3, "d"), (10, "j"), (11, "k"), (20, "x")]
    assert set(after) & set(before) == {row for row in before if row[0] != 2}


def altered(spark: Any, folder: Path, statement: Any) -> None:
    """Change a table as another engine does."""
    java = spark._jvm
    tables = java.org.apache.iceberg.hadoop.HadoopTables(spark._jsparkSession.sessionState().newHadoopConf())
    statement(tables.load(str(folder)), java)


def test_two_live_drivers_and_other_writers(lake: IcebergLake, session: Any) -> None:
    folder = lake.store / "topics" / lake.topic
    lake.records.produce([{"id": n} for n in range(10)])
    first = lake.task()
    lake.records.drain(first)
    second = lake.task()
    lake.records.produce([{"id": n} for n in range(10, 20)])
    # The first one is alive and knows of nothing: it writes its files, and finds its table taken.
    with pytest.raises(FencedError, match="has taken over table topics"):
        lake.records.drain(first)
    assert len(lake.rows()) == 10
    lake.records.drain(second)
    assert [row["id"] for row in lake.rows()] == list(range(20))
    with pytest.raises(FencedError, match="has taken over table topics"):
        first.load([OffsetRange(lake.topic, 0, 5, 10)])

    # A rollback takes records away; they are loaded again.
    def taken_back(table: Any, _: Any) -> None:
        table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()).commit()

    altered(session, folder, taken_back)
    assert len(lake.rows()) == 10
    third = lake.task()
    lake.records.drain(third)
    assert [row["id"] for row in lake.rows()] == list(range(20))

    # Others commit and expire: the offsets have no snapshot left, and are known all the same.
    def expired(table: Any, _: Any) -> None:
        table.newAppend().commit()
        kept = table.currentSnapshot().snapshotId()
        for snapshot in table.snapshots():
            if snapshot.snapshotId() != kept:
                table.expireSnapshots().expireSnapshotId(snapshot.snapshotId()).commit()

    altered(session, folder, expired)
    assert len(lake.table().metadata.snapshots) == 1
    lake.records.produce([{"id": n} for n in range(20, 24)])
    fourth = lake.task()
    assert fourth.committed() == {TopicPartition(lake.topic, 0): 10, TopicPartition(lake.topic, 1): 10}
    lake.records.drain(fourth)
    assert [row["id"] for row in lake.rows()] == list(range(24))

    # Another column while a driver is at work: the load is made again.
    altered(
        session,
        folder,
        lambda table, java: (
            table.updateSchema().addColumn("note", java.org.apache.iceberg.types.Types.StringType.get()).commit()
        ),
    )
    lake.records.produce([{"id": n} for n in range(24, 26)])
    with pytest.raises(RetriableError, match="altered"):
        lake.records.drain(fourth)
    lake.records.drain(fourth)
    assert lake.rows()[-1] == {"id": 25, "note": None}


def test_a_topic_for_several_tables_is_loaded_whole(lake: IcebergLake) -> None:
    route = {
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": "$1-routed",
        "iceberg.tables.default-partition-by": "bucket(4, id), origin",
        "iceberg.tables.auto-create-props.history.expire.max-snapshot-age-ms": "60000",
    }
    lake.records.produce([{"id": n, "origin": "EWR"} for n in range(6)])
    task = lake.task(route)
    lake.records.drain(task)
    name = f"{lake.topic}-routed"
    assert len(lake.rows(name)) == 6
    table = lake.table(name)
    assert [field.name for field in table.spec().fields] == ["id_bucket", "origin"]
    assert table.properties["history.expire.max-snapshot-age-ms"] == "60000"
    assert lake.task(route).committed() == dict(lake.records.ends)


def test_compaction_keeps_rows_and_offsets(lake: IcebergLake) -> None:
    task = lake.task({"compact.interval.ms": "3600000"})
    for start in range(0, 24, 4):
        lake.records.produce([{"id": n} for n in range(start, start + 4)])
        lake.records.drain(task)
    target = make_target(task.config, "lake", task._session)
    target.open()
    (done,) = compact(target, None, lambda: False)
    assert (done.table, done.files_before) == (f"topics.{lake.topic}", 12)
    assert done.files_after == 1
    assert lake.rows() == [{"id": n} for n in range(24)]
    lake.records.produce([{"id": 24}])
    again = lake.task()
    lake.records.drain(again)
    assert len(lake.rows()) == 25


@pytest.fixture(params=["sqlite", *thorough("postgresql")])
def sql_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    if request.param == "sqlite":
        return {"uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    database = request.getfixturevalue("postgresql")
    return {"uri": database.jdbc_url, "jdbc.user": database.user, "jdbc.password": database.password}


def test_a_sql_catalog_compares_and_swaps(
    lake: IcebergLake, sql_catalog: dict[str, str], session: Any, tmp_path: Path
) -> None:
    catalog = {f"iceberg.catalog.{key}": value for key, value in sql_catalog.items()}
    props = {"iceberg.catalog.type": "jdbc", "table.name.format": "lake.${topic}_raw", **catalog}
    props["iceberg.catalog.jdbc.schema-version"] = "V1"
    lake.records.produce([{"id": n} for n in range(10)])
    task = lake.task(props)
    lake.records.drain(task)
    other = lake.task(props)
    lake.records.produce([{"id": n} for n in range(10, 20)])
    with pytest.raises(FencedError):
        lake.records.drain(task)
    lake.records.drain(other)
    if "sqlite" in sql_catalog["uri"]:
        reading = SqlCatalog("iceberg", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=lake.store.as_uri())
        rows = reading.load_table(("lake", f"{lake.topic}_raw")).scan().to_arrow()["id"].to_pylist()
        assert sorted(rows) == list(range(20))
    if password := sql_catalog.get("jdbc.password"):
        assert password not in str(session.sparkContext.getConf().getAll())


def test_a_rest_catalog(lake: IcebergLake, tmp_path: Path) -> None:
    folder = tmp_path / "rest"
    folder.mkdir()
    with rest_catalog(folder) as url:
        props = {
            "iceberg.catalog": "central",
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": url,
            "iceberg.tables": "lake.events",
            "iceberg.tables.default-commit-branch": "incoming",
        }
        lake.records.produce([{"id": n} for n in range(10)])
        task = lake.task(props)
        lake.records.drain(task)
        other = lake.task(props)
        lake.records.produce([{"id": n} for n in range(10, 20)])
        with pytest.raises(FencedError):
            lake.records.drain(task)
        lake.records.drain(other)
        table = RestCatalog("central", uri=url).load_table(("lake", "events"))
        branch = table.scan().use_ref("incoming").to_arrow()["id"].to_pylist()
        assert sorted(branch) == list(range(20))
        assert table.scan().to_arrow().num_rows == 0


@pytest.mark.thorough
def test_windows_are_committed_with_the_rows_and_offsets(lake: IcebergLake) -> None:
    props = {
        "sql": "SELECT min(id) AS id, count(*) AS records, max(gate) AS gate FROM records GROUP BY at DIV 1000",
        "sql.window.ms": "1000",
        "sql.window.time": "at",
        "sql.window.delay.ms": "0",
        "sql.window.idle.ms": "0",
    }
    folder = lake.store / "_sluice" / "lake" / "windows"
    lake.records.produce([{"id": n, "at": n * 100, "gate": "B"} for n in range(8)])
    lake.records.drain(lake.task(props))
    assert lake.rows() == [], "the table is there, and says what is held"
    assert len(list(folder.iterdir())) == 2
    lake.records.produce([{"id": n, "at": n * 100} for n in range(8, 24)])
    lake.records.drain(lake.task(props))
    assert [(row["id"], row["records"], row["gate"]) for row in lake.rows()] == [(0, 10, "B"), (10, 10, None)]
    lake.records.produce([{"id": n, "at": n * 100} for n in range(24, 26)])
    lake.records.drain(lake.task({"sql": props["sql"]}))
    assert [(row["id"], row["records"]) for row in lake.rows()] == [(0, 10), (10, 10), (20, 6)]
    assert list(folder.iterdir()) == []
    assert "windows" not in lake.offsets()[lake.topic]
