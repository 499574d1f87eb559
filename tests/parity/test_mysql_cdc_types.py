"""The types of MySQL and MariaDB as Debezium sends them, replayed on real servers: the snapshot and the stream alike.

Values of which Debezium's snapshot and stream make two are one here: that of the snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from connect.data import SourceRecord
from connect.testing import StoredOffsets, run_source
from converters.json import JsonConverter, JsonConverterConfig
from equipment.binlog_capture import binlog_connector, binlog_props
from equipment.servers.lease import Database

DATA: Final = Path(__file__).parent / "data" / "cdc"
MODES: Final = {
    "time=connect": {"time.precision.mode": "connect"},
    "time=isostring": {"time.precision.mode": "isostring"},
    "time=microseconds": {"time.precision.mode": "microseconds"},
    "time=nanoseconds": {"time.precision.mode": "nanoseconds"},
    "decimal=string": {"decimal.handling.mode": "string"},
    "decimal=double": {"decimal.handling.mode": "double"},
    "column.propagate": {"column.propagate.source.type": r".*\.c_(iu|dec|varchar|ts6|enum)"},
    "bigint.unsigned=precise": {"bigint.unsigned.handling.mode": "precise"},
    "binary=base64": {"binary.handling.mode": "base64"},
    "binary=hex": {"binary.handling.mode": "hex"},
}
ZONE: Final = "+02:00"
"""That of the session that wrote the recorded row."""


def recorded(product: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / f"{product}_types.jsonl").read_text(encoding="utf-8").splitlines()]


def columns(product: str) -> list[dict[str, Any]]:
    return [row for row in recorded(product) if row["mode"] == "default"]


def expected(product: str, mode: str) -> dict[str, tuple[Any, Any]]:
    rows = {row["column"]: row for row in columns(product)}
    rows |= {row["column"]: row for row in recorded(product) if row["mode"] == mode}
    return {name: (row["schema"], row["value"]) for name, row in rows.items()}


@pytest.fixture(params=["mysql", "mariadb"])
def typed(request: pytest.FixtureRequest) -> Database:
    """A database with the table of the recording, and its row."""
    database: Database = request.getfixturevalue(request.param)
    made = ", ".join(f"{column['column']} {column['sql']}" for column in columns(database.product))
    run(database, f"CREATE TABLE t ({made})", insert(database.product))
    return database


def run(database: Database, *statements: str) -> None:
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"SET SESSION sql_mode = '', SESSION time_zone = '{ZONE}'")
        for statement in statements:
            cursor.execute(statement)


def insert(product: str) -> str:
    given = [column for column in columns(product) if column["literal"] is not None]
    names = ", ".join(column["column"] for column in given)
    return f"INSERT INTO t ({names}) VALUES ({', '.join(column['literal'] for column in given)})"


def written(record: SourceRecord) -> dict[str, tuple[Any, Any]]:
    """Return the schema and the value of each column, as the JSON converter writes them."""
    converter = JsonConverter(JsonConverterConfig(schemas_enable=True))
    text = json.loads(converter.from_connect(record.topic, record.value_schema, record.value) or b"")
    after = next(field for field in text["schema"]["fields"] if field["field"] == "after")
    values = text["payload"]["after"]
    return {field.pop("field"): (field, values[name]) for field in after["fields"] for name in [field["field"]]}


def sent(database: Database, props: Mapping[str, str], *, streams: bool) -> dict[str, tuple[Any, Any]]:
    connector, wanted = binlog_connector(database), binlog_props(database) | props
    offsets = StoredOffsets()
    found = run_source(connector, wanted, offsets=offsets, until=bool)
    if not streams:
        return written(found[0])
    run(database, "DELETE FROM t", insert(database.product))
    found = run_source(connector, wanted, offsets=offsets, until=lambda records: any(map(is_insert, records)))
    return written(next(filter(is_insert, found)))


def is_insert(record: SourceRecord) -> bool:
    return record.value is not None and record.value.get("op") == "c"


@pytest.mark.parametrize("streams", [False, True], ids=["snapshot", "stream"])
def test_every_type_is_sent_as_recorded(typed: Database, *, streams: bool) -> None:
    assert sent(typed, {}, streams=streams) == expected(typed.product, "default")


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_changes_what_is_recorded(typed: Database, mode: str) -> None:
    assert sent(typed, MODES[mode], streams=True) == expected(typed.product, mode)


@pytest.mark.parametrize("streams", [False, True], ids=["snapshot", "stream"])
def test_nulls_and_defaults_are_sent_as_recorded(typed: Database, *, streams: bool) -> None:
    expected_row = json.loads((DATA / f"{typed.product}_types_nulls.json").read_text(encoding="utf-8"))["after"]
    connector, wanted, offsets = binlog_connector(typed), binlog_props(typed), StoredOffsets()
    if streams:
        run_source(connector, wanted, offsets=offsets, until=bool)
    run(typed, "INSERT INTO t (id, n_i) VALUES (3, 5)")

    found = run_source(connector, wanted, offsets=offsets, until=lambda records: records[-1:] and is_third(records[-1]))

    row = {name: value for name, (_, value) in written(found[-1]).items()}
    assert len(row.pop("d_ts")) == len(expected_row.pop("d_ts"))
    assert row == expected_row


def is_third(record: SourceRecord) -> bool:
    return record.value is not None and record.value["after"]["id"] == 3
