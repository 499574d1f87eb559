"""Rows out of Debezium's change events."""

from __future__ import annotations

from typing import Any

import pytest

from connect.data import Header, Headers, Schema
from connect.errors import ConfigError, DataError
from connect.transforms.debezium_unwrap import DebeziumUnwrap

ROW = Schema.struct(
    {"id": Schema.int64(), "name": Schema.string(optional=True, default="nobody")}, name="s.t.Value", optional=True
)
SOURCE = Schema.struct({"lsn": Schema.int64(optional=True), "table": Schema.string(), "ts_ms": Schema.int64()})
ENVELOPE = Schema.struct(
    {
        "before": ROW,
        "after": ROW,
        "source": SOURCE,
        "op": Schema.string(),
        "ts_ms": Schema.int64(optional=True),
        "transaction": Schema.struct({"id": Schema.string()}, optional=True),
    },
    name="s.t.Envelope",
    version=2,
)
OLD, NEW = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}


def event(op: str, before: Any, after: Any) -> dict[str, Any]:
    source = {"lsn": 7, "table": "t", "ts_ms": 100}
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 200, "transaction": None}


UPDATE, DELETE = event("u", OLD, NEW), event("d", OLD, None)


def unwrap(**config: str) -> DebeziumUnwrap:
    made: DebeziumUnwrap = DebeziumUnwrap.configured({key.replace("_", "."): value for key, value in config.items()})
    return made


@pytest.mark.parametrize("schema", [ENVELOPE, None], ids=["struct", "map"])
def test_an_update_becomes_the_new_row(schema: Schema | None, record: Any) -> None:
    made = unwrap().apply(record(UPDATE, schema))
    assert made is not None
    assert made.value == NEW
    assert made.value_schema is (None if schema is None else ROW)


@pytest.mark.parametrize(
    ("mode", "value", "schema", "tombstone"),
    [
        ("drop", "dropped", None, False),
        ("tombstone", None, ROW, False),
        ("delete-to-tombstone", None, None, False),
        ("rewrite", {**OLD, "__deleted": "true"}, "row", False),
        ("rewrite-with-tombstone", {**OLD, "__deleted": "true"}, "row", True),
    ],
)
def test_deletes(mode: str, value: Any, schema: Any, tombstone: bool, record: Any) -> None:
    made = unwrap(delete_tombstone_handling_mode=mode)
    row = made.apply(record(DELETE, ENVELOPE))
    if value == "dropped":
        assert row is None
    else:
        assert row is not None
        assert row.value == value
        if schema == "row":
            assert row.value_schema is not None
            assert row.value_schema.field_names == ("id", "name", "__deleted")
            assert not row.value_schema.optional
        else:
            assert row.value_schema is schema
    assert (made.apply(record(None)) is not None) is tombstone


@pytest.mark.parametrize(
    ("config", "deleted", "tombstone"),
    [
        ({"delete_handling_mode": "drop"}, "dropped", False),
        ({"delete_handling_mode": "none", "drop_tombstones": "false"}, None, True),
        ({"delete_handling_mode": "rewrite"}, {**OLD, "__deleted": "true"}, False),
        ({"drop_tombstones": "true"}, None, False),
    ],
)
def test_the_older_options(config: dict[str, str], deleted: Any, tombstone: bool, record: Any) -> None:
    made = unwrap(**config)
    row = made.apply(record(DELETE, ENVELOPE))
    assert ("dropped" if row is None else row.value) == deleted
    assert (made.apply(record(None)) is not None) is tombstone


def test_rewriting_marks_rows_that_are_there(record: Any) -> None:
    made = unwrap(delete_tombstone_handling_mode="rewrite").apply(record(event("c", None, {"id": 1}), ENVELOPE))
    assert made is not None
    assert made.value == {"id": 1, "name": "nobody", "__deleted": "false"}


def test_added_fields(record: Any) -> None:
    made = unwrap(add_fields="op,lsn,source.table:from,ts_ms,source.ts_ms,transaction.id,nope").apply(
        record(UPDATE, ENVELOPE)
    )
    assert made is not None
    assert made.value == {
        **NEW,
        "__op": "u",
        "__lsn": 7,
        "__from": "t",
        "__ts_ms": 200,
        "__source_ts_ms": 100,
        "__transaction_id": None,
    }
    assert made.value_schema is not None
    added = {field.name: field.schema for field in made.value_schema.fields[2:]}
    assert added["__lsn"] is Schema.int64(optional=True)
    assert all(schema.optional for schema in added.values())
    plain = unwrap(add_fields="op", add_fields_prefix="").apply(record(UPDATE))
    assert plain is not None
    assert plain.value == {**NEW, "op": "u"}


def test_added_headers(record: Any) -> None:
    made = unwrap(add_headers="op,source.lsn", delete_tombstone_handling_mode="rewrite-with-tombstone")
    row = made.apply(record(UPDATE, ENVELOPE))
    assert row is not None
    assert [(header.key, header.value) for header in row.headers] == [("__op", "u"), ("__source_lsn", 7)]
    tombstone = made.apply(record(None))
    assert tombstone is not None
    assert [(header.key, header.value) for header in tombstone.headers] == [("__op", "d")]


def test_routing_by_a_field(record: Any) -> None:
    made = unwrap(route_by_field="name")
    assert [made.apply(record(value, ENVELOPE)).topic for value in (UPDATE, DELETE)] == ["b", "a"]  # type: ignore[union-attr]


def test_fields_that_a_header_lists_are_dropped(record: Any) -> None:
    headers = Headers([Header("drop", ["id", "name"])])
    key_schema = Schema.struct({"id": Schema.int64()})
    given = record(UPDATE, ENVELOPE, headers=headers, key={"id": 1}, key_schema=key_schema)
    compatible = unwrap(drop_fields_header_name="drop").apply(given)
    assert compatible is not None
    assert (compatible.value, compatible.key) == ({"id": 1}, {"id": 1})
    everything = unwrap(
        drop_fields_header_name="drop", drop_fields_from_key="true", drop_fields_keep_schema_compatible="false"
    ).apply(given)
    assert everything is not None
    assert (everything.value, everything.key) == ({}, {})


def test_truncates_are_dropped_and_other_records_pass(record: Any) -> None:
    assert unwrap().apply(record(event("t", None, None), ENVELOPE)) is None
    for value, schema in (({"id": 1}, None), ("x", Schema.string()), (NEW, ROW)):
        given = record(value, schema)
        assert unwrap().apply(given) is given


def test_what_is_not_well_formed(record: Any) -> None:
    with pytest.raises(ConfigError, match="Unexpected field name"):
        unwrap(add_fields="a:b:c")
    with pytest.raises(DataError, match="list of fields"):
        headers = Headers([Header("drop", "id")])
        unwrap(drop_fields_header_name="drop").apply(record(UPDATE, ENVELOPE, headers=headers))
    with pytest.raises(DataError):
        unwrap().apply(record("x", ENVELOPE))
