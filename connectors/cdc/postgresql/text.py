"""PostgreSQL's text form of values, as ``pgoutput`` and ``COPY`` both write it, read into numbers, texts and lists.

Both sessions have the settings of :data:`SETTINGS`, so that a value has one form. Every function takes bytes and raises
a ``ValueError`` for what it does not understand.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

from connect.data.logical import EPOCH
from connect.kits.cdc.temporal import DAY_US, days_from_civil, iso_time

__all__ = [
    "INFINITE",
    "NEGATIVE_INFINITE",
    "SETTINGS",
    "bits",
    "box",
    "bytea",
    "date_days",
    "hstore",
    "hstore_json",
    "interval_iso",
    "interval_micros",
    "list_of",
    "money_units",
    "point",
    "time_micros",
    "time_zoned",
    "timestamp_micros",
    "unescaped_copy",
    "vector",
]

SETTINGS: Final = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "client_encoding": "UTF8",
}
"""The settings of the sessions."""

INFINITE: Final = b"infinity"
NEGATIVE_INFINITE: Final = b"-infinity"
_SECOND_US: Final = 1_000_000
_EPOCH_DAY: Final = EPOCH.toordinal()
_DAY_S: Final = 86_400
_DATE: Final = re.compile(rb"(\d+)-(\d\d)-(\d\d)( BC)?")
_TIMESTAMP: Final = re.compile(rb"(\d+)-(\d\d)-(\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d(?::\d\d){0,2})?( BC)?")
_ZONED_TIME: Final = re.compile(rb"(\d\d:\d\d:\d\d(?:\.\d+)?)([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?")
_fromisoformat: Final = dt.datetime.fromisoformat


def date_days(text: bytes) -> int:
    """Return the days since 1970-01-01 of ``2024-02-29`` or ``0044-03-15 BC``."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    return _days(match[1], match[2], match[3], is_bc=match[4] is not None)


def _days(year: bytes, month: bytes, day: bytes, *, is_bc: bool) -> int:
    # The year before 1 is 1 BC: astronomers call it 0.
    return days_from_civil(1 - int(year) if is_bc else int(year), int(month), int(day))


def time_micros(text: bytes) -> int:
    """Return the microseconds since midnight of ``12:34:56.123456``; 24:00:00 is a whole day."""
    micros = (int(text[0:2]) * 3600 + int(text[3:5]) * 60 + int(text[6:8])) * _SECOND_US
    return micros if len(text) == 8 else micros + int(text[9:].ljust(6, b"0"))


def time_zoned(text: bytes) -> str:
    """Return a time with a zone, moved to UTC: ``10:34:56.123Z`` for ``12:34:56.123+02``."""
    match = _ZONED_TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time with a zone")
    seconds = int(match[3]) * 3600 + int(match[4] or 0) * 60 + int(match[5] or 0)
    shift = -seconds if match[2] == b"+" else seconds
    return iso_time((time_micros(match[1]) + shift * _SECOND_US) % DAY_US) + "Z"


def timestamp_micros(text: bytes) -> int:
    """Return the microseconds since 1970-01-01 of a timestamp without a zone, or in UTC."""
    try:
        read = _fromisoformat(text.decode())
    except ValueError:
        return _far_timestamp(text)
    days = read.toordinal() - _EPOCH_DAY
    return (days * _DAY_S + read.hour * 3600 + read.minute * 60 + read.second) * _SECOND_US + read.microsecond


