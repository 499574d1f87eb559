"""PostgreSQL's types as Debezium 3.7 sends them, replayed on a real server: the snapshot and the stream alike.

Values that Debezium gets wrong, or of which its snapshot and its stream make two, are right here; each is listed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from connect.testing import StoredOffsets, run_source
from connectors.cdc.postgresql import PostgresConnector
from converters.json import JsonConverter, JsonConverterConfig
from equipment.change_data import capture_props
from equipment.proofs import thorough
from equipment.servers.lease import Database

DATA: Final = Path(__file__).parent / "data" / "cdc"
ROWS: Final = [json.loads(line) for line in (DATA / "postgres_types.jsonl").read_text(encoding="utf-8").splitlines()]
COLUMNS: Final = [row for row in ROWS if row["mode"] == "default"]
MODES: Final = {
    "time=connect": {"time.precision.mode": "connect"},
    "time=isostring": {"time.precision.mode": "isostring"},
    "time=microseconds": {"time.precision.mode": "microseconds"},
    "time=nanoseconds": {"time.precision.mode": "nanoseconds"},
    "time=adaptive_time_microseconds": {"time.precision.mode": "adaptive_time_microseconds"},
    "decimal=string": {"decimal.handling.mode": "string"},
    "decimal=double": {"decimal.handling.mode": "double"},
    "column.propagate": {"column.propagate.source.type": r".*\.c_(num|char|varchar|ts3|enum|a_i4)"},
    "include.unknown": {"include.unknown.datatypes": "true"},
    "binary=base64": {"binary.handling.mode": "base64"},
    "binary=base64-url-safe": {"binary.handling.mode": "base64-url-safe"},
    "binary=hex": {"binary.handling.mode": "hex"},
    "hstore=map": {"hstore.handling.mode": "map"},
    "interval=string": {"interval.handling.mode": "string"},
    "money.fraction.digits=4": {"money.fraction.digits": "4"},
}
SHOWN: Final = "time=isostring"
"""The mode that is not left to ``make test-all``."""

DIFFERENT: Final[Mapping[tuple[str, str], Any]] = {
    # The days that Debezium makes of infinity overflow, one way in its snapshot and another in its stream.
    ("default", "c_date_inf"): 2**31 - 1,
    # The snapshot of Debezium moves dates before Christ by its calendar; its stream does not.
    ("default", "c_date_bc"): -735160,
    # The scale -2 is shown as 2046.
    ("default", "c_numneg"): "ew==",
    ("decimal=string", "c_numneg"): "12300",
    # An array of two dimensions becomes a list of nulls, which nobody can tell from an array of nulls.
    ("default", "c_a_2d"): None,
    # Connect's types have no place for infinity, 24:00 and years before 1: Debezium's milliseconds are no dates.
    ("time=connect", "c_date_inf"): None,
    ("time=connect", "c_date_bc"): None,
    ("time=connect", "c_time24"): None,
    ("time=connect", "c_ts_inf"): None,
    # 44 BC is not 44: ISO 8601 calls it -0043.
    ("time=isostring", "c_date_bc"): "-0043-03-15Z",
    # The end of a day is not its beginning.
    ("time=isostring", "c_time24"): "24:00:00Z",
}
SCHEMAS: Final[Mapping[tuple[str, str], Any]] = {
    ("default", "c_numneg"): {"scale": "-2", "connect.decimal.precision": "3"},
}


def converted(props: Mapping[str, str], database: Database, *, streams: bool) -> dict[str, tuple[Any, Any]]:
    """Return the schema and the value of each column, as the JSON converter writes them."""
    converter = JsonConverter(JsonConverterConfig(schemas_enable=True))
    offsets = StoredOffsets()
    wanted = capture_props(database) | props
    run_source(PostgresConnector, wanted, offsets=offsets, until=lambda records: len(records) > 0)
    if streams:
        database.execute(f"DELETE FROM t; {INSERT}")
        found = run_source(
            PostgresConnector, wanted, offsets=offsets, until=lambda records: any(is_insert(each) for each in records)
        )
        record = next(each for each in found if is_insert(each))
    else:
        found = run_source(
            PostgresConnector,
            wanted | {"snapshot.mode": "initial_only"},
            until=lambda records: len(records) > 0,
        )
        record = found[0]
    written = json.loads(converter.from_connect(record.topic, record.value_schema, record.value) or b"")
    after = next(field for field in written["schema"]["fields"] if field["field"] == "after")
    schemas = {field.pop("field"): field for field in after["fields"]}
    values = written["payload"]["after"]
    return {name: (schema, values[name]) for name, schema in schemas.items()}


def is_insert(record: Any) -> bool:
    return record.value is not None and record.value.get("op") == "c"


def _insert() -> str:
    given = [column for column in COLUMNS if column["literal"] is not None]
    names = ", ".join(column["column"] for column in given)
    return f"INSERT INTO t ({names}) VALUES ({', '.join(column['literal'] for column in given)})"


INSERT: Final = _insert()


@pytest.fixture
def typed(captured: Database) -> Database:
    columns = ", ".join(f"{column['column']} {column['sql']}" for column in COLUMNS)
    captured.execute(
        "CREATE EXTENSION citext",
        "CREATE EXTENSION hstore",
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
        "CREATE DOMAIN posint AS int CHECK (value > 0)",
        "CREATE TYPE comp AS (a int, b text)",
        f"CREATE TABLE t ({columns})",
        INSERT,
    )
    return captured


def expected(mode: str, *, streams: bool = True) -> dict[str, tuple[Any, Any]]:
    """Return the recorded schemas and values, with what is right where Debezium is not.

    PostgreSQL 15 leaves generated columns out of the stream.
    """
    recorded = {row["column"]: row for row in COLUMNS} | {row["column"]: row for row in ROWS if row["mode"] == mode}
    pairs = {}
    for name, row in recorded.items():
        if row.get("absent") or (streams and name == "g_stored"):
            continue
        schema, value = row["schema"], row["value"]
        of = (mode, name) if (mode, name) in DIFFERENT else ("default", name)
        if of in DIFFERENT and row["mode"] == of[0]:
            value = DIFFERENT[of]
        if of in SCHEMAS and row["mode"] == of[0]:
            schema = {**schema, "parameters": SCHEMAS[of]}
        pairs[name] = (schema, value)
    return pairs


@pytest.mark.parametrize("streams", [False, True], ids=["snapshot", "stream"])
def test_every_type_is_sent_as_recorded(typed: Database, *, streams: bool) -> None:
    found = converted({}, typed, streams=streams)

    assert found == expected("default", streams=streams)


@pytest.mark.parametrize("mode", [SHOWN, *thorough(*(mode for mode in MODES if mode != SHOWN))])
def test_every_mode_changes_what_is_recorded(typed: Database, mode: str) -> None:
    assert converted(MODES[mode], typed, streams=True) == expected(mode)
