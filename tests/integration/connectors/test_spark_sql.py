"""Queries in the Spark sink: what they make of the records, which of them are refused, and what survives a restart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.errors import ConfigError, ConnectError, DataError
from connectors.spark.session import start_session
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.sql.options import RECORDS
from connectors.spark.sink.sql.statement import check_query
from connectors.spark.stores.access import Access
from equipment.brokers.dead_letters import dead_letters
from equipment.brokers.topics import create_topic, ordered_producer
from equipment.proofs import thorough, thorough_rows
from equipment.workers.bulk_context import BulkContext
from equipment.workers.small_spark import sink_props

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Lake:
    """A topic of two partitions, and a store that its tasks load it into."""

    def __init__(self, bootstrap: str, topic: str, store: Path) -> None:
        self.topic, self.store = topic, store
        self.bootstrap = bootstrap
        self._producer = ordered_producer(bootstrap)
        self._ends: Counter[TopicPartition] = Counter()
        create_topic(bootstrap, topic, 2)

    def produce(self, *values: Any) -> None:
        """Produce values to the partitions in turn."""
        for index, value in enumerate(values):
            self._producer.produce(self.topic, json.dumps(value).encode(), partition=index % 2)
            self._ends[TopicPartition(self.topic, index % 2)] += 1
        assert self._producer.flush(30) == 0

    def task(self, sql: str, *, start: bool = True, **props: str) -> SparkSinkTask:
        """A task, started on the session that the tests share; ``_`` in the keys is a dot."""
        given = {key.replace("_", "."): value for key, value in props.items()}
        settings = {**sink_props({"store.url": str(self.store)}), "name": "sink", "sql": sql, **given}
        task = SparkSinkTask(SparkSinkConfig.parse(settings), BulkContext("sink", self.bootstrap, settings))
        if start:
            task.start()
        return task

    def load(self, task: SparkSinkTask) -> None:
        """Load all that is not loaded yet."""
        done = task.committed()
        task.load([OffsetRange(*tp, done.get(tp, 0), end) for tp, end in self._ends.items() if end > done.get(tp, 0)])
        assert task.committed() == dict(self._ends)

    def files(self) -> list[Path]:
        """The files that readers see."""
        return sorted((self.store / "topics").rglob("*.parquet"))

    def rows(self) -> list[dict[str, Any]]:
        """The rows that readers see."""
        return [row for file in self.files() for row in pq.ParquetFile(file).read().to_pylist()]


@pytest.fixture(scope="module", autouse=True)
def session(shared_java: None) -> Iterator[Any]:
    """Spark, which the tasks of this file share, with what Delta tables need."""
    spark = start_session({**sink_props({"store.url": "/nowhere"}), "table.format": "delta"}, "sql", Access())
    yield spark
    spark.stop()


@pytest.fixture
def lake(bootstrap: str, topic: str, tmp_path: Path) -> Lake:
    return Lake(bootstrap, topic, tmp_path / "store")


def by(key: str, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: row[key])


def test_a_query_chooses_and_computes_columns_and_its_result_grows(lake: Lake) -> None:
    task = lake.task("SELECT id, upper(origin) AS origin, miles * 1.5D AS far FROM records WHERE id % 2 = 0")
    lake.produce(*({"id": n, "origin": "ewr", "miles": n, "unused": "x"} for n in range(10)))
    lake.load(task)
    expected = [{"id": n, "origin": "EWR", "far": n * 1.5} for n in range(0, 10, 2)]
    assert by("id", lake.rows()) == expected
    names = {file.relative_to(lake.store / "topics" / lake.topic).as_posix() for file in lake.files()}
    assert names == {f"{lake.topic}+0-1+load-0000000002.snappy.parquet"}

    # Another query after a restart, over records that lack a field: what they had before is known.
    lake.produce({"id": 10, "origin": "jfk"}, {"id": 11})
    lake.load(lake.task("SELECT id, miles * 1.5D AS far, named_struct('a', id) AS new FROM records"))
    grown = [row for row in by("id", lake.rows()) if row["id"] >= 10]
    assert grown == [{"id": n, "origin": None, "far": None, "new": {"a": n}} for n in (10, 11)]
    assert [row for row in by("id", lake.rows()) if row["id"] < 10] == expected


def test_a_load_without_rows_is_loaded_all_the_same(lake: Lake) -> None:
    lake.produce({"id": 1}, {"id": 2})
    task = lake.task("SELECT id FROM records WHERE id > 5")
    lake.load(task)
    assert lake.rows() == []
    lake.produce({"id": 6})
    lake.load(task)
    assert lake.rows() == [{"id": 6}]


@pytest.mark.parametrize(
    ("props", "match"),
    [
        ({"table_format": "delta", "partition_field_name": "k"}, r"nullif\(k, ''\)"),
        *thorough_rows(
            ({"partition_field_name": "k"}, r"nullif\(k, ''\)"),
            (
                {"partition_field_name": "id", "format_class": "CsvFormat"},
                "column k is null, which files of format.class=Csv",
            ),
        ),
        ({"partition_field_name": "id", "format_class": "StringFormat"}, "column k is null or contains a line break"),
    ],
)
def test_a_value_of_a_result_that_readers_would_take_for_another_fails_the_load(
    lake: Lake, props: dict[str, str], match: str
) -> None:
    lake.produce({"id": 1, "k": ""}, {"id": 2, "k": "x"})
    by_field = {"partitioner_class": "FieldPartitioner", "errors_tolerance": "all", **props}
    query = "SELECT id, {} AS k FROM records".format("k" if props["partition_field_name"] == "k" else "nullif(k, '')")
    with pytest.raises(ConnectError, match=match):
        lake.load(lake.task(query, **by_field))
    mended = "SELECT id, nullif(k, '') AS k FROM records" if "k, ''" in match else f"{query} WHERE k <> ''"
    lake.load(lake.task(mended, **by_field))


@pytest.mark.parametrize("table_format", ["parquet", *thorough("delta")])
def test_a_first_load_without_one_usable_record_has_its_dead_letters(lake: Lake, table_format: str) -> None:
    queue = f"{lake.topic}-dlq"
    letters = {"errors_tolerance": "all", "errors_deadletterqueue_topic_name": queue, "table_format": table_format}
    query = "SELECT id FROM records"
    lake.produce(None, {}, {})
    with pytest.raises(DataError, match=r"Bad record in topic .*, partition 0, offset 0"):
        lake.load(lake.task(query, table_format=table_format))
    limited = lake.task(query, errors_tolerance="all", errors_tolerance_limit="2", table_format=table_format)
    with pytest.raises(ConnectError, match=r"errors\.tolerance\.limit"):
        lake.load(limited)
    task = lake.task(query, **letters)
    lake.load(task)
    assert len(dead_letters(lake.bootstrap, queue)) == 3
    lake.produce({"id": 6})
    lake.load(task)
    assert lake.rows() == [{"id": 6}]


def test_aggregates_are_those_of_each_load(lake: Lake) -> None:
    query = (
        "SELECT window(timestamp_seconds(at), '1 hour').start AS hour, carrier, count(*) AS flights, "
        "sum(miles) AS miles FROM records GROUP BY ALL"
    )
    task = lake.task(query)
    lake.produce(*({"at": n * 600, "carrier": "UA", "miles": 10} for n in range(12)))
    lake.load(task)
    lake.produce({"at": 0, "carrier": "UA", "miles": 5})
    lake.load(task)
    found = sorted((row["hour"].hour, row["flights"], row["miles"]) for row in lake.rows())
    assert found == [(0, 1, 5), (0, 6, 60), (1, 6, 60)]


def test_folders_are_made_of_the_columns_of_the_result(lake: Lake) -> None:
    lake.produce(*({"id": n, "origin": ("EWR", "JFK")[n % 2]} for n in range(6)))
    props = {"partitioner_class": "FieldPartitioner", "partition_field_name": "where"}
    lake.load(lake.task("SELECT id, origin AS where FROM records r1 JOIN records r2 USING (id, origin)", **props))
    folders = Counter(file.parent.name for file in lake.files())
    assert folders.keys() == {"where=EWR", "where=JFK"}
    assert by("id", lake.rows()) == [{"id": n} for n in range(6)]


def test_tables_that_the_worker_allows_are_joined(lake: Lake, tmp_path: Path, session: Any) -> None:
    carriers, airports = tmp_path / "carriers", tmp_path / "airports.csv"
    carriers.mkdir()
    pq.write_table(pa.table({"code": ["UA", "AA"], "name": ["United", "American"]}), carriers / "1.parquet")
    airports.write_text("code,city\nEWR,Newark\n")
    url = "jdbc:derby:memory:ranks"
    connection = session._jvm.java.sql.DriverManager.getConnection(f"{url};create=true")
    statement = connection.createStatement()
    statement.execute('CREATE TABLE ranks ("code" VARCHAR(10), "rank" INT)')
    statement.execute("INSERT INTO ranks VALUES ('UA', 1), ('AA', 2)")
    props = {
        "sql.tables.carriers.path": str(carriers),
        "sql.tables.airports.path": str(airports),
        "sql.tables.airports.format": "csv",
        "sql.tables.ranks.jdbc.url": url,
        "sql.tables.ranks.jdbc.table": "ranks",
        "sql.allowed.paths": str(tmp_path),
        "sql.allowed.jdbc.urls": url,
    }
    query = (
        "SELECT id, name, city, rank FROM records JOIN carriers ON carrier = carriers.code "
        "LEFT JOIN airports ON origin = airports.code JOIN ranks ON ranks.code = carrier"
    )
    lake.produce({"id": 1, "carrier": "UA", "origin": "EWR"}, {"id": 2, "carrier": "AA", "origin": "XXX"})
    task = lake.task(query, **props)
    lake.load(task)
    assert by("id", lake.rows()) == [
        {"id": 1, "name": "United", "city": "Newark", "rank": 1},
        {"id": 2, "name": "American", "city": None, "rank": 2},
    ]
    # A table is read again with each load.
    pq.write_table(pa.table({"code": ["B6"], "name": ["JetBlue"]}), carriers / "2.parquet")
    statement.execute("INSERT INTO ranks VALUES ('B6', 3)")
    lake.produce({"id": 3, "carrier": "B6", "origin": "EWR"})
    lake.load(task)
    assert by("id", lake.rows())[2] == {"id": 3, "name": "JetBlue", "city": "Newark", "rank": 3}


def test_a_query_is_read_from_a_file_that_the_worker_allows(lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "flights.sql"
    file.write_text("SELECT id + 1 AS next -- one more\nFROM records\n")
    lake.produce({"id": 1})
    settings = {
        **sink_props({"store.url": str(lake.store)}),
        "name": "sink",
        "sql.file": str(file),
        "sql.allowed.paths": str(tmp_path),
    }
    task = SparkSinkTask(SparkSinkConfig.parse(settings), BulkContext("sink", lake.bootstrap, settings))
    task.start()
    lake.load(task)
    assert lake.rows() == [{"next": 2}]


def test_nothing_is_loaded_when_the_records_or_the_result_do_not_fit(lake: Lake) -> None:
    lake.produce({"id": 1}, {"id": 2})
    lake.load(lake.task("SELECT id FROM records"))
    lake.produce({"id": 3})
    with pytest.raises(ConnectError, match=r"does not fit the records of table .*`gone`.*value\.schema"):
        lake.load(lake.task("SELECT gone FROM records"))
    with pytest.raises(DataError, match='Column "id" of the table is int64 and cannot hold string'):
        lake.load(lake.task("SELECT 'x' AS id FROM records"))
    with pytest.raises(DataError, match="two columns named id"):
        lake.load(lake.task("SELECT id, id FROM records"))
    with pytest.raises(DataError, match=r"Column nothing of the query's result has Spark's type void"):
        lake.load(lake.task("SELECT id, NULL AS nothing FROM records"))
    with pytest.raises(ConnectError, match="CAST_INVALID_INPUT"):
        lake.load(lake.task("SELECT CAST('x' AS BIGINT) + id AS id FROM records"))
    lake.produce({"id": "not a number"})
    with pytest.raises(DataError, match=f"Bad record in topic {lake.topic}, partition 0, offset 2"):
        lake.load(lake.task("SELECT id FROM records"))
    assert by("id", lake.rows()) == [{"id": 1}, {"id": 2}]


ALLOWED = [
    "SELECT a, count(*) c FROM records r WHERE a > 1 GROUP BY a HAVING c > 1 ORDER BY c LIMIT 5",
    "WITH x AS (SELECT * FROM records), y AS (SELECT * FROM x) SELECT y.*, t.name FROM y LEFT JOIN t USING (id)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r, records",
    "SELECT sum(v) OVER w FROM records WINDOW w AS (PARTITION BY k ORDER BY z ROWS 1 PRECEDING)",
    "SELECT window(ts, '1 hour').start s, max(v) FILTER (WHERE b) FROM records GROUP BY window(ts, '1 hour')",
    "SELECT * FROM records LATERAL VIEW explode(a) t AS b",
    "SELECT * EXCEPT (a) FROM records, LATERAL (SELECT records.x) b",
    "SELECT transform(a, x -> x + 1), try_cast(b AS INT), c[0], d.e.f, CASE WHEN a THEN b END FROM records",
    "SELECT date_trunc('hour', ts), approx_count_distinct(x), array_agg(c) FROM records GROUP BY ALL",
    "SELECT extract(year FROM ts), a || b, a LIKE 'x%', trim(BOTH ' ' FROM a), uuid(), typeof(a) FROM records",
    "SELECT * FROM records PIVOT (sum(a) FOR b IN ('x', 'y'))",
    "SELECT a FROM records UNION ALL SELECT b FROM t EXCEPT SELECT c FROM records",
    "SELECT /*+ BROADCAST(t) */ * FROM records JOIN t ON records.a = t.a JOIN (VALUES (1)) v(a) ON v.a = t.a",
    "FROM records |> WHERE a > 1 |> SELECT a",
]

HOSTILE = [
    ("SELECT * FROM parquet.`/etc/passwd`", "there is no table parquet./etc/passwd"),
    ("SELECT (SELECT max(a) FROM csv.`/x`) FROM records", "there is no table csv"),
    ("SELECT a FROM records WHERE a IN (SELECT x FROM orc.`/e`)", "there is no table orc"),
    ("SELECT * FROM secret", "there is no table secret"),
    ("SELECT * FROM global_temp.records", "there is no table global_temp.records"),
    ("SELECT * FROM secret, (WITH secret AS (SELECT 1) SELECT * FROM secret)", "there is no table secret"),
    ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", "there is no table b"),
    ("SELECT * FROM records VERSION AS OF 1", "without RelationTimeTravel"),
    ("SELECT * FROM IDENTIFIER('parquet.`/etc`')", "without PlanWithUnresolvedIdentifier"),
    ("SELECT IDENTIFIER('reflect')('java.lang.System', 'exit') FROM records", "IDENTIFIER"),
    ("SELECT reflect('java.lang.System', 'getenv', 'HOME') FROM records", "the function reflect"),
    ("SELECT `java_method`('java.lang.System', 'exit') FROM records", "the function java_method"),
    ("SELECT TRY_REFLECT('a', 'b') FROM records", "the function TRY_REFLECT"),
    ("SELECT count(*) OVER w FROM records WINDOW w AS (PARTITION BY reflect('a', 'b'))", "the function reflect"),
    ("SELECT count(*) FILTER (WHERE reflect('a', 'b') = 'x') FROM records", "the function reflect"),
    ("SELECT transform(a, x -> reflect('a', x)) FROM records", "the function reflect"),
    ("SELECT * FROM VALUES (reflect('a', 'b'))", "the function reflect"),
    ("SELECT * FROM records LATERAL VIEW reflect('a', 'b') t AS x", "the table function reflect"),
    ("SELECT * FROM records ORDER BY reflect('a', 'b')", "the function reflect"),
    ("SELECT * FROM records LIMIT length(reflect('a', 'b'))", "the function reflect"),
    ("SELECT /*+ REPARTITION(reflect('a', 'b')) */ * FROM records", "the function reflect"),
    ("SELECT * FROM records PIVOT (sum(reflect('a', 'b')) FOR b IN ('x'))", "the function reflect"),
    ("WITH x AS (SELECT reflect('a', 'b')) SELECT 1 FROM records", "the function reflect"),
    ("SELECT from_protobuf(a, 'x', '/etc/passwd') FROM records", "the function from_protobuf"),
    ("SELECT from_avro(a, '', map('avroSchemaUrl', 'file:///etc/passwd')) FROM records", "the function from_avro"),
    ("SELECT from_xml(a, 'b INT', map('rowValidationXSDPath', '/etc/passwd')) FROM records", "the function from_xml"),
    ("SELECT xpath(a, 'b') FROM records", "the function xpath"),
    ("SELECT my.udf(a) FROM records", "the function my.udf"),
    ("SELECT * FROM range(10)", "the table function range"),
    ("SELECT * FROM my_tvf(TABLE(records))", "the table function my_tvf"),
    ("SELECT TRANSFORM(a) USING 'cat /etc/passwd' FROM records", "without ScriptTransformation"),
    ("INSERT INTO x SELECT * FROM records", "without InsertIntoStatement"),
    ("FROM records INSERT INTO x SELECT * INSERT INTO y SELECT *", "without"),
    ("INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT * FROM records", "without InsertIntoDir"),
    ("CREATE TABLE x AS SELECT * FROM records", "without CreateTableAsSelect"),
    ("MERGE INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE", "without MergeIntoTable"),
    ("DROP TABLE x", "without DropTable"),
    ("ADD JAR 'evil.jar'", "without AddJarsCommand"),
    ("SET spark.sql.variable.substitute=true", "without SetCommand"),
    ("EXPLAIN SELECT 1", "without ExplainCommand"),
    ("BEGIN SELECT 1; END", "without CompoundBody"),
    ("EXECUTE IMMEDIATE 'SELECT 1'", "without"),
    ("SELECT :p FROM records", "parameters"),
    ("SELECT 1; DROP TABLE x", "PARSE_SYNTAX_ERROR"),
    ("", "PARSE_EMPTY_STATEMENT"),
]


@pytest.mark.parametrize("query", ALLOWED)
def test_queries_are_allowed(session: Any, query: str) -> None:
    check_query(session, "sql", query, frozenset({RECORDS, "t"}))


@pytest.mark.parametrize(("query", "reason"), HOSTILE)
def test_what_is_more_than_a_query_is_refused(session: Any, query: str, reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_query(session, "sql", query, frozenset({RECORDS, "t"}))
    assert reason in str(error.value).partition("The query is refused: ")[2]


def test_a_query_sees_nothing_of_the_worker(lake: Lake) -> None:
    lake.produce({"id": 1})
    lake.load(lake.task("SELECT '${env:HOME}${spark.driver.memory}${system:user.dir}' AS secret FROM records"))
    assert lake.rows() == [{"secret": "${env:HOME}${spark.driver.memory}${system:user.dir}"}]


def test_a_preview_shows_what_would_be_written_and_fences_nobody(lake: Lake) -> None:
    running = lake.task("SELECT id, origin AS where FROM records")
    lake.produce({"id": 0, "origin": "EWR"}, {"id": 1, "origin": "JFK"})
    lake.load(running)
    before = {path: path.stat().st_mtime_ns for path in lake.store.rglob("*")}

    lake.produce({"id": 2, "origin": "LGA"}, {"id": 3, "origin": "LGA"}, {"id": 4, "origin": None})
    props = {"partitioner_class": "FieldPartitioner", "partition_field_name": "where"}
    other = lake.task("SELECT id, origin AS where, id * 2 AS twice FROM records WHERE id > 2", start=False, **props)
    (table,) = other.preview([OffsetRange(lake.topic, 0, 0, 3), OffsetRange(lake.topic, 1, 0, 2)], 10)
    assert (table.table, table.place) == (lake.topic, f"{lake.store}/topics/{lake.topic}")
    assert by("id", table.rows) == [{"id": 3, "where": "LGA", "twice": 6}, {"id": 4, "where": None, "twice": 8}]
    assert table.schema.field_names == ("id", "where", "twice")
    assert table.folders == ["where=LGA", "where=__HIVE_DEFAULT_PARTITION__"]

    assert {path: path.stat().st_mtime_ns for path in lake.store.rglob("*")} == before
    lake.load(running)
    assert [row["id"] for row in by("id", lake.rows())] == [0, 1, 2, 3, 4]


HOUR = 3_600_000
WINDOWS = {
    "sql_window_ms": str(HOUR),
    "sql_window_time": "at",
    "sql_window_delay_ms": "60000",
    "sql_window_idle_ms": "0",
}
HOURLY = (
    "SELECT window(timestamp_millis(at), '1 hour').start AS hour, count(*) AS flights, collect_set(id) AS ids "
    "FROM records GROUP BY 1"
)


def hours(lake: Lake) -> list[tuple[int, list[int]]]:
    return sorted((row["hour"].timestamp() * 1000 // HOUR, sorted(row["ids"])) for row in lake.rows())


def held(lake: Lake) -> int:
    folder = lake.store / "_sluice" / "sink" / "windows"
    return sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))


def test_a_window_is_written_once_when_it_is_complete(lake: Lake) -> None:
    task = lake.task(HOURLY, **WINDOWS)
    lake.produce({"id": 0, "at": 10}, {"id": 1, "at": 20}, {"id": 2, "at": HOUR + 30}, {"id": 3, "at": 40})
    lake.load(task)
    assert (hours(lake), held(lake)) == ([], 4), "partition 1 is still in the first hour"
    # A driver that takes over goes on with what is held, and records with another field.
    task = lake.task(HOURLY, **WINDOWS)
    lake.produce({"id": 4, "at": HOUR + 70_000, "gate": "B1"}, {"id": 5, "at": HOUR + 60_000}, {"id": 6})
    lake.load(task)
    assert hours(lake)[:1] == [(0, [0, 1, 3])]
    assert [row["ids"] for row in lake.rows() if row["hour"] is None] == [], "a window has none without a time"
    assert held(lake) == 3
    # Late records give another row, with the next windows.
    lake.produce({"id": 7, "at": 50}, {"id": 8, "at": 2 * HOUR + 60_000}, {"id": 9, "at": 2 * HOUR + 60_000})
    lake.load(task)
    assert hours(lake) == [(0, [0, 1, 3]), (0, [7]), (1, [2, 4, 5])]
    assert held(lake) == 2
    # Without windows all that was held is written with the next load.
    lake.produce({"id": 10, "at": 2 * HOUR + 5})
    lake.load(lake.task(HOURLY))
    assert hours(lake)[3:] == [(2, [8, 9, 10])]
    assert held(lake) == 0


@pytest.mark.thorough
def test_each_of_the_tables_that_records_are_routed_to_has_windows_of_its_own(lake: Lake) -> None:
    route = {
        "transforms": "to",
        "transforms_to_type": "ExtractTopic$Value",
        "transforms_to_field": "to",
        "header_converter": "converters.simple_header.SimpleHeaderConverter",
    }

    def seen() -> dict[str, list[tuple[int, list[int]]]]:
        found: dict[str, list[tuple[int, list[int]]]] = {"a": [], "b": []}
        for file in lake.files():
            for row in pq.ParquetFile(file).read().to_pylist():
                hour = int(row["hour"].timestamp() * 1000) // HOUR
                found[file.relative_to(lake.store / "topics").parts[0]].append((hour, sorted(row["ids"])))
        return {table: sorted(rows) for table, rows in found.items()}

    later = HOUR + 70_000
    lake.produce({"id": 0, "at": 10, "to": "a"}, {"id": 1, "at": 20, "to": "a"})
    lake.produce({"id": 2, "at": later, "to": "a"}, {"id": 3, "at": later, "to": "a"})
    lake.produce({"id": 4, "at": 30, "to": "b"}, {"id": 5, "at": 40, "to": "b"})
    lake.load(lake.task(HOURLY, **WINDOWS, **route))
    assert (seen(), held(lake)) == ({"a": [(0, [0, 1])], "b": []}, 4), "b has no later record"
    # A driver that takes over, whose first load has records for one of them.
    task = lake.task(HOURLY, **WINDOWS, **route)
    lake.produce({"id": 6, "at": later, "to": "b"}, {"id": 7, "at": later, "to": "b"})
    lake.load(task)
    assert (seen(), held(lake)) == ({"a": [(0, [0, 1])], "b": [(0, [4, 5])]}, 4)
    lake.produce({"id": 8, "at": HOUR, "to": "a"}, {"id": 9, "at": HOUR, "to": "b"})
    lake.load(lake.task(HOURLY, **route))
    assert {table: rows[1:] for table, rows in seen().items()} == {"a": [(1, [2, 3, 8])], "b": [(1, [6, 7, 9])]}
    assert held(lake) == 0


def test_late_records_are_dropped_if_that_is_asked_for(lake: Lake) -> None:
    task = lake.task(HOURLY, **WINDOWS, sql_window_late="drop")
    lake.produce({"id": 0, "at": 10}, {"id": 1, "at": 20}, {"id": 2, "at": 2 * HOUR}, {"id": 3, "at": 2 * HOUR})
    lake.load(task)
    assert hours(lake) == [(0, [0, 1])]
    lake.produce({"id": 4, "at": 30}, {"id": 5, "at": 3 * HOUR}, {"id": 6, "at": 3 * HOUR})
    lake.load(task)
    assert hours(lake) == [(0, [0, 1])], "the delay is not over"
    lake.produce({"id": 7, "at": 4 * HOUR}, {"id": 8, "at": 4 * HOUR})
    lake.load(task)
    assert hours(lake) == [(0, [0, 1]), (2, [2, 3])]
    assert held(lake) == 4


@pytest.mark.parametrize("table_format", ["parquet", *thorough("delta")])
def test_late_records_go_to_the_dead_letter_queue(lake: Lake, session: Any, table_format: str) -> None:
    queue = f"{lake.topic}-dlq"
    letters = {"errors_tolerance": "all", "errors_deadletterqueue_topic_name": queue}
    more = {"sql_window_late": "dead-letter", "table_format": table_format, **letters}
    task = lake.task(HOURLY, **WINDOWS, **more)
    lake.produce({"id": 0, "at": 10}, {"id": 1, "at": 20}, {"id": 2, "at": 2 * HOUR}, {"id": 3, "at": 2 * HOUR})
    lake.load(task)
    # The second record is late, the third does not fit its column, and both are told together.
    lake.produce({"id": 4, "at": 4 * HOUR}, {"id": 5, "at": 30}, {"id": "x"}, {"id": 7, "at": 4 * HOUR})
    lake.load(task)
    found = [json.loads(message.value() or b"")["id"] for message in dead_letters(lake.bootstrap, queue)]
    assert sorted(found, key=str) == [5, "x"]
    table = session.read.format(table_format).load(str(lake.store / "topics" / lake.topic))
    assert sorted(sorted(row.ids) for row in table.collect()) == [[0, 1], [2, 3]]


@pytest.mark.thorough
def test_windows_of_a_delta_table_are_committed_with_its_rows(lake: Lake, session: Any) -> None:
    def seen() -> list[tuple[int, list[str]]]:
        found = session.read.format("delta").load(str(lake.store / "topics" / lake.topic)).collect()
        return sorted((int(row.hour.timestamp() * 1000) // HOUR, sorted(row.ids)) for row in found)

    query = HOURLY.replace("(id)", "(concat(id, gate))")
    task = lake.task(query, **WINDOWS, table_format="delta")
    lake.produce({"id": 0, "at": 10}, {"id": 1, "at": 20})
    lake.produce({"id": 2, "at": HOUR + 30, "gate": "B1"}, {"id": 3, "at": 40})
    lake.load(task)
    assert (seen(), held(lake)) == ([], 4)
    task = lake.task(query, **WINDOWS, table_format="delta")
    lake.produce({"id": 4, "at": HOUR + 70_000}, {"id": 5, "at": HOUR + 60_000})
    lake.load(task)
    assert [hour for hour, _ in seen()] == [0]
    lake.produce({"id": 6, "at": HOUR})
    lake.load(lake.task(query, table_format="delta"))
    assert [ids for hour, ids in seen() if hour == 1] == [["2B1"]], "what was held has its fields after a restart"
    assert held(lake) == 0
    with pytest.raises(ConnectError):
        lake.load(lake.task("SELECT id FROM nothing", table_format="delta"))


def test_a_load_that_fails_leaves_windows_as_they_were(lake: Lake) -> None:
    task = lake.task(HOURLY, **WINDOWS)
    lake.produce({"id": 0, "at": 10}, {"id": 1, "at": 20})
    lake.load(task)
    lake.produce({"id": 2, "at": 2 * HOUR}, {"id": 3, "at": 2 * HOUR})
    broken = lake.task(HOURLY.replace("count(*)", "assert_true(false)"), **WINDOWS)
    with pytest.raises(ConnectError):
        lake.load(broken)
    assert (hours(lake), held(lake) >= 2) == ([], True)
    lake.load(lake.task(HOURLY, **WINDOWS))
    assert (hours(lake), held(lake)) == ([(0, [0, 1])], 2)


def test_a_column_that_has_no_time_is_refused(lake: Lake) -> None:
    task = lake.task(HOURLY, **{**WINDOWS, "sql_window_time": "when"})
    lake.produce({"id": 0, "at": 10})
    with pytest.raises(ConnectError, match=r"sql\.window\.time=when is no column of the records"):
        lake.load(task)


@pytest.mark.thorough
def test_the_result_goes_to_a_delta_table_with_its_offsets(lake: Lake, session: Any) -> None:
    query = "SELECT id % 2 AS odd, count(*) AS records FROM records GROUP BY 1"
    task = lake.task(query, table_format="delta")
    lake.produce({"id": 0}, {"id": 1}, {"id": 2})
    lake.load(task)
    again = lake.task(query, table_format="delta")
    lake.load(again)
    lake.produce({"id": 3, "unused": "x"})
    lake.load(again)
    found = session.read.format("delta").load(str(lake.store / "topics" / lake.topic)).collect()
    assert sorted((row.odd, row.records) for row in found) == [(0, 2), (1, 1), (1, 1)]
