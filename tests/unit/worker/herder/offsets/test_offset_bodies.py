"""Requests to alter offsets are read as Kafka Connect reads them."""

from __future__ import annotations

from typing import Any

import pytest

from worker.errors import BadRequestError
from worker.herder.offsets.request_bodies import (
    done_message,
    sink_document,
    sink_offsets,
    source_document,
    source_offsets,
)

T0 = {"kafka_topic": "t", "kafka_partition": 0}


def test_a_source_partition_named_twice_has_its_last_offset() -> None:
    given = [
        {"partition": {"f": "a"}, "offset": {"p": 1}},
        {"partition": {"f": "b"}, "offset": None},
        {"partition": {"f": "a"}, "offset": {"p": 2}},
    ]
    assert source_offsets(given) == [({"f": "b"}, None), ({"f": "a"}, {"p": 2})]


def test_sink_numbers_may_be_text() -> None:
    given = [
        {"partition": {"kafka_topic": "t", "kafka_partition": "1"}, "offset": {"kafka_offset": "3"}},
        {"partition": T0, "offset": None},
    ]
    assert sink_offsets(given) == [("t", 1, 3), ("t", 0, None)]


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({}, "cannot be null or missing"),
        ({"partition": {"kafka_topic": "t"}}, "must contain the keys 'kafka_topic' and 'kafka_partition'"),
        ({"partition": {"kafka_topic": None, "kafka_partition": 0}}, "topic names must be valid strings"),
        ({"partition": {"kafka_topic": "t", "kafka_partition": None}}, "partitions must be valid numbers"),
        (
            {"partition": {"kafka_topic": "t", "kafka_partition": "abc"}},
            "partition value in the provided offsets: 'abc'",
        ),
        ({"partition": {"kafka_topic": "t", "kafka_partition": True}}, "need to be integers"),
        ({"partition": T0, "offset": {"x": 1}}, "either be null or contain the key 'kafka_offset'"),
        ({"partition": T0, "offset": {"kafka_offset": "x"}}, "offset value in the provided offsets: 'x'"),
        ({"partition": T0, "offset": {"kafka_offset": -1}}, "The offset -1 cannot be committed"),
    ],
)
def test_what_a_sink_cannot_have_is_refused(item: dict[str, Any], text: str) -> None:
    with pytest.raises(BadRequestError, match=text):
        sink_offsets([item])


@pytest.mark.parametrize(
    "item", [{"partition": {"f": {"x": 1}}, "offset": None}, {"partition": {"f": "a"}, "offset": {"p": [1]}}]
)
def test_what_cannot_be_stored_is_the_clients_mistake(item: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError, match="may only contain primitive types"):
        source_offsets([item])


@pytest.mark.parametrize("item", [{}, {"partition": None}, {"partition": {"f": 1}, "offset": 7}])
def test_what_a_source_cannot_have_is_refused(item: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError, match="for a source connector"):
        source_offsets([item])


def test_no_offsets_are_refused() -> None:
    for read in (source_offsets, sink_offsets):
        with pytest.raises(BadRequestError, match="need to be provided"):
            read([])


def test_answers_have_kafka_connects_form() -> None:
    assert source_document([({"f": 1}, {"p": 2})]) == {"offsets": [{"partition": {"f": 1}, "offset": {"p": 2}}]}
    partition = {"kafka_partition": 0, "kafka_topic": "t"}
    assert sink_document([("t", 0, 5)]) == {"offsets": [{"partition": partition, "offset": {"kafka_offset": 5}}]}
    assert done_message(managed=True, reset=True) == "The offsets for this connector have been reset successfully"
    assert "manually altered in the system" in done_message(managed=False, reset=False)
