"""Splits of lists: which ranges of pages they are, and that they have each record once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import SourceRecord
from connect.errors import ConfigError, ConnectError, RetriableError
from connect.kits.http.messages import Request, Response
from connect.testing import StoredOffsets
from connect.testing.source_run import run_splits
from connectors.http import HttpSourceConnector
from connectors.http.list_reading import ListReading
from connectors.http.places import Place
from connectors.http.source_config import HttpSourceConfig
from connectors.http.splits import ListSplits, divided
from connectors.http.steps import Ask, Outcome, Publish
from equipment.fakes.http_api import Answer, HttpApi, paged, serving_api

ITEMS = [{"id": number} for number in range(40)]


@pytest.fixture(scope="module")
def api() -> Iterator[HttpApi]:
    with serving_api() as served:
        yield served


def props_of(url: str, **more: str) -> dict[str, str]:
    return {
        "kafka.topic": "t",
        "http.request.url": f"{url}/items",
        "http.request.params": "offset=${page.offset}",
        "http.response.list.pointer": "/items",
        "http.paging": "offset",
        "http.paging.size": "2",
        "http.paging.end": "continue",
        "http.paging.total.pointer": "/total",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def splits_of(props: Mapping[str, str], kept: dict[str, Any] | None = None, most: int = 4) -> list[dict[str, str]]:
    splits = ListSplits(HttpSourceConfig.parse(props), {}, lambda _: True)
    try:
        return splits.next(kept, most)
    finally:
        splits.close()


def bounds(splits: list[dict[str, str]]) -> list[tuple[str | None, str | None]]:
    return [(split.get("split.first"), split.get("split.end")) for split in splits]


@given(st.integers(0, 100), st.integers(0, 1000), st.integers(1, 50), st.integers(1, 20))
def test_ranges_follow_each_other_and_are_about_as_long(first: int, pages: int, a_page: int, most: int) -> None:
    found = divided(first, pages, a_page, most)
    assert 1 <= len(found) <= most
    assert found[0].get("split.first") is None
    assert found[-1].get("split.end") is None
    ends = [first, *(int(split["split.end"]) for split in found[:-1]), first + pages * a_page]
    assert [split["split.first"] for split in found[1:]] == [split["split.end"] for split in found[:-1]]
    if len(found) > 1:
        assert {split["split.of"] for split in found} == {"list"}
        lengths = [(end - begin) // a_page for begin, end in pairwise(ends)]
        assert min(lengths) >= 5
        assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [(None, "10"), ("10", "20"), ("20", "30"), ("30", None)]),
        ({"http_paging_start": "10"}, [(None, "20"), ("20", "30"), ("30", "40"), ("40", None)]),
        (
            {"http_paging": "page", "http_request_params": "page=${page.number}"},
            [(None, "6"), ("6", "11"), ("11", "16"), ("16", None)],
        ),
        ({"http_paging_total_pointer": "", "http_paging_total_header": "x-total-count"}, 4),
        # What the next reading asks for depends on the newest record, which no split knows.
        ({"http_paging_end": "restart", "http_response_record_key_pointer": "/id"}, 1),
        ({"http_paging_end": "restart"}, 4),
        ({"http_offset_initial": "id=7"}, 1),
        ({"http_paging_total_pointer": "/nothing"}, 1),
        ({"http_paging_size": "20"}, 1),
        ({"http_paging_total_pointer": ""}, 1),
    ],
)
def test_a_list_is_divided_where_the_server_tells_its_length(api: HttpApi, more: dict[str, str], expected: Any) -> None:
    api.route("/items", paged(ITEMS, 2))
    found = bounds(splits_of({k: v for k, v in props_of(api.url, **more).items() if v}))
    assert (len(found) if isinstance(expected, int) else found) == expected


def test_what_is_read_is_in_no_split(api: HttpApi) -> None:
    api.route("/items", paged(ITEMS, 2))
    props = props_of(api.url)
    assert bounds(splits_of(props, {"page.place": 10, "page.index": 1}, 3)) == [
        (None, "20"),
        ("20", "30"),
        ("30", None),
    ]
    assert splits_of(props, {"page.place": 40, "page.index": 0}) == []
    assert splits_of(props, {"page.done": True}) == []


def test_a_list_that_is_read_again_waits_for_its_time(api: HttpApi) -> None:
    api.route("/items", paged(ITEMS, 2))
    splits = ListSplits(HttpSourceConfig.parse(props_of(api.url, http_paging_end="restart")), {}, lambda _: True)
    try:
        assert len(splits.next(None, 4)) == 4
        # Interrupted, it goes on at once; at its end it rests for http.timer.interval.millis.
        assert len(splits.next({"page.place": 20, "page.index": 0}, 4)) == 2
        assert splits.next({"newest.item": "x"}, 4) == []
    finally:
        splits.close()


def test_splits_go_on_where_each_was_interrupted(api: HttpApi) -> None:
    api.route("/items", paged(ITEMS, 2))
    offsets = StoredOffsets()
    first = run_splits(HttpSourceConnector, props_of(api.url), offsets=offsets)
    assert first is not None
    assert [record.value for record in first] == ITEMS
    api.route("/items", paged([*ITEMS, {"id": 40}, {"id": 41}, {"id": 42}], 2))
    second = run_splits(HttpSourceConnector, props_of(api.url), offsets=offsets)
    assert [record.value for record in second or ()] == [{"id": 40}, {"id": 41}, {"id": 42}]
    assert run_splits(HttpSourceConnector, props_of(api.url), offsets=offsets) == []


def records_of(props: dict[str, str], items: list[Any], given: int) -> list[SourceRecord]:
    """What a split publishes of a server that gives so many records at a time, whatever it is asked for."""
    steps = ListReading(HttpSourceConfig.parse(props), {}).steps(Place())
    records: list[SourceRecord] = []
    outcome: Outcome = None

    def answered(request: Request) -> Response:
        start = int(parse_qs(urlsplit(request.url).query)["offset"][0])
        body = Answer(200, {"items": items[start : start + given]}).content()
        return Response(200, {}, body, request.url)

    while True:
        try:
            step = steps.send(outcome)
        except StopIteration:
            return records
        outcome = answered(step.request) if isinstance(step, Ask) else None
        if isinstance(step, Publish):
            records += [item for item in step.items if isinstance(item, SourceRecord)]


@pytest.mark.parametrize("given", [1, 2, 3, 7, 100])
def test_a_split_has_its_records_whatever_the_size_of_pages_is(given: int) -> None:
    props = props_of("https://api.example") | {"split.first": "10", "split.end": "20"}
    found = records_of(props, ITEMS, given)
    assert [record.value for record in found] == ITEMS[10:20]
    assert found[-1].source_offset["page.place"] == 20


def test_a_split_of_a_list_that_has_become_shorter_ends() -> None:
    props = props_of("https://api.example") | {"split.first": "10", "split.end": "30"}
    assert [record.value for record in records_of(props, ITEMS[:15], 2)] == ITEMS[10:15]


def test_a_server_that_fails_is_asked_again_as_often_as_is_allowed(api: HttpApi) -> None:
    api.route("/items", Answer(503))
    props = props_of(api.url, max_retries="2", retry_backoff_ms="1")
    splits = ListSplits(HttpSourceConfig.parse(props), {}, lambda _: True)
    try:
        for _ in range(2):
            with pytest.raises(RetriableError, match="503"):
                splits.next(None, 4)
        with pytest.raises(ConnectError, match=r"tried 3 times; see max\.retries"):
            splits.next(None, 4)
        api.route("/items", paged(ITEMS, 2))
        assert len(splits.next(None, 4)) == 4
    finally:
        splits.close()


def test_a_total_that_is_no_number_is_an_error(api: HttpApi) -> None:
    api.route("/items", Answer(200, {"items": ITEMS[:2], "total": "many"}))
    with pytest.raises(ConnectError, match=r"total number of records is 'many'.*http\.paging\.total\.pointer"):
        splits_of(props_of(api.url))


def test_only_numbered_pages_have_a_total() -> None:
    with pytest.raises(
        ConfigError, match=r"http\.paging\.total\.pointer divides lists with http\.paging=offset or page"
    ):
        HttpSourceConfig.parse(props_of("https://api.example", http_paging="link_header"))