def _far_timestamp(text: bytes) -> int:
    """Read a timestamp before Christ, or beyond the year 9999."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None or (match[5] is not None and match[5].strip(b"+-0:")):
        raise ValueError(f"{text!r} is not a timestamp in UTC")
    return _days(match[1], match[2], match[3], is_bc=match[6] is not None) * DAY_US + time_micros(match[4])


_INTERVAL: Final = re.compile(
    r"(?:(?P<years>[+-]?\d+) years? ?)?(?:(?P<months>[+-]?\d+) mons? ?)?(?:(?P<days>[+-]?\d+) days? ?)?"
    r"(?:(?P<sign>[+-])?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d+)?))?"
)
_MONTH_US: Final = 2_629_800_000_000
"""A twelfth of 365.25 days."""


def _interval(text: bytes) -> tuple[int, int, int, int, int, Decimal]:
    """Return years, months, days, hours, minutes and seconds, each with its sign."""
    match = _INTERVAL.fullmatch(text.decode())
    if match is None:
        raise ValueError(f"{text!r} is not an interval")
    sign = -1 if match["sign"] == "-" else 1
    years, months, days = (int(match[name] or 0) for name in ("years", "months", "days"))
    hours, minutes = (sign * int(match[name] or 0) for name in ("hours", "minutes"))
    return years, months, days, hours, minutes, sign * Decimal(match["seconds"] or 0)


def interval_micros(text: bytes) -> int:
    """Return the microseconds of an interval, in which a month has 365.25 / 12 days."""
    years, months, days, hours, minutes, seconds = _interval(text)
    whole = (years * 12 + months) * _MONTH_US + days * DAY_US
    return whole + (hours * 3600 + minutes * 60) * _SECOND_US + int(seconds * _SECOND_US)


def interval_iso(text: bytes) -> str:
    """Return an interval as ``P1Y2M3DT4H5M6.7S``, with all its parts."""
    years, months, days, hours, minutes, seconds = _interval(text)
    plain = f"{seconds:f}"
    told = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return f"P{years}Y{months}M{days}DT{hours}H{minutes}M{'0' if told == '-0' else told}S"


def money_units(text: bytes) -> int:
    """Return an amount of money in its smallest unit, of ``-$1,234.56``."""
    digits = bytes(byte for byte in text if 48 <= byte <= 57)
    return -int(digits) if text.startswith((b"-", b"(")) else int(digits)


def bits(text: bytes) -> bytes:
    """Return a string of bits as bytes, the least significant first."""
    return int(text or b"0", 2).to_bytes((len(text) + 7) // 8, "little")


def bytea(text: bytes) -> bytes:
    """Return the bytes that ``\\x00ff`` stands for."""
    if not text.startswith(b"\\x"):
        raise ValueError("the bytes are not in the format hex")
    return bytes.fromhex(text[2:].decode())


def _numbers(text: bytes) -> list[float]:
    return [float(part) for part in text.translate(None, b"()[]<>{} ").split(b",")]


def point(text: bytes) -> dict[str, Any]:
    """Return the struct of a point."""
    x, y = _numbers(text)
    return {"x": x, "y": y, "wkb": struct.pack("<BIdd", 1, 1, x, y), "srid": None}


def box(text: bytes) -> dict[str, Any]:
    """Return the struct of a box, as the polygon of its corners."""
    right, top, left, bottom = _numbers(text)
    corners = (right, top, right, bottom, left, bottom, left, top, right, top)
    wkb = struct.pack("<BIII10d", 1, 3, 1, len(corners) // 2, *corners)
    return {"wkb": wkb, "srid": None, "extensions": {"type": "box"}}


def vector(text: bytes) -> list[float]:
    """Return the numbers of a vector, ``[1,2.5]``."""
    return _numbers(text) if text != b"[]" else []


def list_of(
    convert: Callable[[bytes], Any], delimiter: str = ",", *, allows_null: bool = True
) -> Callable[[bytes], list[Any]]:
    """Return the function that reads arrays of one dimension whose elements ``convert`` makes."""
    item = re.compile(rf'"((?:[^"\\]|\\.)*)"|([^{re.escape(delimiter)}{{}}"]+)|(\{{)', re.DOTALL)

    def read(text: bytes) -> list[Any]:
        decoded = text.decode()
        if decoded.startswith("["):
            raise ValueError("arrays with bounds of their own have no place in a list of elements")
        if decoded == "{}":
            return []
        values: list[Any] = []
        place, end = 1, len(decoded) - 1
        while place < end:
            match = item.match(decoded, place)
            if match is None:
                raise ValueError(f"the array cannot be read at its character {place}")
            if match[3]:
                raise ValueError("an array of several dimensions has no place in a list of elements")
            if match[1] is not None:
                values.append(convert(_UNQUOTE.sub(r"\1", match[1]).encode()))
            elif match[2] != "NULL":
                values.append(convert(match[2].encode()))
            elif allows_null:
                values.append(None)
            else:
                raise ValueError("an array of an enum has no place for null")
            place = match.end() + 1
        return values

    return read


_UNQUOTE: Final = re.compile(r"\\(.)", re.DOTALL)
_HSTORE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)(?:, )?', re.DOTALL)


def hstore(text: bytes) -> dict[str, str | None]:
    """Return the pairs of an hstore."""
    return dict(_pairs(text.decode()))


def _pairs(text: str) -> Iterator[tuple[str, str | None]]:
    place = 0
    while place < len(text):
        match = _HSTORE.match(text, place)
        if match is None:
            raise ValueError(f"the hstore cannot be read at its character {place}")
        value = match[2]
        yield _UNQUOTE.sub(r"\1", match[1]), None if value is None else _UNQUOTE.sub(r"\1", value)
        place = match.end()


def hstore_json(text: bytes) -> str:
    """Return an hstore as JSON."""
    return json.dumps(hstore(text), separators=(",", ":"), ensure_ascii=False)


_ESCAPED: Final = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def unescaped_copy(field: bytes) -> bytes | None:
    """Return a field of ``COPY`` without its escapes; None for ``\\N``."""
    if field == b"\\N":
        return None
    return _ESCAPED.sub(lambda match: _LETTERS.get(match[1], match[1]), field)
