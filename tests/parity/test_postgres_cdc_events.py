"""The events that Debezium 3.7 sent for a run of statements, replayed on a real server and compared as a whole.

Left out are times and positions, which every run has its own of, and what no statement made: heartbeats,
notifications and the incremental snapshot.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from connect.data import SourceRecord
from connect.testing import StoredOffsets, run_source
from connectors.cdc.postgresql import PostgresConnector
from converters.json import JsonConverter, JsonConverterConfig
from equipment.change_data import capture_props
from equipment.servers.lease import Database

EVENTS: Final = Path(__file__).parent / "data" / "cdc" / "postgres_events.jsonl"
BIG: Final = "1234567890" * 300
TABLES: Final = (
    "CREATE TABLE orders (id int PRIMARY KEY, name text, amt numeric(10,2), big text, qty int NOT NULL DEFAULT 5)",
    "ALTER TABLE orders ALTER big SET STORAGE EXTERNAL",
    "CREATE TABLE nopk (a int, b text)",
    "CREATE TABLE two (a int, b text, v int, PRIMARY KEY (b, a))",
    "CREATE TABLE full_t (id int PRIMARY KEY, name text)",
    "ALTER TABLE full_t REPLICA IDENTITY FULL",
    "INSERT INTO orders VALUES (1, 'a', 1.5, NULL, 1), (2, 'b', 2.25, NULL, 2), (3, 'c', NULL, NULL, 3)",
    "INSERT INTO nopk VALUES (1, 'x')",
    "INSERT INTO two VALUES (1, 'k', 10)",
    "INSERT INTO full_t VALUES (1, 'f')",
)
STATEMENTS: Final = (
    "INSERT INTO orders VALUES (4, 'd', 4, repeat('é', 10), 4)",
    "UPDATE orders SET name = 'D' WHERE id = 4",
    "UPDATE orders SET id = 40 WHERE id = 4",
    "DELETE FROM orders WHERE id = 40",
    "INSERT INTO full_t VALUES (2, 'g')",
    "UPDATE full_t SET name = 'G' WHERE id = 2",
    "UPDATE full_t SET id = 20 WHERE id = 2",
    "DELETE FROM full_t WHERE id = 20",
    "INSERT INTO nopk VALUES (2, 'y')",
    "UPDATE two SET v = 11",
    "UPDATE two SET a = 2",
    f"INSERT INTO orders VALUES (5, 'toast', 1, '{BIG}', 1)",
    "UPDATE orders SET name = 'toast2' WHERE id = 5",
    "BEGIN; INSERT INTO orders VALUES (6, 'tx', 1, NULL, 1); UPDATE full_t SET name = 'tx' WHERE id = 1; "
    "SELECT pg_logical_emit_message(true, 'pre', 'in tx'); DELETE FROM orders WHERE id = 6; COMMIT",
    "BEGIN; INSERT INTO orders VALUES (600, 'undone', 1, NULL, 1); ROLLBACK",
    "SELECT pg_logical_emit_message(false, 'pre', 'outside')",
    "ALTER TABLE orders ADD extra text DEFAULT 'dflt'; INSERT INTO orders VALUES (7, 'altered', 7, NULL, 7, 'e')",
    "UPDATE orders SET name = name WHERE id = 1",
    "ALTER TABLE orders DROP qty; INSERT INTO orders VALUES (8, 'dropped', 8, NULL, 'q')",
    "ALTER TABLE orders ALTER amt TYPE numeric(12,4); INSERT INTO orders VALUES (9, 'retyped', 9.1234, NULL, 'q')",
    "TRUNCATE two, nopk",
)
DIFFERENT: Final[dict[tuple[str, int], tuple[Any, ...]]] = {
    # The default of a column that was dropped shortly after: Debezium was late, and had forgotten it.
    ("srv.public.orders", 13): ("value", "before", "qty", 5),
    # Tables without a key are read first, since a snapshot that is interrupted cannot go on within them.
    ("srv.public.nopk", 0): ("value", "source", "snapshot", "first"),
    ("srv.public.full_t", 0): ("value", "source", "snapshot", "last_in_data_collection"),
}
_VALUE: Final = JsonConverter(JsonConverterConfig(schemas_enable=False))


def replayed(database: Database) -> list[SourceRecord]:
    """Run the statements one after the other, each when the connector has sent those before."""
    props = capture_props(database) | {"provide.transaction.metadata": "true", "skipped.operations": "none"}
    offsets = StoredOffsets()
    database.execute(*TABLES)
    records = run_source(PostgresConnector, props, offsets=offsets, until=lambda found: len(found) == 6)
    waiting = iter(STATEMENTS)
    seen = 0

    def is_done(found: Sequence[SourceRecord]) -> bool:
        """Run the next statement when the message after the last one has come."""
        nonlocal seen
        if seen and not any(is_step(record, seen) for record in found):
            return False
        statement = next(waiting, None)
        if statement is None:
            return True
        seen += 1
        database.execute(statement, f"SELECT pg_logical_emit_message(false, 'step', '{seen}')")
        return False

    records += run_source(PostgresConnector, props, offsets=offsets, until=is_done)
    return [record for record in records if record.key != {"prefix": "step"}]


def is_step(record: SourceRecord, number: int) -> bool:
    return record.key == {"prefix": "step"} and record.value["message"]["content"] == str(number).encode()


def written(record: SourceRecord) -> dict[str, Any]:
    """Return a record as the recordings have it."""
    key = _VALUE.from_connect(record.topic, record.key_schema, record.key)
    value = _VALUE.from_connect(record.topic, record.value_schema, record.value)
    headers = [
        [header.key, int(header.value) if header.key.endswith("taskId") else header.value] for header in record.headers
    ]
    return {
        "topic": record.topic,
        "key": json.loads(key) if key else None,
        "value": json.loads(value) if value else None,
        "headers": headers,
    }


def comparable(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without times and positions, whose parts have to agree with each other."""
    made: dict[str, Any] = json.loads(json.dumps({name: event[name] for name in ("topic", "key", "value", "headers")}))
    made["headers"] = [[name, "run"] if name.endswith("runId") else [name, value] for name, value in made["headers"]]
    value = made["value"]
    if event["topic"].endswith("transaction"):
        value["ts_ms"] = value["id"] = made["key"]["id"] = None
        return made
    if value is None:
        return made
    source = value["source"]
    assert source["ts_us"] // 1000 == source["ts_ms"]
    assert source["ts_ns"] == source["ts_us"] * 1000
    assert json.loads(source["sequence"])[1] == str(source["lsn"])
    if value["transaction"]:
        assert value["transaction"]["id"] == f"{source['txId']}:{source['lsn']}"
        value["transaction"]["id"] = None
    has_transaction = source["txId"] is not None
    source |= dict.fromkeys(("ts_ms", "ts_us", "ts_ns", "sequence", "lsn", "version", "db"))
    source["txId"] = has_transaction
    value |= {name: None for name in ("ts_ms", "ts_us", "ts_ns") if name in value}
    after = value.get("after")
    if after and after.get("big") == BIG:
        after["big"] = "<3000 letters>"
    return made


