"""Values as the server prints them, read into the form that the log has too.

A snapshot and an incremental snapshot select text; what comes out of here equals what a row event gives.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, Final

from connect.kits.cdc.tables import Column
from connectors.cdc.mysql.binlog.numbers import MICROS_PER_SECOND, date_days, datetime_micros
from connectors.cdc.mysql.binlog.row_code import short_float
from connectors.cdc.mysql.column_types import ColumnType

__all__ = ["default_value", "quoted", "reader", "selected"]

Read = Callable[[Any], Any]

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DATE: Final = re.compile(r"(\d{4,5})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?")
_TIME: Final = re.compile(r"(-?)(\d{1,3}):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_BIT_DEFAULT: Final = re.compile(r"b'([01]+)'")
_FULL_DATE: Final = 10


def quoted(name: str) -> str:
    """Return a name as MySQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def selected(column: Column) -> str:
    """Return the expression that selects a column without loss."""
    kind: ColumnType = column.native
    name = quoted(column.name)
    if kind.kind == "float":
        return f"{name} + 0e0"  # A FLOAT is printed with six digits, a DOUBLE with all.
    if kind.kind == "vector":
        return f"CAST({name} AS BINARY)"
    return name


def reader(column: Column) -> Read:
    """Return the function that reads what was selected; it is not called for null."""
    kind: ColumnType = column.native
    name = kind.kind
    if name == "float":
        return lambda text: short_float(float(text))
    if name in ("tinyint", "smallint", "mediumint", "int", "bigint", "year"):
        return int
    if name in ("date", "datetime", "timestamp"):
        read = _days if name == "date" else _micros
        # No date, such as 0000-00-00, is null, or 1970 where the column cannot be null.
        return read if column.optional else lambda text: read(text) or 0
    return _READERS.get(name, _bytes if kind.is_binary or kind.is_geometry else str)


def _days(text: str) -> int | None:
    if len(text) == _FULL_DATE and text[:4] != "0000":
        try:
            return date.fromisoformat(text).toordinal() - _EPOCH_DAY
        except ValueError:
            return None
    return None


def _micros(text: str) -> int | None:
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    days = date_days(int(match[1]), int(match[2]), int(match[3]))
    seconds = int(match[4] or 0) * 3600 + int(match[5] or 0) * 60 + int(match[6] or 0)
    return datetime_micros(days, seconds, int((match[7] or "0").ljust(6, "0")))


def _time(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no time")
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4])
    micros = seconds * MICROS_PER_SECOND + int((match[5] or "0").ljust(6, "0"))
    return -micros if match[1] else micros


def _bit(value: bytes | str) -> int:
    return int.from_bytes(value if isinstance(value, bytes) else value.encode("latin-1"), "big")


def _bytes(value: bytes | str) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8")


def _vector(value: bytes) -> list[float]:
    return [short_float(number) for (number,) in struct.iter_unpack("<f", value)]


_READERS: Final[dict[str, Read]] = {
    "double": float,
    "decimal": Decimal,
    "time": _time,
    "bit": _bit,
    "vector": _vector,
}


def default_value(text: str | None, column: Column, *, is_mariadb: bool) -> Any:  # noqa: PLR0911 - one for each kind
    """Return a column's default as a value; ``None`` if there is none, or if it is an expression."""
    if text is None or (is_mariadb and text.upper() == "NULL"):
        return None
    kind: ColumnType = column.native
    if is_mariadb and text[:1] == "'":
        text = text[1:-1].replace("''", "'").replace("\\\\", "\\")
    elif is_mariadb and "(" in text:
        return None
    if kind.kind == "bit":
        match = _BIT_DEFAULT.fullmatch(text)
        return int(match[1], 2) if match else None
    if kind.is_binary and text.startswith("0x"):
        return bytes.fromhex(text[2:])
    if kind.is_geometry or kind.kind in ("vector", "json"):
        return None
    try:
        return reader(column)(text)
    except (ValueError, ArithmeticError):
        return None
