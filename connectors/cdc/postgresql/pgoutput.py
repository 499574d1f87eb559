"""The messages of the output plugin ``pgoutput``, protocol version 1, in text form.

The tuple of a row is split by a function that is compiled for its number of columns; values are made of the pieces by
:attr:`connect.kits.cdc.table_schemas.TableSchema.row`. Nothing here does I/O.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from connect.errors import ConnectError
from connect.kits.cdc.table_schemas import UNAVAILABLE

__all__ = [
    "EPOCH_2000_US",
    "Begin",
    "Commit",
    "LogicalMessage",
    "Relation",
    "RelationColumn",
    "Split",
    "Truncation",
    "begin",
    "commit",
    "logical_message",
    "relation",
    "split_of",
    "truncation",
]

EPOCH_2000_US: Final = 946_684_800_000_000
"""PostgreSQL counts microseconds from 2000-01-01."""

Split: TypeAlias = Callable[[bytes, int], tuple[list[Any], int]]
"""Splits the tuple at a position into the columns' texts (None for null), and returns the position after it."""

_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">BQQq")
_MESSAGE: Final = struct.Struct(">BQ")
_LENGTH: Final = struct.Struct(">I")
_COUNT: Final = struct.Struct(">H")
_TRUNCATE: Final = struct.Struct(">IB")
_COLUMN: Final = struct.Struct(">Ii")


@dataclass(frozen=True, slots=True)
class Begin:
    """The beginning of a transaction: the position of its commit, its time, and its number."""

    final_lsn: int
    at_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The end of a transaction: the position of its commit, and that after it."""

    lsn: int
    end_lsn: int
    at_us: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as the stream has it."""

    name: str
    is_key: bool
    type_oid: int
    typmod: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the stream has it; ``identity`` is d, n, f or i."""

    oid: int
    schema: str
    table: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """What ``pg_logical_emit_message`` has written."""

    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Truncation:
    """The tables that one statement has truncated."""

    relations: tuple[int, ...]


def begin(data: bytes, at: int) -> Begin:
    """Read a message ``B``, whose fields start at ``at``."""
    final_lsn, micros, xid = _BEGIN.unpack_from(data, at)
    return Begin(final_lsn, micros + EPOCH_2000_US, xid)


def commit(data: bytes, at: int) -> Commit:
    """Read a message ``C``."""
    _, lsn, end_lsn, micros = _COMMIT.unpack_from(data, at)
    return Commit(lsn, end_lsn, micros + EPOCH_2000_US)


def relation(data: bytes, at: int) -> Relation:
    """Read a message ``R``."""
    (oid,) = _LENGTH.unpack_from(data, at)
    schema, at = _text(data, at + 4)
    table, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        name, at = _text(data, at + 1)
        type_oid, typmod = _COLUMN.unpack_from(data, at)
        at += _COLUMN.size
        columns.append(RelationColumn(name, is_key, type_oid, typmod))
    # The catalog's own schema is sent without a name.
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns))


def logical_message(data: bytes, at: int) -> LogicalMessage:
    """Read a message ``M``."""
    flags, lsn = _MESSAGE.unpack_from(data, at)
    prefix, at = _text(data, at + _MESSAGE.size)
    (length,) = _LENGTH.unpack_from(data, at)
    at += 4
    return LogicalMessage(bool(flags & 1), lsn, prefix, data[at : at + length])


def truncation(data: bytes, at: int) -> Truncation:
    """Read a message ``T``."""
    count, _ = _TRUNCATE.unpack_from(data, at)
    return Truncation(struct.unpack_from(f">{count}I", data, at + _TRUNCATE.size))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


@cache
def split_of(columns: int) -> Split:
    """Compile the function that splits tuples of this many columns: unrolled, it takes half the time of a loop."""
    lines = [
        "def split(data, at):",
        f"    if data[at] << 8 | data[at + 1] != {columns}:",
        "        raise unexpected(data, at)",
        "    at += 2",
    ]
    for number in range(columns):
        lines += [
            "    kind = data[at]",
            "    if kind == 116:",
            "        start = at + 5",
            "        at = start + length(data, at + 1)[0]",
            f"        v{number} = data[start:at]",
            "    else:",
            f"        v{number} = None if kind == 110 else unavailable if kind == 117 else other(kind)",
            "        at += 1",
        ]
    values = ", ".join(f"v{number}" for number in range(columns))
    lines.append(f"    return [{values}], at")
    names: dict[str, Any] = {
        "length": _LENGTH.unpack_from,
        "unavailable": UNAVAILABLE,
        "unexpected": _unexpected(columns),
        "other": _other,
    }
    exec("\n".join(lines), names)  # noqa: S102 - only numbers are filled in
    made: Split = names["split"]
    return made


def _unexpected(columns: int) -> Callable[[bytes, int], ConnectError]:
    def error(data: bytes, at: int) -> ConnectError:
        (count,) = _COUNT.unpack_from(data, at)
        return ConnectError(
            f"The stream has a row of {count} columns for a table of {columns}. Restart the task; if that does not "
            "help, please report it."
        )

    return error


def _other(kind: int) -> None:
    raise ConnectError(f"The stream has a value of the kind {chr(kind)!r}, which was not asked for: please report it.")
