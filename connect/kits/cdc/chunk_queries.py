"""The statements that read the rows of a table in pieces, by ranges of its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from connect.kits.cdc.java_keys import Key

__all__ = ["ChunkQueries", "Query", "SqlForm"]


@dataclass(frozen=True, slots=True)
class Query:
    """A statement and the values of its placeholders."""

    text: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SqlForm:
    """How a database writes names and placeholders.

    ``compares_rows`` says whether it finds ``(a, b) > (1, 2)`` by an index, as PostgreSQL does and MySQL does not.
    """

    quoted: Callable[[str], str]
    placeholder: str = "%s"
    compares_rows: bool = True


@dataclass(frozen=True, slots=True)
class ChunkQueries:
    """Makes the statements of one table.

    ``table`` is its name and ``columns`` the list of what is selected, both as they are to be written. ``condition`` is
    a condition of the user's. ``key`` has the names of the columns to go by.
    """

    form: SqlForm
    table: str
    columns: str
    key: tuple[str, ...]
    condition: str = ""

    def chunk(self, after: Key | None, until: Key | None, rows: int) -> Query:
        """Return the statement for the next rows after a key, up to and including another, in the order of the key."""
        query = self._select(self.columns, after, until)
        return Query(f"{query.text} ORDER BY {self._order()} LIMIT {rows}", query.values)

    def rest(self, after: Key | None, until: Key | None) -> Query:
        """Return the statement for all rows of a range, in the order of the key."""
        query = self._select(self.columns, after, until)
        return Query(f"{query.text} ORDER BY {self._order()}", query.values)

    def last_key(self) -> Query:
        """Return the statement for the greatest key."""
        query = self._select(", ".join(map(self.form.quoted, self.key)), None, None)
        return Query(f"{query.text} ORDER BY {self._order(' DESC')} LIMIT 1", query.values)

    def count(self, after: Key | None, until: Key | None) -> Query:
        """Return the statement for the number of rows in a range."""
        return self._select("count(*)", after, until)

    def _order(self, direction: str = "") -> str:
        return ", ".join(f"{self.form.quoted(column)}{direction}" for column in self.key)

    def _select(self, selected: str, after: Key | None, until: Key | None) -> Query:
        conditions: list[str] = [f"({self.condition})"] if self.condition.strip() else []
        values: list[Any] = []
        for key, operator in ((after, ">"), (until, "<=")):
            if key is not None:
                compared = self._compared(key, operator)
                conditions.append(compared.text)
                values += compared.values
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        # A percent sign of the user's must not be taken for a placeholder.
        return Query(f"SELECT {selected} FROM {self.table}{where}", tuple(values))

    def _compared(self, key: Key, operator: str) -> Query:
        columns, mark = [self.form.quoted(column) for column in self.key], self.form.placeholder
        if len(columns) == 1:
            return Query(f"{columns[0]} {operator} {mark}", tuple(key))
        if self.form.compares_rows:
            return Query(f"({', '.join(columns)}) {operator} ({', '.join([mark] * len(key))})", tuple(key))
        return _expanded(columns, key, operator, mark)


def _expanded(columns: Sequence[str], key: Key, operator: str, mark: str) -> Query:
    """Return the comparison of rows in parts: a > 1 OR (a = 1 AND b > 2)."""
    parts: list[str] = []
    values: list[Any] = []
    strict, last = operator[0], len(columns) - 1
    for place, column in enumerate(columns):
        equal = [f"{other} = {mark}" for other in columns[:place]]
        parts.append(f"({' AND '.join([*equal, f'{column} {operator if place == last else strict} {mark}'])})")
        values += key[: place + 1]
    # The first condition alone lets the database begin at the right place of the index.
    return Query(f"({columns[0]} {strict}= {mark} AND ({' OR '.join(parts)}))", (key[0], *values))
