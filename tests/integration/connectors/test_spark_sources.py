"""The sources of Spark from files, databases and tables to what a consumer of their topics reads."""

from __future__ import annotations

import datetime as dt
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.bulk import OffsetRange
from connect.bulk_source import BulkSourceTask
from connect.errors import ConnectError, RetriableError
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connectors.spark import session as session_module
from connectors.spark.session import start_session
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.stores.access import Access
from equipment.brokers.topics import create_topic, produce
from equipment.fakes.refusing_postgresql import refusing
from equipment.proofs import thorough
from equipment.servers.lease import Database
from equipment.workers.bulk_context import BulkContext
from equipment.workers.spark_source_tasks import JSON, SPARK, Source, drain

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLUGINS = Path(__file__).with_name("spark_plugins")
OLD = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)

Row = Mapping[str, Any]


@pytest.fixture(scope="module", autouse=True)
def session(table_java: None) -> Iterator[Any]:
    """Spark with what all of these sources need, which each task is given."""
    here = Path(session_module.__file__).parent
    locks = ("iceberg/iceberg.jars", "iceberg/postgresql.jars", "sources/jdbc/mariadb.jars")
    jars = [jar for lock in locks for jar in resolve_jars(read_lock(here / lock), home=sluice_home())]
    needs = {
        "table.format": "delta",
        "format.class": "AvroFormat",
        "connection.url": "jdbc:sqlite:/none",
        "spark.jars": ",".join(map(str, jars)),
    }
    spark = start_session({**SPARK, **needs}, "sources", Access())
    yield spark
    spark.stop()


@pytest.fixture
def source(bootstrap: str, topic: str, tmp_path: Path) -> Source:
    folder = tmp_path / "lake"
    folder.mkdir()
    return Source(bootstrap, topic, folder)


def write(path: Path, rows: list[Row], at: dt.datetime = OLD, schema: pa.Schema | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(map(dict, rows)), schema), path)
    touch(path, at)


def touch(path: Path, at: dt.datetime = OLD) -> None:
    os.utime(path, (at.timestamp(), at.timestamp()))


def by_id(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row["id"])


def test_files_are_sent_once_with_keys_and_timestamps(source: Source) -> None:
    day = dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)
    write(source.folder / "a.parquet", [{"id": n, "at": day, "x": n / 2} for n in range(3)])
    task = source.files(key_columns="id", timestamp_column="at")
    drain(task)
    found = source.read()
    assert by_id([json.loads(each.key() or b"") for each in found]) == [{"id": n} for n in range(3)]
    assert by_id(source.values()) == [{"id": n, "at": 1357016400000, "x": n / 2} for n in range(3)]
    assert {each.timestamp()[1] for each in found} == {1357016400000}
    assert source.context.written == {source.topic: 3}

    write(source.folder / "sub/b.parquet", [{"id": 9, "new": "z"}], OLD + dt.timedelta(minutes=1))
    drain(source.files(key_columns="id"))
    assert source.values()[3:] == [{"id": 9, "new": "z"}]
    assert source.context.commits == 1


def test_a_broken_file_is_refused_as_a_whole(source: Source) -> None:
    write(source.folder / "good.parquet", [{"id": 1}])
    write(source.folder / "broken.parquet", [{"id": n, "text": "x" * 100} for n in range(1000)])
    broken = source.folder / "broken.parquet"
    data = bytearray(broken.read_bytes())
    data[200:600] = bytes(400)
    broken.write_bytes(data)
    touch(broken)
    with pytest.raises(ConnectError, match=r"broken\.parquet cannot be read, and none of its rows is sent"):
        source.files().load()
    assert not source.offsets.exists()

    drain(source.files(errors_tolerance="all"))
    assert source.values() == [{"id": 1}]
    assert [str(each.record and each.record.value).rpartition("/")[2] for each in source.context.failures] == [
        "broken.parquet"
    ]


