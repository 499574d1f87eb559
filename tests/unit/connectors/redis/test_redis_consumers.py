"""Which names tasks take, and in whose place they read."""

from __future__ import annotations

from collections import deque

from connectors.redis.stream_consumers import Consumer, ConsumerState, free_name, left_behind, parsed_id

UNUSED = 300_000


def test_a_task_takes_a_name_that_nobody_uses() -> None:
    assert free_name("consumer-0", [], UNUSED) == "consumer-0"
    assert free_name("consumer-0", [ConsumerState("consumer-0", 0, 10)], UNUSED) == "consumer-0:1"
    assert free_name("consumer-0", [ConsumerState("consumer-0", 3, UNUSED)], UNUSED) == "consumer-0:1"
    assert free_name("consumer-0", [ConsumerState("consumer-0", 0, UNUSED)], UNUSED) == "consumer-0"


def test_a_task_reads_in_place_of_its_former_selves() -> None:
    states = [
        ConsumerState("consumer-0", 2, 5_000),
        ConsumerState("consumer-0:1", 2, 4_999),
        ConsumerState("consumer-0:2", 0, 9_000),
        ConsumerState("consumer-0:3", 1, 9_000),
        ConsumerState("consumer-1", 1, UNUSED),
        ConsumerState("consumer-01", 1, UNUSED),
        ConsumerState("another", 1, UNUSED - 1),
    ]
    bases = ["consumer-0", "consumer-1"]

    def names(task: int, own: str) -> list[str]:
        return [state.name for state in left_behind(states, own, bases, task, UNUSED)]

    assert names(0, "consumer-0:3") == ["consumer-0", "consumer-01"]
    assert names(1, "consumer-1:1") == ["consumer-1"]


def test_ids_are_ordered_by_their_numbers() -> None:
    assert parsed_id("9-10") < parsed_id(b"10-2") < parsed_id("10-10")
    assert parsed_id("5") == (5, 0)


def test_what_is_stored_is_safe() -> None:
    consumer = Consumer({"consumer": "c"}, unacknowledged=deque([b"1-0", b"2-0", b"3-0"]))
    assert consumer.stored((2, 0)) == [b"1-0", b"2-0"]
    assert consumer.published == (2, 0)
    assert consumer.stored((1, 0)) == []
    assert consumer.published == (2, 0)
