"""CSV and TSV files: rows of named and typed columns."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from connect.data import Schema
from connect.errors import DataError
from connect.kits.files.readers.column_type import ColumnType, column_type, inferred_type
from connect.kits.files.readers.layout import Parsed, parse_rows
from connect.kits.files.readers.options import FileFormat, PartitionFields, ReadingOptions
from connect.kits.files.readers.records import Records, quoted_cutter

if TYPE_CHECKING:
    from connect.kits.files.readers.columns import ColumnReader

__all__ = ["Delimited", "Dialect", "schema_name"]


class Dialect:
    """Splits records into the texts of their columns."""

    def __init__(self, config: ReadingOptions, file_format: FileFormat) -> None:
        self.delimiter = config.delimiter_of(file_format)
        self.quote = config.quote
        self.encoding = config.encoding
        self.escape = config.escape if self.quote else ""
        self.cut = quoted_cutter(self.delimiter, self.quote, config.record_max_bytes, self.escape)
        self._quoted = _quoted_value(self.quote, self.escape)
        # Otherwise the csv module refuses fields longer than 128 KiB.
        csv.field_size_limit(max(csv.field_size_limit(), config.record_max_bytes))

    def texts(self, records: Records, index: int) -> list[str]:
        """Return the texts of a record's columns. Raises ``ValueError`` with the reason if it is malformed."""
        if index in records.damaged:
            raise ValueError("a quote is not closed, or a closing quote is followed by other text")
        text = records.raw(index).decode(self.encoding)
        if self.escape and self.escape in text:
            text = self._quoted.sub(self._doubled, text)
        if self.quote:
            reader = csv.reader([text], delimiter=self.delimiter, quotechar=self.quote, strict=True)
        else:
            reader = csv.reader([text], delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=True)
        try:
            return next(reader)
        except csv.Error as error:
            raise ValueError(str(error)) from error

    def _doubled(self, match: re.Match[str]) -> str:
        """Return a quoted value with doubled quotes in place of escaped ones."""
        sign, mark = self.escape, self.quote
        parts = match[0][1:-1].split(sign * 2)
        return mark + sign.join(part.replace(sign + mark, mark * 2) for part in parts) + mark


def _quoted_value(quote: str, escape: str) -> re.Pattern[str]:
    """Return the pattern of a quoted value with escaped characters."""
    mark, sign = re.escape(quote), re.escape(escape)
    return re.compile(rf"{mark}(?:[^{mark}{sign}]++|{sign}[\s\S]|{mark}{mark})*+{mark}" if escape else r"(?!)")


class Delimited:
    """The layout of CSV and TSV files: rows become structs of nullable columns."""

    def __init__(
        self, config: ReadingOptions, dialect: Dialect, names: Sequence[str], types: Sequence[ColumnType]
    ) -> None:
        self.cut = dialect.cut
        self.schema = Schema.struct(
            {name: each.schema for name, each in zip(names, types, strict=True)}, name=config.struct_name
        )
        self._names = names
        self._types = types
        self._dialect = dialect
        self._nulls = config.null_texts
        self._columns = self._column_reader(config) if names and find_spec("pyarrow") else None

    @classmethod
    def of(cls, config: ReadingOptions, dialect: Dialect, first: list[list[str]], name: str) -> Delimited:
        """Create the layout of a file from its first rows, and from its header if there is one."""
        header = first[0] if config.header and first else None
        rows = first[1:] if config.header else first
        names = _names(config, header, rows, name)
        given = config.column_types
        if (unknown := given.keys() - set(names)) and config.partition_fields is PartitionFields.NONE:
            raise DataError(
                f"{name} has no column {min(unknown)}, which is in 'types'; its columns are {', '.join(names)}. "
                "Correct 'types', or exclude the file with 'pattern'."
            )
        nulls = config.null_texts
        types = [
            given.get(column)
            or inferred_type(row[index] for row in rows if index < len(row) and row[index] not in nulls)
            if column in given or config.infer_rows
            else column_type("string")
            for index, column in enumerate(names)
        ]
        return cls(config, dialect, names, types)

    def parse(self, records: Records) -> Parsed:
        """Return the values of the rows, read by column where that gives the same result."""
        if self._columns is not None and len(records):
            column = self._columns.read(records)
            if column is not None:
                return Parsed(column)
        return parse_rows(records, self.schema, lambda index: self._row(records, index))

    def _row(self, records: Records, index: int) -> dict[str, Any]:
        texts = self._dialect.texts(records, index)
        if len(texts) != len(self._names):
            raise ValueError(f"it has {len(texts)} columns, not {len(self._names)}")
        row: dict[str, Any] = {}
        for name, each, text in zip(self._names, self._types, texts, strict=True):
            try:
                row[name] = None if text in self._nulls else each.parse(text)
            except ValueError as error:
                advice = f"correct it, or declare the column in 'types', for example as {name}:string"
                raise ValueError(f"{name} is {text!r} where {each.name} is expected: {error}; {advice}") from error
        return row

    def _column_reader(self, config: ReadingOptions) -> ColumnReader:
        from connect.kits.files.readers.columns import ColumnReader  # noqa: PLC0415 - pyarrow may be missing

        return ColumnReader(
            self.schema,
            self._types,
            texts=self._dialect.texts,
            delimiter=self._dialect.delimiter,
            quote=self._dialect.quote,
            nulls=self._nulls,
            encoding=None if config.is_utf8 else config.encoding,
            escape=self._dialect.escape,
        )


def _names(config: ReadingOptions, header: list[str] | None, rows: list[list[str]], file: str) -> list[str]:
    width = len(header) if header is not None else max(map(len, rows[:1]), default=0)
    if not config.columns:
        names = header if header is not None else [f"column_{index + 1}" for index in range(width)]
    elif width not in (0, len(config.columns)):
        raise DataError(
            f"{file} has {width} columns, but 'columns' has {len(config.columns)} names. Name all columns, in order."
        )
    else:
        names = list(config.columns)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if "" in names or twice:
        what = f"the column {twice[0]!r} twice" if twice else "a column without a name"
        raise DataError(f"{file} has {what} in its header. Set 'columns', or correct the header.")
    return names


def schema_name(topic: str) -> str:
    """Return the topic as a schema name that every converter accepts."""
    name = re.sub(r"[^A-Za-z0-9_.]", "_", topic)
    return f"_{name}" if name[0].isdigit() else name
