"""Formats of lines and of plain bytes: JSON lines, JSON arrays, texts, raw bytes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Column, Schema
from connect.errors import DataError
from connect.internals.java.value_text import text_renderer
from connect.kits.files.formats.compression import COMPRESSION_EXTENSIONS, Compression, compressed
from connect.kits.files.formats.json_values import json_encoder, json_lines_encoder

__all__ = ["ByteArrayFormat", "JsonArrayFormat", "JsonFormat", "StringFormat"]

Encode = Callable[[Sequence[Any]], Iterable[bytes]]
_LINE_BREAKS: Final = ("\n", "\r")


class _PartsWriter:
    """Writes each value as some bytes, with a head and a tail around them and something between them."""

    def __init__(
        self,
        sink: Callable[[bytes], object],
        compression: tuple[Compression, int],
        encode: Encode,
        frame: tuple[bytes, bytes, bytes] = (b"", b"", b""),
    ) -> None:
        self._sink = compressed(sink, *compression)
        self._encode = encode
        self._head, self._between, self._tail = frame
        self._is_empty = True

    @property
    def held(self) -> int:
        return self._sink.held

    def write(self, column: Column) -> None:
        parts = self._between.join(self._encode(column.values()))
        if len(column):
            self._sink.write((self._head if self._is_empty else self._between) + parts)
            self._is_empty = False

    def close(self) -> None:
        if rest := (self._head if self._is_empty else b"") + self._tail:
            self._sink.write(rest)
        self._sink.close()


@dataclass(frozen=True)
class _LinesFormat:
    """What formats of lines have in common."""

    compression: Compression = "none"
    level: int = -1
    suffix: str = ""
    needs_struct = False

    @property
    def extension(self) -> str:
        """The end of the names of files."""
        return self.suffix + COMPRESSION_EXTENSIONS[self.compression]

    @property
    def _compression(self) -> tuple[Compression, int]:
        return self.compression, self.level


@dataclass(frozen=True)
class JsonFormat(_LinesFormat):
    """One JSON value per line."""

    suffix: str = ".json"
    numeric_decimals: bool = False

    def writer(self, sink: Callable[[bytes], object], schema: Schema | None, seed: str) -> _PartsWriter:  # noqa: ARG002
        """Return the writer of a file."""
        together = json_lines_encoder(schema, numeric_decimals=self.numeric_decimals)
        return _PartsWriter(sink, self._compression, lambda values: [together(values)])


@dataclass(frozen=True)
class JsonArrayFormat(_LinesFormat):
    """One JSON array per file, an element per line, as Aiven's sinks write it."""

    suffix: str = ""
    numeric_decimals: bool = False

    def writer(self, sink: Callable[[bytes], object], schema: Schema | None, seed: str) -> _PartsWriter:  # noqa: ARG002
        """Return the writer of a file."""
        encode = json_encoder(schema, numeric_decimals=self.numeric_decimals)

        def elements(values: Sequence[Any]) -> list[bytes]:
            return [line[:-1] for line in encode(values)]

        return _PartsWriter(sink, self._compression, elements, (b"[\n", b",\n", b"\n]"))


@dataclass(frozen=True)
class ByteArrayFormat(_LinesFormat):
    """The bytes of each value, with a separator behind them."""

    suffix: str = ".bin"
    separator: bytes = b"\n"

    def writer(self, sink: Callable[[bytes], object], schema: Schema | None, seed: str) -> _PartsWriter:  # noqa: ARG002
        """Return the writer of a file."""
        return _PartsWriter(sink, self._compression, self._bytes)

    def _bytes(self, values: Sequence[Any]) -> list[bytes]:
        for value in values:
            if not isinstance(value, bytes | bytearray | memoryview):
                raise DataError(
                    f"ByteArrayFormat writes bytes, not a {type(value).__name__}: use the ByteArrayConverter, or "
                    "another format.class."
                )
        return [bytes(value) + self.separator for value in values]


@dataclass(frozen=True)
class StringFormat(_LinesFormat):
    """The text of each value as a line."""

    suffix: str = ".txt"

    def writer(self, sink: Callable[[bytes], object], schema: Schema | None, seed: str) -> _PartsWriter:  # noqa: ARG002
        """Return the writer of a file."""
        render = text_renderer(schema, dt.UTC)

        def lines(values: Sequence[Any]) -> list[bytes]:
            return [_line(render(value)) for value in values]

        return _PartsWriter(sink, self._compression, lines)


def _line(text: str) -> bytes:
    if any(end in text for end in _LINE_BREAKS):
        raise DataError("The text has a line break, so that it would be two lines of the file: use JsonFormat.")
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError as error:
        raise DataError(f"The text cannot be written as UTF-8: {error}") from error
