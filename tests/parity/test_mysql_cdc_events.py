"""The events of MySQL and MariaDB as Debezium sends them, replayed statement by statement on real servers.

Compared are the topics of tables, of schema changes and of transactions: keys, values and headers in their order. Names
of databases, times, positions and ids of this run stand for those of the recording.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from connect.data import SourceRecord
from connect.testing import StoredOffsets, run_source
from converters.json import JsonConverter, JsonConverterConfig
from equipment.binlog_capture import binlog_connector, binlog_props
from equipment.brokers.topics import create_topic, read_topic
from equipment.proofs import thorough
from equipment.servers.lease import Database, Server

DATA: Final = Path(__file__).parent / "data" / "cdc"
SHOP: Final = "shop"
TABLES: Final = (
    "CREATE TABLE dbz_signal (id varchar(64) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))",
    "CREATE TABLE hb (id int NOT NULL PRIMARY KEY, ts timestamp NULL)",
    "CREATE TABLE nopk (a int, b varchar(10))",
    "CREATE TABLE orders (id int PRIMARY KEY, name varchar(50), amt decimal(10,2), qty int NOT NULL DEFAULT 5)",
    "CREATE TABLE two (a int, b varchar(5), v int, PRIMARY KEY (b, a))",
    "INSERT INTO nopk VALUES (1, 'x')",
    "INSERT INTO orders VALUES (1, 'a', 1.5, 1), (2, 'b', 2.25, 2), (3, 'c', NULL, 3)",
    "INSERT INTO two VALUES (1, 'k', 10)",
)
STATEMENTS: Final = (
    "insert into orders values (4,'d',4.00,4)",
    "update orders set name='D' where id=4",
    "update orders set id=40 where id=4",
    "delete from orders where id=40",
    "replace into orders values (1,'a2',1.5,1)",
    "insert into orders values (2,'dup',1,1) on duplicate key update name='odku'",
    "insert into orders values (50,'m1',1,1),(51,'m2',1,1)",
    "insert into nopk values (2,'y')",
    "update nopk set b='z' where a=2",
    "delete from nopk where a=2",
    "update two set a=2 where a=1",
    "begin",
    "insert into orders values (6,'tx',1,1)",
    "update nopk set b='tx'",
    "delete from orders where id=6",
    "commit",
)
CHANGES: Final = (
    ("alter table orders add column extra varchar(10) default 'dflt'",),
    ("insert into orders values (8,'altered',7,7,'e')", "update orders set extra=null where id=1"),
    ("alter table orders drop column qty, modify amt decimal(12,4)",),
    ("insert into orders values (9,'dropped',8,'q')",),
    ("rename table two to two_r",),
    ("insert into two_r values (5,'n',1)",),
    ("create table newt (id int primary key)",),
    ("insert into newt values (1)", "truncate table nopk"),
    ("drop table newt",),
)
"""Each part is read before the next is run, so that the catalog is that of the time, as in the recording."""
CLOCK: Final = ("ts_ms", "ts_us", "ts_ns")
CONTEXT: Final = "__debezium.context."


@pytest.fixture(params=["mariadb", *thorough("mysql")])
def shop(request: pytest.FixtureRequest) -> Iterator[Database]:
    """The database of the recording."""
    server: Server = request.getfixturevalue(f"{request.param}_server")
    charset = "utf8mb4" if request.param == "mysql" else "latin1"
    with closing(server.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"CREATE DATABASE {SHOP} CHARACTER SET {charset}")
    database = Database(server, SHOP)
    try:
        database.execute(*TABLES)
        yield database
    finally:
        with closing(server.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(f"DROP DATABASE {SHOP}")


def replayed(database: Database, **more: str) -> list[SourceRecord]:
    """Return the records of a connector that runs while the statements are run."""
    props = binlog_props(database) | {
        "topic.prefix": database.product,
        "skipped.operations": "none",
        "provide.transaction.metadata": "true",
        "table.exclude.list": "shop.hb",
        "include.query": "true",
        "include.schema.changes": "true",
        **more,
    }
    connector, offsets = binlog_connector(database), StoredOffsets()
    records = run_source(connector, props, offsets=offsets, until=lambda _: position(offsets, database.product) > 0)
    for part in ((), STATEMENTS, *CHANGES):
        run(database, *part)
        end = end_of_log(database)
        records += run_source(
            connector, props, offsets=offsets, until=lambda _, end=end: position(offsets, database.product) >= end
        )
    return [record for record in records if not is_of_another_test(record)]


def is_of_another_test(record: SourceRecord) -> bool:
    """Return whether a record tells that another test has made or dropped its database on this server meanwhile."""
    key = record.key if record.topic in ("mysql", "mariadb") else None
    return key is not None and key["databaseName"] != SHOP and key["databaseName"].startswith("test_")


def end_of_log(database: Database) -> int:
    statement = "SHOW MASTER STATUS" if database.product == "mariadb" else "SHOW BINARY LOG STATUS"
    return int(database.rows(statement)[0][1])


def position(offsets: StoredOffsets, server: str) -> int:
    offset = offsets.offset({"server": server}) or {}
    is_read = "pos" in offset and not any("snapshot" in key for key in offset)
    return int(offset["pos"]) if is_read else -1


def run(database: Database, *statements: str) -> None:
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)


def written(records: list[SourceRecord]) -> dict[str, list[Any]]:
    """Return what is in each topic, as the JSON converter writes it."""
    converter = JsonConverter(JsonConverterConfig(schemas_enable=False))

    def text(topic: str, schema: Any, value: Any) -> Any:
        return None if value is None else json.loads(converter.from_connect(topic, schema, value) or b"null")

    topics: dict[str, list[Any]] = {}
    for record in records:
        key = text(record.topic, record.key_schema, record.key)
        value = text(record.topic, record.value_schema, record.value)
        headers = [[header.key, None if header.key.startswith(CONTEXT) else header.value] for header in record.headers]
        topics.setdefault(record.topic, []).append(comparable(key, value, headers))
    return topics


def recorded(product: str) -> dict[str, list[Any]]:
    """Return what Debezium wrote, without what incremental snapshots and the restart added."""
    topics: dict[str, list[Any]] = {}
    for line in (DATA / f"{product}_events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        value = event["value"] or {}
        after = value.get("after") or {}
        if event["key"] is None and event["value"] is None:
            continue  # A tombstone without a key deletes nothing, and a compacted topic refuses it.
        is_later = (
            event["topic"].startswith("schemahistory")
            or "signal" in event["topic"]
            or value.get("source", {}).get("snapshot") == "incremental"
        )
        if is_later or after.get("name") == "while stopped":
            continue
        headers = [[name, None if name.startswith(CONTEXT) else value] for name, value in event["headers"]]
        topics.setdefault(event["topic"], []).append(comparable(event["key"], event["value"], headers))
    return topics


def comparable(key: Any, value: Any, headers: list[Any]) -> Any:
    """Return a record without what differs from run to run: what is there is told from what is not."""
    if value is not None:
        value = _masked(value)
    if key is not None and "id" in key and isinstance(key["id"], str) and value is not None and "status" in value:
        key = {"id": _id(key["id"])}
    return {"key": key, "value": value, "headers": headers}


def _masked(value: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: None if name in CLOCK else part for name, part in value.items()}
    if isinstance(source := shown.get("source"), dict):
        shown["source"] = {name: _source_part(name, part) for name, part in source.items()}
    if shown.get("op") == "t":
        shown["transaction"] = None  # MariaDB's connector counts the statement as a transaction, MySQL's does not.
    if isinstance(block := shown.get("transaction"), dict):
        shown["transaction"] = {**block, "id": _id(block["id"])}
    if "status" in shown:
        shown["id"] = _id(shown["id"])
        # Java's order of tables is that of a hash.
        shown["data_collections"] = sorted(shown["data_collections"] or (), key=str)
    for change in shown.get("tableChanges") or ():
        # The catalog writes out display widths of integers that a statement leaves out.
        for column in (change["table"] or {}).get("columns", ()):
            if column["typeName"] == "INT":
                column["length"] = None
    if isinstance(ddl := shown.get("ddl"), str):
        shown["ddl"] = re.sub(r"\s+ENGINE=.*", "", re.sub(r"COLLATE \w+|\w+_server=\w+", "", ddl), flags=re.DOTALL)
    return shown


def _source_part(name: str, part: Any) -> Any:
    if name in (*CLOCK, "version", "file", "pos", "server_id", "thread"):
        return None if part is None else bool(part)
    return _id(part) if name == "gtid" and part is not None else part


def _id(_: str) -> str:
    return "a transaction"


def test_the_events_and_the_schema_history_are_those_of_the_recording(shop: Database, bootstrap: str) -> None:
    topic = f"history-{shop.product}-{uuid4().hex[:8]}"
    create_topic(bootstrap, topic)
    keys = "schema.history.internal.kafka"

    records = replayed(shop, **{f"{keys}.topic": topic, f"{keys}.bootstrap.servers": bootstrap})

    found, expected = written(records), recorded(shop.product)

    tables = [topic for topic in expected if topic.startswith(f"{shop.product}.{SHOP}.")]
    assert tables
    assert {topic: found.get(topic) for topic in tables} == {topic: expected[topic] for topic in tables}
    assert found[shop.product] == expected[shop.product]
    transactions = f"{shop.product}.transaction"
    assert all(each in found[transactions] for each in expected[transactions] if each["value"]["event_count"] != 0)
    check_history([json.loads(message.value() or b"") for message in read_topic(bootstrap, topic)], shop.product)


def check_history(found: list[dict[str, Any]], product: str) -> None:
    """Check that the entries of the recording are among those of the topic."""
    by_statement = {_statement(entry): entry for entry in found}
    compared = 0
    for line in (DATA / f"{product}_events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["topic"].startswith("schemahistory"):
            entry = by_statement[_statement(event["value"])]
            assert _comparable_entry(entry) == _comparable_entry(event["value"])
            compared += 1
    assert compared >= 5


def _statement(entry: Mapping[str, Any]) -> str:
    return str(_masked({"ddl": entry["ddl"]})["ddl"])


def _comparable_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    shown = {**entry, "ts_ms": None, "ddl": None}
    # MariaDB's connector has the statement's own GTID in its position, ours that of the transaction before.
    kept = set(entry["position"]) - {"transaction_id", "event"}
    shown["position"] = sorted(kept)
    changes = json.loads(json.dumps(shown["tableChanges"]))
    for change in changes:
        change.pop("previousId", None)
        for column in change.get("table", {}).get("columns", ()):
            if column["typeName"] == "INT":
                column.pop("length", None)
    shown["tableChanges"] = changes
    return shown
