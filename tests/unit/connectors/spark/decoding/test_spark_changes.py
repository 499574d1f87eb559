"""Records that tell of changes, as rows with the column that says what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from connect.data import Schema, SinkBatch, SinkRecord
from connectors.spark.decoding.changes import CHANGE_COLUMN, ChangePlan, key_columns
from connectors.spark.sink.tables.upsert import (
    keys_text,
    merge_statement,
    parse_keys,
    with_change,
    with_key_of,
    without_change,
)


def changes(
    plan: ChangePlan,
    *records: tuple[Any, Any],
    key_schema: Schema | None = None,
    value_schema: Schema | None = None,
) -> tuple[list[Any], list[str], int, Schema | None]:
    """What becomes of records given as key and value: rows, refusals, how many tell of nothing; and the schema."""
    batches = SinkBatch.from_records(
        SinkRecord(
            "t", value, value_schema, key, key_schema, 3, 1000, (), offset, original_partition=3, original_offset=offset
        )
        for offset, (key, value) in enumerate(records)
    )
    (batch,) = batches
    refused: list[str] = []
    found, ignored = plan.rows(batch, lambda offset, error: refused.append(f"{offset}: {error}"))
    return (
        [] if found is None else list(found.value),
        refused,
        ignored,
        None if found is None else found.value.schema,
    )


def about(offset: int, key: dict[str, Any], *, deleted: bool = False) -> dict[str, Any]:
    return {CHANGE_COLUMN: {"deleted": deleted, "partition": 3, "offset": offset, "key": key}}


def test_values_are_rows_and_their_absence_deletes() -> None:
    rows, refused, ignored, _ = changes(
        ChangePlan(), ({"id": 1}, {"id": 1, "name": "a"}), ({"id": 2}, {"name": "b"}), ({"id": 1}, None)
    )
    assert rows == [
        {"id": 1, "name": "a", **about(0, {"id": 1})},
        {"id": 2, "name": "b", **about(1, {"id": 2})},
        {"id": 1, **about(2, {"id": 1}, deleted=True)},
    ]
    assert (refused, ignored) == ([], 0)


def test_named_keys_come_from_the_key_or_the_value() -> None:
    plan = ChangePlan(keys=("id",))
    rows, refused, _, _ = changes(
        plan,
        ("a", {"x": 1}),
        ("ignored", {"id": "b"}),
        (None, {"id": "c"}),
        ({"id": "d", "more": 1}, None),
        ("e", None),
    )
    assert [row["id"] for row in rows] == ["a", "b", "c", "d", "e"]
    assert refused == []
    _, refused, _, _ = changes(ChangePlan(keys=("id", "part")), ("a", {"id": 1}))
    assert refused == ["0: neither its key nor its value has the field part listed in upsert.keys"]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (None, "the record's key is null: set upsert.keys"),
        ("a", "the record's key is one value without a name: set upsert.keys"),
        ({"id": None}, "the row's key has no value for id"),
        ({"id": {"x": 1}}, "the key field id has fields or elements itself"),
    ],
)
def test_a_row_without_a_key_is_a_bad_record(key: Any, reason: str) -> None:
    rows, refused, _, _ = changes(ChangePlan(), (key, {"id": 1}), ({"id": 2}, {}))
    assert [row["id"] for row in rows] == [2]
    assert len(refused) == 1
    assert refused[0].startswith(f"0: {reason}")


def test_envelopes_of_debezium() -> None:
    row = {"id": 1, "name": "a"}
    rows, refused, ignored, _ = changes(
        ChangePlan("debezium"),
        ({"id": 1}, {"op": "c", "before": None, "after": row}),
        ({"id": 1}, {"op": "u", "before": row, "after": {"id": 1, "name": "b"}}),
        ({"id": 1}, {"op": "d", "before": row, "after": None}),
        ({"id": 1}, None),
        ({"prefix": "p"}, {"op": "m", "message": {}}),
        (None, {"op": "t", "before": None, "after": None}),
        ({"id": 1}, {"id": 1}),
        ({"id": 1}, {"op": "u", "after": {"id": 1, "name": "__debezium_unavailable_value"}}),
    )
    assert rows == [
        {**row, **about(0, {"id": 1})},
        {"id": 1, "name": "b", **about(1, {"id": 1})},
        {"id": 1, **about(2, {"id": 1}, deleted=True)},
        {"id": 1, **about(3, {"id": 1}, deleted=True)},
    ]
    assert ignored == 1
    assert [text.split(":")[0] for text in refused] == ["5", "6", "7"]
    assert "truncated" in refused[0]
    assert "REPLICA IDENTITY FULL" in refused[2]


def test_flattened_events_of_debezium() -> None:
    rows, _, _, _ = changes(
        ChangePlan("flattened"),
        ({"id": 1}, {"id": 1, "name": "a", "__deleted": "false"}),
        ({"id": 1}, {"id": 1, "name": "a", "__deleted": "true"}),
        ({"id": 1}, {"id": 1, "name": None, "__op": "d"}),
    )
    assert rows[0] == {"id": 1, "name": "a", **about(0, {"id": 1})}
    assert [row[CHANGE_COLUMN]["deleted"] for row in rows] == [False, True, True]


def test_schemas_of_key_and_value_give_that_of_the_changes() -> None:
    key = Schema.struct({"id": Schema.int32()})
    value = Schema.struct({"id": Schema.int64(), "at": Schema.string(optional=True)})
    envelope = Schema.struct({"before": value.as_optional(), "after": value.as_optional(), "op": Schema.string()})
    _, _, _, schema = changes(
        ChangePlan("debezium"),
        ({"id": 1}, {"before": None, "after": {"id": 1, "at": None}, "op": "c"}),
        key_schema=key,
        value_schema=envelope,
    )
    assert schema is not None
    assert key_columns(schema) == ("id",)
    table = without_change(schema)
    assert {field.name: field.schema for field in table.fields} == {
        "id": Schema.int64(optional=True),
        "at": Schema.string(optional=True),
    }
    _, _, _, deletes = changes(ChangePlan("debezium"), ({"id": 1}, None), key_schema=key)
    assert deletes is not None
    assert without_change(deletes).field_names == ("id",)


def test_the_statement_names_every_column() -> None:
    change = Schema.struct({"key": Schema.struct({"a`b": Schema.int64()})})
    schema = Schema.struct({"a`b": Schema.int64(), "c": Schema.string(), CHANGE_COLUMN: change})
    assert merge_statement("lake.t", "source", schema, evolve=False) == (
        "MERGE INTO lake.t AS t USING source AS s ON t.`a``b` = s._sluice_change.key.`a``b` "
        "WHEN MATCHED AND s._sluice_change.deleted THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET `a``b` = s.`a``b`, `c` = s.`c` "
        "WHEN NOT MATCHED AND NOT s._sluice_change.deleted THEN INSERT (`a``b`, `c`) VALUES (s.`a``b`, s.`c`)"
    )


def test_rows_without_a_schema_have_none_whatever_the_schema_of_the_key() -> None:
    plan = ChangePlan(keys=("id",))
    rows, refused, _, schema = changes(plan, (None, {"id": 1}), key_schema=Schema.bytes(optional=True))
    assert ([row["id"] for row in rows], refused, schema) == ([1], [], None)
    _, _, _, deletes = changes(plan, ("a", None), key_schema=Schema.string(optional=True))
    assert deletes is not None
    assert without_change(deletes) == Schema.struct({"id": Schema.string(optional=True)})


def test_a_change_with_another_key_than_the_tables_is_a_bad_record() -> None:
    (batch,) = SinkBatch.from_records([SinkRecord("t", {"id": 1}, None, {"id": 1, "part": 2}, None, 0, 0)])
    refused: list[str] = []
    assert ChangePlan().rows(batch, lambda _, error: refused.append(str(error)), ("id",)) == (None, 0)
    assert refused[0].startswith("the key of the change is id, part, but the rows of the table are found by id. ")


def test_a_table_keeps_its_key_when_changes_with_another_one_are_surveyed() -> None:
    table = Schema.struct({"id": Schema.int32(optional=True), "part": Schema.int32(optional=True)})
    known, seen = with_change(table, None, ("id",)), with_change(table, None, ("id", "part"))
    assert (key_columns(known), key_columns(seen)) == (("id",), ("id", "part"))
    assert key_columns(with_key_of(known, seen)) == ("id",)
    assert with_key_of(with_change(table, None), seen) is seen
    assert key_columns(with_change(table, None, ("gone",))) == ()


@pytest.mark.parametrize(
    ("text", "keys"), [(None, ()), (keys_text(("a", "b")), ("a", "b")), ("[1]", ()), ("{", ()), ('"a"', ())]
)
def test_what_a_table_has_noted_of_its_key(text: str | None, keys: tuple[str, ...]) -> None:
    assert parse_keys(text) == keys