def test_folders_name_topics_and_fields(source: Source) -> None:
    write(source.folder / "a/day=01/one.parquet", [{"id": 1}])
    write(source.folder / "b/two.parquet", [{"id": 2}])
    write(source.folder / "b/_hidden/three.parquet", [{"id": 3}])
    write(source.folder / "b/skipped.other", [{"id": 4}])
    topic = source.topic
    source.topic = f"{topic}-${{folder}}"
    drain(source.files(partition_fields="string", pattern="*.parquet"))
    assert source.values(f"{topic}-a") == [{"id": 1, "day": "01"}]
    assert source.values(f"{topic}-b") == [{"id": 2}]


def test_files_whose_types_do_not_go_together_are_read_apart(source: Source) -> None:
    write(source.folder / "a.parquet", [{"id": 1, "x": "text"}])
    write(source.folder / "b.parquet", [{"id": 2, "x": 7}])
    drain(source.files())
    assert by_id(source.values()) == [{"id": 1, "x": "text"}, {"id": 2, "x": 7}]


@pytest.mark.parametrize(
    ("format_class", "content", "expected"),
    [
        ("CsvFormat", 'id,text\n1,"a\nb"\n2,\n', [{"id": "1", "text": "a\nb"}, {"id": "2", "text": None}]),
        ("JsonFormat", '{"id":1,"tags":["a"]}\n{"id":2}\n', [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": None}]),
        ("StringFormat", "one\ntwo\n", ["one", "two"]),
    ],
)
def test_texts_become_records(source: Source, format_class: str, content: str, expected: list[Any]) -> None:
    # In the name of a file with records of several lines Spark takes these for a pattern.
    path = source.folder / ("it.txt" if format_class == "CsvFormat" else "it [1].txt")
    path.write_text(content)
    touch(path)
    drain(source.files(format_class=format_class))
    assert source.values() == expected


@pytest.mark.parametrize(("format_class", "suffix"), [("OrcFormat", "orc"), ("AvroFormat", "avro")])
@pytest.mark.thorough
def test_orc_and_avro_files_become_records(source: Source, session: Any, format_class: str, suffix: str) -> None:
    rows = [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": None}]
    written = source.folder.parent / "written"
    session.createDataFrame(rows, "id INT, tags ARRAY<STRING>").coalesce(1).write.format(suffix).save(str(written))
    path = next(written.glob(f"part-*.{suffix}")).rename(source.folder / f"a.{suffix}")
    touch(path)
    drain(source.files(format_class=format_class))
    assert source.values() == rows


def test_a_malformed_line_refuses_its_file(source: Source) -> None:
    path = source.folder / "lines.json"
    path.write_text('{"id":1}\n{"id":\n')
    touch(path)
    drain(source.files(format_class="JsonFormat", errors_tolerance="all", schema="id INT"))
    assert len(source.context.failures) == 1
    assert source.context.written == {}


def test_a_time_that_is_too_fine_is_a_bad_row_or_what_fine_times_says(source: Source) -> None:
    fine = dt.datetime(2013, 1, 1, 5, 0, 0, 1, tzinfo=dt.UTC)
    write(source.folder / "a.parquet", [{"id": 1, "at": fine}, {"id": 2, "at": OLD}])
    drain(source.files(errors_tolerance="all"))
    assert [row["id"] for row in source.values()] == [2]
    assert "finer than a millisecond" in str(source.context.failures[0].error)
    source.offsets.unlink()
    drain(source.files(fine_times="number"))
    assert by_id(source.values()[1:])[0] == {"id": 1, "at": 1357016400000001}
    source.offsets.unlink()
    drain(source.files(fine_times="truncate"))
    assert by_id(source.values()[3:])[0] == {"id": 1, "at": 1357016400000}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "the orders" (id INTEGER, name TEXT)')
        rows = [(n, f"name {n}") for n in range(100)]
        connection.executemany('INSERT INTO "the orders" VALUES (?, ?)', [*rows, (None, "nobody")])
    connection.close()
    return path


def test_a_table_of_a_database_is_sent_by_partitions(source: Source, database: Path) -> None:
    props = {
        "connection_url": f"jdbc:sqlite:{database}",
        "tables": "the orders",
        "partition_column": "id",
        "partition_count": "7",
        "load_max_partitions": "3",
    }
    task = source.database(**props)
    assert task.load()
    assert json.loads(source.offsets.read_text()).popitem()[1]["sent"] == 3
    again = source.database(**props)
    drain(again)
    assert source.context.commits == 2
    ids = [row["id"] for row in source.values()]
    assert sorted(ids, key=lambda number: -1 if number is None else number) == [None, *range(100)]
    drain(source.database(**props))
    assert len(source.read()) == 101


def test_a_query_is_read_and_a_password_is_not_shown(source: Source, database: Path) -> None:
    props = {"connection_url": f"jdbc:sqlite:{database}", "connection_password": "no such column"}
    query = 'SELECT id * 2 AS twice FROM "the orders" WHERE id < 3'
    drain(source.database(**props, query=query, schema="twice INT"))
    assert sorted(row["twice"] for row in source.values()) == [0, 2, 4]
    source.offsets.unlink()
    with pytest.raises(ConnectError) as told:
        source.database(**props, query="SELECT missing FROM nowhere").load()
    assert "could not be read" in str(told.value)
    assert "no such column" not in str(told.value)


@pytest.mark.parametrize(("state", "passes"), [("57P03", True), ("53300", True), ("28P01", False), ("3D000", False)])
def test_a_server_that_refuses_for_now_is_asked_again(source: Source, state: str, passes: bool) -> None:
    """Java's driver has one class for all that PostgreSQL refuses."""
    with refusing(state, text="nein") as port:
        task = source.database(connection_url=f"jdbc:postgresql://127.0.0.1:{port}/shop", tables="orders")
        with pytest.raises(ConnectError, match="nein") as told:
            task.load()
    assert isinstance(told.value, RetriableError) is passes


def test_a_server_that_is_not_reached_is_asked_again(source: Source) -> None:
    task = source.database(connection_url="jdbc:postgresql://127.0.0.1:1/shop", tables="orders")
    with pytest.raises(RetriableError, match="cannot be reached"):
        task.load()


@pytest.mark.parametrize("product", ["postgresql", *thorough("mariadb")])
def test_servers_are_read_by_their_drivers(source: Source, product: str, request: pytest.FixtureRequest) -> None:
    server: Database = request.getfixturevalue(product)
    server.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, at TIMESTAMP(3), price DECIMAL(10, 2), note VARCHAR(20))",
        "INSERT INTO orders VALUES (1, '2013-01-01 05:00:00.123', 1.50, 'a'), (2, '2013-06-01 05:00:00', 2.50, NULL)",
    )
    props = {key.replace(".", "_"): value for key, value in server.props.items()}
    drain(source.database(**props, tables="orders", partition_column="at", partition_count="3", columns="id,note"))
    assert by_id(source.values()) == [{"id": 1, "note": "a"}, {"id": 2, "note": None}]
    assert source.context.read == 2


@pytest.mark.parametrize("product", ["postgresql", *thorough("mariadb")])
def test_per_cent_signs_all_digits_and_hstore(source: Source, product: str, request: pytest.FixtureRequest) -> None:
    server: Database = request.getfixturevalue(product)
    is_postgresql = product == "postgresql"
    mark = '"' if is_postgresql else "`"
    table, value, number = (f"{mark}{name}{mark}" for name in ("sale%s", "%(x)s", "id%"))
    server.execute(
        f"CREATE TABLE {table} ({number} int PRIMARY KEY, {value} {'real' if is_postgresql else 'float'})",
        f"INSERT INTO {table} VALUES (1, 52.520008), (2, 16777216), (3, 123456.789)",
    )
    if is_postgresql:
        server.execute(
            "CREATE EXTENSION IF NOT EXISTS hstore",
            f"ALTER TABLE {table} ADD attrs hstore",
            f"UPDATE {table} SET attrs = 'color=>red'",
        )
    props = {key.replace(".", "_"): value for key, value in server.props.items()}
    drain(source.database(**props, tables="sale%s", partition_column="id%", partition_count="2"))
    expected = [(1, 52.520008), (2, 16777216.0), (3, 123456.789)]
    found = sorted(source.values(), key=lambda row: row["id%"])
    assert [row["id%"] for row in found] == [1, 2, 3]
    assert [row["%(x)s"] for row in found] == [pytest.approx(number, rel=1e-7) for _, number in expected]
    assert {row.get("attrs") for row in found} == {'"color"=>"red"' if is_postgresql else None}


Change = tuple[Any, Any]


def changes(source: Source, skipped: int = 0) -> list[Change]:
    """The keys and values of the records after the first ones, by key."""
    found = [
        (json.loads(each.key() or b"null"), None if each.value() is None else json.loads(each.value() or b""))
        for each in source.read()[skipped:]
    ]
    return sorted(found, key=lambda change: json.dumps(change[0]))


def test_a_delta_table_is_sent_and_then_its_changes(source: Source, session: Any) -> None:
    table = f"delta.`{source.folder}/topics/t`"
    feed = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    session.sql(f"CREATE TABLE {table} (id LONG, v STRING) USING delta {feed}")
    session.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    props = {"table_format": "delta", "tables": "t", "key_columns": "id"}
    drain(source.tables(**props))
    assert changes(source) == [({"id": 1}, {"id": 1, "v": "a"}), ({"id": 2}, {"id": 2, "v": "b"})]

    session.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    session.sql(f"UPDATE {table} SET v = 'z' WHERE id = 1")
    session.sql(f"DELETE FROM {table} WHERE id = 2")
    session.sql(f"OPTIMIZE {table}")
    drain(source.tables(**props))
    assert changes(source, 2) == [({"id": 1}, {"id": 1, "v": "z"}), ({"id": 2}, None), ({"id": 3}, {"id": 3, "v": "c"})]
    assert not source.tables(**props).load()


def test_a_delta_table_without_a_feed_says_what_to_do(source: Source, session: Any) -> None:
    table = f"delta.`{source.folder}/topics/t`"
    session.sql(f"CREATE TABLE {table} (id LONG) USING delta")
    props = {"table_format": "delta", "tables": "t"}
    drain(source.tables(**props))
    session.sql(f"INSERT INTO {table} VALUES (1), (2)")
    session.sql(f"INSERT INTO {table} VALUES (3)")
    task = source.tables(**props)
    drain(task)
    assert [row["id"] for row in by_id(source.values())] == [1, 2, 3]
    session.sql(f"DELETE FROM {table} WHERE id = 1")
    with pytest.raises(ConnectError, match=r"replaces or deletes rows, which records without a key cannot express"):
        task.load()
    with pytest.raises(ConnectError, match=r"Set its property delta\.enableChangeDataFeed=true"):
        source.tables(**props, key_columns="id").load()


def ice(source: Source, **more: str) -> dict[str, str]:
    return {"table_format": "iceberg", "tables": "lake.t", "key_columns": "id", **more}


@pytest.fixture
def lake(source: Source, session: Any) -> Any:
    """Runs SQL in which lake.t is a table of Iceberg in the folder."""
    sql = session.newSession()
    sql.conf.set("spark.sql.catalog.c", "org.apache.iceberg.spark.SparkCatalog")
    sql.conf.set("spark.sql.catalog.c.type", "hadoop")
    sql.conf.set("spark.sql.catalog.c.warehouse", str(source.folder))
    return sql.sql


def test_an_iceberg_table_is_sent_and_then_its_changes(source: Source, lake: Any) -> None:
    lake("CREATE TABLE c.lake.t (id BIGINT, v STRING) USING iceberg")
    lake("INSERT INTO c.lake.t VALUES (1, 'a'), (2, 'b'), (4, 'same')")
    drain(source.tables(**ice(source)))
    assert [key["id"] for key, _ in changes(source)] == [1, 2, 4]

    lake("INSERT INTO c.lake.t VALUES (3, 'c')")
    lake("INSERT OVERWRITE c.lake.t VALUES (1, 'z'), (3, 'c'), (4, 'same')")
    drain(source.tables(**ice(source)))
    assert changes(source, 3) == [({"id": 1}, {"id": 1, "v": "z"}), ({"id": 2}, None), ({"id": 3}, {"id": 3, "v": "c"})]
    assert not source.tables(**ice(source)).load()


@pytest.mark.parametrize("old", [[], ["(0)"]])
def test_the_rows_of_the_first_start_are_left_out_and_no_later_ones(source: Source, lake: Any, old: list[str]) -> None:
    lake("CREATE TABLE c.lake.t (id BIGINT) USING iceberg")
    for row in (*old, "(1)", "(2)"):
        if row != "(0)":
            drain(source.tables(**ice(source, snapshot_mode="no_data")))
        lake(f"INSERT INTO c.lake.t VALUES {row}")
    drain(source.tables(**ice(source, snapshot_mode="no_data")))
    assert sorted(row["id"] for row in source.values()) == [1, 2]


@pytest.mark.thorough
def test_a_large_table_is_sent_in_loads_of_some_files(source: Source, lake: Any) -> None:
    lake("CREATE TABLE c.lake.t (id BIGINT) USING iceberg")
    for number in range(3):
        lake(f"INSERT INTO c.lake.t VALUES ({number})")
    props = ice(source, load_max_bytes="1")
    assert source.tables(**props).load()
    assert json.loads(source.offsets.read_text()).popitem()[1]["files"] == 1
    drain(source.tables(**props))
    assert sorted(row["id"] for row in source.values()) == [0, 1, 2]
    assert source.context.commits == 2


def test_changes_come_in_the_envelope_of_debezium(source: Source, lake: Any) -> None:
    lake("CREATE TABLE c.lake.t (id BIGINT, v STRING) USING iceberg")
    lake("INSERT INTO c.lake.t VALUES (1, 'a'), (2, 'b')")
    props = ice(source, envelope="debezium")
    drain(source.tables(**props))
    lake("INSERT OVERWRITE c.lake.t VALUES (1, 'z')")
    drain(source.tables(**props))
    told = [(value["op"], value["before"], value["after"]) for _, value in changes(source)]
    one, two, new = {"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 1, "v": "z"}
    assert sorted(told, key=str) == [("d", two, None), ("r", None, one), ("r", None, two), ("u", one, new)]
    snapshots = {value["source"]["snapshot"] for _, value in changes(source) if value["op"] == "r"}
    assert snapshots == {"true"}


@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
@pytest.mark.thorough
def test_what_the_sink_wrote_comes_back(source: Source, table_format: str, bootstrap: str) -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"field": "id", "type": "int8"},
            {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
            {"field": "time", "type": "int32", "name": "org.apache.kafka.connect.data.Time", "version": 1},
            {"field": "tags", "type": "array", "items": {"type": "string"}},
        ],
    }
    rows = [{"id": n, "at": 1357016400000 + n, "time": 1000 * n, "tags": ["a", str(n)]} for n in range(4)]
    enveloped = {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "true"}
    origin = f"{source.topic}-origin"
    create_topic(bootstrap, origin)
    produce(bootstrap, origin, [json.dumps({"schema": schema, "payload": row}).encode() for row in rows])
    props = {
        "store.url": str(source.folder),
        "table.format": table_format,
        "name": "sink",
        **JSON,
        **SPARK,
        **enveloped,
    }
    sink = SparkSinkTask(SparkSinkConfig.parse(props), BulkContext("sink", bootstrap, props))
    sink.start()
    sink.load([OffsetRange(origin, 0, 0, len(rows))])

    drain(source.tables(table_format=table_format, tables=origin, value_converter_schemas_enable="true"))
    found = source.values()
    assert sorted((each["payload"] for each in found), key=lambda row: row["id"]) == rows
    fields = {field["field"]: (field["type"], field.get("name")) for field in found[0]["schema"]["fields"]}
    expected = {field["field"]: (field["type"], field.get("name")) for field in schema["fields"]}
    # Iceberg has no whole numbers of 8 bits.
    assert fields == (expected | {"id": ("int32", None)} if table_format == "iceberg" else expected)


