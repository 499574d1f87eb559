"""The messages of the output plugin ``pgoutput``, protocol version 1, in text form.

The tuple of a row is split by a function that is compiled for its number of columns; values are made of the pieces by
:attr:`connect.kits.cdc.table_schemas.TableSchema.row`. For new rows one function does both at once. Nothing here does
I/O.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from connect.errors import ConnectError
from connect.kits.cdc.table_schemas import UNAVAILABLE, TableSchema

__all__ = [
    "BEGIN",
    "COMMIT",
    "EPOCH_2000_US",
    "LogicalMessage",
    "Relation",
    "RelationColumn",
    "Split",
    "Truncation",
    "WholeRow",
    "logical_message",
    "relation",
    "split_of",
    "truncation",
    "whole_row_of",
]

EPOCH_2000_US: Final = 946_684_800_000_000
"""PostgreSQL counts microseconds from 2000-01-01."""

Split: TypeAlias = Callable[[bytes, int], tuple[list[Any], int]]
"""Splits the tuple at a position into the columns' texts (None for null), and returns the position after it."""

WholeRow: TypeAlias = Callable[[bytes, int], dict[str, Any] | None]
"""Makes the value of the tuple at a position; returns None for one that is out of the ordinary."""

BEGIN: Final = struct.Struct(">QqI")
"""The fields of a message ``B``: the position of the commit, its time since 2000, and the transaction's number."""

COMMIT: Final = struct.Struct(">BQQq")
"""The fields of a message ``C``: flags, the position of the commit, that after it, and its time since 2000."""

_MESSAGE: Final = struct.Struct(">BQ")
_LENGTH: Final = struct.Struct(">I")
_COUNT: Final = struct.Struct(">H")
_TRUNCATE: Final = struct.Struct(">IB")
_COLUMN: Final = struct.Struct(">Ii")


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


def whole_row_of(columns: int, schema: TableSchema) -> WholeRow | None:
    """Compile the function that makes values of tuples at once, in two thirds of the time of a split and a row.

    It leaves to these what is not sent, what is null and must not be, and what cannot be converted. There is none for
    tables whose keys are made of the columns' texts.
    """
    if schema.key_schema is not None and schema.key is None:
        return None
    by_place = {column.place: (number, column) for number, column in enumerate(schema.columns)}
    lines = [
        "def row(data, at):",
        f"    if data[at] << 8 | data[at + 1] != {columns}:",
        "        return None",
        "    at += 2",
        "    try:",
    ]
    for place in range(columns):
        number, column = by_place.get(place, (None, None))
        lines += [
            "        kind = data[at]",
            "        if kind == 116:",
            "            start = at + 5",
            "            at = start + length(data, at + 1)[0]",
            *([] if number is None else [f"            v{number} = c{number}(data[start:at])"]),
            f"        elif kind == 110{' and False' if column is not None and not column.schema.optional else ''}:",
            *([] if number is None else [f"            v{number} = None"]),
            "            at += 1",
            "        else:",
            "            return None",
        ]
    values = ", ".join(f"{column.name!r}: v{number}" for number, column in enumerate(schema.columns))
    lines += [
        "    except (ValueError, ArithmeticError, ConnectError):",
        "        return None",
        f"    return {{{values}}}",
    ]
    names: dict[str, Any] = {"length": _LENGTH.unpack_from, "ConnectError": ConnectError}
    names |= {f"c{number}": column.convert for number, column in enumerate(schema.columns)}
    exec("\n".join(lines), names)  # noqa: S102 - names of columns are only written as literals
    made: WholeRow = names["row"]
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
