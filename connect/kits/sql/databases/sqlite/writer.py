"""SQLite: rows go in by ``executemany``.

Depending on its type, a SQLite column turns strings that look like numbers into numbers, with 15 digits. Whatever would
lose digits that way is refused.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from connect.data import Schema, Type
from connect.data.logical import days_from_date, milliseconds_from_time, milliseconds_from_timestamp
from connect.data.schema import DATE_NAME, DECIMAL_NAME, INTEGER_RANGES, TIME_NAME, TIMESTAMP_NAME, decimal_scale
from connect.errors import DataError
from connect.kits.sql.column import Column, TableId
from connect.kits.sql.writer import (
    INTEGERS,
    JSON_NAME,
    PRECISE_NAME,
    Action,
    Encode,
    Kind,
    Reached,
    Step,
    Target,
    Writer,
    check_scale,
    checked_texts,
    kind_of,
    local_times,
    nulls_apart,
    precision_of,
    referring,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["SqliteWriter"]

_DIGITS: Final = 15
_EXACT: Final = decimal.Context(prec=decimal.MAX_PREC)
_DAY_MS: Final = 86_400_000
_TYPES: Final[dict[Kind, str]] = {
    **dict.fromkeys(INTEGERS, "INTEGER"),
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "REAL",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
    Type.BYTES: "BLOB",
    DATE_NAME: "DATE",
    TIME_NAME: "TIME",
    TIMESTAMP_NAME: "TIMESTAMP",
    PRECISE_NAME: "TIMESTAMP",
    JSON_NAME: "TEXT",
}
_NUMERIC: Final = ("numeric", "decimal", "integer", "int", "bigint")
"""The types of columns in which the Java connector keeps times as milliseconds."""

_ORDER_NAMES: Final = tuple(
    f"SQLITE_CONSTRAINT_{name}" for name in ("FOREIGNKEY", "UNIQUE", "PRIMARYKEY", "ROWID", "TRIGGER")
)
_REFERENCES: Final = """
SELECT lower(m.name), lower(f."table") FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'
"""
_TRIGGERS: Final = "SELECT lower(tbl_name) FROM sqlite_master WHERE type = 'trigger'"


class SqliteWriter(Writer):
    """Writes to SQLite with Python's own driver."""

    def column_type(self, schema: Schema, *, in_key: bool) -> str:  # noqa: ARG002
        kind = kind_of(schema)
        if kind == DECIMAL_NAME:
            precision, scale = precision_of(schema), decimal_scale(schema)
            # A number of SQLite has 15 digits for certain; a longer one is exact only as a text.
            return f"DECIMAL({precision},{scale})" if precision is not None and precision <= _DIGITS else "TEXT"
        return _TYPES[kind]

    def literal(self, schema: Schema, value: Any) -> str:
        (cell,) = self._encode(schema, None)([value])
        if isinstance(cell, bytes):
            return f"X'{cell.hex()}'"
        return "'" + cell.replace("'", "''") + "'" if isinstance(cell, str) else repr(cell)

    def encoder(self, schema: Schema, column: Column) -> Encode:
        return nulls_apart(self._encode(schema, column), None)

    def write(self, connection: Connection, target: Target, step: Step) -> None:
        driver: Any = connection.connection.driver_connection
        driver.executemany(self.statement(target, step.action), self.parameters(target, step))

    def blames_row(self, error: Exception) -> bool:
        import sqlite3  # noqa: PLC0415 - only a task that writes to SQLite needs it

        return isinstance(error, (sqlite3.IntegrityError, sqlite3.DataError)) and not isinstance(
            error, sqlite3.OperationalError
        )

    def may_be_for_order(self, error: Exception) -> bool:
        return getattr(error, "sqlite_errorname", None) in _ORDER_NAMES

    def reached(self, connection: Connection, table: TableId) -> Reached:
        name = table.name.lower()
        references = connection.exec_driver_sql(_REFERENCES).all()
        found = referring(name, ((child, parent) for child, parent in references))
        acting = set(connection.exec_driver_sql(_TRIGGERS).scalars())
        return found if acting.isdisjoint(found or {name}) else None

    def statement(self, target: Target, action: Action) -> str:
        """Return the statement of an action for one row."""
        table, key = self.dialect.quoted(target.table), target.key_names
        if action is Action.DELETE:
            return f"DELETE FROM {table} WHERE {self.matching(key, '?')}"
        if action is Action.UPDATE:
            changes = self.quoted(target.other_names, form="{} = ?")
            return f"UPDATE {table} SET {changes} WHERE {self.matching(key, '?')}"
        places = ", ".join("?" * len(target.columns))
        insert = f"{self.insert(target)} VALUES ({places})"
        if action is Action.INSERT:
            return insert
        changes = self.quoted(target.other_names, form="{} = excluded.{}")
        return f"{insert} ON CONFLICT ({self.quoted(key)}) DO " + (f"UPDATE SET {changes}" if changes else "NOTHING")

    def parameters(self, target: Target, step: Step) -> Sequence[Sequence[Any]]:
        """Return the parameters of the statement for each row."""
        if step.action is not Action.UPDATE:
            return step.rows
        size = target.key_size
        return [row[size:] + row[:size] for row in step.rows]

    def _encode(self, schema: Schema, column: Column | None) -> Encode:
        kind = kind_of(schema)
        if kind == DECIMAL_NAME:
            check_scale(schema)
            return _decimals(column)
        in_numbers = column is not None and column.type.name in _NUMERIC
        if kind in (TIMESTAMP_NAME, PRECISE_NAME):
            return _milliseconds if in_numbers else local_times(self.zone)
        if in_numbers and kind in _AS_NUMBERS:
            return _AS_NUMBERS[kind]
        return _PLAIN[kind]


