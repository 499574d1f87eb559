"""The items of a list: their keys, timestamps and offset fields, and their records."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import orjson

from connect.data import Schema, SourceRecord
from connect.data.excerpt import excerpt
from connect.data.numerals import integer_text
from connect.errors import DataError
from connect.internals.java.date_format import DateFormat
from connectors.http.selection import Selection
from connectors.http.source_config import HttpSourceConfig

__all__ = ["Item", "Items", "Timestamps", "fingerprint"]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_JAVA: Final = "com.github.castorm.kafka.connect.http."
_STRING: Final = Schema.string()
_KEY_SCHEMA: Final = Schema.struct(
    {"key": Schema.string(optional=True, doc="HTTP Record Key")}, name=f"{_JAVA}Key", doc="Message Key"
)
_VALUE_SCHEMA: Final = Schema.struct(
    {
        "value": Schema.string(doc="HTTP Record Value"),
        "key": Schema.string(optional=True, doc="HTTP Record Key"),
        "timestamp": Schema.int64(optional=True, doc="HTTP Record Timestamp"),
    },
    name=f"{_JAVA}Value",
    doc="Message Value",
)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list, with its key, timestamp and offset fields."""

    content: Any
    mark: str
    key: str | None
    moment: dt.datetime | None
    fields: Mapping[str, Any]


class Timestamps:
    """Parses timestamps according to the options."""

    def __init__(self, config: HttpSourceConfig) -> None:
        self._parser = config.timestamp_parser
        self._pattern = config.timestamp_pattern
        self._form = DateFormat(self._pattern) if self._pattern is not None else None
        self._zone = ZoneInfo(config.http_response_record_timestamp_parser_zone)

    def read(self, value: Any) -> dt.datetime:
        """Return the time. Raises :class:`~connect.errors.DataError` if the value is not a timestamp."""
        try:
            return self._read(value)
        except (ValueError, OverflowError) as error:
            raise DataError(f"The timestamp {excerpt(value)} cannot be read: {error}") from None

    def _read(self, value: Any) -> dt.datetime:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        text = value.strip() if isinstance(value, str) else ""
        if self._parser != "DateTimeFormatterTimestampParser" and (is_number or text.lstrip("-").isdecimal()):
            number = float(value) if isinstance(value, float) else int(value if is_number else text)
            unit = 1000 if self._parser == "EpochSecondsTimestampParser" else 1
            return _EPOCH + number * unit * _MILLISECOND
        if not text or self._parser.startswith("EpochMillisT") or self._parser.startswith("EpochS"):
            raise ValueError(f"{self._parser} cannot parse it; see http.response.record.timestamp.parser")
        if self._form is None:
            found = dt.datetime.fromisoformat(text)
        else:
            found = _EPOCH + self._form.parse(text) * _MILLISECOND
            if not _has_zone(self._pattern or ""):
                found = found.replace(tzinfo=None)
        return (found if found.tzinfo is not None else found.replace(tzinfo=self._zone)).astimezone(dt.UTC)


class Items:
    """Reads items, and creates their records."""

    def __init__(self, config: HttpSourceConfig) -> None:
        self._topic = config.kafka_topic
        self._mapper = config.mapper
        self._value = Selection(config.http_response_record_pointer.strip(), "http.response.record.pointer")
        self._keys = config.key_selections()
        self._timestamp = config.timestamp_selection()
        self._offsets = config.offset_selections()
        self._timestamps = Timestamps(config)
        self.has_fields = bool(self._keys or self._offsets or self._timestamp is not None)

    def read(self, content: Any, mark: str = "") -> Item:
        """Read an item. Raises :class:`~connect.errors.DataError` if its timestamp or an offset field is unusable."""
        fields: dict[str, Any] = {}
        key = self._key(content)
        if key is not None:
            fields["key"] = key
        moment = self.moment(content)
        if moment is not None:
            fields["timestamp"] = moment.isoformat(timespec="auto").replace("+00:00", "Z")
        for name, where in self._offsets:
            found = where.first(content)
            if isinstance(found, (dict, list)):
                raise DataError(f"The offset field {name} is {excerpt(found)}: it must be a string or a number.")
            if found is not None:
                fields[name] = found
        return Item(content, mark, key, moment, fields)

    def moment(self, content: Any) -> dt.datetime | None:
        """Return the timestamp of an item; ``None`` if it has none."""
        found = None if self._timestamp is None else self._timestamp.first(content)
        return None if found is None else self._timestamps.read(found)

    def kept_moment(self, fields: Mapping[str, Any]) -> dt.datetime | None:
        """Return the timestamp among the fields of an offset."""
        text = fields.get("timestamp")
        if text is None or self._timestamp is None:
            return None
        try:
            found = dt.datetime.fromisoformat(str(text))
        except ValueError:
            return None
        return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)

    def record(self, item: Item, content: Any = None) -> SourceRecord:
        """Return the record of an item, or of ``content`` in its place."""
        value = self._value.first(item.content if content is None else content)
        timestamp = None if item.moment is None else (item.moment - _EPOCH) // _MILLISECOND
        if timestamp is not None and timestamp < 0:
            timestamp = None
        match self._mapper:
            case "SchemedKvSourceRecordMapper":
                struct = {"value": _text(value), "key": item.key, "timestamp": timestamp}
                return SourceRecord(
                    self._topic, struct, _VALUE_SCHEMA, {"key": item.key}, _KEY_SCHEMA, timestamp=timestamp
                )
            case "StringKvSourceRecordMapper":
                value = _text(value)
        form = _STRING if isinstance(value, str) else None
        keyed = None if item.key is None else _STRING
        return SourceRecord(self._topic, value, form, item.key, keyed, timestamp=timestamp)

    def _key(self, content: Any) -> str | None:
        parts = [_text(found) for where in self._keys if (found := where.first(content)) is not None]
        return "+".join(parts) if parts else None


def fingerprint(content: Any) -> str:
    """Return a fingerprint that distinguishes an item from others."""
    try:
        text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # orjson takes no integers of more than 64 bits, no lone surrogates, and limited nesting.
        try:
            text = json.dumps(content, sort_keys=True).encode()
        except RecursionError:
            # Then only its index in the page tells where to continue.
            return ""
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if type(value) is int:
        return integer_text(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _has_zone(pattern: str) -> bool:
    quoted = False
    for character in pattern:
        if character == "'":
            quoted = not quoted
        elif not quoted and character in "zZX":
            return True
    return False
