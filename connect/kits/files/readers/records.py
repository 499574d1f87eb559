"""Splits bytes into records: at every line ending, or at those outside quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Final

__all__ = ["Cutter", "Records", "chunk_cutter", "json_cutter", "line_cutter", "quoted_cutter", "separated_cutter"]

_BLANK: Final = (b"\n", b"\r")
_BLANK_BYTES: Final = 2
_BLANK_LINES: Final = (b"\n", b"\r\n", b"\r")
_NEWLINE: Final = 0x0A


@dataclass(frozen=True, slots=True)
class Records:
    """The records in ``data``: where each begins and ends, including its line ending, and the lines up to there.

    Blank lines between records belong to none of them. ``damaged`` are the records whose quotes are broken.
    """

    data: bytes
    starts: Sequence[int]
    ends: Sequence[int]
    lines: Sequence[int]
    consumed: int
    damaged: frozenset[int] = field(default_factory=frozenset)

    def __len__(self) -> int:
        return len(self.ends)

    def raw(self, index: int) -> bytes:
        """Return the bytes of a record without its line ending."""
        return self.data[self.starts[index] : self.ends[index]].removesuffix(b"\n").removesuffix(b"\r")

    def raws(self) -> list[bytes]:
        """Return the bytes of all records without their line endings."""
        data, spans = self.data, zip(self.starts, self.ends, strict=True)
        return [data[start:end].removesuffix(b"\n").removesuffix(b"\r") for start, end in spans]

    def first_line(self, index: int) -> int:
        """Return the number of lines before a record."""
        return self.data.count(b"\n", 0, self.starts[index])


Cutter = Callable[[bytes, bool], Records]
"""Cuts whole records from the front of some bytes; the second argument says whether they are the last bytes."""


def line_cutter(*, keep_blank: bool) -> Cutter:
    """Return a cutter whose records are lines; with ``keep_blank``, blank lines are records, too."""

    def cut(data: bytes, final: bool) -> Records:
        consumed = len(data) if final else data.rfind(b"\n") + 1
        lengths = [length + 1 for length in map(len, data[:consumed].split(b"\n"))]
        # Nothing ends the last piece, and behind a line end it is none.
        lengths[-1] -= 1
        if not lengths[-1]:
            lengths.pop()
        ends = list(accumulate(lengths))
        records = Records(data, [0, *ends][:-1], ends, range(1, len(ends) + 1), consumed)
        return records if keep_blank else _without_blank_lines(records)

    return cut


def quoted_cutter(delimiter: str, quote: str, max_bytes: int, escape: str = "") -> Cutter:
    """Return a cutter whose records are lines, or several lines if a line ending is inside quotes.

    Without a quote character a record is a line. A record whose quotes are broken, or not closed within ``max_bytes``,
    is damaged: it is taken to be one line long, so that it does not swallow the good records after it.
    """
    by_line = line_cutter(keep_blank=False)
    if not quote:
        return by_line
    mark = quote.encode()
    whole, opened = _patterns(delimiter.encode(), mark, escape.encode())

    def cut(data: bytes, final: bool) -> Records:
        if mark not in data:
            return by_line(data, final)
        starts: list[int] = []
        ends: list[int] = []
        damaged: set[int] = set()
        position = 0
        while position < len(data):
            match = whole.match(data, position)
            end = match.end() if match else data.find(b"\n", position) + 1 or len(data)
            if not final:
                grows = match is None and len(data) - position <= max_bytes and opened.fullmatch(data, position)
                if grows or data[end - 1] != _NEWLINE:
                    break
            if end - position > _BLANK_BYTES or data[position:end] not in _BLANK_LINES:
                if match is None:
                    damaged.add(len(ends))
                starts.append(position)
                ends.append(end)
            position = end
        return Records(data, starts, ends, _lines(data, ends), position, frozenset(damaged))

    return cut


def chunk_cutter(size: int) -> Cutter:
    """Return a cutter whose records have ``size`` bytes, the last one fewer; with 0 there is one, of all bytes."""

    def cut(data: bytes, final: bool) -> Records:
        if not size:
            ends = [len(data)] if final and data else []
        else:
            ends = list(range(size, len(data) + 1, size))
            if final and len(data) % size:
                ends.append(len(data))
        return Records(data, [0, *ends][:-1], ends, [0] * len(ends), ends[-1] if ends else 0)

    return cut


def separated_cutter(separator: bytes) -> Cutter:
    """Return a cutter whose records end with some bytes; the last one may lack them."""

    def cut(data: bytes, final: bool) -> Records:
        ends: list[int] = []
        position = data.find(separator)
        while position >= 0:
            ends.append(position + len(separator))
            position = data.find(separator, ends[-1])
        consumed = ends[-1] if ends else 0
        if final and consumed < len(data):
            ends.append(len(data))
            consumed = len(data)
        return Records(data, [0, *ends][:-1], ends, _lines(data, ends), consumed)

    return cut


def json_cutter() -> Cutter:
    """Return a cutter whose records are JSON values with nothing but blanks, or the signs of an array, between them.

    Whether a bracket begins the array that has the records, or a record, is told by what is before it. What is not JSON
    becomes a record as well, which cannot be parsed.
    """
    token = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:(?P<shut>")|\\?+)|[{}\[\],:]|[^\s"{}\[\],:]++', re.DOTALL)

    def cut(data: bytes, final: bool) -> Records:
        starts: list[int] = []
        ends: list[int] = []
        depth, begin, before = 0, 0, b""
        for match in token.finditer(data):
            text = match[0][:1]
            if not depth:
                begin = match.start()
                if text in (b",", b"]") or (text == b"[" and before not in (b",", b"[")):
                    before = text
                    continue
            if text in (b"{", b"["):
                depth += 1
            elif text in (b"}", b"]"):
                depth -= 1
            elif not final and match.end() == len(data) and not match["shut"]:
                # It may go on.
                break
            if depth <= 0:
                depth, before = 0, b"v"
                starts.append(begin)
                ends.append(match.end())
        if final and depth > 0:
            starts.append(begin)
            ends.append(len(data))
        consumed = len(data) if final else ends[-1] if ends else 0
        return Records(data, starts, ends, _lines(data, ends), consumed)

    return cut


def _lines(data: bytes, ends: list[int]) -> list[int]:
    return list(accumulate(data.count(b"\n", start, end) for start, end in pairwise([0, *ends])))


def _patterns(delimiter: bytes, quote: bytes, escape: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the patterns of a complete record, and of the beginning of a record whose last quote is not closed."""
    mark, comma = re.escape(quote), re.escape(delimiter)
    inside = rb"%b[^%b]*+(?:%b%b[^%b]*+)*+" % (mark, mark, mark, mark, mark)
    if escape and escape != quote:
        sign = re.escape(escape)
        inside = rb"%b(?:[^%b%b]++|%b[\s\S]|%b%b)*+" % (mark, mark, sign, sign, mark, mark)
    value = rb"(?:%b%b|[^%b%b\r\n][^%b\r\n]*+|)" % (inside, mark, mark, comma, comma)
    whole = rb"%b(?:%b%b)*+\r?(?:\n|\Z)" % (value, comma, value)
    opened = rb"(?:%b%b)*%b" % (value, comma, inside)
    return re.compile(whole), re.compile(opened)


def _without_blank_lines(records: Records) -> Records:
    data = records.data
    if not (data.startswith(_BLANK) or b"\n\n" in data or b"\n\r" in data):
        return records
    kept = [index for index in range(len(records)) if records.raw(index)]
    return Records(
        data,
        [records.starts[index] for index in kept],
        [records.ends[index] for index in kept],
        [records.lines[index] for index in kept],
        records.consumed,
    )