def by_topic(events: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        found[event["topic"]].append(comparable(event))
    return found


def recorded() -> list[dict[str, Any]]:
    """Return the recorded events that the statements made."""
    events = [json.loads(line) for line in EVENTS.read_text(encoding="utf-8").splitlines()]
    kept = [event for event in events if event["topic"].startswith("srv.public") or event["topic"] == "srv.message"]
    return [
        event
        for event in kept
        if not event["topic"].endswith("dbz_signal")
        and (event["value"] is None or event["value"]["source"]["snapshot"] != "incremental")
        and event["key"] != {"id": 10}
    ]


def test_every_recorded_event_is_sent_alike(captured: Database) -> None:
    found = [written(record) for record in replayed(captured)]

    events, expected = by_topic(found), by_topic(recorded())
    for (topic, place), (*path, name, value) in DIFFERENT.items():
        target = expected[topic][place]
        for part in path:
            target = target[part]
        target[name] = value
    assert {topic: events[topic] for topic in expected} == dict(expected)
    assert set(events) - set(expected) == {"srv.transaction"}
    check_transactions(found)


def check_transactions(found: Sequence[dict[str, Any]]) -> None:
    """The recording has a part of them; a logical message is counted under a Java object's name there."""
    told = [comparable(event)["value"] for event in found if event["topic"] == "srv.transaction"]

    assert [each["status"] for each in told] == ["BEGIN", "END"] * (len(told) // 2)
    ends = [each for each in told if each["status"] == "END"]
    assert ends[0] == {
        "status": "END",
        "id": None,
        "event_count": 1,
        "data_collections": [{"data_collection": "public.orders", "event_count": 1}],
        "ts_ms": None,
    }
    assert [(each["event_count"], each["data_collections"]) for each in ends[10:11]] == [
        (2, [{"data_collection": "public.two", "event_count": 2}])
    ]
    assert ends[-1]["data_collections"] == [
        {"data_collection": "public.two", "event_count": 1},
        {"data_collection": "public.nopk", "event_count": 1},
    ]
