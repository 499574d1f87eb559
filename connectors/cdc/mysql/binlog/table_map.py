"""Table maps: what the log itself says about a table before its rows.

With ``binlog_row_metadata=FULL`` that is all it takes to read and describe a row: names, types, character sets, the
values of enums and sets, and the primary key. With MINIMAL the names are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from connectors.cdc.mysql.binlog.errors import BinlogError
from connectors.cdc.mysql.binlog.json_binary import packed_length

__all__ = ["ColumnMap", "FieldType", "TableMap", "parse_table_map"]


class FieldType:
    """The numbers of the types of columns in the log."""

    TINY: Final = 1
    SHORT: Final = 2
    LONG: Final = 3
    FLOAT: Final = 4
    DOUBLE: Final = 5
    TIMESTAMP: Final = 7
    LONGLONG: Final = 8
    INT24: Final = 9
    DATE: Final = 10
    TIME: Final = 11
    DATETIME: Final = 12
    YEAR: Final = 13
    VARCHAR: Final = 15
    BIT: Final = 16
    TIMESTAMP2: Final = 17
    DATETIME2: Final = 18
    TIME2: Final = 19
    BLOB_COMPRESSED: Final = 140
    VARCHAR_COMPRESSED: Final = 141
    VECTOR: Final = 242
    JSON: Final = 245
    NEWDECIMAL: Final = 246
    ENUM: Final = 247
    SET: Final = 248
    BLOB: Final = 252
    VAR_STRING: Final = 253
    STRING: Final = 254
    GEOMETRY: Final = 255


_T: Final = FieldType
_TWO_BYTES: Final = frozenset({_T.VARCHAR, _T.VARCHAR_COMPRESSED, _T.VAR_STRING, _T.STRING, _T.NEWDECIMAL, _T.BIT})
_ONE_BYTE: Final = frozenset(
    {_T.FLOAT, _T.DOUBLE, _T.BLOB, _T.BLOB_COMPRESSED, _T.JSON, _T.GEOMETRY, _T.VECTOR}
    | {_T.TIMESTAMP2, _T.DATETIME2, _T.TIME2}
)
_NO_BYTE: Final = frozenset(
    {_T.TINY, _T.SHORT, _T.LONG, _T.LONGLONG, _T.INT24, _T.DATE, _T.TIME, _T.DATETIME, _T.TIMESTAMP, _T.YEAR}
)
_SIGNED: Final = frozenset(
    {_T.TINY, _T.SHORT, _T.LONG, _T.LONGLONG, _T.INT24, _T.NEWDECIMAL, _T.FLOAT, _T.DOUBLE, _T.YEAR}
)
# The types whose character sets the log lists; MariaDB's has that of shapes too.
_TEXT: Final = frozenset(
    {_T.STRING, _T.VAR_STRING, _T.VARCHAR, _T.BLOB, _T.VECTOR, _T.BLOB_COMPRESSED, _T.VARCHAR_COMPRESSED}
)

_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME, _SET_VALUES, _ENUM_VALUES, _GEOMETRY_TYPE = range(1, 8)
_PRIMARY_KEY, _PRIMARY_KEY_WITH_PREFIX, _ENUM_SET_DEFAULT_CHARSET, _ENUM_SET_CHARSET, _VISIBILITY = range(8, 13)


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """A column: the number of its type, and what else the log needs to read it."""

    type: int
    length: int
    """The declared size in bytes of texts, the digits of decimals, the bits of bit strings, the digits of a second of
    times, and the bytes of the length of long values."""
    scale: int
    is_nullable: bool
    is_unsigned: bool | None = None
    collation: int | None = None
    name: str | None = None
    values: tuple[bytes, ...] | None = None
    """The values of an enum or a set, in its character set."""
    geometry_type: int | None = None
    is_visible: bool = True


@dataclass(frozen=True, slots=True)
class TableMap:
    """A table as of the rows that follow."""

    table_id: int
    database: str
    table: str
    columns: tuple[ColumnMap, ...]
    primary_key: tuple[int, ...] | None
    """The places of the key's columns, in the order of the key; ``None`` if the log does not say."""

    @property
    def is_full(self) -> bool:
        """Whether the log names the columns: it was written with ``binlog_row_metadata=FULL``."""
        return bool(self.columns) and self.columns[0].name is not None


def parse_table_map(body: bytes, *, is_mariadb: bool) -> TableMap:
    """Read the body of a TABLE_MAP event. Raises :class:`BinlogError` if it is damaged or has an unknown type."""
    try:
        return _parsed(body, _TEXT | {_T.GEOMETRY} if is_mariadb else _TEXT)
    except (IndexError, UnicodeDecodeError) as error:
        raise BinlogError("A table map in the log is damaged.") from error


def _parsed(body: bytes, with_charset: frozenset[int]) -> TableMap:
    table_id = int.from_bytes(body[:6], "little")
    at = 8
    database, at = _short_text(body, at)
    table, at = _short_text(body, at)
    count, at = packed_length(body, at)
    types = body[at : at + count]
    at += count
    size, at = packed_length(body, at)
    shapes = list(_shapes(types, body[at : at + size], f"{database}.{table}"))
    at += size
    nullable = _bits(body, at, count, lowest_first=True)
    at += (count + 7) // 8
    columns = [
        ColumnMap(kind, length, scale, is_nullable)
        for (kind, length, scale), is_nullable in zip(shapes, nullable, strict=True)
    ]
    details = dict(_details(body, at))
    described = _described(columns, details, with_charset)
    return TableMap(table_id, database, table, described, _primary_key(details, len(columns)))


