"""CSV files: with a header of the fields of structs and maps, or of chosen parts of records without one."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final

from connect.data import Column, Schema, Type
from connect.errors import DataError, SchemaError
from connect.kits.files.formats.compression import COMPRESSION_EXTENSIONS, Compression, compressed
from connect.kits.files.formats.json_values import json_encoder

__all__ = ["CsvFormat", "csv_cell"]

_QUOTE: Final = '"'
_SPECIAL: Final = (_QUOTE, "\r", "\n")
_any_json: Final = json_encoder(None, numeric_decimals=True)


@dataclass(frozen=True)
class CsvFormat:
    """A header with the names of the fields, then a line for each record. Null is empty, an empty text is ``""``."""

    needs_struct: ClassVar[bool] = True
    compression: Compression = "none"
    level: int = -1
    suffix: str = ".csv"
    has_header: bool = True
    delimiter: str = ","

    @property
    def extension(self) -> str:
        """The end of the names of files."""
        return self.suffix + COMPRESSION_EXTENSIONS[self.compression]

    def writer(self, sink: Callable[[bytes], object], schema: Schema | None, seed: str) -> _CsvWriter:  # noqa: ARG002
        """Return the writer of a file."""
        if schema is not None and schema.type is not Type.STRUCT:
            raise SchemaError(
                f"CsvFormat has columns, and a value of type {schema.type.value} has none: use StringFormat, or wrap "
                "values with the transformation HoistField$Value."
            )
        names = None if schema is None else schema.field_names
        return _CsvWriter(compressed(sink, self.compression, self.level), names, self.delimiter, self.has_header)


class _CsvWriter:
    """Writes lines; without a schema, the first record names the columns."""

    def __init__(self, sink: Any, names: Sequence[str] | None, delimiter: str, has_header: bool) -> None:
        self._sink = sink
        self._delimiter = delimiter
        self._names = names
        self._has_header = has_header

    @property
    def held(self) -> int:
        held: int = self._sink.held
        return held

    def write(self, column: Column) -> None:
        values = column.values()
        if not values:
            return
        names = self._names or _names_of(values[0])
        lines = [_line(names, value, self._delimiter) for value in values]
        if self._has_header:
            lines.insert(0, self._header(names))
        text = "\n".join([*lines, ""])
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"A text cannot be written as UTF-8: {error}") from error
        self._names, self._has_header = names, False
        self._sink.write(data)

    def close(self) -> None:
        if self._has_header and self._names:
            self._sink.write((self._header(self._names) + "\n").encode())
        self._sink.close()

    def _header(self, names: Sequence[str]) -> str:
        return self._delimiter.join(csv_cell(name, self._delimiter) for name in names)


def _names_of(value: Any) -> Sequence[str]:
    if not isinstance(value, Mapping) or not value:
        raise DataError(
            f"CsvFormat has columns, and a {type(value).__name__} has none: use a converter that makes structs."
        )
    return tuple(map(str, value))


def _line(names: Sequence[str], value: Any, delimiter: str) -> str:
    if not isinstance(value, Mapping):
        raise DataError(f"CsvFormat has columns, and a {type(value).__name__} has none.")
    if unknown := [name for name in value if name not in names]:
        raise DataError(f"The file has no column {unknown[0]}: its first record had {', '.join(names)}.")
    return delimiter.join(csv_cell(value.get(name), delimiter) for name in names)


def csv_cell(value: Any, delimiter: str = ",") -> str:
    """Return the text of a value as a cell, in quotes where it needs them."""
    if value is None:
        return ""
    if not isinstance(value, str):
        make = next((make for kind, make in _TEXTS if isinstance(value, kind)), None)
        if make is not None:
            return make(value)
        value = _any_json([value])[0].decode().rstrip("\n")
    special = not value or delimiter in value or any(mark in value for mark in _SPECIAL)
    return f'"{value.replace(_QUOTE, _QUOTE * 2)}"' if special else value


_TEXTS: Final[Sequence[tuple[Any, Callable[[Any], str]]]] = (
    (bool, lambda value: "true" if value else "false"),
    ((int, float), str),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(bytes(value)).decode()),
    (Decimal, lambda value: format(value, "f")),
    ((dt.date, dt.time), lambda value: value.isoformat()),
)
