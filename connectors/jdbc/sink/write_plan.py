"""The plan of writes: which rows to write and delete, and in which order, so that each key ends as its records say.

Rows with the same key are never reordered. If a later record of the same transaction replaces an earlier one, only the
later is written. An exact plan, for rows that depend on each other by other things than their key, writes each of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from connect.kits.sql.writer import Action, Row, Step
from connectors.jdbc.sink.config import InsertMode

__all__ = ["isolate", "plan_exactly", "plan_steps"]


def plan_steps(mode: InsertMode, rows: Sequence[Row], key_size: int, deletes: Sequence[bool] | None) -> list[Step]:
    """Return the steps that write ``rows`` in order; a row to delete (``deletes``) consists of its key only."""
    action = Action(mode.value)
    if deletes is None or not any(deletes):
        if mode is InsertMode.INSERT:
            return [Step(action, rows, range(len(rows)))]
        return [_last_of_each_key(action, rows, key_size, range(len(rows)))]
    if _may_be_equal(row[:key_size] for row in rows):
        return list(_runs(action, rows, key_size, deletes))
    if mode is InsertMode.INSERT:
        return list(_segments(rows, key_size, deletes))
    return _compacted(mode, rows, key_size, deletes)


def plan_exactly(mode: InsertMode, rows: Sequence[Row], key_size: int, deletes: Sequence[bool] | None) -> list[Step]:
    """Return the steps that write every row in its order; a step has no key twice, except for inserts."""
    action = Action(mode.value)
    steps: list[Step] = []
    start, keys = 0, set[Row]()
    for place, row in enumerate(rows):
        key = row[:key_size]
        turns = place > start and deletes is not None and deletes[place] is not deletes[start]
        if turns or (key in keys and (mode is not InsertMode.INSERT or (deletes is not None and deletes[place]))):
            steps.append(_exact(action, rows, deletes, range(start, place)))
            start, keys = place, set()
        keys.add(key)
    return [*steps, _exact(action, rows, deletes, range(start, len(rows)))] if rows else steps


def _exact(action: Action, rows: Sequence[Row], deletes: Sequence[bool] | None, places: range) -> Step:
    is_delete = deletes is not None and deletes[places.start]
    return Step(Action.DELETE if is_delete else action, rows[places.start : places.stop], places)


def isolate(
    count: int, attempt: Callable[[int, int], None], blames_row: Callable[[Exception], bool]
) -> Iterator[tuple[int, Exception]]:
    """Attempt rows ``0`` to ``count`` in order, and yield each that fails with its error.

    ``attempt`` writes the rows of a range, all of them or none. An error that does not blame a row is raised. ``k`` bad
    rows take about ``2 k log2(count / k)`` attempts.
    """
    left = [(0, count)]
    while left:
        start, stop = left.pop()
        try:
            attempt(start, stop)
        except Exception as error:
            if not blames_row(error):
                raise
            if stop - start == 1:
                yield start, error
                continue
            middle = (start + stop) // 2
            left += [(middle, stop), (start, middle)]


def _last_of_each_key(action: Action, rows: Sequence[Row], key_size: int, places: Sequence[int]) -> Step:
    last = {rows[place][:key_size]: place for place in places}
    if len(last) == len(places):
        return Step(action, rows if len(places) == len(rows) else [rows[place] for place in places], places)
    # In order, for databases that consider different keys equal.
    kept = sorted(last.values())
    return Step(action, [rows[place] for place in kept], kept)


def _compacted(mode: InsertMode, rows: Sequence[Row], key_size: int, deletes: Sequence[bool]) -> list[Step]:
    """Deletes first, then for each key the last row after its last delete.

    An update after a delete finds no row. An upsert after a delete must not find the old row, whose other columns it
    would keep, so the delete is carried out, too.
    """
    deleted: dict[Row, int] = {}
    written: dict[Row, int] = {}
    for place, (row, delete) in enumerate(zip(rows, deletes, strict=True)):
        key = row[:key_size]
        if delete:
            deleted[key] = place
            written.pop(key, None)
        elif mode is InsertMode.UPSERT or key not in deleted:
            written[key] = place
    steps = []
    if deleted:
        steps.append(Step(Action.DELETE, list(deleted), list(deleted.values())))
    if written:
        places = list(written.values())
        steps.append(Step(Action(mode.value), [rows[place] for place in places], places))
    return steps


def _segments(rows: Sequence[Row], key_size: int, deletes: Sequence[bool]) -> Iterable[Step]:
    """Inserts and then deletes, in segments in which no key is inserted again after it was deleted.

    No insert is left out: inserting an existing key is an error that must be reported.
    """
    inserted: list[int] = []
    deleted: dict[Row, int] = {}
    for place, (row, delete) in enumerate(zip(rows, deletes, strict=True)):
        key = row[:key_size]
        if delete:
            deleted[key] = place
        elif key in deleted:
            yield from _segment(rows, inserted, deleted)
            inserted, deleted = [place], {}
        else:
            inserted.append(place)
    yield from _segment(rows, inserted, deleted)


def _segment(rows: Sequence[Row], inserted: list[int], deleted: dict[Row, int]) -> Iterable[Step]:
    if inserted:
        yield Step(Action.INSERT, [rows[place] for place in inserted], inserted)
    if deleted:
        yield Step(Action.DELETE, list(deleted), list(deleted.values()))


def _runs(action: Action, rows: Sequence[Row], key_size: int, deletes: Sequence[bool]) -> Iterable[Step]:
    """Writes and deletes in turns, exactly in their order."""
    start = 0
    for place in range(1, len(rows) + 1):
        if place < len(rows) and deletes[place] is deletes[start]:
            continue
        places = range(start, place)
        if deletes[start]:
            yield _last_of_each_key(Action.DELETE, rows, key_size, places)
        elif action is Action.INSERT:
            yield Step(action, rows[start:place], places)
        else:
            yield _last_of_each_key(action, rows, key_size, places)
        start = place


def _may_be_equal(keys: Iterable[Row]) -> bool:
    """Return whether different keys may be equal to the database, which may ignore case, accents or trailing spaces."""
    exact = set(keys)
    loose = {tuple(map(_loose, key)) for key in exact}
    return len(loose) < len(exact)


def _loose(cell: Any) -> Any:
    if not isinstance(cell, str) or (cell.isascii() and cell.islower() and cell[-1:] != " "):
        return cell
    decomposed = unicodedata.normalize("NFKD", cell.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char)).rstrip(" '\"")