def _short_text(body: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + body[at]
    return body[at + 1 : end].decode("utf-8"), end + 1


def _bits(body: bytes, at: int, count: int, *, lowest_first: bool) -> list[bool]:
    return [bool(body[at + index // 8] >> (index % 8 if lowest_first else 7 - index % 8) & 1) for index in range(count)]


def _shapes(types: bytes, metadata: bytes, table: str) -> Iterator[tuple[int, int, int]]:
    """The type, length and scale of each column."""
    at = 0
    for number in types:
        if number in _TWO_BYTES:
            yield _two_byte_shape(number, metadata[at], metadata[at + 1])
            at += 2
        elif number in _ONE_BYTE:
            yield number, metadata[at], 0
            at += 1
        elif number in _NO_BYTE:
            yield number, 0, 0
        else:
            raise BinlogError(
                f"The table {table} has a column of the type number {number}, which this connector cannot read: leave "
                "the table out with table.exclude.list."
            )


def _two_byte_shape(number: int, first: int, second: int) -> tuple[int, int, int]:
    if number == _T.NEWDECIMAL:
        return number, first, second
    if number == _T.BIT:
        return number, second * 8 + first, 0
    if number != _T.STRING:
        return number, first | second << 8, 0
    if first in (_T.ENUM, _T.SET):
        return first, second, 0
    # Lengths above 255 have their two highest bits in the type's byte, inverted.
    return number, second | ((first & 0x30) ^ 0x30) << 4, 0


def _details(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at < len(body):
        kind = body[at]
        length, at = packed_length(body, at + 1)
        yield kind, body[at : at + length]
        at += length


def _numbers(raw: bytes | None) -> list[int]:
    numbers: list[int] = []
    at = 0
    while raw is not None and at < len(raw):
        number, at = packed_length(raw, at)
        numbers.append(number)
    return numbers


def _texts(raw: bytes | None) -> list[bytes]:
    texts: list[bytes] = []
    at = 0
    while raw is not None and at < len(raw):
        length, at = packed_length(raw, at)
        texts.append(raw[at : at + length])
        at += length
    return texts


def _value_lists(raw: bytes | None) -> list[tuple[bytes, ...]]:
    lists: list[tuple[bytes, ...]] = []
    at = 0
    while raw is not None and at < len(raw):
        count, at = packed_length(raw, at)
        values: list[bytes] = []
        for _ in range(count):
            length, at = packed_length(raw, at)
            values.append(raw[at : at + length])
            at += length
        lists.append(tuple(values))
    return lists


def _collations(count: int, default: bytes | None, each: bytes | None) -> list[int | None]:
    """The collation of each column that has one: the default with its exceptions, or one by one."""
    if default is not None:
        first, *pairs = _numbers(default)
        chosen: list[int | None] = [first] * count
        for index, collation in zip(pairs[::2], pairs[1::2], strict=True):
            chosen[index] = collation
        return chosen
    return list(_numbers(each)) if each is not None else [None] * count


def _described(
    columns: Sequence[ColumnMap], details: Mapping[int, bytes], with_charset: frozenset[int]
) -> tuple[ColumnMap, ...]:
    signed = [index for index, column in enumerate(columns) if column.type in _SIGNED]
    texts = [index for index, column in enumerate(columns) if column.type in with_charset]
    choices = [index for index, column in enumerate(columns) if column.type in (_T.ENUM, _T.SET)]
    unsigned: dict[int, bool] = {}
    if (raw := details.get(_SIGNEDNESS)) is not None:
        unsigned = dict(zip(signed, _bits(raw, 0, len(signed), lowest_first=False), strict=True))
    collations = dict(
        zip(texts, _collations(len(texts), details.get(_DEFAULT_CHARSET), details.get(_COLUMN_CHARSET)), strict=False)
    )
    choice_charsets = (details.get(_ENUM_SET_DEFAULT_CHARSET), details.get(_ENUM_SET_CHARSET))
    collations |= dict(zip(choices, _collations(len(choices), *choice_charsets), strict=False))
    values: dict[int, tuple[bytes, ...]] = {}
    for kind, key in ((_T.ENUM, _ENUM_VALUES), (_T.SET, _SET_VALUES)):
        places = [index for index in choices if columns[index].type == kind]
        values |= dict(zip(places, _value_lists(details.get(key)), strict=False))
    shapes = [index for index, column in enumerate(columns) if column.type == _T.GEOMETRY]
    geometries = dict(zip(shapes, _numbers(details.get(_GEOMETRY_TYPE)), strict=False))
    names = [name.decode("utf-8") for name in _texts(details.get(_COLUMN_NAME))]
    visible = details.get(_VISIBILITY)
    shown = _bits(visible, 0, len(columns), lowest_first=False) if visible is not None else [True] * len(columns)
    return tuple(
        ColumnMap(
            column.type,
            column.length,
            column.scale,
            column.is_nullable,
            unsigned.get(index),
            collations.get(index),
            names[index] if names else None,
            values.get(index),
            geometries.get(index),
            shown[index],
        )
        for index, column in enumerate(columns)
    )


def _primary_key(details: Mapping[int, bytes], count: int) -> tuple[int, ...] | None:
    if (simple := details.get(_PRIMARY_KEY)) is not None:
        return tuple(_numbers(simple))
    if (with_prefix := details.get(_PRIMARY_KEY_WITH_PREFIX)) is not None:
        return tuple(_numbers(with_prefix)[::2])
    return () if count and _COLUMN_NAME in details else None
