"""Changes that were logged before a table was altered, renamed or dropped, as the connector reads them afterwards."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from connect.data import SourceRecord
from connect.testing import StoredOffsets, run_source
from connectors.cdc.postgresql import PostgresConnector
from converters.json import JsonConverter
from converters.json.config import JsonConverterConfig
from equipment.change_data import capture_props
from equipment.servers.lease import Database

pytestmark = pytest.mark.integration
FULL = "ALTER TABLE t REPLICA IDENTITY FULL"


def read_later(database: Database, create: Sequence[str], later: Sequence[str], count: int) -> list[SourceRecord]:
    """Return what is read of statements that a stopped connector has missed; each record fits its schema."""
    database.execute(*create)
    offsets, props = StoredOffsets(), capture_props(database)
    run_source(PostgresConnector, props, offsets=offsets, until=lambda _: bool(offsets.items()))
    with closing(database.connect()) as connection:
        for statement in later:
            connection.execute(statement)
    found = run_source(PostgresConnector, props, offsets=offsets, until=lambda records: len(records) >= count)
    converter = JsonConverter(JsonConverterConfig())
    for record in found:
        converter.from_connect(record.topic, record.key_schema, record.key)
        converter.from_connect(record.topic, record.value_schema, record.value)
    return found


def told(records: Sequence[SourceRecord]) -> list[tuple[str, Any]]:
    """The operations of the events, and their keys."""
    return [("-" if record.value is None else record.value["op"], record.key) for record in records]


@pytest.mark.parametrize("identity", [(), (FULL,)], ids=["default", "full"])
def test_a_key_that_was_renamed_has_its_name_of_then(captured: Database, identity: tuple[str, ...]) -> None:
    found = read_later(
        captured,
        ["CREATE TABLE t (id int PRIMARY KEY, v int)", *identity],
        ["INSERT INTO t VALUES (1, 1)", "DELETE FROM t", "ALTER TABLE t RENAME id TO n", "INSERT INTO t VALUES (2, 2)"],
        4,
    )
    assert told(found) == [("c", {"id": 1}), ("d", {"id": 1}), ("-", {"id": 1}), ("c", {"n": 2})]
    assert not any(field.schema.optional for record in found for field in record.key_schema.fields)


def test_a_key_that_was_replaced_is_that_of_then(captured: Database) -> None:
    """Also for deletions, which the server sends with the key of then."""
    found = read_later(
        captured,
        ["CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)"],
        [
            "INSERT INTO t VALUES (1, 5)",
            "DELETE FROM t",
            "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (v)",
            "INSERT INTO t VALUES (2, 6)",
        ],
        4,
    )
    assert told(found) == [("c", {"id": 1}), ("d", {"id": 1}), ("-", {"id": 1}), ("c", {"v": 6})]


@pytest.mark.parametrize("identity", [(), (FULL,)], ids=["default", "full"])
def test_null_is_read_that_was_forbidden_afterwards(captured: Database, identity: tuple[str, ...]) -> None:
    found = read_later(
        captured,
        ["CREATE TABLE t (id int PRIMARY KEY, v int)", *identity],
        [
            "INSERT INTO t VALUES (1, NULL)",
            "UPDATE t SET v = 1",
            "INSERT INTO t VALUES (2, NULL)",
            "DELETE FROM t WHERE id = 2",
            "ALTER TABLE t ALTER v SET NOT NULL",
            "INSERT INTO t VALUES (3, 3)",
        ],
        6,
    )
    assert [record.value["after"] and record.value["after"]["v"] for record in found if record.value] == [
        None, 1, None, None, 3,
    ]  # fmt: skip
    assert not found[-1].value_schema.fields[1].schema.field("v").schema.optional


def test_null_in_what_has_become_the_key_afterwards(captured: Database) -> None:
    found = read_later(
        captured,
        ["CREATE TABLE t (id int)", FULL],
        ["INSERT INTO t VALUES (NULL)", "DELETE FROM t", "ALTER TABLE t ADD PRIMARY KEY (id)"],
        2,
    )
    assert told(found)[:2] == [("c", {"id": None}), ("d", {"id": None})]


def test_the_key_of_a_table_that_was_dropped(captured: Database, caplog: pytest.LogCaptureFixture) -> None:
    """The log tells it, but for tables that are logged with all columns."""
    found = read_later(
        captured,
        ["CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)", FULL],
        ["INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (1)", "DROP TABLE t, u"],
        2,
    )
    assert told(found) == [("c", None), ("c", {"id": 1})]
    assert "table public.t from before" in caplog.text
    assert "table public.u from before" not in caplog.text


def test_columns_that_are_left_out_are_told_once(captured: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    found = read_later(
        captured,
        ["CREATE TYPE place AS (street text, number int)", "CREATE TABLE t (id int PRIMARY KEY, at place)"],
        ["INSERT INTO t VALUES (1, ROW('a', 1))", "ALTER TABLE t ADD v int", "INSERT INTO t VALUES (2)"],
        2,
    )
    assert [record.value["after"] for record in found] == [{"id": 1}, {"id": 2, "v": None}]
    assert caplog.text.count("Column public.t.at is left out of events: values of type place are not supported.") == 2
