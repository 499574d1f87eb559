"""TimezoneConverter: brings times in change events to another time zone."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from connect.config import HIGH, Config, ConfigRuleError, invalid_value, option, validator
from connect.data import Record, Schema, Type
from connect.data.logical import TIMESTAMP_NAME, instant_in_utc
from connect.errors import ConfigError, DataError
from connect.transformation import Transformation
from connect.transforms.debezium_unwrap import is_envelope
from connect.transforms.fields.key_or_value import VALUE, require_map

__all__ = ["TimezoneConverter", "TimezoneConverterConfig"]

R = TypeVar("R", bound=Record)

_PURPOSE: Final = "converting times"
_OFFSET: Final = re.compile(r"([+-])(\d{2}):(\d{2})(?::(\d{2}))?")
_RULE: Final = re.compile(r"[\w.\"\s]+(?::[\w.\"\s]+){0,2}")
_ZONED: Final = re.compile(r"(?:(\d{4}-\d{2}-\d{2})T)?(\d{2}:\d{2}(?::\d{2})?)(\.\d+)?(Z|[+-]\d{2}:?\d{2})")
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a local time, whose zone is what is asked


@validator("time zone such as Europe/Rome, or offset such as +08:00")
def _time_zone(key: str, value: str) -> None:
    try:
        _zone(value)
    except (ValueError, KeyError, OSError) as error:
        form = "Use a zone such as America/Los_Angeles, or an offset such as +08:00"
        raise invalid_value(key, value, form) from error


def _zone(text: str) -> dt.tzinfo:
    if (match := _OFFSET.fullmatch(text)) is not None:
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
        offset = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return dt.timezone(-offset if match[1] == "-" else offset)
    return ZoneInfo(text)


class TimezoneConverterConfig(Config):
    """The time zone, and the fields."""

    converted_timezone: str = option(
        importance=HIGH,
        validator=_time_zone,
        doc="The time zone, such as Europe/Rome, or the offset from UTC, such as +08:00.",
    )
    include_list: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        doc="The times to convert, by default all: source:TABLE, topic:TOPIC or either with :FIELD for one field, or "
        "NAME:FIELD, where NAME is a topic or a table. FIELD may begin with before., after. or source.",
    )
    exclude_list: tuple[str, ...] = option(
        default=(), importance=HIGH, doc="The times that are not converted, in the same form."
    )

    def check(self) -> list[ConfigError]:
        """Refuse both lists together, and malformed items."""
        if self.include_list and self.exclude_list:
            text = "Both include and exclude lists are specified. Please specify only one."
            return [ConfigRuleError(text, "include.list", "exclude.list")]
        form = "Write source:TABLE:FIELD, topic:TOPIC:FIELD or NAME:FIELD"
        return [
            invalid_value(key, items, form)
            for key, items in (("include.list", self.include_list), ("exclude.list", self.exclude_list))
            if not all(map(_RULE.fullmatch, items))
        ]


@dataclass(slots=True)
class _Rules:
    """The fields of a list, by the topic, by the table, and by either."""

    topics: dict[str, set[str]]
    tables: dict[str, set[str]]
    names: dict[str, set[str]]

    @classmethod
    def of(cls, items: tuple[str, ...]) -> _Rules:
        """Parse the items of a list. As in Java, a prefix holds for the items after it that have none."""
        rules, kept = cls({}, {}, {}), ""
        for item in items:
            parts = item.split(":")
            if parts[0].lower() in ("source", "topic") and len(parts) > 1:
                kept = parts.pop(0).lower()
            chosen = {"topic": rules.topics, "source": rules.tables}.get(kept, rules.names)
            chosen.setdefault(parts[0], set()).update(parts[1:2])
        return rules

    def fields(self, topic: str, table: str | None) -> set[str] | None:
        """Return the fields named for an event, none for all of them, or ``None`` if no rule concerns it."""
        for rules, name in ((self.topics, topic), (self.tables, table), (self.names, topic), (self.names, table)):
            if name is not None and name in rules:
                return rules[name]
        return None


class _Choice(NamedTuple):
    """The fields of a row to convert: those named, or with ``inverted`` all others."""

    names: frozenset[str]
    inverted: bool

    def has(self, name: str) -> bool:
        """Return whether a field is converted."""
        return (name in self.names) != self.inverted


class TimezoneConverter(Transformation[TimezoneConverterConfig]):
    """Brings times in change events to another time zone. Other records, and events without schema, pass unchanged."""

    def __init__(self, config: TimezoneConverterConfig) -> None:
        super().__init__(config)
        self._zone = _zone(config.converted_timezone)
        self._excludes = bool(config.exclude_list)
        self._rules = _Rules.of(config.exclude_list or config.include_list)
        self._lists = bool(config.include_list or config.exclude_list)

    def apply(self, record: R) -> R | None:
        """Return the record with its times converted."""
        schema = record.value_schema
        if record.value is None or schema is None or not is_envelope(schema, record.value):
            return record
        event = require_map(record.value, schema, _PURPOSE)
        choices = self._choices(record.topic, event)
        changed = {
            part: self._converted(event[part], schema, part, choice)
            for part, choice in choices.items()
            if event.get(part) is not None
        }
        return VALUE.put(record, schema, {**event, **changed})

    def _choices(self, topic: str, event: Mapping[str, Any]) -> dict[str, _Choice]:
        source = event.get("source")
        table = source.get("table") if isinstance(source, Mapping) else None
        fields = self._rules.fields(topic, table)
        everything = _Choice(frozenset(), inverted=True)
        if not self._lists or (fields is None and self._excludes) or (fields == set() and not self._excludes):
            return {"before": everything, "after": everything}
        if not fields:
            return {}
        choices: dict[str, set[str]] = {"before": set(), "after": set(), "source": set()}
        for field in fields:
            part, dot, name = field.partition(".")
            for place in (part,) if dot and part in choices else ("before", "after"):
                choices[place].add(name if dot and part in choices else field)
        return {
            part: _Choice(frozenset(names), self._excludes)
            for part, names in choices.items()
            if part != "source" or names
        }

    def _converted(self, row: Any, envelope: Schema, part: str, choice: _Choice) -> Any:
        field = envelope.field(part)
        if field is None or field.schema.type is not Type.STRUCT:
            return row
        new = dict(row)
        for member in field.schema.fields:
            convert = _CONVERSIONS.get(member.schema.name or "")
            if convert is not None and choice.has(member.name) and new.get(member.name) is not None:
                try:
                    new[member.name] = convert(new[member.name], self._zone)
                except (ValueError, OverflowError) as error:
                    raise DataError(f"The time in field {part}.{member.name} cannot be converted: {error}") from error
        return new


def _epoch(units: int) -> Callable[[Any, dt.tzinfo], Any]:
    """Return the conversion of local times that are counted in units, of which a second has ``units``."""

    def convert(value: Any, zone: dt.tzinfo) -> Any:
        local = _EPOCH + dt.timedelta(seconds=value // units)
        return value - _seconds(zone, local) * units

    return convert


def _seconds(zone: dt.tzinfo, local: dt.datetime) -> int:
    """Return how far a zone is ahead of UTC at a local time."""
    offset = zone.utcoffset(local)
    return 0 if offset is None else round(offset.total_seconds())


def _timestamp(value: Any, zone: dt.tzinfo) -> Any:
    instant = instant_in_utc(value)
    return instant - dt.timedelta(seconds=_seconds(zone, instant.replace(tzinfo=None)))


def _zoned_timestamp(value: Any, zone: dt.tzinfo) -> str:
    match = _ZONED.fullmatch(value)
    if match is None or match[1] is None:
        raise ValueError(f"{value} is no time with an offset")
    moment = dt.datetime.fromisoformat(f"{match[1]}T{match[2]}{match[4]}").astimezone(zone)
    return f"{moment:%Y-%m-%dT%H:%M:%S}{_fraction(match)}{_offset_text(moment.utcoffset())}"


def _zoned_time(value: Any, zone: dt.tzinfo) -> str:
    match = _ZONED.fullmatch(value)
    if match is None or match[1] is not None:
        raise ValueError(f"{value} is no time of day with an offset")
    # As in Java, a time of day without a date has the offset of today.
    offset = dt.datetime.now(zone).utcoffset() or dt.timedelta()
    given = dt.datetime.fromisoformat(f"2000-01-02T{match[2]}{match[4]}")
    moment = given.astimezone(dt.timezone(offset))
    return f"{moment:%H:%M:%S}{_fraction(match)}{_offset_text(offset)}"


def _fraction(match: re.Match[str]) -> str:
    return (match[3] or "").rstrip("0").rstrip(".")


def _offset_text(offset: dt.timedelta | None) -> str:
    if not offset:
        return "Z"
    minutes, seconds = divmod(abs(round(offset.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if offset < dt.timedelta() else "+"
    return f"{sign}{hours:02}:{minutes:02}" + (f":{seconds:02}" if seconds else "")


_CONVERSIONS: Final[Mapping[str, Callable[[Any, dt.tzinfo], Any]]] = {
    "io.debezium.time.Timestamp": _epoch(1_000),
    "io.debezium.time.MicroTimestamp": _epoch(1_000_000),
    "io.debezium.time.NanoTimestamp": _epoch(1_000_000_000),
    "io.debezium.time.ZonedTimestamp": _zoned_timestamp,
    "io.debezium.time.ZonedTime": _zoned_time,
    TIMESTAMP_NAME: _timestamp,
}
