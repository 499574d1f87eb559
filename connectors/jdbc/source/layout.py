"""The layout of rows: the schemas of values and keys, and how a block of rows becomes columns of records."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from types import NoneType
from typing import Any, Final

from connect.data import Schema, StructColumn
from connect.data.logical import EPOCH
from connect.errors import ConnectError, DataError
from connect.kits.sql.column import Column
from connect.kits.sql.dialect import Dialect
from connect.kits.sql.values import Reading
from connectors.jdbc.source.config import Mode

__all__ = ["Block", "Layout", "UnfitRow", "layout_of"]

_MICROSECOND: Final = dt.timedelta(microseconds=1)

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """A row with a value that its schema does not allow: its index in the block, its text, and the error."""

    index: int
    text: str
    error: DataError


@dataclass(frozen=True, slots=True)
class Block:
    """Rows as columns. ``good`` has the indices of those in it, ``None`` if all are; ``unfit`` has the others."""

    value: StructColumn
    key: StructColumn | None
    good: Sequence[int] | None = None
    unfit: Sequence[UnfitRow] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """How to read the rows of a result. ``places`` are the indices of the columns that Connect has a type for."""

    name: str
    columns: tuple[Column, ...]
    places: tuple[int, ...]
    readings: tuple[Reading, ...]
    schema: Schema
    key_schema: Schema | None
    number: int | None
    """The place of the incrementing column."""
    times: tuple[tuple[int, Callable[[Any], dt.datetime]], ...]
    """The places of the timestamp columns, with what makes of their values the times that they are compared by."""

    def block(self, rows: Rows) -> Block:
        """Return the rows as columns: at once, or row by row if a value does not fit."""
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        try:
            values = [
                _converted(columns[place], reading) for place, reading in zip(self.places, self.readings, strict=True)
            ]
        except (DataError, ValueError, OverflowError, TypeError, ArithmeticError):
            return self._row_by_row(rows)
        return Block(*self._struct_columns(values))

    def numbers(self, rows: Rows) -> list[int]:
        """Return the values of the incrementing column."""
        place = self.number
        assert place is not None
        numbers = [row[place] for row in rows]
        if set(map(type, numbers)) == {int}:
            return numbers
        return [_whole(number, self.columns[place].name) for number in numbers]

    def micros(self, rows: Rows) -> Sequence[int | None]:
        """Return the times by which rows are ordered, in microseconds since 1970: the first that is not null.

        A row whose time cannot be read has ``None``; it is reported.
        """
        try:
            return [_micros(next(self._times(row))) for row in rows]
        except (DataError, ValueError, OverflowError, TypeError, ArithmeticError):
            return list(map(self._readable, rows))

    def _readable(self, row: Sequence[Any]) -> int | None:
        with suppress(DataError, ValueError, OverflowError, TypeError, ArithmeticError):
            return _micros(next(self._times(row)))
        return None

    def _times(self, row: Sequence[Any]) -> Iterator[dt.datetime]:
        for place, time in self.times:
            if row[place] is not None:
                yield time(row[place])

    def _struct_columns(self, values: Sequence[Sequence[Any]]) -> tuple[StructColumn, StructColumn | None]:
        fields = dict(zip(self.schema.field_names, values, strict=True))
        value = StructColumn(fields, self.schema)
        if self.key_schema is None:
            return value, None
        return value, StructColumn({name: fields[name] for name in self.key_schema.field_names}, self.key_schema)

    def _row_by_row(self, rows: Rows) -> Block:
        kept: list[list[Any]] = []
        unfit: list[UnfitRow] = []
        for index, row in enumerate(rows):
            try:
                kept.append([*self._values(row)])
            except DataError as error:
                unfit.append(UnfitRow(index, str(tuple(row)), error))
        bad = {each.index for each in unfit}
        values: list[Sequence[Any]] = list(zip(*kept, strict=True)) if kept else [()] * len(self.places)
        good = list(compress(range(len(rows)), (index not in bad for index in range(len(rows)))))
        return Block(*self._struct_columns(values), good, unfit)

    def _values(self, row: Sequence[Any]) -> Iterator[Any]:
        for place, reading in zip(self.places, self.readings, strict=True):
            value = row[place]
            try:
                yield from _converted([value], reading)
            except (DataError, ValueError, OverflowError, TypeError, ArithmeticError) as error:
                column = self.columns[place]
                raise DataError(
                    f"Column {column.name} of {self.name} ({column.type}) has a value that does not fit: {error}"
                ) from error


def layout_of(
    dialect: Dialect,
    name: str,
    columns: Sequence[Column],
    mode: Mode,
    *,
    keys: Sequence[str] = (),
    incrementing: str = "",
    timestamps: Sequence[str] = (),
) -> Layout:
    """Return the layout of rows with these columns.

    Raises :class:`~connect.errors.ConnectError` if a column that the mode or the key needs is missing or unsuitable.
    """
    found = [(place, column, dialect.reading(column)) for place, column in enumerate(columns)]
    read = [(place, column, reading) for place, column, reading in found if reading is not None]
    fields = _fields(name, [(column, reading) for _, column, reading in read])
    key_fields = {each: fields[each] for each in (_find(columns, key, name).name for key in keys)}
    moments = tuple(_moments(dialect, name, columns, timestamps if mode.has_timestamp else ()))
    return Layout(
        name,
        tuple(columns),
        tuple(place for place, _, _ in read),
        tuple(reading for _, _, reading in read),
        Schema.struct(fields, name=name),
        Schema.struct(key_fields, name=f"{name}.Key") if keys else None,
        columns.index(_find(columns, incrementing, name)) if mode.has_incrementing else None,
        moments,
    )


def _fields(name: str, read: Sequence[tuple[Column, Reading]]) -> dict[str, Schema]:
    """Return the schema of each column that is read."""
    names = [column.name for column, _ in read]
    if twice := [each for each, times in Counter(names).items() if times > 1]:
        raise ConnectError(f"{name} has more than one column {twice[0]}: give each a unique name with AS.")
    if not read:
        raise ConnectError(f"{name} has no column of a supported type.")
    return {
        column.name: reading.schema.as_optional() if column.nullable else reading.schema for column, reading in read
    }


def _moments(
    dialect: Dialect, name: str, columns: Sequence[Column], timestamps: Sequence[str]
) -> Iterator[tuple[int, Callable[[Any], dt.datetime]]]:
    """Iterate over the places of the timestamp columns, with what makes of their values what they are compared by."""
    found = [_find(columns, wanted, name) for wanted in timestamps]
    readings = [_reading(dialect, name, column) for column in found]
    if len({column.type.name for column in found}) > 1 and dialect.options.zone is not dt.UTC:
        raise ConnectError(
            f"The timestamp columns of {name} have different types, which are compared in UTC. Set db.timezone=UTC, "
            "or use columns of the same type."
        )
    by_instant = dialect.time_zone(found) is dt.UTC
    for column, reading in zip(found, readings, strict=True):
        if (time := reading.instant if by_instant else reading.local) is not None:
            yield columns.index(column), time


def _reading(dialect: Dialect, name: str, column: Column) -> Reading:
    """Return how a timestamp column is read."""
    reading = dialect.reading(column)
    if reading is None or reading.instant is None:
        raise ConnectError(
            f"Column {column.name} of {name} is of type {column.type}, which is not a time. Set "
            "timestamp.column.name to another column."
        )
    return reading


def _find(columns: Sequence[Column], wanted: str, name: str) -> Column:
    """Return the column with that name, exactly or ignoring case."""
    for column in columns:
        if column.name == wanted:
            return column
    for column in columns:
        if column.name.lower() == wanted.lower():
            return column
    raise ConnectError(
        f"{name} has no column {wanted}; its columns are {', '.join(column.name for column in columns)}."
    )


def _converted(values: Sequence[Any], reading: Reading) -> Sequence[Any]:
    convert = reading.convert
    if convert is None:
        if reading.only is not None and not set(map(type, values)) <= {reading.only, NoneType}:
            raise DataError(f"{str(values[0])[:40]!r} cannot be stored in a {reading.only.__name__}")
        return values
    if None in values:
        return [None if value is None else convert(value) for value in values]
    return list(map(convert, values))


def _whole(value: Any, column: str) -> int:
    if value is None or isinstance(value, str | bytes | float) or int(value) != value:
        raise ConnectError(
            f"The incrementing column {column} has the value {str(value)[:40]!r}, which is not an integer. Use "
            "another column."
        )
    return int(value)


def _micros(moment: dt.datetime) -> int:
    elapsed: int = (moment - EPOCH) // _MICROSECOND
    return elapsed
