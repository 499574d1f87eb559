"""The order in which rows are written and deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connect.kits.sql.writer import Action, Row, Step
from connectors.jdbc.sink.config import InsertMode
from connectors.jdbc.sink.write_plan import isolate, plan_exactly, plan_steps
from equipment.examples import examples

# A row is a key and a value; None is a delete. "a" and "A" are two keys that some databases take for one.
events = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "A"]), st.one_of(st.none(), st.integers(0, 99))), max_size=12
)
Table = dict[str, tuple[int, str | None]]


class Collisions(Exception):  # noqa: N818
    """Rows whose key is there."""


def apply(table: Table, action: Action, key: str, value: Any, *, folds: bool, refused: list[tuple[str, int]]) -> None:
    """What a database does; ``folds`` if it takes no notice of case. A row has a note, which an upsert keeps."""
    found = next((each for each in table if each == key or (folds and each.lower() == key.lower())), None)
    if action is Action.DELETE:
        table.pop(found or "", None)
    elif found is None:
        if action is not Action.UPDATE:
            table[key] = (value, None)
    elif action is Action.INSERT:
        refused.append((key, value))
    else:
        table[found] = (value, table[found][1])


def rows_of(items: Sequence[tuple[str, int | None]]) -> tuple[list[Row], list[bool]]:
    return [(key,) if value is None else (key, value) for key, value in items], [value is None for _, value in items]


@pytest.mark.parametrize("folds", [False, True], ids=["exact keys", "keys that ignore case"])
@pytest.mark.parametrize("mode", InsertMode)
@settings(max_examples=examples(60))
@example(items=[("a", 1), ("A", 2), ("a", 3)])
@given(items=events)
def test_the_table_ends_as_if_records_were_written_one_by_one(
    mode: InsertMode, folds: bool, items: list[tuple[str, int | None]]
) -> None:
    start: Table = {"a": (-1, "old a"), "b": (-2, "old b")}
    expected, one_by_one = dict(start), []
    for key, value in items:
        action = Action.DELETE if value is None else Action(mode.value)
        apply(expected, action, key, value, folds=folds, refused=one_by_one)
    rows, deletes = rows_of(items)
    found, refused = dict(start), []
    for step in plan_steps(mode, rows, 1, deletes):
        for row in step.rows:
            apply(found, step.action, row[0], row[1] if len(row) > 1 else None, folds=folds, refused=refused)
    assert _shown(found, folds) == _shown(expected, folds)
    assert refused == one_by_one


@given(items=events)
def test_places_tell_the_rows_of_a_step(items: list[tuple[str, int | None]]) -> None:
    rows, deletes = rows_of(items)
    for mode in InsertMode:
        for step in plan_steps(mode, rows, 1, deletes):
            assert [rows[place] for place in step.places] == list(step.rows)
            assert all(deletes[place] == (step.action is Action.DELETE) for place in step.places)


def test_rows_that_only_change_are_one_step() -> None:
    rows: list[Row] = [("a", 1), ("b", 1), ("a", 2)]
    assert plan_steps(InsertMode.UPSERT, rows, 1, None) == [Step(Action.UPSERT, [("b", 1), ("a", 2)], [1, 2])]
    assert plan_steps(InsertMode.INSERT, rows, 0, None) == [Step(Action.INSERT, rows, range(3))]


def test_many_turns_of_one_key_are_few_steps() -> None:
    rows, deletes = rows_of([("a", None if turn % 2 else turn) for turn in range(1001)])
    assert len(plan_steps(InsertMode.UPSERT, rows, 1, deletes)) == 2


@given(st.sets(st.integers(0, 63)))
def test_bad_rows_are_found_by_halves(bad: set[int]) -> None:
    written: list[int] = []
    attempts = 0

    def attempt(start: int, stop: int) -> None:
        nonlocal attempts
        attempts += 1
        if bad & set(range(start, stop)):
            raise ValueError("bad")
        written.extend(range(start, stop))

    found = [place for place, _ in isolate(64, attempt, lambda error: isinstance(error, ValueError))]
    assert found == sorted(bad)
    assert written == [place for place in range(64) if place not in bad]
    assert attempts <= 1 + 12 * max(len(bad), 1)


def test_an_error_of_something_else_ends_the_search() -> None:
    def attempt(start: int, stop: int) -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(isolate(4, attempt, lambda error: isinstance(error, ValueError)))


def _shown(table: Table, folds: bool) -> dict[str, tuple[int, str | None]]:
    return {key.lower() if folds else key: row for key, row in table.items()}


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("insert", [("insert", "1a 2a 1b"), ("delete", "1"), ("insert", "1c 3a")]),
        ("upsert", [("upsert", "1a 2a"), ("upsert", "1b"), ("delete", "1"), ("upsert", "1c 3a")]),
        ("update", [("update", "1a 2a"), ("update", "1b"), ("delete", "1"), ("update", "1c 3a")]),
    ],
)
def test_an_exact_plan_has_every_row_in_its_order(mode: str, expected: list[tuple[str, str]]) -> None:
    rows = [tuple(text) for text in ("1a", "2a", "1b", "1", "1c", "3a")]
    steps = plan_exactly(InsertMode(mode), rows, 1, [len(row) == 1 for row in rows])
    assert [(step.action.value, " ".join(map("".join, step.rows))) for step in steps] == expected
    assert [place for step in steps for place in step.places] == list(range(6))
    assert plan_exactly(InsertMode(mode), [], 1, None) == []
