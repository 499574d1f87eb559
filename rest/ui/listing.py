"""The list of connectors as its reader wants it: which of them, in which order, and which page; also as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rest.ui.summaries import ConnectorSummary

__all__ = ["COLUMNS", "ROWS", "Listed", "Wanted", "as_csv", "listed", "matching"]

COLUMNS: Final = {
    "name": "Name",
    "state": "State",
    "tasks": "Tasks",
    "rate": "Records/s",
    "lag": "Lag",
    "type": "Type",
    "class": "Class",
    "worker": "Worker",
}
"""The columns by which the list can be sorted, and their headings."""
_VALUES: Final[Mapping[str, Callable[[ConnectorSummary], Any]]] = {
    "name": lambda connector: connector.name.casefold(),
    "state": lambda connector: connector.trouble,
    "tasks": lambda connector: connector.task_count,
    "rate": lambda connector: connector.rate,
    "lag": lambda connector: connector.lag,
    "type": lambda connector: connector.type,
    "class": lambda connector: connector.plugin.casefold(),
    "worker": lambda connector: connector.worker_id or None,
}
"""What the columns are sorted by; ``None`` is unknown."""
ROWS: Final = (100, 500, 1_000)
"""How many rows a page may have."""
_ATTENTION: Final = "state"
_MOST_CHARACTERS: Final = 200
_DESCENDING_FIRST: Final = frozenset({"tasks", "rate", "lag"})
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_HEADINGS: Final = ("name", "state", "attention", "reason", "tasks", "failed", "rate", "lag", "type", "class", "worker")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the reader of the list wants to see; an empty string matches everything, and pages count from 1."""

    trouble: str = ""
    type: str = ""
    text: str = ""
    worker: str = ""
    plugin: str = ""
    sort: str = _ATTENTION
    descending: bool = False
    rows: int = ROWS[0]
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        """Parse the query of an address. What is not understood is as if it were not there, as in any search."""
        words = {key: str(query.get(key, ""))[:_MOST_CHARACTERS] for key in ("show", "type", "q", "worker", "class")}
        sort = query.get("sort", "")
        rows = _number(query.get("rows", ""))
        return cls(
            words["show"],
            words["type"],
            words["q"],
            words["worker"],
            words["class"],
            sort if sort in COLUMNS else _ATTENTION,
            query.get("order") == "desc",
            rows if rows in ROWS else ROWS[0],
            max(1, _number(query.get("page", ""))),
        )

    def query(self, **changed: str | int) -> dict[str, str | int]:
        """Return the query of the same list with some members changed; a page other than the first only if named."""
        whole: dict[str, str | int] = {
            "show": self.trouble,
            "type": self.type,
            "q": self.text,
            "worker": self.worker,
            "class": self.plugin,
            "sort": "" if self.sort == _ATTENTION else self.sort,
            "order": "desc" if self.descending else "",
            "rows": "" if self.rows == ROWS[0] else self.rows,
            **changed,
        }
        return {key: value for key, value in whole.items() if value != ""}

    def sorted_by(self, column: str) -> dict[str, str | int]:
        """Return the query of the list sorted by a column; if it is already, in the other order."""
        descending = not self.descending if self.sort == column else column in _DESCENDING_FIRST
        return self.query(sort="" if column == _ATTENTION else column, order="desc" if descending else "")


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a list, with the number of its first row among all that match, and of all these."""

    connectors: Sequence[ConnectorSummary]
    first: int
    matched: int
    page: int
    pages: int


def listed(connectors: Iterable[ConnectorSummary], wanted: Wanted) -> Listed:
    """Return the page that is wanted, or the last one if there are fewer."""
    found = _ordered(matching(connectors, wanted), wanted)
    pages = max(1, -(-len(found) // wanted.rows))
    page = min(wanted.page, pages)
    start = (page - 1) * wanted.rows
    return Listed(found[start : start + wanted.rows], start + 1, len(found), page, pages)


def matching(connectors: Iterable[ConnectorSummary], wanted: Wanted) -> list[ConnectorSummary]:
    """Return the connectors that match, in their order. One on several workers is on each of them."""
    words = wanted.text.casefold().split()
    return [
        connector
        for connector in connectors
        if wanted.trouble in ("", connector.trouble.word)
        and wanted.type in ("", connector.type)
        and wanted.plugin in ("", connector.plugin)
        and (not wanted.worker or wanted.worker in connector.workers)
        and all(word in f"{connector.name} {connector.plugin} {connector.reason}".casefold() for word in words)
    ]


def as_csv(connectors: Iterable[ConnectorSummary]) -> str:
    """Return a list as CSV. A text that a spreadsheet would take for a formula begins with an apostrophe."""
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(_HEADINGS)
    for connector in connectors:
        rows.writerow(
            "" if value is None else _harmless(value) if isinstance(value, str) else value
            for value in _cells(connector)
        )
    return written.getvalue()


def _cells(connector: ConnectorSummary) -> tuple[Any, ...]:
    return (
        connector.name,
        connector.state,
        connector.trouble.word,
        connector.reason,
        connector.task_count,
        connector.tasks.get("FAILED", 0),
        connector.rate,
        connector.lag,
        connector.type,
        connector.plugin,
        connector.worker_id,
    )


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _ordered(connectors: list[ConnectorSummary], wanted: Wanted) -> list[ConnectorSummary]:
    """Sort by a column, and by attention where it is the same; what is unknown comes last in either order."""
    value_of = _VALUES[wanted.sort]
    values = [(connector, value_of(connector)) for connector in connectors]
    known = sorted(
        (pair for pair in values if pair[1] is not None), key=lambda pair: pair[1], reverse=wanted.descending
    )
    return [connector for connector, _ in known] + [connector for connector, value in values if value is None]


def _number(text: str) -> int:
    """Return a small number of a query, or 0."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
