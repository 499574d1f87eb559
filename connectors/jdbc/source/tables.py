"""Which tables to read, by which columns, and in which task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from connect.internals.java.regex import regex_from_java
from connect.kits.sql.column import TableId

__all__ = ["ColumnMapping", "TableFilter", "column_mapping", "has_topic_form", "shares", "table_regexes"]

_PART: Final = re.compile(r"""\s*"(?:[^"]|"")+"\s*|\s*`(?:[^`]|``)+`\s*|[^.]+""")
"""A part of a name: dots separate parts outside quotes, and a doubled quote stands for one."""

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._\-]{1,249}")

ColumnMapping = Sequence[tuple[re.Pattern[str], tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Selects tables by name, in which leading parts may be missing, or by regular expressions for the full name."""

    whitelist: Sequence[str] = ()
    blacklist: Sequence[str] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def chosen(self, tables: Iterable[TableId]) -> list[TableId]:
        """Return the tables to read."""
        included, excluded = table_regexes(self.include), table_regexes(self.exclude)
        return [table for table in tables if self._is_chosen(table, included, excluded)]

    def missing(self, tables: Sequence[TableId]) -> list[str]:
        """Return the names in the whitelist that match no table."""
        return [name for name in self.whitelist if not any(_is_called(table, name) for table in tables)]

    def _is_chosen(
        self, table: TableId, included: Sequence[re.Pattern[str]], excluded: Sequence[re.Pattern[str]]
    ) -> bool:
        if self.whitelist:
            return any(_is_called(table, name) for name in self.whitelist)
        if any(_is_called(table, name) for name in self.blacklist):
            return False
        full = str(table)
        if included and not any(each.fullmatch(full) for each in included):
            return False
        return not any(each.fullmatch(full) for each in excluded)


def table_regexes(texts: Iterable[str]) -> list[re.Pattern[str]]:
    """Parse Java regular expressions. Raises ``ValueError`` naming an invalid one."""
    found = []
    for text in texts:
        try:
            found.append(regex_from_java(text))
        except re.error as error:
            raise ValueError(f"{text} is not a regular expression: {error}") from error
    return found


def column_mapping(texts: Iterable[str]) -> ColumnMapping:
    """Parse ``REGEX:COLUMN`` or ``REGEX:[COLUMN|COLUMN]``. Raises ``ValueError`` with the reason."""
    found = []
    for text in texts:
        pattern, colon, columns = text.rpartition(":")
        names = tuple(name.strip() for name in columns.strip().removeprefix("[").removesuffix("]").split("|"))
        if not (pattern and colon and all(names)):
            raise ValueError(f"{text}: write it as REGEX:COLUMN or REGEX:[COLUMN|COLUMN]")
        found.append((table_regexes([pattern])[0], names))
    return found


def has_topic_form(text: str) -> bool:
    """Return whether Kafka allows all characters of a text in a topic name, and its length."""
    return _TOPIC.fullmatch(text) is not None


def shares(sizes: Mapping[TableId, int], most: int) -> list[list[TableId]]:
    """Return the tables of each of at most ``most`` tasks, so that all have about the same amount to read."""
    loads = [(0, index) for index in range(min(most, len(sizes)))]
    parts: list[list[TableId]] = [[] for _ in loads]
    for table in sorted(sizes, key=lambda each: (-sizes[each], each)):
        load, index = min(loads)
        parts[index].append(table)
        loads[index] = load + max(1, sizes[table]), index
    return [sorted(part) for part in parts]


def _unquoted(part: str) -> str:
    quote = part[:1]
    if quote not in ('"', "`") or part[-1:] != quote:
        return part
    return part[1:-1].replace(quote * 2, quote)


def _is_called(table: TableId, name: str) -> bool:
    """Return whether a written name means a table: by its last parts, quoted or not."""
    parts = [_unquoted(part.strip()) for part in _PART.findall(name)]
    own = [part for part in (table.catalog, table.schema, table.name) if part]
    return name in (table.name, str(table)) or own[-len(parts) :] == parts
