"""Rows of several tables that depend on each other, as the JDBC sink writes them to real databases."""

from __future__ import annotations

import pytest

from connect.data import Schema, SinkRecord
from connect.kits.sql.registry import writer_of
from connect.testing.contexts import ErrantRecords
from connectors.jdbc import JdbcSinkConfig
from connectors.jdbc.sink.tables import Tables
from equipment.stores.jdbc_target import Target, put, records, running, write

NODE = Schema.struct({"t": Schema.string(), "id": Schema.int32(), "pid": Schema.int32(optional=True)})
NODE_KEY = Schema.struct({"t": Schema.string(), "id": Schema.int32()})
BY_FIELD = {
    "pk_mode": "record_key",
    "pk_fields": "id",
    "table_name_field": "t",
    "fields_whitelist": "pid",
    "delete_enabled": "true",
}


def nodes(*wanted: tuple[str, int, int | None] | tuple[str, int]) -> list[SinkRecord]:
    pairs = [
        ({"t": each[0], "id": each[1]}, {"t": each[0], "id": each[1], "pid": each[2]} if len(each) == 3 else None)
        for each in wanted
    ]
    return records(*pairs, schema=NODE, key=NODE_KEY)


@pytest.fixture
def family(target: Target) -> Target:
    """Children that refer to parents, where the database enforces it."""
    target.execute(
        "CREATE TABLE parent (id INT PRIMARY KEY, pid INT)",
        "CREATE TABLE child (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id))",
        "INSERT INTO parent VALUES (1, NULL)",
    )
    return target


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_a_child_follows_its_parent_across_tables(family: Target, mode: str) -> None:
    items = nodes(("child", 10, 1), ("parent", 2, None), ("child", 20, 2), ("parent", 3, None), ("child", 30, 3))
    errant = ErrantRecords[SinkRecord](tolerate=True)
    write(family, items, errant, insert_mode=mode, **BY_FIELD)
    assert [error for _, error in errant.reported] == []
    assert sorted(family.rows("SELECT id, pid FROM child")) == [(10, 1), (20, 2), (30, 3)]


def test_deletes_and_updates_keep_their_order_across_tables(family: Target) -> None:
    items = nodes(("parent", 5, None), ("child", 10, 5), ("child", 11, 1), ("child", 10), ("parent", 5))
    write(family, items, insert_mode="upsert", **BY_FIELD)
    assert (family.rows("SELECT id FROM parent"), family.rows("SELECT id, pid FROM child")) == ([(1,)], [(11, 1)])
    family.execute("INSERT INTO parent VALUES (7, NULL)")
    write(family, nodes(("child", 11, 7), ("parent", 1)), insert_mode="update", **BY_FIELD)
    assert (family.rows("SELECT id FROM parent"), family.rows("SELECT id, pid FROM child")) == ([(7,)], [(11, 7)])


def test_a_foreign_key_that_is_added_while_the_task_runs_is_heeded(target: Target) -> None:
    target.execute(
        "CREATE TABLE parent (id INT PRIMARY KEY, pid INT)", "CREATE TABLE child (id INT PRIMARY KEY, pid INT)"
    )
    errant = ErrantRecords[SinkRecord](tolerate=True)
    with running(target, errant, insert_mode="upsert", **BY_FIELD) as task:
        put(task, nodes(("parent", 1, None), ("child", 10, 1)))
        if target.product != "sqlite":
            target.execute("ALTER TABLE child ADD FOREIGN KEY (pid) REFERENCES parent (id)")
        put(task, nodes(("child", 11, 1), ("parent", 2, None), ("child", 20, 2)))
    assert errant.reported == []
    assert sorted(target.rows("SELECT id, pid FROM child")) == [(10, 1), (11, 1), (20, 2)]


def test_only_the_child_without_a_parent_is_blamed(family: Target) -> None:
    if family.product == "sqlite":
        pytest.skip("SQLite does not enforce foreign keys unless a connection asks for it")
    errant = ErrantRecords[SinkRecord](tolerate=True)
    write(family, nodes(("child", 10, 1), ("child", 99, 9), ("parent", 2, None), ("child", 20, 2)), errant,
          insert_mode="upsert", **BY_FIELD)  # fmt: skip
    assert [record.original_offset for record, _ in errant.reported] == [1]
    assert sorted(family.rows("SELECT id, pid FROM child")) == [(10, 1), (20, 2)]


