"""The statements that read the rows of a table in pieces, by ranges of its key."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.kits.cdc.java_keys import Key

__all__ = ["ChunkQueries", "Query", "SqlForm", "is_statement"]

_STATEMENT: Final = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)


def is_statement(condition: str) -> bool:
    """Return whether a condition is a statement that selects the rows, as Debezium's of blocking snapshots are."""
    return _STATEMENT.match(condition) is not None


@dataclass(frozen=True, slots=True)
class Query:
    """A statement and the values of its placeholders."""

    text: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SqlForm:
    """How a database writes names and placeholders.

    ``numbers`` is whether placeholders are ``$1``, ``$2``; otherwise they are ``%s``, and other percent signs are
    doubled. ``literal`` writes the values themselves, for statements that have no placeholders. ``compares_rows`` is
    whether the database finds ``(a, b) > (1, 2)`` by an index, as PostgreSQL does and MySQL does not.
    """

    quoted: Callable[[str], str]
    numbers: bool
    compares_rows: bool
    literal: Callable[[Any], str] | None = None


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
        return self._select(self.columns, after, until, f" ORDER BY {self._order()} LIMIT {rows}")

    def rest(self, after: Key | None, until: Key | None) -> Query:
        """Return the statement for all rows of a range, in the order of the key."""
        return self._select(self.columns, after, until, f" ORDER BY {self._order()}")

    def whole(self) -> Query:
        """Return the statement for all rows, in any order."""
        return self._select(self.columns, None, None, "")

    def first_key(self) -> Query:
        """Return the statement for the least key."""
        return self._select(self._keys(), None, None, f" ORDER BY {self._order()} LIMIT 1")

    def last_key(self) -> Query:
        """Return the statement for the greatest key."""
        return self._select(self._keys(), None, None, f" ORDER BY {self._order(' DESC')} LIMIT 1")

    def key_after(self, after: Key | None, until: Key, rows: int) -> Query:
        """Return the statement for the key that so many rows after a key, up to another, come to."""
        return self._select(self._keys(), after, until, f" ORDER BY {self._order()} LIMIT 1 OFFSET {rows - 1}")

    def _keys(self) -> str:
        return ", ".join(map(self.form.quoted, self.key))

    def _order(self, direction: str = "") -> str:
        return ", ".join(f"{self.form.quoted(column)}{direction}" for column in self.key)

    def _select(self, selected: str, after: Key | None, until: Key | None, end: str) -> Query:
        values: list[Any] = []
        conditions: list[str] = [f"({self.condition})"] if self.condition.strip() else []
        head = f"SELECT {selected} FROM {self.table}"  # noqa: S608 - names are quoted, conditions are the user's own
        if not self.form.numbers:
            conditions = [each.replace("%", "%%") for each in conditions]
            head, end = head.replace("%", "%%"), end.replace("%", "%%")
        for key, operator in ((after, ">"), (until, "<=")):
            if key is not None:
                conditions.append(self._compared(key, operator, values))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return Query(f"{head}{where}{end}", tuple(values))

    def _compared(self, key: Key, operator: str, values: list[Any]) -> str:
        columns = [self._quoted(column) for column in self.key]
        if len(columns) == 1 or self.form.compares_rows:
            marks = [self._mark(values, value) for value in key]
            return f"({', '.join(columns)}) {operator} ({', '.join(marks)})"
        # The first condition alone lets the database begin at the right place of the index.
        first = f"{columns[0]} {operator[0]}= {self._mark(values, key[0])}"
        return f"({first} AND ({' OR '.join(self._parts(columns, key, operator, values))}))"

    def _parts(self, columns: Sequence[str], key: Key, operator: str, values: list[Any]) -> list[str]:
        """Return the comparison of rows in parts: a > 1, a = 1 AND b > 2."""
        parts: list[str] = []
        for place, column in enumerate(columns):
            equal = [
                f"{other} = {self._mark(values, value)}"
                for other, value in zip(columns[:place], key[:place], strict=True)
            ]
            compares = operator if place == len(columns) - 1 else operator[0]
            parts.append(f"({' AND '.join([*equal, f'{column} {compares} {self._mark(values, key[place])}'])})")
        return parts

    def _quoted(self, column: str) -> str:
        quoted = self.form.quoted(column)
        return quoted if self.form.numbers else quoted.replace("%", "%%")

    def _mark(self, values: list[Any], value: Any) -> str:
        if self.form.literal is not None:
            return self.form.literal(value)
        values.append(value)
        return f"${len(values)}" if self.form.numbers else "%s"
