"""The column path for delimited records: reads whole blocks with Arrow where the result equals that of the row path.

The row path in :mod:`connect.kits.files.readers.delimited` is the specification. Where Arrow refuses a block,
or might read it differently, the result is ``None`` and the block is read row by row.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from connect.data import ArrowColumn, Column, Schema
from connect.data.arrow import arrow_type
from connect.kits.files.readers.column_type import ColumnType
from connect.kits.files.readers.records import Records

__all__ = ["ColumnReader"]

_TRUE: Final = ["true", "True", "TRUE", "1"]
_FALSE: Final = ["false", "False", "FALSE", "0"]
_ZONE: Final = re.compile(r"Z|[+-]")
_DATE_CHARACTERS: Final = 10
_FIRST_DAY: Final = -719_162
_FIRST_MS: Final = -62_135_596_800_000
_LAST_MS: Final = 253_402_300_799_999


class ColumnReader:
    """Reads blocks of records with the same columns."""

    def __init__(
        self,
        schema: Schema,
        types: Sequence[ColumnType],
        *,
        texts: Callable[[Records, int], list[str]],
        delimiter: str,
        quote: str,
        nulls: frozenset[str],
        encoding: str | None,
        escape: str = "",
    ) -> None:
        self._schema = schema
        self._types = dict(zip(schema.field_names, types, strict=True))
        self._texts = texts
        self._delimiter = delimiter
        self._quote = quote
        self._nulls = nulls
        self._encoding = encoding
        self._escape = escape.encode()
        self._zoned: dict[str, bool] = {}
        self._has_integers = any(each.name.startswith("int") for each in types)
        before = (delimiter, quote or delimiter, "\n", " ", "\t", "-")
        self._hexadecimal = [(mark + zero).encode() for mark in before for zero in ("0x", "0X")]
        self._timestamps = [
            (index, name) for index, (name, each) in enumerate(self._types.items()) if each.name == "timestamp"
        ]

    def read(self, records: Records) -> Column | None:
        """Return the values of the records; ``None`` if they must be read row by row."""
        data = records.data[: records.consumed]
        if records.damaged or (self._escape and self._escape in data) or not self._is_unambiguous(data):
            return None
        try:
            if self._encoding is not None:
                data = data.decode(self._encoding).encode()
            self._detect_zones(records)
            table = self._table(data)
            if len(table) != len(records):
                return None
            columns = [self._column(table.column(name), name, each) for name, each in self._types.items()]
        except (pa.ArrowInvalid, ValueError):
            return None
        if any(column is None for column in columns):
            return None
        fields = [pa.field(name, column.type) for name, column in zip(self._types, columns, strict=True)]
        struct: Any = pa.StructArray.from_arrays(columns, fields=fields)
        return ArrowColumn(struct, self._schema)

    def _is_unambiguous(self, data: bytes) -> bool:
        # Arrow takes a lone \r as a line ending, 0x10 as 16, and 0xff in an int8 column as -1.
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            return False
        if not self._has_integers or not (b"0x" in data or b"0X" in data):
            return True
        return not data.startswith((b"0x", b"0X")) and not any(prefix in data for prefix in self._hexadecimal)

    def _detect_zones(self, records: Records) -> None:
        """Detect in the first record which timestamps have a zone: Arrow reads a column with zones or without."""
        if not self._timestamps:
            return
        texts = self._texts(records, 0)
        for index, name in self._timestamps:
            text = texts[index] if index < len(texts) else ""
            if text and text not in self._nulls:
                self._zoned[name] = _ZONE.search(text, _DATE_CHARACTERS) is not None

    def _table(self, data: bytes) -> pa.Table:
        return pa_csv.read_csv(
            io.BytesIO(data),
            read_options=pa_csv.ReadOptions(
                column_names=list(self._types), use_threads=False, block_size=len(data) + 1
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self._delimiter,
                quote_char=self._quote or False,
                double_quote=True,
                newlines_in_values=bool(self._quote) and self._quote.encode() in data,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types={
                    name: pa.string() if each.form is not None else self._read_as(name, each)
                    for name, each in self._types.items()
                },
                null_values=list(self._nulls),
                true_values=_TRUE,
                false_values=_FALSE,
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )

    def _read_as(self, name: str, each: ColumnType) -> Any:
        if each.name == "timestamp":
            return pa.timestamp("us", tz="UTC" if self._zoned.get(name) else None)
        # Through float64, like the row path: any other way may round to a different float32.
        return pa.float64() if each.name == "float32" else arrow_type(each.schema)

    def _column(self, chunked: Any, name: str, each: ColumnType) -> Any:
        """Return one column in the type of its schema; ``None`` if the row path would give another value."""
        array: Any = pa.concat_arrays(chunked.chunks) if chunked.num_chunks != 1 else chunked.chunk(0)
        if each.form is not None:
            if not _has_form(array, each.form.pattern):
                return None
            array = _booleans(array) if each.name == "boolean" else array.cast(self._read_as(name, each))
        if each.name in ("float32", "float64"):
            array = array.cast(pa.float32()) if each.name == "float32" else array
            return None if pc.any(pc.is_inf(array)).as_py() else array
        if each.name == "timestamp":
            array = array.cast(pa.timestamp("ms", tz=array.type.tz)).cast(arrow_type(each.schema))
            return array if _is_within(array.view(pa.int64()), _FIRST_MS, _LAST_MS) else None
        if each.name == "date":
            return array if _is_within(array.view(pa.int32()), _FIRST_DAY, None) else None
        return array


def _has_form(texts: Any, form: str) -> bool:
    """Return whether all texts have a form; the row path says which has not."""
    return pc.all(pc.match_substring_regex(texts, rf"\A(?:{form})\z")).as_py() is not False


def _booleans(texts: Any) -> Any:
    return pc.if_else(pc.is_null(texts), pa.scalar(None, pa.bool_()), pc.is_in(texts, pa.array(_TRUE)))


def _is_within(numbers: Any, first: int, last: int | None) -> bool:
    extremes: Any = pc.min_max(numbers).as_py()
    low, high = extremes["min"], extremes["max"]
    return low is None or (low >= first and (last is None or high <= last))