def test_each_database_tells_what_the_rows_of_a_table_concern(target: Target) -> None:
    refers = "{} INT, FOREIGN KEY ({}) REFERENCES {} (id)"
    target.execute(
        "CREATE TABLE alone (id INT PRIMARY KEY)",
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        *(f"CREATE TABLE {each} (id INT PRIMARY KEY, {refers.format('pid', 'pid', 'parent')})" for each in ("a", "b")),
        f"CREATE TABLE grandchild (id INT PRIMARY KEY, {refers.format('aid', 'aid', 'a')})",
        "CREATE TABLE acting (id INT PRIMARY KEY)",
        f"CREATE TABLE above (id INT PRIMARY KEY, {refers.format('aid', 'aid', 'acting')})",
    )
    if target.product == "postgresql":
        target.execute(
            "CREATE FUNCTION act() RETURNS trigger AS 'BEGIN RETURN NEW; END' LANGUAGE plpgsql",
            "CREATE TRIGGER act AFTER INSERT ON above FOR EACH ROW EXECUTE FUNCTION act()",
        )
    elif target.product == "sqlite":
        target.execute("CREATE TRIGGER act AFTER INSERT ON above BEGIN DELETE FROM alone; END")
    else:
        target.execute("CREATE TRIGGER act AFTER INSERT ON above FOR EACH ROW DELETE FROM alone")
    config = JdbcSinkConfig.parse({"name": "sink", "topics": "t", **target.props})
    connection = config.database(lambda _: True)
    try:
        tables = Tables(connection, writer_of(connection.dialect), config)
        reached = {each: tables.reached(connection.dialect.table_id(each)) for each in (
            "alone", "parent", "a", "b", "grandchild", "above", "acting", "missing")}  # fmt: skip
    finally:
        connection.dispose()
    assert reached["alone"] == reached["missing"] == frozenset()
    assert reached["above"] is None
    assert reached["acting"] is None
    a, b, grandchild = reached["a"] or set(), reached["b"] or set(), reached["grandchild"] or set()
    assert (len(a), len(b), len(grandchild)) == (2, 1, 1)
    assert a.isdisjoint(b)
    assert grandchild < a
    assert a | b < (reached["parent"] or set())
    assert len(reached["parent"] or set()) == 4


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_children_that_share_a_parent_follow_it(family: Target, mode: str) -> None:
    family.execute("CREATE TABLE sibling (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id))")
    alternating = [row for n in range(20, 40) for row in (("child", n, 1), ("sibling", n, 1))]
    items = nodes(*alternating, ("parent", 2, None), ("sibling", 50, 2), ("child", 50, 2), ("parent", 3, None),
                  ("child", 51, 3), ("sibling", 51, 3))  # fmt: skip
    write(family, items, insert_mode=mode, **BY_FIELD)
    expected = [*((n, 1) for n in range(20, 40)), (50, 2), (51, 3)]
    assert sorted(family.rows("SELECT id, pid FROM child")) == expected
    assert sorted(family.rows("SELECT id, pid FROM sibling")) == expected


def test_parents_that_share_a_child_keep_their_order(target: Target) -> None:
    if target.product == "sqlite":
        pytest.skip("SQLite does not enforce foreign keys unless a connection asks for it")
    target.execute(
        "CREATE TABLE first (id INT PRIMARY KEY, pid INT)",
        "CREATE TABLE second (id INT PRIMARY KEY, pid INT)",
        "CREATE TABLE between_both (id INT PRIMARY KEY, f INT, s INT, FOREIGN KEY (f) REFERENCES first (id), "
        "FOREIGN KEY (s) REFERENCES second (id) ON DELETE CASCADE)",
        "INSERT INTO first VALUES (1, NULL), (2, NULL)",
        "INSERT INTO second VALUES (1, NULL), (2, NULL)",
        "INSERT INTO between_both VALUES (1, 1, 1), (2, 2, 2)",
    )
    # That of the first is refused as long as a row between them is there.
    errant = ErrantRecords[SinkRecord](tolerate=True)
    write(target, nodes(("second", 1), ("first", 1), ("second", 2), ("first", 2)), errant, insert_mode="upsert",
          **BY_FIELD)  # fmt: skip
    assert errant.reported == []
    assert (target.rows("SELECT * FROM first"), target.rows("SELECT * FROM between_both")) == ([], [])


def test_rows_of_one_table_that_refer_to_each_other_keep_their_order(target: Target) -> None:
    target.execute("CREATE TABLE tree (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES tree (id))")
    items = nodes(("tree", 1, None), ("tree", 2, 1), ("tree", 1, None), ("tree", 3, 1), ("tree", 2, 3), ("tree", 4, 2),
                  ("tree", 4, None), ("tree", 2))  # fmt: skip
    errant = ErrantRecords[SinkRecord](tolerate=True)
    write(target, items, errant, insert_mode="upsert", **BY_FIELD)
    assert errant.reported == []
    assert sorted(target.rows("SELECT id, pid FROM tree")) == [(1, None), (3, 1), (4, None)]
