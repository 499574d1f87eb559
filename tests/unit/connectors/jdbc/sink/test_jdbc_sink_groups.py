"""The groups in which rows of several tables are written: in the order of their records where it may matter."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from connect.data import Schema, SinkBatch, SinkRecord
from connect.kits.sql.connection import Database
from connect.kits.sql.registry import writer_of
from connect.kits.sql.writer import referring
from connectors.jdbc import JdbcSinkConfig
from connectors.jdbc.sink.routing import Routing
from connectors.jdbc.sink.rows import RowMaker
from connectors.jdbc.sink.tables import Tables

Grouped = Callable[..., list[tuple[str, int]]]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("customers", {"customers", "orders", "items", "payments"}),
        ("orders", {"orders", "items"}),
        ("items", {"items"}),
        ("payments", {"payments"}),
        ("tree", {"tree"}),
        ("hen", {"hen", "egg"}),
        ("egg", {"hen", "egg"}),
        ("alone", set()),
    ],
)
def test_what_the_rows_of_a_table_concern(table: str, expected: set[str]) -> None:
    references = [
        *(("orders", "customers"), ("payments", "customers"), ("items", "orders")),
        *(("tree", "tree"), ("hen", "egg"), ("egg", "hen")),
    ]
    assert referring(table, references) == expected


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[Grouped]:
    """Tells the groups of batches of records, each batch given by the tables of its records."""
    made: list[Database] = []

    def groups(ddl: Sequence[str], *batches: str, exact: bool = False) -> list[tuple[str, int]]:
        file = tmp_path / "target.db"
        with closing(sqlite3.connect(file)) as connection:
            for statement in ddl:
                connection.execute(statement)
        config = JdbcSinkConfig.parse(
            {"name": "c", "topics": "t", "connection.url": f"jdbc:sqlite:{file}", "table.name.field": "t",
             "fields.whitelist": "id"}
        )  # fmt: skip
        database = config.database(lambda _: True)
        made.append(database)
        tables = Tables(database, writer_of(database.dialect), config)
        routing = Routing(config, database.dialect)
        maker = RowMaker(config, routing, tables.prepare, tables.reached, arrays=False)
        found = maker.groups([_batch(each) for each in batches], exact=exact)
        return [(group.table.name, len(group.rows)) for group in found]

    yield groups
    for database in made:
        database.dispose()


def _batch(tables: str) -> SinkBatch:
    schema = Schema.struct({"t": Schema.string(), "id": Schema.int64()})
    (batch,) = SinkBatch.from_records(
        SinkRecord("t", {"t": table, "id": at}, schema, None, None, 0, offset=at) for at, table in enumerate(tables)
    )
    return batch


PLAIN = [f"CREATE TABLE {name} (id INT)" for name in "xyz"]
PARENTS = [f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in "pq"]
CHILDREN = [f"CREATE TABLE {name} (id INT, pid INT REFERENCES p (id))" for name in "abc"]


def test_tables_of_their_own_are_grouped(grouped: Grouped) -> None:
    assert grouped(PLAIN, "xyxyz", "zyx") == [("x", 3), ("y", 3), ("z", 2)]


def test_tables_that_refer_to_the_same_one_are_grouped(grouped: Grouped) -> None:
    assert grouped(PARENTS + CHILDREN, "abcabc", "cba") == [("a", 3), ("b", 3), ("c", 3)]


def test_a_table_and_what_refers_to_it_keep_their_order(grouped: Grouped) -> None:
    expected = [("q", 2), ("a", 1), ("b", 1), ("p", 1), ("b", 2), ("a", 1), ("p", 1)]
    assert grouped(PARENTS + CHILDREN, "abqpb", "baqp") == expected


def test_tables_to_which_a_third_refers_keep_their_order(grouped: Grouped) -> None:
    between = "CREATE TABLE m (id INT, pid INT REFERENCES p (id) ON DELETE CASCADE, qid INT REFERENCES q (id))"
    assert grouped([*PARENTS, between], "pqp", "p") == [("p", 1), ("q", 1), ("p", 2)]


def test_whatever_is_beyond_a_trigger_keeps_its_order(grouped: Grouped) -> None:
    trigger = "CREATE TRIGGER told AFTER INSERT ON a BEGIN DELETE FROM q; END"
    other = "CREATE TABLE d (id INT, qid INT REFERENCES q (id))"
    expected = [("x", 2), ("a", 1), ("d", 1), ("a", 1), ("b", 1), ("d", 1)]
    assert grouped([*PLAIN, *PARENTS, *CHILDREN, other, trigger], "xadabdx") == expected
    # It is reached from the table to which its table refers, too.
    assert grouped([], "dpd") == [("d", 1), ("p", 1), ("d", 1)]


def test_exactly_is_in_the_order_of_the_records(grouped: Grouped) -> None:
    assert grouped(PLAIN, "xyxx", "xy", exact=True) == [("x", 1), ("y", 1), ("x", 3), ("y", 1)]
