"""The list of connectors: what its reader asks for by the address is what it shows."""

from __future__ import annotations

import csv

import pytest

from rest.ui.listing import ROWS, Wanted, as_csv, listed
from rest.ui.summaries import ConnectorSummary, Trouble


def connector(name: str, trouble: Trouble = Trouble.RUNNING, **more: object) -> ConnectorSummary:
    values = {
        "type": "sink",
        "plugin": "FileSink",
        "state": "RUNNING",
        "reason": "",
        "tasks": {"RUNNING": 1},
        "worker_id": "a:1",
        "workers": frozenset({"a:1"}),
        "rate": None,
        "lag": None,
        "lag_unit": "",
    }
    return ConnectorSummary(name=name, trouble=trouble, **{**values, **more})  # type: ignore[arg-type]


FOUND = [
    connector("z", Trouble.FAILED, reason="Task 1: ValueError: no", rate=2.0, workers=frozenset({"a:1", "b:1"})),
    connector("B", rate=10.0, plugin="JdbcSink"),
    connector("a", type="source"),
]


def names(**query: str) -> list[str]:
    return [each.name for each in listed(FOUND, Wanted.of(query)).connectors]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["z", "B", "a"]),
        ({"show": "failed"}, ["z"]),
        ({"type": "source"}, ["a"]),
        ({"class": "JdbcSink"}, ["B"]),
        ({"worker": "b:1"}, ["z"]),
        ({"worker": "a:1"}, ["z", "B", "a"]),
        ({"q": "FILESINK error"}, ["z"]),
        ({"sort": "name"}, ["a", "B", "z"]),
        ({"sort": "name", "order": "desc"}, ["z", "B", "a"]),
        ({"sort": "rate"}, ["z", "B", "a"]),
        ({"sort": "rate", "order": "desc"}, ["B", "z", "a"]),
        ({"sort": "nothing", "page": "-1", "rows": "7"}, ["z", "B", "a"]),
    ],
)
def test_a_list_is_filtered_and_sorted(query: dict[str, str], expected: list[str]) -> None:
    assert names(**query) == expected


def test_a_list_has_pages_and_a_page_too_many_is_the_last() -> None:
    many = [connector(f"c{number:03}") for number in range(230)]
    last = listed(many, Wanted.of({"page": "9"}))
    assert (last.page, last.pages, last.first, last.matched, len(last.connectors)) == (3, 3, 201, 230, 30)
    assert [each.name for each in last.connectors[:1]] == ["c200"]
    assert listed(many, Wanted.of({"rows": str(ROWS[1])})).pages == 1
    nothing = listed([], Wanted())
    assert (nothing.pages, nothing.matched) == (1, 0)


def test_addresses_keep_what_is_wanted_and_say_nothing_that_is_usual() -> None:
    assert Wanted().query() == {}
    wanted = Wanted.of({"q": "x", "sort": "lag", "order": "desc", "page": "2"})
    assert wanted.query() == {"q": "x", "sort": "lag", "order": "desc"}
    assert wanted.query(page=3) == {"q": "x", "sort": "lag", "order": "desc", "page": 3}
    assert wanted.sorted_by("lag") == {"q": "x", "sort": "lag"}, "the other order"
    assert wanted.sorted_by("rate") == {"q": "x", "sort": "rate", "order": "desc"}, "the greatest first"
    assert wanted.sorted_by("state") == {"q": "x"}


def test_an_export_has_no_formulas() -> None:
    rows = list(csv.reader(as_csv([connector("=cmd()", reason='a "b",\nc', lag=5.0)]).splitlines(keepends=True)))
    assert rows[0][:4] == ["name", "state", "attention", "reason"]
    assert rows[1] == ["'=cmd()", "RUNNING", "running", 'a "b",\nc', "1", "0", "", "5.0", "sink", "FileSink", "a:1"]
