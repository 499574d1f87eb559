"""Which operations are sent together, and what the cluster's answer says of each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect.data import SinkRecord, TopicPartition
from connect.errors import DataError
from connectors.elasticsearch.bulk import BulkQueue, Outcome, verdicts
from connectors.elasticsearch.documents import Operation
from connectors.elasticsearch.resources import Resource
from equipment.growth import assert_grows_evenly

INDEX = Resource("orders")


def operation(number: int, document: str | None = None, *, versioned: bool = False, size: int = 10) -> Operation:
    record = SinkRecord("orders", offset=number, original_topic="orders", original_partition=0, original_offset=number)
    return Operation(record, INDEX, document, b"x" * size, versioned, number if versioned else None)


def queue(*operations: Operation, most: int = 100, most_bytes: int = -1, linger: float = 0.0) -> BulkQueue:
    made = BulkQueue(most, most_bytes, linger)
    for each in operations:
        made.add(each, 0.0)
    return made


def numbers(bulk: Any) -> list[int]:
    assert bulk is not None
    return [each.record.offset for each in bulk.operations]


def test_requests_are_as_large_as_allowed() -> None:
    by_count = queue(*(operation(n) for n in range(5)), most=2)
    assert [numbers(by_count.next(0.0)) for _ in range(3)] == [[0, 1], [2, 3], [4]]
    by_size = queue(operation(0, size=50), operation(1, size=50), operation(2, size=300), operation(3), most_bytes=100)
    assert [numbers(by_size.next(0.0)) for _ in range(3)] == [[0, 1], [2], [3]]


def test_offsets_are_durable_before_what_is_in_line_under_way_parked_or_tried_again() -> None:
    made = queue(operation(3, "a"), operation(4, "a"), operation(5, "b"), most=2)
    partition, other = TopicPartition("orders", 0), TopicPartition("orders", 1)
    assert made.durable({partition: 9, other: 7}) == {partition: 3, other: 7}
    first = made.next(1.0)
    assert first is not None and numbers(first) == [3, 4]
    assert made.durable({partition: 9}) == {partition: 3}
    made.landed(first)
    made.done(first.operations[0])
    made.again(first.operations[1:], 10.0)
    assert made.durable({partition: 9}) == {partition: 4}
    made.landed(made.next(10.0))
    made.done(first.operations[1])
    assert made.durable({partition: 9}) == {partition: 5}
    assert made.waited(12.0) == 12.0
    made.forget()
    assert (made.durable({partition: 9}), made.waited(12.0)) == ({partition: 9}, 0.0)


def test_a_request_that_is_not_full_waits_for_more() -> None:
    made = queue(operation(0), linger=0.5, most=2)
    assert made.next(0.25) is None
    assert made.due(0.25) == 0.25
    assert numbers(made.next(0.25, flushes=True)) == [0]
    made.add(operation(1), 0.25)
    assert made.next(0.5) is None
    assert numbers(made.next(0.75)) == [1]


def test_a_document_is_under_way_once_and_later_changes_of_it_wait() -> None:
    made = queue(operation(0, "a"), operation(1, "b"), operation(2, "a"), operation(3, "c"), operation(4, "a"), most=2)
    first = made.next(0.0)
    assert numbers(first) == [0, 1]
    second = made.next(0.0)
    assert numbers(second) == [3], "those on a wait"
    assert made.next(0.0) is None
    assert first is not None
    assert made.landed(first)
    for each in first.operations:
        made.done(each)
    assert numbers(made.next(0.0)) == [2, 4]


def test_what_is_tried_again_is_alone_and_holds_its_document() -> None:
    made = queue(operation(0, "a"), operation(1, "b"), operation(2, "a"), most=2)
    first = made.next(0.0)
    assert first is not None
    made.landed(first)
    made.done(first.operations[1])
    made.again([first.operations[0]], 5.0)
    assert made.next(1.0) is None, "the later change of a waits"
    again = made.next(5.0)
    assert numbers(again) == [0]
    assert again is not None
    made.landed(again)
    made.done(again.operations[0])
    assert numbers(made.next(5.0)) == [2]
    assert len(made) == 1


def test_a_request_that_is_too_large_is_sent_in_two_in_order() -> None:
    made = queue(*(operation(n, "a") for n in range(4)))
    whole = made.next(0.0)
    assert whole is not None
    made.landed(whole)
    made.halve(whole, 0.0)
    half = made.next(0.0)
    assert numbers(half) == [0, 1]
    assert made.next(0.0) is None, "the second half changes the same document"
    assert half is not None
    made.landed(half)
    for each in half.operations:
        made.done(each)
    assert numbers(made.next(0.0)) == [2, 3]


def test_partitions_that_go_take_their_operations_along() -> None:
    made = queue(operation(0, "a"), operation(1, "b"))
    flying = made.next(0.0)
    made.add(operation(2, "c"), 0.0)
    made.forget([TopicPartition("orders", 0)])
    assert flying is not None
    assert made.landed(flying), "what is under way is heard"
    assert len(made) == 0
    made.forget()
    assert not made.landed(flying)


@pytest.mark.growth
def test_a_hot_document_costs_a_small_multiple() -> None:
    def drain(made: BulkQueue) -> None:
        while bulk := made.next(0.0):
            assert made.next(0.0) is None
            made.landed(bulk)
            for each in bulk.operations:
                made.done(each)

    assert_grows_evenly(drain, lambda size: queue(*(operation(n, "hot") for n in range(size)), most=100), 5000)


def answer(*items: dict[str, Any]) -> bytes:
    return json.dumps(
        {"errors": any("error" in item for item in items), "items": [{"index": i} for i in items]}
    ).encode()


def refused(status: int, kind: str, reason: str = "no") -> dict[str, Any]:
    return {"status": status, "error": {"type": kind, "reason": reason, "caused_by": {"reason": "because"}}}


@pytest.mark.parametrize(
    ("item", "outcome"),
    [
        ({"status": 200}, Outcome.DONE),
        ({"status": 404}, Outcome.DONE),
        (refused(400, "mapper_parsing_exception"), Outcome.MALFORMED),
        (refused(400, "document_parsing_exception"), Outcome.MALFORMED),
        (refused(429, "es_rejected_execution_exception"), Outcome.AGAIN),
        (refused(429, "rejected_execution_exception"), Outcome.AGAIN),
        (refused(503, "unavailable_shards_exception"), Outcome.AGAIN),
        (refused(403, "cluster_block_exception"), Outcome.AGAIN),
        (refused(409, "version_conflict_engine_exception"), Outcome.CONFLICT),
        (refused(400, "index_closed_exception"), Outcome.AGAIN),
        (refused(404, "index_not_found_exception"), Outcome.AGAIN),
        (refused(404, "document_missing_exception"), Outcome.AGAIN),
        (refused(500, "mapper_exception"), Outcome.AGAIN),
        (refused(500, "ingest_processor_exception"), Outcome.MALFORMED),
        (refused(400, "one_of_a_later_version"), Outcome.MALFORMED),
        (refused(400, "illegal_argument_exception", "mapper [pipeline with id [x]] is another"), Outcome.MALFORMED),
        (refused(400, "validation_exception"), Outcome.FAILED),
        (refused(403, "security_exception"), Outcome.FAILED),
        (refused(404, "one_of_a_later_version"), Outcome.FAILED),
    ],
)
def test_each_item_has_its_verdict(item: dict[str, Any], outcome: Outcome) -> None:
    bulk = queue(operation(0, "a", versioned=True), operation(1, "b", versioned=True)).next(0.0)
    assert bulk is not None
    first, second = verdicts(bulk, answer(item, {"status": 201}))
    assert (first.outcome, second.outcome) == (outcome, Outcome.DONE)
    if "error" in item:
        assert first.reason == f"{item['error']['type']}: {item['error']['reason']}: because"


def test_later_changes_of_a_document_are_repeated_after_an_earlier_one() -> None:
    busy = refused(429, "es_rejected_execution_exception")
    plain = queue(operation(0, "a"), operation(1, "b"), operation(2, "a")).next(0.0)
    assert plain is not None
    judged = verdicts(plain, answer(busy, {"status": 200}, {"status": 200}))
    assert [each.outcome for each in judged] == [Outcome.AGAIN, Outcome.DONE, Outcome.AGAIN]
    versioned = queue(operation(0, "a", versioned=True), operation(2, "a", versioned=True)).next(0.0)
    assert versioned is not None
    judged = verdicts(versioned, answer(busy, {"status": 200}))
    assert [each.outcome for each in judged] == [Outcome.AGAIN, Outcome.DONE]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"errors":true,"items":[]}', b'{"took":1}'])
def test_another_answer_is_told_apart(body: bytes) -> None:
    bulk = queue(operation(0)).next(0.0)
    assert bulk is not None
    with pytest.raises(DataError, match="not that of a bulk request"):
        verdicts(bulk, body)
