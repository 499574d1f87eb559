"""Tables of the measurements that plugins report: one row for each set of labels, one column for each name.

Columns keep the plugin's order; rows are sorted by the first column, the greatest number first. So a plugin that
reports its most important measurement first has the worst rows on top.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import Any, Final

__all__ = ["MeasuredRow", "MeasuredTable", "measured_tables"]

_MOST_ROWS: Final = 50
_MOST_COLUMNS: Final = 30
_MOST_TABLES: Final = 20


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """The numbers of one set of labels in one task, in the order of the columns; ``None`` where there is none."""

    task: int
    labels: tuple[str, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """The measurements with the same label names. ``columns`` are their names, each with a description."""

    labels: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[MeasuredRow, ...]
    rows_in_all: int
    columns_in_all: int

    @property
    def is_whole(self) -> bool:
        """Whether all rows and columns are shown."""
        return (len(self.rows), len(self.columns)) == (self.rows_in_all, self.columns_in_all)


def measured_tables(tasks: Sequence[Mapping[str, Any]]) -> list[MeasuredTable]:
    """Build tables from the tasks of ``GET /connectors/NAME/measurements``: at most 20, of 50 rows and 30 columns."""
    drafts: dict[tuple[str, ...], _Draft] = {}
    for task, each in _all(tasks):
        labels = each["labels"]
        draft = drafts.setdefault(tuple(sorted(labels)), _Draft(tuple(labels), {}, {}))
        draft.columns.setdefault(each["name"], each["help"])
        row = draft.rows.setdefault((task, tuple(labels[name] for name in draft.labels)), {})
        row[each["name"]] = each["value"]
    return [draft.table() for draft in islice(drafts.values(), _MOST_TABLES)]


@dataclass(frozen=True, slots=True)
class _Draft:
    labels: tuple[str, ...]
    columns: dict[str, str]
    rows: dict[tuple[int, tuple[str, ...]], dict[str, float | None]]

    def table(self) -> MeasuredTable:
        columns = tuple(islice(self.columns.items(), _MOST_COLUMNS))
        rows = (
            MeasuredRow(task, labels, tuple(values.get(name) for name, _ in columns))
            for (task, labels), values in self.rows.items()
        )
        return MeasuredTable(
            self.labels, columns, tuple(nlargest(_MOST_ROWS, rows, key=_badness)), len(self.rows), len(self.columns)
        )


def _badness(row: MeasuredRow) -> tuple[float, ...]:
    return tuple(-math.inf if value is None else value for value in row.values)


def _all(tasks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return ((task["id"], each) for task in tasks for each in task["measurements"])
