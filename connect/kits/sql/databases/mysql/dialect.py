"""MySQL and MariaDB, with PyMySQL."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.data import Schema, Type, date_schema, decimal_schema, time_schema
from connect.data.logical import EPOCH
from connect.errors import DataError
from connect.kits.sql.column import Column, NativeType, TableId
from connect.kits.sql.dialect import Cursor, Dialect
from connect.kits.sql.values import PRECISION, Reading, midnight, numeric_reading, timestamp_reading

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["MariadbDialect", "MysqlDialect"]

_KINDS: Final = {"TABLE": "BASE TABLE", "VIEW": "VIEW"}
_SYSTEM: Final = ("information_schema", "mysql", "performance_schema", "sys")
_TABLES: Final = """
SELECT table_name, table_schema FROM information_schema.tables WHERE table_type IN %(kinds)s
AND table_schema NOT IN %(system)s AND (CASE WHEN %(catalog)s IS NULL THEN table_schema = DATABASE()
ELSE table_schema LIKE %(catalog)s END)
"""
_RESOLVE: Final = """
SELECT table_name, table_schema FROM information_schema.tables
WHERE table_name = %(name)s AND table_schema = IF(%(catalog)s = '', DATABASE(), %(catalog)s)
"""
_COLUMNS: Final = """
SELECT column_name, column_type, is_nullable, column_default IS NOT NULL, extra FROM information_schema.columns
WHERE table_name = %(name)s AND table_schema = IF(%(catalog)s = '', DATABASE(), %(catalog)s) ORDER BY ordinal_position
"""
_PRIMARY_KEY: Final = """
SELECT column_name FROM information_schema.key_column_usage WHERE constraint_name = 'PRIMARY'
AND table_name = %(name)s AND table_schema = IF(%(catalog)s = '', DATABASE(), %(catalog)s) ORDER BY ordinal_position
"""
_SIZE: Final = """
SELECT data_length FROM information_schema.tables
WHERE table_name = %(name)s AND table_schema = IF(%(catalog)s = '', DATABASE(), %(catalog)s)
"""
_TYPE: Final = re.compile(r"(\w+)(?:\((.*?)\))?(?=[^)]*$)(.*)", re.DOTALL)
_VALUES: Final = re.compile(r"'((?:[^']|'')*)'")
_SIGNED: Final = {
    "tinyint": Type.INT8,
    "smallint": Type.INT16,
    "mediumint": Type.INT32,
    "int": Type.INT32,
    "bigint": Type.INT64,
}
_UNSIGNED: Final = {"tinyint": Type.INT16, "smallint": Type.INT32, "mediumint": Type.INT32, "int": Type.INT64}
_TEXTS: Final = frozenset(
    {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json", "uuid", "inet4", "inet6"}
)
_UTC: Final = ("timestamp",)
_UNSIGNED_FLAG: Final = 32
_BINARY_CHARSET: Final = 63
_NOT_NULL_FLAG: Final = 1
_ENUM_FLAG: Final = 256
_SET_FLAG: Final = 2048
_DAY: Final = dt.timedelta(days=1)
_UNSIGNED_LONG: Final = decimal_schema(0, parameters={PRECISION: "20"})
_CODES: Final[Mapping[int, str]] = {
    0: "decimal", 1: "tinyint", 2: "smallint", 3: "int", 4: "float", 5: "double", 7: "timestamp", 8: "bigint",
    9: "mediumint", 10: "date", 11: "time", 12: "datetime", 13: "year", 15: "varchar", 16: "bit", 245: "json",
    246: "decimal", 247: "enum", 248: "set", 249: "text", 250: "text", 251: "text", 252: "text", 253: "varchar",
    254: "char", 255: "geometry",
}  # fmt: skip
"""The names of the types that the protocol has numbers for."""


class MysqlDialect(Dialect):
    """MySQL 8 and later. A database is a catalog, as in JDBC."""

    backend: ClassVar[str] = "mysql"
    java_names: ClassVar[tuple[str, ...]] = ("MySqlDatabaseDialect",)
    quotes: ClassVar[tuple[str, str]] = ("`", "`")
    has_catalogs: ClassVar[bool] = True
    rewrites_queries: ClassVar[bool] = True

    def tables(
        self,
        connection: Connection,
        *,
        types: Iterable[str] = ("TABLE",),
        catalog: str | None = None,
        schema: str | None = None,  # noqa: ARG002 - it has none
    ) -> list[TableId]:
        kinds = [_KINDS[each] for each in types if each in _KINDS]
        if not kinds:
            return []
        found = connection.exec_driver_sql(_TABLES, {"kinds": kinds, "system": list(_SYSTEM), "catalog": catalog})
        return sorted(TableId(name, catalog=database) for name, database in found)

    def resolve(self, connection: Connection, table: TableId) -> TableId | None:
        found = connection.exec_driver_sql(_RESOLVE, {"name": table.name, "catalog": table.catalog}).first()
        return None if found is None else TableId(found[0], catalog=found[1])

    def columns(self, connection: Connection, table: TableId) -> tuple[Column, ...]:
        rows = connection.exec_driver_sql(_COLUMNS, {"name": table.name, "catalog": table.catalog})
        return tuple(
            Column(
                name,
                _native(_text(kind)),
                nullable=nullable == "YES",
                has_default=bool(has_default) or "DEFAULT_GENERATED" in extra,
                autoincrement="auto_increment" in extra,
                generated="GENERATED" in extra.replace("DEFAULT_GENERATED", ""),
            )
            for name, kind, nullable, has_default, extra in rows
        )

    def primary_key(self, connection: Connection, table: TableId) -> tuple[str, ...]:
        found = connection.exec_driver_sql(_PRIMARY_KEY, {"name": table.name, "catalog": table.catalog})
        return tuple(found.scalars())

    def result_columns(self, connection: Connection, cursor: Cursor, sql: str) -> tuple[Column, ...]:  # noqa: ARG002
        fields: Any = cursor._result.fields  # type: ignore[attr-defined]
        return tuple(
            Column(field.name, _native_of_field(field), nullable=not field.flags & _NOT_NULL_FLAG) for field in fields
        )

    def size(self, connection: Connection, table: TableId) -> int:
        found = connection.exec_driver_sql(_SIZE, {"name": table.name, "catalog": table.catalog}).scalar()
        return int(found or 0)

    def prepare(self, connection: Connection, *, reads: bool) -> None:  # noqa: ARG002
        connection.exec_driver_sql("SET time_zone = '+00:00'")
        # How many seconds the server waits for us to continue reading.
        connection.exec_driver_sql("SET SESSION net_write_timeout = 3600")

    def reading(self, column: Column) -> Reading | None:
        kind = column.type
        if (integer := (_UNSIGNED if kind.unsigned else _SIGNED).get(kind.name)) is not None:
            return Reading(Schema(integer))
        if kind.name == "decimal":
            return numeric_reading(kind.precision, kind.scale, self.options)
        if kind.name in ("datetime", "timestamp"):
            return timestamp_reading(self.options, zone=dt.UTC if kind.name in _UTC else None)
        if kind.name == "date":
            times = timestamp_reading(self.options, midnight)
            return Reading(date_schema(), _date, times.instant, times.local)
        if kind.name == "bit" and kind.precision == 1:
            return Reading(Schema.boolean(), _bit)
        return Reading(Schema.string()) if kind.name in _TEXTS else _READINGS.get(kind.name, _BYTES)

    def selected(self, column: Column) -> str:
        """Return a column; a FLOAT as a double, since MySQL writes only six of its digits."""
        quoted = self.quote(column.name)
        return f"{quoted} + 0e0 AS {quoted}" if column.type.name == "float" else quoted

    def selected_of(self, query: str, columns: Sequence[Column]) -> str:
        if not any(column.type.name == "float" for column in columns):
            return query
        always = self if self._quote else type(self)(self.options)
        return f"SELECT {', '.join(map(always.selected, columns))} FROM ({query}\n) sluice_rows"  # noqa: S608 - quoted

    def cursor(self, connection: Connection) -> Cursor:
        from pymysql.cursors import SSCursor  # noqa: PLC0415 - PyMySQL is loaded only where it is used

        driver: Any = connection.connection.driver_connection
        cursor: Cursor = driver.cursor(SSCursor)
        return cursor

    def abandon(self, cursor: Cursor) -> None:
        """Let go of a result without reading the rest of it, which PyMySQL would even after the connection closed."""
        abandoned: Any = cursor
        if abandoned._result is not None:
            abandoned._result.unbuffered_active = False
        abandoned.connection = None

    def now(self, connection: Connection) -> dt.datetime:
        moment: dt.datetime = connection.exec_driver_sql("SELECT UTC_TIMESTAMP(6)").scalar_one()
        return moment.replace(tzinfo=dt.UTC)

    def timestamp_parameter(self, columns: Sequence[Column], moment: dt.datetime) -> dt.datetime:
        """Return a time without a zone: in UTC, the session's zone, for TIMESTAMP; in ``db.timezone`` for DATETIME."""
        return moment.astimezone(self.time_zone(columns)).replace(tzinfo=None)

    def time_zone(self, columns: Sequence[Column]) -> dt.tzinfo:
        return dt.UTC if all(column.type.name in _UTC for column in columns) else self.options.zone


