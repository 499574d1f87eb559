"""The keys of a query, and what the worker has to allow of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.config import InvalidConfigError
from connect.errors import ConfigError
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.sql.options import JdbcTable, StoredTable

SINK = {"store.url": "/lake", "sql": "SELECT * FROM records"}


def errors(**props: str) -> str:
    with pytest.raises(ConfigError) as error:
        SparkSinkConfig.parse({**SINK, **{key.replace("__", "."): value for key, value in props.items()}})
    return str(error.value)


def test_a_sink_without_a_query_has_none(tmp_path: Path) -> None:
    assert not SparkSinkConfig.parse({"store.url": "/lake"}).has_query
    with pytest.raises(ConfigError, match="makes a table for a query, and there is none: set sql"):
        SparkSinkConfig.parse({"store.url": "/lake", "sql.tables.t.path": str(tmp_path)})


def test_tables_are_of_files_or_of_a_database(tmp_path: Path) -> None:
    config = SparkSinkConfig.parse(
        {
            **SINK,
            "sql.tables.ranks.jdbc.url": "jdbc:postgresql://db/x",
            "sql.tables.ranks.jdbc.table": "public.ranks",
            "sql.tables.ranks.jdbc.password": "secret",
            "sql.tables.carriers.path": str(tmp_path / "carriers"),
            "sql.tables.cities.path": "s3a://bucket/lookup/cities",
            "sql.tables.cities.format": "csv",
            "sql.allowed.paths": f"{tmp_path},s3a://bucket/lookup",
            "sql.allowed.jdbc.urls": "jdbc:postgresql://db/x",
        }
    )
    assert config.query_tables == (
        StoredTable("carriers", str(tmp_path / "carriers")),
        StoredTable("cities", "s3a://bucket/lookup/cities", "csv"),
        JdbcTable("ranks", "jdbc:postgresql://db/x", "public.ranks", None, "secret"),
    )
    assert "secret" not in repr(config.query_tables)


def test_nothing_is_allowed_that_the_worker_does_not_name(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to("/etc")
    allowed = f"{inside},s3a://bucket/lookup"
    refused = "add it, or a folder above it, to sql.allowed.paths in the worker's file"
    assert refused in errors(sql__tables__t__path=str(inside))
    for path in (
        str(outside),
        f"{inside}/../outside",
        f"{inside}/link/passwd",
        f"file://{outside}",
        "/etc",
        "s3a://bucket/lookup2/x",
        "s3a://bucket/lookup/../secret",
        "s3a://other/lookup",
        "hdfs://name/x",
    ):
        assert refused in errors(sql__tables__t__path=path, sql__allowed__paths=allowed), path
    pattern = errors(sql__tables__t__path=f"{inside}/{{a,/etc/passwd}}", sql__allowed__paths=allowed)
    assert "contains pattern characters" in pattern
    url = errors(sql__tables__t__jdbc__url="jdbc:h2:mem:;INIT=RUNSCRIPT", sql__tables__t__jdbc__table="t")
    assert "add it to sql.allowed.jdbc.urls" in url
    assert "RUNSCRIPT" not in url


def test_a_table_is_named_and_described_whole() -> None:
    assert "is not records" in errors(sql__tables__Records__path="/x")
    assert "letters, digits and _" in errors(**{"sql__tables__a-b__path": "/x"})
    assert "A table has format, jdbc.password" in errors(sql__tables__t__kafka="/x")
    assert "Give the table t either sql.tables.t.path, or" in errors(sql__tables__t__jdbc__url="jdbc:x")
    assert "The formats are parquet" in errors(sql__tables__t__path="/x", sql__tables__t__format="xml")


def test_a_query_is_read_from_a_file_that_the_worker_allows(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT 1 FROM records")
    props = {"store.url": "/lake", "sql.file": str(file)}
    assert SparkSinkConfig.parse({**props, "sql.allowed.paths": str(tmp_path)}).query_text == "SELECT 1 FROM records"
    for more in ({}, {"sql.allowed.paths": str(tmp_path / "other")}):
        with pytest.raises(ConfigError, match=r"add it, or a folder above it, to sql\.allowed\.paths"):
            SparkSinkConfig.parse({**props, **more})
    with pytest.raises(ConfigError, match="The query cannot be read"):
        SparkSinkConfig.parse({**props, "sql.file": str(tmp_path / "gone"), "sql.allowed.paths": str(tmp_path)})


def test_rows_of_a_result_have_no_time_and_no_key_of_a_record() -> None:
    daily = {"partitioner__class": "DailyPartitioner", "locale": "en", "timezone": "UTC"}
    assert "use FieldPartitioner with a column of the result" in errors(**daily)
    assert "set write.mode to append" in errors(table__format="delta", write__mode="upsert")


def test_there_is_one_query_of_bounded_length() -> None:
    with pytest.raises((ConfigError, InvalidConfigError), match=r"set sql or sql\.file, not both"):
        SparkSinkConfig.parse({**SINK, "sql.file": "/x"})
    assert "longer than 100,000 characters" in errors(sql="SELECT " + "1," * 50_000 + "1 FROM records")


def test_the_rules_of_iceberg_tables_hold_with_and_without_a_query() -> None:
    for query in ({}, {"sql": "SELECT * FROM records"}):
        with pytest.raises(ConfigError, match="Files of Iceberg tables are"):
            SparkSinkConfig.parse(
                {"store.url": "/lake", "table.format": "iceberg", "format.class": "JsonFormat", **query}
            )
