"""Statements in the log: which tables they create, change or drop. There is no grammar here: only names are looked for.

What a table looks like after a statement comes from the log's table maps and from the catalog, never from its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from connect.kits.cdc.tables import TableId
from connectors.cdc.mysql.catalog import table_id

__all__ = ["Statement", "is_row_change", "parse_statement"]

_COMMENT: Final = re.compile(r"/\*(?!!).*?\*/|--[ \t][^\n]*|#[^\n]*", re.DOTALL)
_VERSIONED: Final = re.compile(r"/\*!\d*(.*?)\*/", re.DOTALL)
_TEXT: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`", re.DOTALL)
_NAME: Final = r"(?:`(?:[^`]|``)+`|[\w$]+)(?:\s*\.\s*(?:`(?:[^`]|``)+`|[\w$]+))?"
_IF: Final = r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?"
_TABLE: Final = re.compile(
    rf"\s*(CREATE(?:\s+OR\s+REPLACE)?|ALTER(?:\s+(?:ONLINE|IGNORE))*|DROP|TRUNCATE|RENAME)\s+TABLES?\s+{_IF}(.*)",
    re.IGNORECASE | re.DOTALL,
)
_TRUNCATE: Final = re.compile(rf"\s*TRUNCATE\s+(?:TABLE\s+)?({_NAME})", re.IGNORECASE)
_TEMPORARY: Final = re.compile(r"\s*(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?TEMPORARY\b", re.IGNORECASE)
_INDEX: Final = re.compile(
    rf"\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:\w+\s+)?INDEX|DROP\s+INDEX)\s+.*?\bON\s+({_NAME})",
    re.IGNORECASE | re.DOTALL,
)
_DATABASE: Final = re.compile(rf"\s*(CREATE|ALTER|DROP)\s+(?:DATABASE|SCHEMA)\s+{_IF}({_NAME})?", re.IGNORECASE)
_FIRST_NAME: Final = re.compile(rf"\s*({_NAME})")
_RENAMED: Final = re.compile(rf"({_NAME})\s+(?:TO|AS)\s+({_NAME})", re.IGNORECASE)
_RENAMED_TO: Final = re.compile(
    rf"\bRENAME\s+(?!COLUMN\b|INDEX\b|KEY\b)(?:TO\s+|AS\s+|=\s*)?({_NAME})\s*(?:,|;|\Z)", re.IGNORECASE
)
_ROW_CHANGE: Final = re.compile(
    r"\s*(?:INSERT|UPDATE|DELETE|REPLACE|LOAD\s+DATA|WITH\b.*\b(?:UPDATE|DELETE))\b", re.IGNORECASE | re.DOTALL
)
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([\w$]+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """What a statement does: ``CREATE``, ``ALTER``, ``DROP`` or ``TRUNCATE`` tables, or change a ``DATABASE``."""

    kind: str
    tables: tuple[TableId, ...]
    database: str
    previous: tuple[TableId, ...] = ()
    """The former names of renamed tables, one for each of ``tables``."""


def is_row_change(sql: str) -> bool:
    """Return whether a statement changes rows, which a log in row format has as rows only."""
    return bool(_ROW_CHANGE.match(_bare(sql)))


def parse_statement(sql: str, database: str) -> Statement | None:
    """Return what a statement does to tables; ``None`` if it has nothing to do with them.

    ``database`` is the one in use, for names without one.
    """
    text = _bare(sql)
    if _TEMPORARY.match(text):
        return None
    if match := _TRUNCATE.match(text):
        table = _id(match[1], database)
        return Statement("TRUNCATE", (table,), table.catalog)
    if match := _TABLE.match(text):
        return _of_tables(match[1].split()[0].upper(), match[2], database)
    if match := _INDEX.match(text):
        table = _id(match[1], database)
        return Statement("ALTER", (table,), table.catalog)
    if match := _DATABASE.match(text):
        name = _parts(match[2])[-1] if match[2] else database
        return Statement("DATABASE", (), name)
    return None


def _of_tables(verb: str, rest: str, database: str) -> Statement | None:
    if verb == "RENAME":
        pairs = [(_id(old, database), _id(new, database)) for old, new in _RENAMED.findall(rest)]
        if not pairs:
            return None
        return Statement("ALTER", tuple(new for _, new in pairs), pairs[0][1].catalog, tuple(old for old, _ in pairs))
    if verb == "DROP":
        names = [match[1] for part in rest.split(",") if (match := _FIRST_NAME.match(part))]
        tables = tuple(_id(name, database) for name in names)
        return Statement("DROP", tables, tables[0].catalog) if tables else None
    match = _FIRST_NAME.match(rest)
    if match is None:
        return None
    table = _id(match[1], database)
    if verb == "ALTER" and (renamed := _RENAMED_TO.search(rest)):
        new = _id(renamed[1], table.catalog)
        return Statement("ALTER", (new,), new.catalog, (table,))
    return Statement(verb, (table,), table.catalog)


def _bare(sql: str) -> str:
    """A statement without comments; names in backticks and texts stay."""
    parts: list[str] = []
    at = 0
    plain = _VERSIONED.sub(r" \1 ", sql) if "/*!" in sql else sql
    for match in _TEXT.finditer(plain):
        parts.append(_COMMENT.sub(" ", plain[at : match.start()]))
        parts.append(match[0] if match[0][0] == "`" else "''")
        at = match.end()
    parts.append(_COMMENT.sub(" ", plain[at:]))
    return "".join(parts)


def _parts(name: str) -> list[str]:
    return [match[1].replace("``", "`") if match[1] else match[2] for match in _PART.finditer(name)]


def _id(name: str, database: str) -> TableId:
    parts = _parts(name)
    return table_id(parts[0] if len(parts) > 1 else database, parts[-1])
