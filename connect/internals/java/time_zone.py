"""Parsing of time zones at the end of dates and times: offsets, ISO 8601 and the usual abbreviations."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["read_iso_zone", "read_zone"]

_MINUTE_MS: Final = 60_000
_OFFSET: Final = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?", re.ASCII | re.IGNORECASE)
_ISO: Final = {
    1: re.compile(r"([+-])(\d\d)", re.ASCII),
    2: re.compile(r"([+-])(\d\d)(\d\d)", re.ASCII),
    3: re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII),
}
_ZONES: Final = {
    "UTC": 0,
    "GMT": 0,
    "UT": 0,
    "WET": 0,
    "WEST": 60,
    "BST": 60,
    "CET": 60,
    "CEST": 120,
    "MEZ": 60,
    "MESZ": 120,
    "EET": 120,
    "EEST": 180,
    "MSK": 180,
    "SAST": 120,
    "IST": 330,
    "SGT": 480,
    "HKT": 480,
    "AWST": 480,
    "JST": 540,
    "KST": 540,
    "ACST": 570,
    "ACDT": 630,
    "AEST": 600,
    "AEDT": 660,
    "NZST": 720,
    "NZDT": 780,
    "NST": -210,
    "NDT": -150,
    "AST": -240,
    "ADT": -180,
    "BRT": -180,
    "EST": -300,
    "EDT": -240,
    "CST": -360,
    "CDT": -300,
    "MST": -420,
    "MDT": -360,
    "PST": -480,
    "PDT": -420,
    "AKST": -540,
    "AKDT": -480,
    "HST": -600,
    "Coordinated Universal Time": 0,
    "Greenwich Mean Time": 0,
    "Central European Standard Time": 60,
    "Central European Summer Time": 120,
    "Eastern Standard Time": -300,
    "Eastern Daylight Time": -240,
    "Central Standard Time": -360,
    "Central Daylight Time": -300,
    "Mountain Standard Time": -420,
    "Mountain Daylight Time": -360,
    "Pacific Standard Time": -480,
    "Pacific Daylight Time": -420,
}
_NAMED: Final = re.compile("|".join(sorted(_ZONES, key=len, reverse=True)), re.IGNORECASE)
_BY_NAME: Final = {name.lower(): minutes for name, minutes in _ZONES.items()}


def read_zone(text: str, start: int) -> tuple[int, int]:
    """Read a zone such as ``+0200``, ``GMT+2:00`` or ``PST``.

    Return its offset in milliseconds and its end position.
    """
    if match := _OFFSET.match(text, start):
        return _offset(match), match.end()
    if match := _NAMED.match(text, start):
        return _BY_NAME[match[0].lower()] * _MINUTE_MS, match.end()
    raise ValueError(f"no known time zone at {start}: write it as an offset such as +0200")


def read_iso_zone(text: str, start: int, count: int) -> tuple[int, int]:
    """Read an ISO 8601 zone in the form of ``count`` letters X.

    Return its offset in milliseconds and its end position.
    """
    if text.startswith("Z", start):
        return 0, start + 1
    match = _ISO[count].match(text, start)
    if match is None:
        raise ValueError(f"no ISO 8601 time zone at {start}")
    return _offset(match), match.end()


def _offset(match: re.Match[str]) -> int:
    sign, hours, *minutes = match.groups()
    total = int(hours) * 60 + int((minutes and minutes[0]) or 0)
    if int(hours) > 23 or total % 60 != total - int(hours) * 60:
        raise ValueError(f"{match[0]} is not the offset of a time zone")
    return (-total if sign == "-" else total) * _MINUTE_MS
