"""How tables are divided, and which URLs of databases are taken."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from decimal import Decimal

import pytest

from connect.errors import ConfigError
from connectors.spark.sources.jdbc.config import SparkJdbcSourceConfig
from connectors.spark.sources.jdbc.drivers import driver_url, jdbc_driver
from connectors.spark.sources.jdbc.snapshot import Bounds, Snapshot, bounds_of, predicates


@pytest.mark.parametrize("count", [1, 2, 7, 500])
def test_each_row_is_in_one_partition(count: int) -> None:
    bounds = bounds_of("id", -20, 101)
    conditions = predicates('"id"', bounds, count)
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE t ("id" INTEGER)')
    rows = [None, *range(-30, 130)]
    connection.executemany("INSERT INTO t VALUES (?)", [(row,) for row in rows])
    found = [row for each in conditions for (row,) in connection.execute(f"SELECT id FROM t WHERE {each}")]
    connection.close()
    assert sorted(found, key=str) == sorted(rows, key=str)
    assert len(conditions) <= count


@pytest.mark.parametrize(
    ("lower", "upper", "borders"),
    [
        (0, 100, ["50"]),
        (Decimal("0.5"), Decimal("9.5"), ["4"]),
        (dt.date(2020, 1, 1), dt.date(2020, 1, 31), ["'2020-01-16'"]),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 2, tzinfo=dt.UTC), ["'2020-01-01 12:00:00'"]),
        (7, 7, []),
    ],
)
def test_numbers_and_times_have_a_middle(lower: object, upper: object, borders: list[str]) -> None:
    bounds = bounds_of("c", lower, upper)
    assert bounds is not None
    assert bounds.borders(2) == borders


def test_a_column_without_values_is_not_divided_and_texts_are_refused() -> None:
    assert predicates("c", bounds_of("c", None, None), 5) == ("1 = 1",)
    with pytest.raises(ConfigError, match=r"partition\.column"):
        bounds_of("c", "a", "b")


def test_a_snapshot_goes_on_from_its_offset() -> None:
    snapshot = Snapshot(1000, Bounds("whole", 0, 2**70), 4).after(3, 4)
    assert Snapshot.of(json.loads(json.dumps(snapshot.offset()))) == snapshot
    assert not snapshot.is_complete
    complete = snapshot.after(1, 4)
    assert complete.is_complete
    assert complete.is_due_again(2000, 1000)
    assert not complete.is_due_again(1999, 1000)
    assert not complete.is_due_again(10**12, None)
    with pytest.raises(ConfigError):
        Snapshot.of({"snapshot": 1})


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("jdbc:postgresql://db:5432/shop", "jdbc:postgresql://db:5432/shop"),
        ("jdbc:postgresql://a:1,b:2/shop?sslmode=require", "jdbc:postgresql://a:1,b:2/shop?sslmode=require"),
        (
            "jdbc:mariadb://db/shop",
            "jdbc:mysql://db/shop?permitMysqlScheme=true&useServerPrepStmts=true&permitRedirect=false",
        ),
        ("jdbc:sqlite:/data/shop.db", "jdbc:sqlite:/data/shop.db"),
    ],
)
def test_urls_are_taken_with_options_that_harm_nobody(url: str, taken: str) -> None:
    assert driver_url(url) == taken


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db/shop",
        "jdbc:oracle:thin:@db",
        "jdbc:postgresql://user:secret@db/shop",
        "jdbc:postgresql://db/shop?socketFactory=org.example.Evil",
        "jdbc:postgresql://db/shop?sslmode=require&loggerFile=/etc/passwd",
        "jdbc:mysql://db/shop?allowLocalInfile=true",
        "jdbc:mysql://db/shop?sslMode=x%26allowLocalInfile%3Dtrue",
        "jdbc:sqlite:relative.db",
        "jdbc:sqlite:/x.db?enable_load_extension=true",
    ],
)
def test_other_urls_are_refused_without_being_shown(url: str) -> None:
    props = {"name": "x", "connection.url": url, "tables": "t", "topic": "t"}
    with pytest.raises(ConfigError) as told:
        SparkJdbcSourceConfig.parse(props)
    assert "secret" not in str(told.value)
    assert url not in str(told.value)


def test_names_are_quoted_as_the_database_does() -> None:
    mariadb, postgresql = jdbc_driver("jdbc:mysql://db/x"), jdbc_driver("jdbc:postgresql://db/x")
    assert mariadb is not None
    assert postgresql is not None
    assert mariadb.quoted_table("a.b`c") == "`a`.`b``c`"
    assert postgresql.quoted_table('public."x') == '"public"."""x"'


@pytest.mark.parametrize(
    "props",
    [
        {"topic": "t"},
        {"topic": "t", "tables": "a", "query": "SELECT 1"},
        {"topic": "t", "tables": "a,b"},
        {"topic": "t-${table}", "query": "SELECT 1"},
        {"topic": "t-${folder}", "tables": "a"},
    ],
)
def test_rules_over_several_options(props: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        SparkJdbcSourceConfig.parse({"name": "x", "connection.url": "jdbc:sqlite:/x.db", **props})
