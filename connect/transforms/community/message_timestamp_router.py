"""MessageTimestampRouter: names topics by a time in the value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from connect.config import HIGH, Config, non_empty_list, option
from connect.data import Record
from connect.data.logical import milliseconds_from_timestamp
from connect.errors import DataError
from connect.internals.java.date_format import DateFormat
from connect.internals.java.date_text import milliseconds_of
from connect.transformation import Transformation
from connect.transforms.fields.key_or_value import copy_of, require_map, type_name
from connect.transforms.timestamp_router import date_pattern

__all__ = ["MessageTimestampRouter", "MessageTimestampRouterConfig"]

R = TypeVar("R", bound=Record)

_PURPOSE: Final = "routing by a time in the value"


class MessageTimestampRouterConfig(Config):
    """The fields with the time, and the names of the new topics."""

    topic_format: str = option(
        default="${topic}-${timestamp}",
        importance=HIGH,
        doc="The new topic. ${topic} stands for the old one, ${timestamp} for the time in the value.",
    )
    topic_timestamp_format: str = option(
        default="yyyyMMdd",
        importance=HIGH,
        validator=date_pattern,
        doc="Format of the time in the topic, in UTC, as a pattern of java.text.SimpleDateFormat.",
    )
    message_timestamp_format: str = option(
        default="",
        importance=HIGH,
        validator=date_pattern,
        doc="Format of a time that is text, as a pattern of java.text.SimpleDateFormat; if empty, that of ISO 8601. A "
        "number is always taken for milliseconds since 1970.",
    )
    message_timestamp_keys: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        doc="The fields that may hold the time; the first that is present and not null counts.",
    )


class MessageTimestampRouter(Transformation[MessageTimestampRouterConfig]):
    """Names the topic by a time in the value, which is a map or a struct."""

    def __init__(self, config: MessageTimestampRouterConfig) -> None:
        super().__init__(config)
        self._written = DateFormat(config.topic_timestamp_format)
        pattern = config.message_timestamp_format
        self._read = DateFormat(pattern) if pattern.strip() else None

    def apply(self, record: R) -> R | None:
        """Return the record with the topic of its time."""
        value = require_map(record.value, record.value_schema, _PURPOSE)
        written = self._written.format(self._time(value))
        new = copy_of(record)
        new.topic = self.config.topic_format.replace("${topic}", record.topic).replace("${timestamp}", written)
        return new

    def _time(self, value: Mapping[str, Any]) -> int:
        """Return the time in a value, in milliseconds since 1970."""
        keys = self.config.message_timestamp_keys
        for key in keys:
            if (found := value.get(key)) is not None:
                return self._milliseconds(key, found)
        raise DataError(f"The value has none of the fields {', '.join(keys)}, which name the topic's time")

    def _milliseconds(self, key: str, found: Any) -> int:
        if isinstance(found, (dt.date, dt.time)):
            return milliseconds_of(found)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
        if not isinstance(found, str):
            raise DataError(f"Field {key} must be a time, a number or text, but is of type {type_name(found)}")
        try:
            return _iso(found) if self._read is None else self._read.parse(found)
        except ValueError as error:
            pattern = self.config.message_timestamp_format or "ISO 8601"
            raise DataError(f"Field {key} is no time in the format {pattern}: {error}") from error


def _iso(text: str) -> int:
    moment = dt.datetime.fromisoformat(text)
    return milliseconds_from_timestamp(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC))
