"""Text files, whose lines are strings, and files of JSON lines, whose lines are values without a schema."""

from __future__ import annotations

from typing import Any, Final

import orjson

from connect.data import Schema, ValueColumn
from connectors.directory.layout import Parsed, parse_rows
from connectors.directory.records import Records, line_cutter

__all__ = ["JsonLines", "TextLines"]

_STRING: Final = Schema.string()


class TextLines:
    """Every line is a string. A line that is not in the encoding is malformed."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self.cut = line_cutter(keep_blank=True)

    def parse(self, records: Records) -> Parsed:
        """The lines without their ends."""
        try:
            text = records.data[: records.consumed].decode(self._encoding)
        except UnicodeDecodeError:
            return parse_rows(records, _STRING, lambda index: records.raw(index).decode(self._encoding))
        lines = text.split("\n")[: len(records)]
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        return Parsed(ValueColumn(lines, _STRING))


class JsonLines:
    """Every line that is not blank is a JSON value. Objects become dicts, and there is no schema."""

    def __init__(self, encoding: str, *, is_utf8: bool) -> None:
        self._encoding = None if is_utf8 else encoding
        self.cut = line_cutter(keep_blank=False)

    def parse(self, records: Records) -> Parsed:
        """The values."""
        if self._encoding is None:
            try:
                return Parsed(ValueColumn([orjson.loads(raw) for raw in records.raws()]))
            except orjson.JSONDecodeError:
                pass  # Some line is not JSON; reading them one by one tells which.
        return parse_rows(records, None, lambda index: self._value(records.raw(index)))

    def _value(self, raw: bytes) -> Any:
        return orjson.loads(raw if self._encoding is None else raw.decode(self._encoding))