# -- exactly once ---------------------------------------------------------------------------------------------------

Start = Callable[..., BulkSourceTask[Any]]


@pytest.fixture
def twelve(request: pytest.FixtureRequest, source: Source, lake: Any) -> Start:
    """Starts tasks that read the rows 0 to 11, which are in three files, three parts or one version."""
    rows = [{"id": n, "act": "die once" if n == 5 else ""} for n in range(12)]
    acting = {"plugin_path": str(PLUGINS), "transforms": "act", "transforms_act_type": "acts.Act"}
    acting["transforms_act_folder"] = str(source.folder.parent)
    if request.param == "files":
        for number in range(3):
            write(source.folder / f"{number}.parquet", rows[number::3])
        return partial(source.files, **acting)
    if request.param == "database":
        path = source.folder / "shop.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE orders (id INTEGER, act TEXT)")
            connection.executemany("INSERT INTO orders VALUES (?, ?)", [tuple(row.values()) for row in rows])
        parts = {"partition_column": "id", "partition_count": "3", "load_max_partitions": "3"}
        url = f"jdbc:sqlite:{path}"
        return partial(source.database, connection_url=url, tables="orders", **parts, **acting)
    lake("CREATE TABLE c.lake.t (id BIGINT, act STRING) USING iceberg")
    values = [", ".join(f"({row['id']}, '{row['act']}')" for row in rows[number::3]) for number in range(3)]
    lake("INSERT INTO c.lake.t VALUES (100, '')")
    drain(source.tables(**ice(source, topic=f"{source.topic}-before")))
    source.exactly_once()
    drain(source.tables(**ice(source, topic=f"{source.topic}-before")))
    lake(f"INSERT OVERWRITE c.lake.t VALUES (100, ''), {', '.join(values)}")
    return partial(source.tables, **ice(source), **acting)


