"""Types of columns, as the catalog declares them or as the log describes them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from connect.errors import ConnectError
from connectors.cdc.mysql.binlog.charsets import BINARY, text_decoder
from connectors.cdc.mysql.binlog.row_code import ColumnPlan
from connectors.cdc.mysql.binlog.table_map import ColumnMap, FieldType

__all__ = ["ColumnType", "declared_type", "is_described_by", "logged_type", "plan"]

_T: Final = FieldType
_DECLARATION: Final = re.compile(r"([a-z0-9_]+)\s*(?:\((.*)\))?\s*(.*)", re.DOTALL)
_VALUE: Final = re.compile(r"'((?:[^']|'')*)'")

_KINDS: Final[Mapping[str, str]] = {
    "integer": "int",
    "dec": "decimal",
    "numeric": "decimal",
    "fixed": "decimal",
    "real": "double",
    "bool": "tinyint",
    "boolean": "tinyint",
    "geomcollection": "geometrycollection",
}
_SIZES: Final[Mapping[str, int]] = {
    "tinyblob": 1,
    "tinytext": 1,
    "blob": 2,
    "text": 2,
    "mediumblob": 3,
    "mediumtext": 3,
    "longblob": 4,
    "longtext": 4,
}
_GEOMETRIES: Final = (
    *("geometry", "point", "linestring", "polygon"),
    *("multipoint", "multilinestring", "multipolygon", "geometrycollection"),
)
_INTEGERS: Final[Mapping[str, int]] = {
    "tinyint": _T.TINY,
    "smallint": _T.SHORT,
    "mediumint": _T.INT24,
    "int": _T.LONG,
    "bigint": _T.LONGLONG,
}
_TIMES: Final[Mapping[str, tuple[int, int]]] = {
    "time": (_T.TIME2, _T.TIME),
    "datetime": (_T.DATETIME2, _T.DATETIME),
    "timestamp": (_T.TIMESTAMP2, _T.TIMESTAMP),
}
_BYTES_WRITTEN: Final[Mapping[str, int]] = {"uuid": 16, "inet6": 16, "inet4": 4}
_DEFAULT_DECIMAL: Final = 10


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type by its lower-case name, such as ``int`` or ``varchar``."""

    kind: str
    length: int | None = None
    """What stands in parentheses first, such as characters, digits, or digits of a second."""
    scale: int | None = None
    is_unsigned: bool = False
    charset: str | None = None
    values: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name as Debezium writes it, such as ``INT UNSIGNED``."""
        return self.kind.upper() + (" UNSIGNED" if self.is_unsigned else "")

    @property
    def is_binary(self) -> bool:
        """Whether values are bytes."""
        return self.kind in ("binary", "varbinary") or self.kind.endswith("blob")

    @property
    def is_text(self) -> bool:
        """Whether values are text with a character set."""
        return self.kind in ("char", "varchar") or self.kind.endswith("text")

    @property
    def is_geometry(self) -> bool:
        """Whether values are shapes."""
        return self.kind in _GEOMETRIES

    @property
    def precision(self) -> int:
        """How many digits of a second are kept."""
        return self.length or 0


def declared_type(text: str, charset: str | None = None) -> ColumnType:
    """Read a type as the catalog writes it: ``int(10) unsigned``, ``enum('a','b')``."""
    match = _DECLARATION.match(text.strip())
    if match is None:
        raise ConnectError(f"The type {text!r} of a column cannot be read.")
    kind = _KINDS.get(match[1].lower(), match[1].lower())
    inner, rest = match[2], match[3].lower()
    if kind in ("enum", "set"):
        values = tuple(value.replace("''", "'") for value in _VALUE.findall(inner or ""))
        # The catalog doubles quotes; a backslash stands for itself.
        return ColumnType(kind, charset=charset, values=values)
    numbers = [int(part) for part in (inner or "").split(",") if part.strip().isdigit()]
    length = numbers[0] if numbers else None
    scale = numbers[1] if len(numbers) > 1 else None
    return ColumnType(kind, length, scale, "unsigned" in rest or "zerofill" in rest, charset)


def logged_type(column: ColumnMap, charsets: Mapping[int, str]) -> ColumnType:  # noqa: PLR0911 - one for each kind
    """Return the type of a column by what the log says alone; display widths and the like are not in it."""
    kind = column.type
    charset = charsets.get(column.collation) if column.collation is not None else None
    for name, number in _INTEGERS.items():
        if kind == number:
            return ColumnType(name, is_unsigned=bool(column.is_unsigned))
    if kind in (_T.ENUM, _T.SET):
        decode = text_decoder(charset or "utf8mb4")
        values = tuple(decode(value) for value in column.values or ())
        return ColumnType("enum" if kind == _T.ENUM else "set", charset=charset, values=values)
    if kind == _T.NEWDECIMAL:
        return ColumnType("decimal", column.length, column.scale, bool(column.is_unsigned))
    for name, numbers in _TIMES.items():
        if kind in numbers:
            return ColumnType(name, column.length or None)
    if kind in (_T.VARCHAR, _T.VAR_STRING, _T.STRING, _T.VARCHAR_COMPRESSED):
        return _logged_string(column, charset)
    if kind in (_T.BLOB, _T.BLOB_COMPRESSED):
        suffix = "blob" if charset in (BINARY, None) else "text"
        name = next(name for name, size in _SIZES.items() if size == column.length and name.endswith(suffix))
        return ColumnType(name, charset=charset)
    if kind == _T.GEOMETRY:
        number = column.geometry_type or 0
        return ColumnType(_GEOMETRIES[number] if number < len(_GEOMETRIES) else "geometry")
    if kind == _T.BIT:
        return ColumnType("bit", column.length)
    return ColumnType(_PLAIN[kind], is_unsigned=bool(column.is_unsigned) and kind in (_T.FLOAT, _T.DOUBLE))


_PLAIN: Final[Mapping[int, str]] = {
    _T.FLOAT: "float",
    _T.DOUBLE: "double",
    _T.DATE: "date",
    _T.YEAR: "year",
    _T.JSON: "json",
    _T.VECTOR: "vector",
}


def _logged_string(column: ColumnMap, charset: str | None) -> ColumnType:
    is_fixed = column.type == _T.STRING
    if charset in (BINARY, None):
        return ColumnType("binary" if is_fixed else "varbinary", column.length, charset=charset)
    return ColumnType("char" if is_fixed else "varchar", column.length // _widest(charset), charset=charset)


def _widest(charset: str | None) -> int:
    """The most bytes that a character takes."""
    return _WIDEST.get(charset or BINARY, 1)


_WIDEST: Final[Mapping[str, int]] = {
    "utf8mb4": 4,
    "utf8mb3": 3,
    "utf8": 3,
    "ucs2": 2,
    "utf16": 4,
    "utf16le": 4,
    "utf32": 4,
    "big5": 2,
    "gbk": 2,
    "gb2312": 2,
    "gb18030": 4,
    "sjis": 2,
    "cp932": 2,
    "ujis": 3,
    "eucjpms": 3,
    "euckr": 2,
}


def is_described_by(column: ColumnMap, declared: ColumnType) -> bool:  # noqa: PLR0911 - one for each kind
    """Return whether a declaration is that of a column in the log: it would be logged just so."""
    kind = declared.kind
    if kind in _INTEGERS:
        return column.type == _INTEGERS[kind] and column.is_unsigned in (None, declared.is_unsigned)
    if kind == "decimal":
        shape = (declared.length or _DEFAULT_DECIMAL, declared.scale or 0)
        return column.type == _T.NEWDECIMAL and (column.length, column.scale) == shape
    if kind in _TIMES:
        return column.type in _TIMES[kind] and column.length == declared.precision
    if kind in ("enum", "set"):
        return column.type == (_T.ENUM if kind == "enum" else _T.SET) and (
            column.values is None or len(column.values) == len(declared.values)
        )
    if kind in _BYTES_WRITTEN:
        return column.type == _T.STRING and column.length == _BYTES_WRITTEN[kind]
    if kind in ("char", "varchar", "binary", "varbinary"):
        return _is_string(column, declared)
    if kind in _SIZES:
        return column.type in (_T.BLOB, _T.BLOB_COMPRESSED) and column.length == _SIZES[kind]
    if declared.is_geometry:
        return column.type == _T.GEOMETRY
    if kind == "bit":
        return column.type == _T.BIT and column.length == (declared.length or 1)
    if kind == "float":
        return column.type in (_T.FLOAT, _T.DOUBLE)
    return _PLAIN.get(column.type) == kind


def _is_string(column: ColumnMap, declared: ColumnType) -> bool:
    fixed = declared.kind in ("char", "binary")
    kinds = (_T.STRING,) if fixed else (_T.VARCHAR, _T.VAR_STRING, _T.VARCHAR_COMPRESSED)
    width = 1 if declared.is_binary else _widest(declared.charset)
    # One byte more names the method of compression.
    lengths = {(declared.length or 1) * width + extra for extra in (0, 1)}
    return column.type in kinds and column.length in lengths


def plan(column: ColumnMap, kind: ColumnType, charsets: Mapping[int, str]) -> ColumnPlan:
    """Return how to read a column of the log; where the log is silent, its type tells."""
    is_unsigned = column.is_unsigned if column.is_unsigned is not None else kind.is_unsigned
    charset = charsets.get(column.collation) if column.collation is not None else None
    if kind.is_binary:
        charset = BINARY
    values = kind.values
    if column.values is not None:
        decode = text_decoder(charset or kind.charset or "utf8mb4")
        values = tuple(decode(value) for value in column.values)
    return ColumnPlan(column, is_unsigned, charset or kind.charset or BINARY, values, _WRITTEN.get(kind.kind))


def _uuid_text(raw: bytes) -> str:
    return str(UUID(bytes=raw.ljust(16, b"\0")))


def _inet6_text(raw: bytes) -> str:
    return str(ipaddress.IPv6Address(raw.ljust(16, b"\0")))


def _inet4_text(raw: bytes) -> str:
    return str(ipaddress.IPv4Address(raw.ljust(4, b"\0")))


_WRITTEN: Final[Mapping[str, Callable[[bytes], str]]] = {
    "uuid": _uuid_text,
    "inet6": _inet6_text,
    "inet4": _inet4_text,
}
