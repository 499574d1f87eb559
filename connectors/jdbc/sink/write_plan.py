"""The order of writes: which rows to write and to delete, and in which order, so that each key ends as its records say.

Rows of one key are never reordered. Where a later record of the same transaction replaces an earlier one, only the
later is written.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.jdbc.sink.config import InsertMode

__all__ = ["Action", "Row", "Step", "isolate", "plan_steps"]

Row = tuple[Any, ...]
"""The cells of a row as the writer has them, those of the primary key first."""


class Action(enum.Enum):
    """What a step does with its rows."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Step:
    """One action for many rows; ``places`` are their numbers in the input."""

    action: Action
    rows: Sequence[Row]
    places: Sequence[int]

    def slice(self, start: int, stop: int) -> Step:
        """The rows from ``start`` up to ``stop``."""
        return Step(self.action, self.rows[start:stop], self.places[start:stop])


def plan_steps(mode: InsertMode, rows: Sequence[Row], key_size: int, deletes: Sequence[bool] | None) -> list[Step]:
    """The steps that write ``rows`` in order; of those that are ``deletes`` a row is its key alone."""
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


def isolate(
    count: int, attempt: Callable[[int, int], None], blames_row: Callable[[Exception], bool]
) -> Iterator[tuple[int, Exception]]:
    """Attempt rows ``0`` to ``count`` in order, and yield each that fails with its error.

    ``attempt`` does the rows from a first up to a last, all of them or none. An error that does not blame a row is
    raised. For ``k`` bad rows there are some ``2 k log2(count / k)`` attempts.
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
    # In order, for databases to which keys that differ here are one.
    kept = sorted(last.values())
    return Step(action, [rows[place] for place in kept], kept)


def _compacted(mode: InsertMode, rows: Sequence[Row], key_size: int, deletes: Sequence[bool]) -> list[Step]:
    """Deletes first, then the last row of each key that comes after its last delete.

    An update after a delete finds no row. An upsert after one must not find the old row, whose other columns it
    would keep: so the delete is done, too.
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
    """Inserts and then deletes, as far as no key is inserted again after it was deleted.

    No insert is left out: one whose key is there already is an error, which has to be told.
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
    """Writes and deletes in turns, exactly as they came."""
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
    """Whether keys that differ may be one to the database, which may ignore case, accents or spaces at the end."""
    exact = set(keys)
    loose = {tuple(map(_loose, key)) for key in exact}
    return len(loose) < len(exact)


def _loose(cell: Any) -> Any:
    if not isinstance(cell, str) or (cell.isascii() and cell.islower() and cell[-1:] != " "):
        return cell
    decomposed = unicodedata.normalize("NFKD", cell.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char)).rstrip(" '\"")
