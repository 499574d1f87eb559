"""Which tasks go on as they run when a connector has new task configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipment.growth import assert_grows_evenly
from worker.stores.config.generations import Generations, going_on

KEYS = "parts,ids"
APPLIED = {"name": "c"}


def task(parts: str, ids: str = "", **more: str) -> dict[str, str]:
    return {"task.share.keys": KEYS, "parts": parts, "ids": ids, **more}


@pytest.mark.parametrize(
    ("before", "after", "on"),
    [
        ([task("a"), task("b")], [task("a,c"), task("b")], {0, 1}),
        ([task("a", "1"), task("b", "1")], [task("a", "1,2"), task("b", "1,2")], {0, 1}),
        ([task("a")], [task("a"), task("b")], {0}),
        ([task("a,b")], [task("a")], set()),
        ([task("a", "1")], [task("a", "2")], set()),
        ([task("a")], [task("a,b", rate="2")], set()),
        ([task("a"), task("b")], [task("a,b"), task("c")], set()),
        ([task("a"), task("b")], [task("a,b")], set()),
        ([{"parts": "a"}], [{"parts": "a,b"}], set()),
        ([{"x": "1"}, {"x": "2"}], [{"x": "1"}, {"x": "3"}], {0}),
    ],
)
def test_what_stays_and_what_only_grows_goes_on(
    before: list[dict[str, str]], after: list[dict[str, str]], on: set[int]
) -> None:
    assert going_on(before, after) == on


def test_a_task_keeps_its_number_while_it_goes_on() -> None:
    generations = Generations()
    first, second = generations.follow("c", APPLIED, [task("a"), task("b")])
    assert first == second
    assert generations.follow("c", APPLIED, [task("a,c"), task("b")]) == (first, first)
    changed = generations.follow("c", APPLIED, [task("a,c"), task("d")])
    assert changed[0] == first != changed[1]
    assert first not in generations.follow("c", {"name": "c", "other": "x"}, [task("a,c"), task("d")])


def test_those_that_ended_are_to_be_fenced_until_they_are() -> None:
    generations = Generations()
    generations.follow("c", APPLIED, [task("a"), task("b")])
    assert generations.unfenced("c") is None, "there may have been others, before this view began"
    generations.fenced("c", 2)
    generations.follow("c", APPLIED, [task("a,c"), task("b")])
    assert generations.unfenced("c") == frozenset()
    generations.follow("c", APPLIED, [task("a,c"), task("d")])
    generations.follow("c", APPLIED, [task("a,c")])
    assert generations.unfenced("c") == {1}
    generations.fenced("c", 1)
    assert generations.unfenced("c") == frozenset()
    generations.lose("c")
    assert generations.unfenced("c") is None


def test_what_a_former_task_has_given_up_is_taken_over_only_by_a_new_process() -> None:
    for fences, on in ((True, False), (False, True)):
        generations = Generations(fences=fences)
        generations.follow("c", APPLIED, [task("a"), task("b")])
        generations.fenced("c", 2)
        first = generations.follow("c", APPLIED, [task("a"), task("d")])
        assert (generations.follow("c", APPLIED, [task("a,b"), task("d")])[0] == first[0]) is on


def _shares(owners: Sequence[int | None], count: int) -> list[dict[str, str]]:
    parts = [",".join(str(item) for item, owner in enumerate(owners) if owner == task) for task in range(count)]
    return [task(part) for part in parts]


generation = st.tuples(st.lists(st.sampled_from([None, 0, 1, 2]), min_size=5, max_size=5), st.integers(1, 3))
steps = st.lists(st.tuples(generation, st.booleans(), st.sets(st.integers(0, 2))), max_size=8)


@given(steps)
def test_no_two_processes_that_can_write_have_the_same_share(steps: list[Any]) -> None:
    """A model of a cluster with slow workers: each process, until it is fenced, may still write all that it ever had.

    At each step there are new task configs; perhaps the former producers are fenced then, and everything wanted is
    started; and some of the tasks that go on have heard of it.
    """
    generations = Generations()
    live: dict[int, tuple[int, frozenset[str]]] = {}
    for (owners, count), fences, heard in steps:
        configs = _shares(owners, count)
        since = generations.follow("c", APPLIED, configs)
        for number in heard & live.keys():
            if number < count and live[number][0] == since[number]:
                live[number] = since[number], live[number][1] | _parts(configs[number])
        if fences:
            unfenced = generations.unfenced("c")
            live = {n: kept for n, kept in live.items() if unfenced is not None and n not in unfenced}
            generations.fenced("c", count)
            for number in range(count):
                live.setdefault(number, (since[number], _parts(configs[number])))
        everything = [part for _, parts in live.values() for part in parts]
        assert len(everything) == len(set(everything))


def _parts(config: Mapping[str, str]) -> frozenset[str]:
    return frozenset(filter(None, config["parts"].split(",")))


@pytest.mark.growth
def test_many_shares_are_compared_in_time_that_grows_with_them() -> None:
    def grown(count: int) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        before = [task(",".join(f"{number}-{item}" for item in range(count))) for number in range(4)]
        return before, [{**config, "parts": f"{config['parts']},new{number}"} for number, config in enumerate(before)]

    assert_grows_evenly(lambda both: going_on(*both), grown, 4000)
