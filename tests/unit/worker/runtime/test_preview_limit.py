"""What a preview shows is bounded in bytes, whatever the records hold."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from worker.runtime.preview.documents import LimitedDocuments


def record(value: Any, key: Any = None) -> dict[str, Any]:
    shown = {"topic": "t", "partition": 0, "key": key, "value": value, "headers": []}
    return {"task": None, "origin": {"offset": 1}, "steps": [{"step": "polled", "record": shown}]}


def deep(depth: int) -> Any:
    return {str(number): deep(depth - 1) for number in range(4)} if depth else "x" * 1000


def test_what_fits_is_shown_as_it_is() -> None:
    shown: list[dict[str, Any]] = []
    showing = LimitedDocuments(shown.append, 10_000)
    for number in range(3):
        showing(record(number))
    assert shown == [record(0), record(1), record(2)]
    assert not showing.full


@pytest.mark.parametrize("value", ["x" * 50_000, ["x" * 90] * 5000, deep(6), {"x" * 5000: {"y": ["z"] * 9000}}])
def test_the_record_that_goes_beyond_the_limit_is_cut_and_the_last(value: Any) -> None:
    shown: list[dict[str, Any]] = []
    showing = LimitedDocuments(shown.append, 10_000)
    for document in (record(1), record(value, key=value), record(2)):
        showing(document)
    first, last = shown
    assert (first, showing.full) == (record(1), True)
    assert last["cut"]
    assert len(orjson.dumps(last)) < 20_000
    assert last["steps"][0]["record"]["value"] != value


def test_a_text_tells_how_long_it_was() -> None:
    shown: list[dict[str, Any]] = []
    LimitedDocuments(shown.append, 1000)(record({"a": "x" * 5000, "b": 1}, key="y" * 900))
    cut = shown[0]["steps"][0]["record"]
    assert cut["value"] == {"a": "x" * 100 + "… (5000 characters)", "b": 1}
    assert cut["key"] == "y" * 100 + "… (900 characters)"


def test_a_table_is_cut_to_a_row() -> None:
    columns = [{"name": "a", "type": "string"}]
    table = {"table": "t", "place": "p", "folders": ["f"], "columns": columns, "rows": [{"a": "x" * 900}] * 100}
    shown: list[dict[str, Any]] = []
    LimitedDocuments(shown.append, 1000)(table)
    assert shown == [{**table, "rows": [{"a": "x" * 100 + "… (900 characters)"}], "cut": True}]
