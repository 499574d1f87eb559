"""SQLite, whose columns have types that its values need not follow."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.data import Schema, Type, date_schema, time_schema
from connect.data.logical import EPOCH
from connect.errors import DataError
from connect.kits.sql.column import Column, NativeType, TableId
from connect.kits.sql.dialect import Cursor, Dialect
from connect.kits.sql.values import (
    Reading,
    checked_integer,
    checked_text,
    numeric_reading,
    timestamp_reading,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["SqliteDialect"]

_TYPE: Final = re.compile(r"\s*([^()]*)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*(.*)")
_MICROS: Final = "sluice_micros"
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_KINDS: Final = {"TABLE": "table", "VIEW": "view"}
_OF_VALUES: Final = {"integer": "integer", "real": "real", "text": "text", "blob": "blob"}
_TIMESTAMPS: Final = ("timestamp", "datetime")
_VIEW: Final = "sluice_query"


class SqliteDialect(Dialect):
    """SQLite files.

    Dates and times are ISO 8601 text, or milliseconds since the epoch, as the Java driver writes them.
    """

    backend: ClassVar[str] = "sqlite"
    java_names: ClassVar[tuple[str, ...]] = ("SqliteDatabaseDialect",)
    placeholder: ClassVar[str] = "?"

    def tables(
        self,
        connection: Connection,
        *,
        types: Iterable[str] = ("TABLE",),
        catalog: str | None = None,  # noqa: ARG002 - SQLite has none
        schema: str | None = None,  # noqa: ARG002
    ) -> list[TableId]:
        kinds = [_KINDS[each] for each in types if each in _KINDS]
        found = connection.exec_driver_sql(
            "SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        return sorted(TableId(name) for name, kind in found if kind in kinds)

    def resolve(self, connection: Connection, table: TableId) -> TableId | None:
        found = connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND lower(name) = lower(?)", (table.name,)
        ).scalars()
        return next((TableId(name) for name in found), None)

    def columns(self, connection: Connection, table: TableId) -> tuple[Column, ...]:
        rows = connection.exec_driver_sql(f"PRAGMA table_xinfo({self._always_quoted(table.name)})").all()
        types = [_native(kind) for _, _, kind, *_ in rows]
        untyped = [self.quote(row[1]) for row, kind in zip(rows, types, strict=True) if not kind.name]
        known = self._types_of_values(connection, untyped, self.quoted(table))
        keys = [row[5] for row in rows]
        return tuple(
            Column(
                name,
                kind if kind.name else NativeType(next(known)),
                nullable=not required and not (key and kind.name == "integer" and max(keys) == 1),
                has_default=default is not None,
                autoincrement=bool(key) and kind.name == "integer" and max(keys) == 1,
                generated=hidden in (2, 3),
            )
            for (_, name, _, required, default, key, hidden), kind in zip(rows, types, strict=True)
            if hidden != 1
        )

    def primary_key(self, connection: Connection, table: TableId) -> tuple[str, ...]:
        rows = connection.exec_driver_sql(f"PRAGMA table_xinfo({self._always_quoted(table.name)})").all()
        return tuple(row[1] for row in sorted(rows, key=lambda row: row[5]) if row[5])

    def result_columns(self, connection: Connection, cursor: Cursor, sql: str) -> tuple[Column, ...]:
        """Return columns typed by the table columns that the query names, or else by their first value."""
        names = [each[0] for each in cursor.description]
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS temp.{_VIEW}")
        connection.exec_driver_sql(f"CREATE TEMPORARY VIEW {_VIEW} AS {sql}")
        try:
            found = self.columns(connection, TableId(_VIEW, schema="temp"))
        finally:
            connection.exec_driver_sql(f"DROP VIEW temp.{_VIEW}")
        return tuple(Column(name, column.type) for name, column in zip(names, found, strict=True))

    def size(self, connection: Connection, table: TableId) -> int:
        found = connection.exec_driver_sql(f"SELECT count(*) FROM {self.quoted(table)}").scalar()  # noqa: S608
        return int(found or 0)

    def prepare(self, connection: Connection, *, reads: bool) -> None:  # noqa: ARG002
        local = timestamp_reading(self.options, _moment).local
        assert local is not None

        def micros(value: Any) -> int | None:
            try:
                return None if value is None else _micros(local(value))
            except (DataError, ValueError):
                return None

        driver: Any = connection.connection.driver_connection
        driver.create_function(_MICROS, 1, micros, deterministic=True)

    def reading(self, column: Column) -> Reading | None:
        kind = column.type
        if kind.name in _TIMESTAMPS:
            return timestamp_reading(self.options, _moment)
        if kind.name == "date":
            times = timestamp_reading(self.options, _moment)
            return Reading(date_schema(), _date, times.instant, times.local)
        for parts, reading in _READINGS:
            if any(part in kind.name for part in parts):
                return reading
        scale = kind.scale if kind.scale is not None or kind.precision is None else 0
        return numeric_reading(kind.precision, scale, self.options)

    def cursor(self, connection: Connection) -> Cursor:
        driver: Any = connection.connection.driver_connection
        cursor: Cursor = driver.cursor()
        return cursor

    def now(self, connection: Connection) -> dt.datetime:  # noqa: ARG002 - it runs in this process
        return dt.datetime.now(dt.UTC)

    def timestamp_expression(self, name: str) -> str:
        """Return the time in ``db.timezone`` in microseconds, however it is written."""
        return f"{_MICROS}({name})"

    def unreadable_time(self, name: str) -> str:
        return f"{name} IS NOT NULL AND {_MICROS}({name}) IS NULL"

    def timestamp_parameter(self, columns: Sequence[Column], moment: dt.datetime) -> int:  # noqa: ARG002
        return _micros(moment.astimezone(self.options.zone).replace(tzinfo=dt.UTC))

    def time_zone(self, columns: Sequence[Column]) -> dt.tzinfo:  # noqa: ARG002
        return self.options.zone

    def _always_quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def _types_of_values(self, connection: Connection, names: Sequence[str], table: str) -> Iterator[str]:
        """Return the types of the values in the first row, for columns without a type."""
        if not names:
            return iter(())
        columns = ", ".join(f"typeof({name})" for name in names)
        row = connection.exec_driver_sql(f"SELECT {columns} FROM {table} LIMIT 1").first()  # noqa: S608
        return iter([_OF_VALUES.get(kind, "text") for kind in row or ["null"] * len(names)])


def _native(text: str) -> NativeType:
    match = _TYPE.fullmatch(text.lower())
    if match is None:
        return NativeType(text.lower())
    name, precision, scale, rest = match.groups()
    words = f"{name} {rest}".split()
    return NativeType(
        " ".join(word for word in words if word != "unsigned"),
        None if precision is None else int(precision),
        None if scale is None else int(scale),
        "unsigned" in words,
    )


def _micros(moment: dt.datetime) -> int:
    elapsed: int = (moment - EPOCH) // _MICROSECOND
    return elapsed


def _boolean(value: Any) -> bool:
    if value not in (0, 1):
        raise DataError(f"{str(value)[:40]!r} is neither 0 nor 1")
    return bool(value)


def _float(value: Any) -> float:
    if not isinstance(value, int | float):
        raise DataError(f"{str(value)[:40]!r} is not a number")
    return float(value)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise DataError(f"the value is a {type(value).__name__}, but bytes are expected")
    return value


def _moment(value: Any) -> Any:
    if isinstance(value, int):
        try:
            return EPOCH + dt.timedelta(milliseconds=value)
        except OverflowError as error:
            raise DataError(f"{value} milliseconds are outside the years 1 to 9999") from error
    if isinstance(value, str):
        return dt.datetime.fromisoformat(value)
    return value


def _date(value: Any) -> dt.date:
    if isinstance(value, str) and len(value) == len("2013-01-01"):
        return dt.date.fromisoformat(value)
    moment = _moment(value)
    if not isinstance(moment, dt.datetime):
        raise DataError(f"{str(value)[:40]!r} is not a date")
    return moment.date()


def _time(value: Any) -> dt.time:
    if isinstance(value, str):
        parsed = dt.time.fromisoformat(value)
        if parsed.tzinfo is None:
            return parsed
    elif isinstance(value, int) and 0 <= value < 86_400_000:
        return (EPOCH + dt.timedelta(milliseconds=value)).time()
    raise DataError(f"{str(value)[:40]!r} is not a time of day")


_READINGS: Final = (
    (("bool",), Reading(Schema.boolean(), _boolean)),
    (("time",), Reading(time_schema(), _time)),
    (("int",), Reading(Schema.int64(), checked_integer(Type.INT64))),
    (("char", "clob", "text", "json", "uuid"), Reading(Schema.string(), checked_text)),
    (("blob", "binary"), Reading(Schema.bytes(), _bytes)),
    (("real", "floa", "doub"), Reading(Schema.float64(), _float)),
)
"""By what is in the name of a type, in this order, as SQLite itself tells their affinity."""