def ids(source: Source) -> list[int]:
    return sorted(row["id"] for row in source.values())


@pytest.mark.parametrize("twelve", ["database", *thorough("changes of a table")], indirect=True)
def test_at_least_once_a_lost_driver_and_a_killed_executor_lose_nothing(source: Source, twelve: Start) -> None:
    (source.folder.parent / "alive").mkdir()
    source.at_least_once()
    task = twelve()
    with pytest.raises(RetriableError, match="nothing is lost"):
        task.load()
    with pytest.raises(ConnectError, match="gone away"):
        task.load()
    assert set(ids(source)) == set(range(12))
    drain(twelve())
    assert set(Counter(ids(source)).values()) <= {2, 3}
    assert set(ids(source)) == set(range(12))


@pytest.mark.parametrize("twelve", ["files", "changes of a table"], indirect=True)
@pytest.mark.thorough
def test_neither_a_killed_executor_nor_a_lost_driver_doubles_anything(source: Source, twelve: Start) -> None:
    (source.folder.parent / "alive").mkdir()
    source.exactly_once()
    with pytest.raises(RetriableError, match="nothing is lost"):
        twelve().load()
    assert 5 not in ids(source)

    source.exactly_once(lost_after=1)
    with pytest.raises(ConnectError, match="gone away"):
        twelve().load()
    assert any("pieces" in offset for offset in source.stored())

    source.exactly_once()
    drain(twelve())
    assert ids(source) == list(range(12))
    assert not any("pieces" in offset for offset in source.stored())


def test_what_is_left_out_is_told_of_before_the_rest_is_committed(source: Source) -> None:
    fine = dt.datetime(2013, 1, 1, 5, 0, 0, 1, tzinfo=dt.UTC)
    write(source.folder / "a.parquet", [{"id": 1, "at": fine}, {"id": 2, "at": OLD}, {"id": 3, "at": fine}])
    source.exactly_once()
    with pytest.raises(ConnectError, match="finer than a millisecond"):
        source.files().load()
    assert source.read() == []
    drain(source.files(errors_tolerance="all"))
    assert ids(source) == [2]
    assert len(source.context.failures) == 2
    assert source.context.written == {source.topic: 1}
