"""Server-sent events, torn anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.errors import DataError
from connectors.http.events import Event, EventParser
from equipment.growth import assert_grows_evenly

STREAM = (
    "\ufeffretry: 2500\nid: 1\nevent: made\ndata: a\ndata\ndata:  b\n\n"
    ": comment\r\n\r\ndata: \u00e9\u2603\rid\r\rid: 3\ndata: c\nid: x\0y\n\nevent: nothing\n\ndata: unfinished\n"
)
EVENTS = [Event("made", "a\n\n b", "1"), Event("message", "\u00e9\u2603", ""), Event("message", "c", "3")]


@given(st.lists(st.integers(0, len(STREAM.encode()))))
def test_events_are_the_same_however_the_stream_is_torn(cuts: list[int]) -> None:
    data, parser, found = STREAM.encode(), EventParser(1000), []
    edges = [0, *sorted(cuts), len(data)]
    for start, stop in pairwise(edges):
        found += parser.feed(data[start:stop])
    assert found == EVENTS
    assert parser.retry_seconds == 2.5
    assert parser.last_id == "3"


def test_an_event_without_an_id_keeps_the_last_one() -> None:
    parser = EventParser(100, "7")
    assert parser.feed(b"data: x\n\n") == [Event("message", "x", "7")]


@pytest.mark.parametrize("endless", [b"data: x\n", b"x", b"event: x\nid: y\n"])
def test_an_event_that_does_not_end_is_refused(endless: bytes) -> None:
    parser = EventParser(10_000)
    with pytest.raises(DataError, match=r"raise http\.event\.max\.bytes"):
        for _ in range(10_001):
            parser.feed(endless)


def test_comments_keep_a_connection_alive_for_ever() -> None:
    parser = EventParser(1000)
    for _ in range(1000):
        assert parser.feed(b": still here\n") == []
    assert parser.feed(b"data: x\n\n") == [Event("message", "x", "")]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_stream(data: bytes) -> None:
    EventParser(10_000).feed(data)


@pytest.mark.growth
@pytest.mark.parametrize("part", [b"data: x\n\n", b"\n", b"data: x\n", b"\r", b"x"])
def test_parsing_a_stream_takes_even_time(part: bytes) -> None:
    def byte_by_byte(data: bytes) -> None:
        parser = EventParser(len(data) * 2)
        for index in range(0, len(data), 3):
            parser.feed(data[index : index + 3])

    assert_grows_evenly(byte_by_byte, lambda size: part * size, 5_000)
