"""Layouts: how files are cut into records and their values read. Includes those of text and JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson

from connect.data import Column, Schema, ValueColumn
from connect.kits.files.readers.records import Cutter, Records, chunk_cutter, json_cutter, line_cutter, separated_cutter

__all__ = ["BadRow", "Chunks", "JsonLines", "JsonValues", "Layout", "Parsed", "TextLines", "parse_rows"]

_STRING: Final = Schema.string()
_BYTES: Final = Schema.bytes()


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that cannot be read: its index among the records, and the reason."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The values of the good records, their indices (``None``: all are good), and the bad records."""

    column: Column
    good: Sequence[int] | None = None
    bad: Sequence[BadRow] = ()


class Layout(Protocol):
    """How to read the bytes of one file."""

    @property
    def cut(self) -> Cutter:
        """Cut bytes into records."""

    def parse(self, records: Records) -> Parsed:
        """Read the values of records."""


def parse_rows(records: Records, schema: Schema | None, parse: Callable[[int], Any]) -> Parsed:
    """Read records one by one; a ``ValueError`` of ``parse`` makes the record bad, with its text as the reason."""
    values: list[Any] = []
    good: list[int] = []
    bad: list[BadRow] = []
    for index in range(len(records)):
        try:
            values.append(parse(index))
        except ValueError as error:
            bad.append(BadRow(index, str(error)))
        else:
            good.append(index)
    return Parsed(ValueColumn(values, schema), good if bad else None, bad)


class TextLines:
    """Each line is a string. A line that is invalid in the encoding is malformed."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self.cut = line_cutter(keep_blank=True)

    def parse(self, records: Records) -> Parsed:
        """Return the lines without their endings."""
        try:
            text = records.data[: records.consumed].decode(self._encoding)
        except UnicodeDecodeError:
            return parse_rows(records, _STRING, lambda index: records.raw(index).decode(self._encoding))
        lines = text.split("\n")[: len(records)]
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        return Parsed(ValueColumn(lines, _STRING))


class JsonLines:
    """Each non-blank line is a JSON value. Objects become dicts, without a schema."""

    def __init__(self, encoding: str, *, is_utf8: bool) -> None:
        self._encoding = None if is_utf8 else encoding
        self.cut = line_cutter(keep_blank=False)

    def parse(self, records: Records) -> Parsed:
        """Return the values."""
        return _json(records, self._encoding)


class JsonValues:
    """JSON values follow each other, or are elements of an array. Objects become dicts, without a schema."""

    def __init__(self, encoding: str, *, is_utf8: bool) -> None:
        self._encoding = None if is_utf8 else encoding
        self.cut = json_cutter()

    def parse(self, records: Records) -> Parsed:
        """Return the values."""
        return _json(records, self._encoding)


class Chunks:
    """A file is one value of bytes, or has chunks of one size, or values with something after each."""

    def __init__(self, size: int, separator: bytes = b"") -> None:
        self._separator = separator
        self.cut = separated_cutter(separator) if separator else chunk_cutter(size)

    def parse(self, records: Records) -> Parsed:
        """Return the bytes."""
        spans, end_mark = zip(records.starts, records.ends, strict=True), self._separator
        return Parsed(ValueColumn([records.data[start:end].removesuffix(end_mark) for start, end in spans], _BYTES))


def _json(records: Records, encoding: str | None) -> Parsed:
    if encoding is None:
        try:
            return Parsed(ValueColumn([orjson.loads(raw) for raw in records.raws()]))
        except orjson.JSONDecodeError:
            pass  # Some record is not JSON; reading them one by one tells which.

    def value(index: int) -> Any:
        raw = records.raw(index)
        return orjson.loads(raw if encoding is None else raw.decode(encoding))

    return parse_rows(records, None, value)
