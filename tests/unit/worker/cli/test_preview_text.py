"""The records of a preview for people to read."""

from __future__ import annotations

from typing import Any

from worker.cli.preview_text import changes, record_text, table_text


def record(**parts: Any) -> dict[str, Any]:
    whole = {"topic": "t", "partition": None, "timestamp": None, "headers": []}
    return whole | {"key": None, "key_schema": None, "value": None, "value_schema": None} | parts


def test_what_differs_is_told_field_by_field() -> None:
    before = record(value={"id": 1, "name": " a ", "at": {"x": 1, "y": 2}, "old": True}, headers=[_header("h", 1)])
    after = record(value={"id": 1, "name": "a", "at": {"x": 1, "y": 3}, "new": None}, topic="u")
    assert list(changes(before, after)) == [
        ("topic", "t", "u"),
        ("value.name", " a ", "a"),
        ("value.at.y", 2, 3),
        ("value.old", True, ...),
        ("value.new", ..., None),
        ("headers.h", 1, ...),
    ]


def test_numbers_of_another_type_differ_and_headers_may_have_one_name() -> None:
    assert list(changes(record(value=1), record(value=1.0))) == [("value", 1, 1.0)]
    assert list(changes(record(value=1), record(value=True))) == [("value", 1, True)]
    twice = record(headers=[_header("h", 1), _header("h", 2)])
    assert list(changes(record(headers=[_header("h", 1)]), twice)) == [("headers.h[2]", ..., 2)]


def test_each_step_shows_what_it_changes_side_by_side() -> None:
    polled = record(value={"id": 1, "name": " a "}, value_schema="order{id: int64, name: string}", key="k")
    trimmed = polled | {"value": {"id": 1, "name": "a"}}
    routed = trimmed | {"topic": "u"}
    text = record_text(
        3,
        {
            "task": 0,
            "origin": {"partition": {"file": "f"}, "offset": {"line": 7}},
            "steps": [
                {"step": "polled", "record": polled},
                {"step": "trim", "plugin": "Trim$Value", "record": trimmed},
                {"step": "same", "plugin": "Same", "record": trimmed},
                {"step": "mask", "predicate": "p", "negate": True, "chosen": False, "record": trimmed},
                {"step": "route", "plugin": "RegexRouter", "record": routed},
                {
                    "step": "produced",
                    "record": {"topic": "u", "partition": 2, "key": "k", "value": "a\nb", "headers": []},
                },
            ],
        },
    )
    assert text.splitlines() == [
        'record 3  {"file": "f"} {"line": 7}',
        "  polled    topic         t",
        '            key           "k"',
        '            value         {"id": 1, "name": " a "}',
        "            value schema  order{id: int64, name: string}",
        '  trim      value.name  " a "  ->  "a"',
        "  same      unchanged",
        "  mask      not chosen by predicate p (negated)",
        "  route     topic  t  ->  u",
        "  produced  topic  u-2",
        "            key    k",
        "            value  a b",
    ]


def test_what_goes_no_further_says_so() -> None:
    def told(**step: Any) -> list[str]:
        steps = [{"step": "consumed", "record": record()}, {"step": "x", "plugin": "X", **step}]
        document = {"origin": {"topic": "t", "partition": 0, "offset": 5}, "steps": steps}
        return [line.strip() for line in record_text(1, document).splitlines()]

    assert told(dropped=True)[0] == "record 1  t-0 at offset 5"
    assert told(dropped=True)[-1] == "x         dropped: it goes no further"
    assert told(error="no", outcome="the task fails")[-2:] == ["x         failed by X: no", "then: the task fails"]


def test_long_values_are_cut_and_stand_below_each_other() -> None:
    before, after = record(value={"a": "x" * 300}), record(value={"a": "y" * 300})
    steps = [{"step": "polled", "record": before}, {"step": "z", "plugin": "Z", "record": after}]
    lines = record_text(1, {"origin": {"partition": {}, "offset": {}}, "steps": steps}).splitlines()
    assert lines[-2].endswith("x…")
    assert lines[-1].strip().startswith('->  "yyy')
    assert all(len(line) < 180 for line in lines)


def _header(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "schema": None, "value": value}


def test_a_table_is_shown_with_its_folders_columns_and_rows() -> None:
    document = {
        "table": "flights",
        "place": "/lake/topics/flights",
        "folders": ["partition=0"],
        "columns": [{"name": "id", "type": "int64?"}, {"name": "tail", "type": "string?"}],
        "rows": [{"id": 1, "tail": "x" * 40}, {"id": 1000, "tail": None}],
    }
    assert table_text(document).splitlines() == [
        "table flights  /lake/topics/flights",
        "  folder partition=0",
        "  id     tail",
        "  int64  string",
        f'  1      "{"x" * 28}…',
        "  1000   null",
        "  2 rows",
    ]
