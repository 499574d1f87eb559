"""Records as messages of RFC 5424, each after its length."""

from __future__ import annotations

import datetime as dt
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.data import SinkRecord
from connect.errors import DataError
from connectors.syslog.sink_config import SyslogSinkConfig

__all__ = ["MessageWriter"]

_NIL: Final = "-"
_HEADER: Final = {
    "host": re.compile(r"[!-~]{1,255}"),
    "appName": re.compile(r"[!-~]{1,48}"),
    "processId": re.compile(r"[!-~]{1,128}"),
    "messageId": re.compile(r"[!-~]{1,32}"),
}
_NAME: Final = re.compile(r'(?:(?![=\]"])[!-~]){1,32}')
_LAST_MILLISECOND: Final = 253_402_300_799_999
"""Of the year 9999."""
_TO_ESCAPE: Final = re.compile(r'(["\\\]])')


@dataclass(frozen=True, slots=True)
class _Message:
    """A message before it is written."""

    facility: int
    level: int
    date: dt.datetime | None
    header: Sequence[str | None]
    elements: Sequence[tuple[str, Mapping[str, str]]]
    text: str


class MessageWriter:
    """Writes records: texts as they are, and structs by the names that the syslog source gives their fields."""

    def __init__(self, config: SyslogSinkConfig) -> None:
        self._config = config
        self._facility, self._level = config.priority
        self._host = config.syslog_host_name or socket.gethostname()
        self._most_bytes = config.syslog_message_max_bytes

    def write(self, record: SinkRecord) -> bytes:
        """Return the message of a record; raise ``DataError`` if it cannot be one."""
        message = self._message(record)
        elements = list(message.elements)
        if self._config.syslog_position_enable:
            elements.append(("kafka@32473", _position(record)))
        data = "".join(_element(name, parameters) for name, parameters in elements) or _NIL
        head = " ".join(part or _NIL for part in message.header)
        priority = message.facility * 8 + message.level
        line = f"<{priority}>1 {_time(message.date, record.timestamp)} {head} {data}"
        try:
            encoded = (f"{line} {message.text}" if message.text else line).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"Its text is not valid Unicode: {error.reason}.") from error
        if len(encoded) > self._most_bytes:
            raise DataError(
                f"Its message has {len(encoded)} bytes, and syslog.message.max.bytes allows {self._most_bytes}."
            )
        return b"%d %b" % (len(encoded), encoded)

    def _message(self, record: SinkRecord) -> _Message:
        value = record.value
        if isinstance(value, bytes | bytearray):
            try:
                value = value.decode()
            except UnicodeDecodeError as error:
                raise DataError("Its value is no text in UTF-8.") from error
        if isinstance(value, str):
            header = (self._host, self._config.syslog_app_name, None, None)
            return _Message(self._facility, self._level, None, header, (), value)
        if isinstance(value, Mapping) and isinstance(value.get("message"), str):
            return self._of_struct(value)
        kind = "null" if value is None else "a struct or map without a text in the field message"
        if not isinstance(value, Mapping) and value is not None:
            kind = f"a {type(value).__name__}"
        raise DataError(
            f"Its value is {kind}. The sink sends texts, and structs with the fields of the syslog source; "
            "value.converter=StringConverter sends any value as it is on the topic."
        )

    def _of_struct(self, value: Mapping[str, Any]) -> _Message:
        given = {
            "host": _text(value, "host") or self._host,
            "appName": _text(value, "appName") or _text(value, "tag") or self._config.syslog_app_name,
            "processId": _text(value, "processId"),
            "messageId": _text(value, "messageId"),
        }
        for name, text in given.items():
            if text is not None and not _HEADER[name].fullmatch(text):
                raise DataError(
                    f"Its field {name} is {text[:60]!r}, which RFC 5424 does not allow: it has to be of printable "
                    "ASCII without blanks, and not too long."
                )
        date = value.get("date")
        if date is not None and not isinstance(date, dt.datetime):
            raise DataError("Its field date is no Timestamp.")
        return _Message(
            _in_range(value, "facility", 24, self._facility),
            _in_range(value, "level", 8, self._level),
            date,
            tuple(given.values()),
            _elements(value.get("structuredData")),
            value["message"],
        )


def _text(value: Mapping[str, Any], name: str) -> str | None:
    found = value.get(name)
    if found is not None and not isinstance(found, str):
        raise DataError(f"Its field {name} is a {type(found).__name__}, and has to be a text.")
    return found or None


def _in_range(value: Mapping[str, Any], name: str, end: int, default: int) -> int:
    found = value.get(name)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < end:
        raise DataError(f"Its field {name} is {found!r}, and has to be a number from 0 to {end - 1}.")
    return found


def _elements(value: object) -> list[tuple[str, Mapping[str, str]]]:
    """Return the structured data of a struct, as the source makes it."""
    elements: list[tuple[str, Mapping[str, str]]] = []
    for each in value if isinstance(value, Sequence) and not isinstance(value, str) else ():
        name = each.get("id") if isinstance(each, Mapping) else None
        parameters = each.get("structuredDataElements") or {} if isinstance(each, Mapping) else {}
        if not isinstance(name, str) or not isinstance(parameters, Mapping):
            raise DataError("Its field structuredData has an element without id, or whose parameters are no map.")
        for text in (name, *parameters):
            if not isinstance(text, str) or not _NAME.fullmatch(text):
                raise DataError(
                    f"Its field structuredData has the name {str(text)[:60]!r}, which RFC 5424 does not allow."
                )
        elements.append((name, {key: str(text) for key, text in parameters.items()}))
    if isinstance(value, str | Mapping):
        raise DataError("Its field structuredData is no list of elements.")
    return elements


def _element(name: str, parameters: Mapping[str, str]) -> str:
    values = (f' {key}="{_TO_ESCAPE.sub(_escaped, text)}"' for key, text in parameters.items())
    return f"[{name}{''.join(values)}]"


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[1]}"


def _position(record: SinkRecord) -> dict[str, str]:
    return {
        "topic": record.original_topic,
        "partition": str(record.original_partition),
        "offset": str(record.original_offset),
    }


def _time(date: dt.datetime | None, timestamp: int | None) -> str:
    """Return a time of RFC 5424, in milliseconds and UTC: the record's own, or when it was produced."""
    if date is None:
        if timestamp is None or not 0 <= timestamp <= _LAST_MILLISECOND:
            return _NIL
        date = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=timestamp)
    try:
        return date.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError as error:
        raise DataError(f"Its field date is {date.isoformat()}, which is of no year from 1 to 9999 in UTC.") from error