def _milliseconds(values: Sequence[dt.datetime]) -> list[int]:
    for value in values:
        if value.microsecond % 1000:
            raise DataError(f"{value} is more precise than the milliseconds that the column keeps.")
    return list(map(milliseconds_from_timestamp, values))


def _texts(values: Sequence[str]) -> Sequence[str]:
    checked_texts(values)
    return values


def _integers(values: Sequence[int]) -> Sequence[int]:
    least, most = INTEGER_RANGES[Type.INT64]
    if values and not least <= min(values) <= max(values) <= most:
        raise DataError("An integer does not fit into 64 bits.")
    return values


def _floats(values: Sequence[float]) -> list[float]:
    floats = list(map(float, values))
    if any(map(math.isnan, floats)):
        raise DataError("SQLite would store NaN as null.")
    return floats


def _decimals(column: Column | None) -> Encode:
    if column is None or column.type.name in ("text", "blob", "") or "char" in column.type.name:
        return lambda values: [format(value, "f") for value in values]
    return lambda values: [_number(value, column.name) for value in values]


def _number(value: decimal.Decimal, name: str) -> int | str:
    if value == value.to_integral_value() and abs(value) < 2**63:
        return int(value)
    digits = value.as_tuple().digits
    if len(digits) > _DIGITS and len(value.normalize(_EXACT).as_tuple().digits) > _DIGITS:
        raise DataError(f"{value} has more digits than the {_DIGITS} that column {name} keeps. Make it a TEXT column.")
    return format(value, "f")


_PLAIN: Final[dict[Kind, Encode]] = {
    **dict.fromkeys(INTEGERS, _integers),
    Type.FLOAT32: _floats,
    Type.FLOAT64: _floats,
    Type.BOOLEAN: lambda values: list(map(int, values)),
    Type.STRING: _texts,
    JSON_NAME: _texts,
    Type.BYTES: lambda values: list(map(bytes, values)),
    DATE_NAME: lambda values: list(map(dt.date.isoformat, values)),
    TIME_NAME: lambda values: list(map(dt.time.isoformat, values)),
}
_AS_NUMBERS: Final[dict[Kind, Encode]] = {
    DATE_NAME: lambda values: [days_from_date(value) * _DAY_MS for value in values],
    TIME_NAME: lambda values: list(map(milliseconds_from_time, values)),
}