class MariadbDialect(MysqlDialect):
    """MariaDB 10.6 and later."""

    backend: ClassVar[str] = "mariadb"
    java_names: ClassVar[tuple[str, ...]] = ()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _native(text: str) -> NativeType:
    match = _TYPE.fullmatch(text)
    if match is None:
        return NativeType(text.lower())
    name, arguments, rest = match[1].lower(), match[2], match[3].lower()
    if name in ("enum", "set"):
        return NativeType(name, values=tuple(each.replace("''", "'") for each in _VALUES.findall(text)))
    digits = [int(part) for part in (arguments or "").split(",") if part.strip().isdecimal()]
    if name == "time":
        digits = digits[:1]
    precision, scale = (*digits, None, None)[:2]
    return NativeType(name, precision, scale, "unsigned" in rest)


def _native_of_field(field: Any) -> NativeType:
    name = _CODES.get(field.type_code, "blob")
    unsigned = bool(field.flags & _UNSIGNED_FLAG)
    if name == "decimal":
        digits = field.length - (field.scale > 0) - (not unsigned)
        return NativeType(name, digits, field.scale, unsigned)
    if name in ("varchar", "char", "text"):
        if field.flags & _ENUM_FLAG or field.flags & _SET_FLAG:
            return NativeType("enum" if field.flags & _ENUM_FLAG else "set")
        return NativeType("blob" if field.charsetnr == _BINARY_CHARSET else name)
    if name == "bit":
        return NativeType(name, field.length)
    return NativeType(name, unsigned=unsigned)


def _bit(value: bytes) -> bool:
    return value != b"\x00"


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _date(value: Any) -> dt.date:
    if not isinstance(value, dt.date):
        raise DataError(f"{str(value)[:40]!r} is not a date")
    return value


def _time(value: Any) -> dt.time:
    if not isinstance(value, dt.timedelta) or not dt.timedelta() <= value < _DAY:
        raise DataError(f"{value} is not a time of day")
    return (EPOCH + value).time()


_BYTES: Final = Reading(Schema.bytes(), _bytes)
_READINGS: Final[Mapping[str, Reading]] = {
    "bigint": Reading(_UNSIGNED_LONG, decimal.Decimal),
    "float": Reading(Schema.float32()),
    "double": Reading(Schema.float64()),
    "time": Reading(time_schema(), _time),
    "year": Reading(Schema.int32()),
}
