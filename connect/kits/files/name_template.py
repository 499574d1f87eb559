"""Templates of file names, as Aiven's sinks have them: ``{{topic}}-{{partition}}-{{start_offset:padding=true}}``."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from zoneinfo import ZoneInfo

from connect.data import Schema, Type
from connect.internals.java.value_text import value_text
from connect.kits.files.names import escaped

__all__ = ["NameTemplate", "TemplateError"]

_VARIABLE: Final = re.compile(r"\{\{\s*(\w+)\s*(?::\s*(\w+)\s*=\s*([\w-]+)\s*)?\}\}")
_UNITS: Final = {"yyyy": "%Y", "YYYY": "%Y", "MM": "%m", "dd": "%d", "HH": "%H"}
_PARAMETERS: Final = {"partition": "padding", "start_offset": "padding", "timestamp": "unit"}
_VARIABLES: Final = ("topic", "partition", "start_offset", "timestamp", "key", "utc_date", "local_date")
_DATES: Final = frozenset({"utc_date", "local_date"})
_QUARTER_MS: Final = 900_000
"""Time zones differ from UTC by whole quarters of an hour."""
_PARTITION_WIDTH: Final = 10
_OFFSET_WIDTH: Final = 20
_OFFSET: Final = "\0"
"""Stands for the first offset until it is known."""
_GROUPINGS: Final = (
    frozenset({"topic", "partition", "start_offset"}),
    frozenset({"topic", "partition", "start_offset", "timestamp"}),
    frozenset({"key"}),
    frozenset({"key", "topic", "partition"}),
    frozenset({"key", "topic"}),
)


class TemplateError(ValueError):
    """Says what is wrong with a template."""


@dataclass(frozen=True)
class NameTemplate:
    """A parsed template. Records with the same place, which is the name without the first offset, share a file."""

    text: str
    timezone: str = "UTC"

    def check(self) -> None:
        """Raise :class:`TemplateError` if the template has no meaning."""
        for found in _VARIABLE.finditer(self.text):
            _check_variable(*found.groups())
        if "{{" in _VARIABLE.sub("", self.text):
            raise TemplateError("a variable is written {{NAME}} or {{NAME:PARAMETER=VALUE}}")
        if self.variables - _DATES not in _GROUPINGS:
            allowed = "; ".join(", ".join(v for v in _VARIABLES if v in group) for group in _GROUPINGS)
            raise TemplateError(f"it groups records by {', '.join(sorted(self.variables)) or 'nothing'}. Use {allowed}")

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names of the variables."""
        return frozenset(found[1] for found in _VARIABLE.finditer(self.text))

    @property
    def by_key(self) -> bool:
        """Whether there is a file for each key, which has the last record of a key."""
        return "key" in self.variables

    @property
    def has_time(self) -> bool:
        """Whether names have a time."""
        return "timestamp" in self.variables or bool(self.variables & _DATES)

    def places(
        self,
        topic: str,
        partition: int,
        times: Sequence[Any],
        keys: Sequence[Any],
        key_schema: Schema | None,
    ) -> list[Any]:
        """Return the place of each record; an error among the times stays what it is."""
        made: list[Any] = []
        known: dict[tuple[Any, Any], str] = {}
        for time, key in zip(times, keys, strict=True):
            if isinstance(time, Exception):
                made.append(time)
                continue
            # Times of one quarter of an hour, and keys of one text, have one name.
            name = (time // _QUARTER_MS if self.has_time else None, _key_text(key_schema, key) if self.by_key else None)
            place = known.get(name)
            if place is None:
                place = known[name] = self._place(topic, partition, time, name[1])
            made.append(place)
        return made

    def path(self, place: str, offset: int) -> str:
        """Return the name of a file whose first record has this offset."""
        padded = place.replace(_OFFSET * 2, f"{offset:0{_OFFSET_WIDTH}d}")
        return padded.replace(_OFFSET, str(offset))

    def names_of(self, topic: str, partition: int) -> re.Pattern[str] | None:
        """Return what the names of a topic partition's files match; ``None`` if a name does not tell its partition."""
        if not {"topic", "partition"} <= self.variables:
            return None
        pattern, end = "", 0
        for found in _VARIABLE.finditer(self.text):
            pattern += re.escape(self.text[end : found.start()])
            pattern += _pattern(found[1], found[3], topic, partition)
            end = found.end()
        return re.compile(pattern + re.escape(self.text[end:]), re.DOTALL)

    def _place(self, topic: str, partition: int, time: int, key: str | None) -> str:
        moment = dt.datetime.fromtimestamp(time / 1000, ZoneInfo(self.timezone)) if self.has_time else None

        def text_of(found: re.Match[str]) -> str:
            name, value = found[1], found[3]
            if name == "topic":
                return topic
            if name == "partition":
                return f"{partition:0{_PARTITION_WIDTH}d}" if value == "true" else str(partition)
            if name == "start_offset":
                return _OFFSET * 2 if value == "true" else _OFFSET
            if name == "key":
                return escaped(key or "")
            assert moment is not None
            if name == "utc_date":
                return moment.astimezone(dt.UTC).date().isoformat()
            return moment.date().isoformat() if name == "local_date" else moment.strftime(_UNITS[value])

        return _VARIABLE.sub(text_of, self.text)


def _check_variable(name: str, parameter: str | None, value: str | None) -> None:
    if name not in _VARIABLES:
        raise TemplateError(f"{{{{{name}}}}} is no variable: there are {', '.join(_VARIABLES)}")
    known = _PARAMETERS.get(name)
    if parameter is not None and parameter != known:
        raise TemplateError(f"{{{{{name}}}}} has no parameter {parameter}")
    if name == "timestamp" and value not in _UNITS:
        raise TemplateError(
            f"{{{{timestamp}}}} needs one of the units {', '.join(_UNITS)}, as {{{{timestamp:unit=dd}}}}"
        )
    if known == "padding" and value not in (None, "true", "false"):
        raise TemplateError(f"padding={value} is neither true nor false")


def _pattern(name: str, value: str | None, topic: str, partition: int) -> str:
    match name:
        case "topic":
            return re.escape(topic)
        case "partition":
            return f"{partition:0{_PARTITION_WIDTH}d}" if value == "true" else str(partition)
        case "key":
            return ".*"
        case "utc_date" | "local_date":
            return r"\d+-\d+-\d+"
    return r"\d+"


def _key_text(schema: Schema | None, key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode("utf-8", "replace")
    return value_text(schema if schema is not None and schema.type is not Type.STRING else None, key)
