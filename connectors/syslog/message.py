"""What a received line says: its fields, read as RFC 5424, RFC 3164 or CEF, or as text of no known form."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from connect.data import Schema, timestamp_schema
from connectors.syslog.cef import CefHeader, read_cef
from connectors.syslog.dates import bsd_date, iso_date

__all__ = ["FIELDS", "MESSAGE_SCHEMA", "UNKNOWN", "MessageParser", "Row"]

_TEXT: Final = Schema.string(optional=True)
_NUMBER: Final = Schema.int32(optional=True)
_TEXTS: Final = Schema.map(Schema.string(), Schema.string(), optional=True)
_ELEMENT: Final = Schema.struct(
    {"id": Schema.string(), "structuredDataElements": Schema.map(Schema.string(), Schema.string())},
    name="syslog.StructuredData",
)

MESSAGE_SCHEMA: Final = Schema.struct(
    {
        "type": Schema.string(),
        "date": timestamp_schema(),
        "facility": _NUMBER,
        "level": _NUMBER,
        "host": _TEXT,
        "message": _TEXT,
        "rawMessage": _TEXT,
        "remoteAddress": _TEXT,
        "version": _NUMBER,
        "appName": _TEXT,
        "processId": _TEXT,
        "messageId": _TEXT,
        "structuredData": Schema.array(_ELEMENT, optional=True),
        "tag": _TEXT,
        "deviceVendor": _TEXT,
        "deviceProduct": _TEXT,
        "deviceVersion": _TEXT,
        "deviceEventClassId": _TEXT,
        "name": _TEXT,
        "severity": _TEXT,
        "extension": _TEXTS,
    },
    name="syslog.Message",
)

FIELDS: Final = tuple(field.name for field in MESSAGE_SCHEMA.fields)

UNKNOWN: Final = "UNKNOWN"
"""The type of a line that is neither RFC 5424 nor RFC 3164 nor CEF."""

Row: TypeAlias = tuple[Any, ...]
"""The values of a message, in the order of :data:`FIELDS`."""

_DEFAULT_PRIORITY: Final = 13
_GREATEST_PRIORITY: Final = 191

_NO_CEF: Final = (None,) * 7

_PARAMETER: Final = r' +[^\s=\]"]++="(?:[^"\\]++|\\.)*+"'
_SD: Final = rf'-|(?:\[[^\s=\]"]++(?:{_PARAMETER})*+ *\])++'
_RFC5424: Final = re.compile(
    r"<(\d{1,3})>([1-9]\d{0,2}) "
    r"(-|(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d{0,9}(Z|[+-]\d\d:\d\d)) "
    rf"(\S+) (\S+) (\S+) (\S+) ({_SD})(?: (.*))?",
    re.DOTALL,
)
_LIKE_RFC5424: Final = re.compile(r"<\d{1,3}>[1-9]\d{0,2} (?:-|\d{4}-\d\d-\d\dT)")
_ELEMENTS: Final = re.compile(rf'\[([^\s=\]"]++)((?:{_PARAMETER})*+) *\]', re.DOTALL)
_PARAMETERS: Final = re.compile(r' +([^\s=\]"]++)="((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_ESCAPED: Final = re.compile(r'\\(["\\\]])')

_PRIORITY: Final = re.compile(r"<(\d{1,3})>\s*")
_SEQUENCE: Final = re.compile(r"(?:\d{1,10}: )?[*.]?")
_TAG_AND_PID: Final = r"""([^\s:\[\]{}"'=<>|,;]{1,128})(?:\[([^\]\s]{0,128})\])?:(?: |$)"""
_TAG: Final = re.compile(_TAG_AND_PID)
_HOST_AND_TAG: Final = re.compile(
    r"(?:([^\s\[]*[^\s\[:])(?: +|$))?"
    rf"(?:{_TAG_AND_PID})?"
    r"(.*)",
    re.DOTALL,
)
_CACHED_LENGTH: Final = 256
"""Structured data up to this length is often repeated, and so read once."""


class _Header(NamedTuple):
    """What precedes the text of a message in the form of RFC 3164."""

    date: dt.datetime | None
    host: str | None
    tag: str | None
    process_id: str | None
    text: str


@dataclass(frozen=True, slots=True)
class MessageParser:
    """Reads lines. A date without a zone is one of ``zone``, by default the system's."""

    zone: dt.tzinfo | None = None
    strips_first_blank: bool = True
    """Whether one blank before the text of RFC 5424 is left out: rsyslog's own template adds it."""

    def parse(self, line: str, sender: str, now: dt.datetime) -> Row:
        """Return the values of a line. Every line has some: at worst those of an unknown type."""
        found = _RFC5424.match(line)
        if found is not None:
            return self._rfc5424(found, line, sender, now)
        if line.startswith("<") and _LIKE_RFC5424.match(line):
            return _unknown(line, sender, now)
        return self._rfc3164(line, sender, now)

    def _rfc5424(self, found: re.Match[str], line: str, sender: str, now: dt.datetime) -> Row:
        priority, version, stamp, time, zone, host, app, process_id, message_id, data, text = found.groups()
        number = int(priority)
        date = now if stamp == "-" else iso_date(time, zone, self.zone)
        if number > _GREATEST_PRIORITY or date is None:
            return _unknown(line, sender, now)
        if text:
            text = text.removeprefix("\ufeff")
            if self.strips_first_blank:
                text = text.removeprefix(" ")
        cef = read_cef(text) if text and text.startswith("CEF:") else None
        return (
            "RFC5424" if cef is None else "CEF",
            date,
            number >> 3,
            number & 7,
            None if host == "-" else host,
            text,
            line,
            sender,
            int(version),
            None if app == "-" else app,
            None if process_id == "-" else process_id,
            None if message_id == "-" else message_id,
            None if data == "-" else _structured_data(data),
            None,
            *(_NO_CEF if cef is None else _cef_values(cef)),
        )

    def _rfc3164(self, line: str, sender: str, now: dt.datetime) -> Row:
        given = _PRIORITY.match(line)
        number = int(given[1]) if given is not None else _DEFAULT_PRIORITY
        if given is not None and number > _GREATEST_PRIORITY:
            return _unknown(line, sender, now)
        header = self._header(line[given.end() :] if given is not None else line, now)
        cef = read_cef(header.text) if header.text.startswith("CEF:") else None
        if given is None and header.date is None and cef is None:
            return _unknown(line, sender, now)
        return (
            "RFC3164" if cef is None else "CEF",
            header.date or now,
            number >> 3,
            number & 7,
            header.host,
            header.text,
            line,
            sender,
            None,
            None,
            header.process_id,
            None,
            None,
            header.tag,
            *(_NO_CEF if cef is None else _cef_values(cef)),
        )

    def _header(self, content: str, now: dt.datetime) -> _Header:
        start = _SEQUENCE.match(content)
        dated = bsd_date(content, start.end() if start else 0, now, self.zone)
        if dated is None:
            return _tagged(content)
        date, end = dated
        rest = content[end:].lstrip(" ")
        if rest.startswith("CEF:"):
            return _Header(date, None, None, None, rest)
        found = _HOST_AND_TAG.match(rest)
        assert found is not None
        host, tag, process_id, text = found.groups()
        return _Header(date, host, tag, process_id or None, text)


def _tagged(content: str) -> _Header:
    """Return the header of a content without a date, which may begin with a tag."""
    found = _TAG.match(content)
    if found is None or content.startswith("CEF:"):
        return _Header(None, None, None, None, content)
    return _Header(None, None, found[1], found[2] or None, content[found.end() :])


def _unknown(line: str, sender: str, now: dt.datetime) -> Row:
    """Return the values of a line that has none but its text, and perhaps a priority."""
    given = _PRIORITY.match(line)
    number = int(given[1]) if given is not None else None
    if number is None or number > _GREATEST_PRIORITY:
        facility = level = None
    else:
        facility, level = number >> 3, number & 7
    text = line[given.end() :] if given is not None and facility is not None else line
    return (UNKNOWN, now, facility, level, None, text, line, sender, *(None,) * 6, *_NO_CEF)


def _cef_values(cef: CefHeader) -> tuple[Any, ...]:
    return (cef.vendor, cef.product, cef.device_version, cef.class_id, cef.name, cef.severity, cef.extension)


def _structured_data(text: str) -> list[dict[str, Any]]:
    return _repeated_data(text) if len(text) <= _CACHED_LENGTH else _read_data(text)


def _read_data(text: str) -> list[dict[str, Any]]:
    return [
        {
            "id": element[1],
            "structuredDataElements": {
                name: _ESCAPED.sub(r"\1", value) if "\\" in value else value
                for name, value in _PARAMETERS.findall(element[2])
            },
        }
        for element in _ELEMENTS.finditer(text)
    ]


_repeated_data = lru_cache(maxsize=1024)(_read_data)
