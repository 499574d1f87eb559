"""MySQL and MariaDB: many rows per statement, with the values as literals.

The session is strict, so that a value that does not fit is refused and not cut, and strings are escaped with
backslashes.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.data import Schema, Type
from connect.data.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, decimal_scale
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
    checked_decimals,
    checked_texts,
    kind_of,
    local_times,
    nulls_apart,
    precision_of,
    referring,
    run,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["MariadbWriter", "MysqlWriter"]

_NULL: Final = "NULL"
_MOST_DIGITS: Final = 65
_MOST_SCALE: Final = 30
_STATEMENT_BYTES: Final = 1 << 20
_STRICT: Final = (
    "SET SESSION sql_mode = CONCAT_WS(',', NULLIF(REPLACE(REPLACE(@@SESSION.sql_mode, 'NO_BACKSLASH_ESCAPES', ''), "
    "'ANSI_QUOTES', ''), ''), 'STRICT_ALL_TABLES')"
)
_TYPES: Final[dict[Kind, str]] = {
    Type.INT8: "TINYINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "FLOAT",
    Type.FLOAT64: "DOUBLE",
    Type.BOOLEAN: "TINYINT",
    Type.STRING: "LONGTEXT",
    Type.BYTES: "LONGBLOB",
    DATE_NAME: "DATE",
    TIME_NAME: "TIME(3)",
    TIMESTAMP_NAME: "DATETIME(3)",
    PRECISE_NAME: "DATETIME(6)",
    JSON_NAME: "JSON",
}
_KEY_TYPES: Final[dict[Kind, str]] = {Type.STRING: "VARCHAR(255)", Type.BYTES: "VARBINARY(255)"}
_SPECIAL: Final = str.maketrans(
    {"\\": "\\\\", "'": "\\'", '"': '\\"', "\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"}
)
_ROW_ERRORS: Final = frozenset(
    {
        *(1048, 1062, 1169, 1216, 1217, 1451, 1452, 1557, 1586),  # null, duplicate and foreign keys
        *(1264, 1265, 1292, 1364, 1366, 1367, 1406, 1411, 1441, 1690, 3140, 3156, 3819, 4025),  # values, checks
        1644,  # SIGNAL in a trigger
    }
)
_ORDER_ERRORS: Final = frozenset({1062, 1169, 1216, 1217, 1451, 1452, 1557, 1586, 1644})
"""Duplicates, foreign keys, and whatever a trigger looks for."""
_REFERENCES: Final = """
SELECT TABLE_NAME, REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = %(catalog)s
"""
_ACTS: Final = """
SELECT EXISTS (SELECT 1 FROM information_schema.TRIGGERS
WHERE EVENT_OBJECT_SCHEMA = %(catalog)s AND EVENT_OBJECT_TABLE IN %(names)s)
OR EXISTS (SELECT 1 FROM information_schema.VIEWS WHERE TABLE_SCHEMA = %(catalog)s AND TABLE_NAME = %(name)s)
"""


class MysqlWriter(Writer):
    """Writes to MySQL with PyMySQL."""

    longest_name: ClassVar[int | None] = 64
    table_options: ClassVar[str] = " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin"

    def column_type(self, schema: Schema, *, in_key: bool) -> str:
        kind = kind_of(schema)
        if kind == DECIMAL_NAME:
            scale, digits = decimal_scale(schema), precision_of(schema) or _MOST_DIGITS
            if not 0 <= scale <= min(_MOST_SCALE, digits) or digits > _MOST_DIGITS:
                raise DataError(
                    f"A MySQL DECIMAL has at most {_MOST_DIGITS} digits, {_MOST_SCALE} of them decimal places, but "
                    f"the field has a scale of {scale}. Create the column yourself, as text."
                )
            return f"DECIMAL({digits},{scale})"
        return _KEY_TYPES.get(kind, _TYPES[kind]) if in_key else _TYPES[kind]

    def literal(self, schema: Schema, value: Any) -> str:
        (cell,) = self._encode(schema, None)([value])
        # A text or bytes of any length has a default only as an expression.
        return f"({cell})" if kind_of(schema) in (Type.STRING, Type.BYTES, JSON_NAME) else str(cell)

    def prepare(self, connection: Connection) -> None:
        run(connection, _STRICT)

    def encoder(self, schema: Schema, column: Column) -> Encode:
        return nulls_apart(self._encode(schema, column), _NULL)

    def write(self, connection: Connection, target: Target, step: Step) -> None:
        for statement in self.statements(target, step):
            run(connection, statement)

    def blames_row(self, error: Exception) -> bool:
        import pymysql  # noqa: PLC0415 - PyMySQL is loaded only where it is used

        return isinstance(error, pymysql.MySQLError) and bool(error.args) and error.args[0] in _ROW_ERRORS

    def may_be_for_order(self, error: Exception) -> bool:
        return bool(error.args) and error.args[0] in _ORDER_ERRORS

    def reached(self, connection: Connection, table: TableId) -> Reached:
        place = {"name": table.name, "catalog": table.catalog}
        references = connection.exec_driver_sql(_REFERENCES, place).all()
        found = referring(table.name, ((child, parent) for child, parent in references))
        acts = connection.exec_driver_sql(_ACTS, {**place, "names": tuple(found or {table.name})}).scalar()
        return None if acts else found

    def statements(self, target: Target, step: Step) -> Iterator[str]:
        """Yield the statements that carry out a step."""
        table, key = self.dialect.quoted(target.table), target.key_names
        if step.action is Action.UPDATE:
            yield from self._updates(table, target, step)
            return
        if step.action is Action.DELETE:
            head, tail = f"DELETE FROM {table} WHERE ({self.quoted(key)}) IN (", ")"
        else:
            head, tail = f"{self.insert(target)} VALUES ", ""
            if step.action is Action.UPSERT:
                # A key alone has nothing to change, and a second row of it is no error.
                names = target.other_names or key[:1]
                form = "{} = VALUES({})" if target.other_names else "{} = {}"
                tail = f" ON DUPLICATE KEY UPDATE {self.quoted(names, form=form)}"
        for rows in _portions([f"({','.join(row)})" for row in step.rows]):
            yield f"{head}{','.join(rows)}{tail}"

    def _updates(self, table: str, target: Target, step: Step) -> Iterator[str]:
        size = target.key_size
        names = [self.dialect.quote(name) for name in target.names]
        for row in step.rows:
            cells = [f"{name} = {cell}" for name, cell in zip(names, row, strict=True)]
            yield f"UPDATE {table} SET {', '.join(cells[size:])} WHERE {' AND '.join(cells[:size])}"

    def _encode(self, schema: Schema, column: Column | None) -> Encode:
        kind = kind_of(schema)
        if kind == DECIMAL_NAME:
            check_scale(schema)
            return checked_decimals(schema, column, lambda values: [format(value, "f") for value in values])
        if kind in (TIMESTAMP_NAME, PRECISE_NAME):
            # The session is in UTC, which is what TIMESTAMP columns are given in.
            in_utc = column is not None and column.type.name == "timestamp"
            return _times(local_times(dt.UTC if in_utc else self.zone), column)
        if kind == TIME_NAME:
            return _times(lambda values: list(map(dt.time.isoformat, values)), column)
        return _PLAIN[kind]


class MariadbWriter(MysqlWriter):
    """Writes to MariaDB, whose collations have different names."""

    table_options: ClassVar[str] = " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"


def _portions(rows: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield rows for one statement each: about a megabyte, however long a row is."""
    start, size = 0, 0
    for place, row in enumerate(rows):
        size += len(row)
        if size > _STATEMENT_BYTES and place > start:
            yield rows[start:place]
            start, size = place, len(row)
    yield rows[start:]


def _times(write: Encode, column: Column | None) -> Encode:
    """Format times; refuse, not round, those with more fractional digits than the column keeps."""
    kept = (
        6 if column is None or column.type.name not in ("datetime", "timestamp", "time") else column.type.precision or 0
    )
    unit = 10 ** (6 - min(kept, 6))

    def encode(values: Sequence[Any]) -> Sequence[Any]:
        if unit > 1 and any(value.microsecond % unit for value in values):
            assert column is not None
            raise DataError(f"A time has more fractional digits than column {column.name} keeps ({kept}).")
        return [f"'{text}'" for text in write(values)]

    return encode


def _texts(values: Sequence[str]) -> Sequence[str]:
    joined = checked_texts(values)
    if any(special in joined for special in ("\\", "'", '"', "\0", "\n", "\r", "\x1a")):
        values = [value.translate(_SPECIAL) for value in values]
    return [f"'{value}'" for value in values]


def _floats(values: Sequence[float]) -> list[str]:
    floats = list(map(float, values))
    if not all(map(math.isfinite, floats)):
        raise DataError("MySQL cannot store infinity or NaN.")
    # With an exponent it is a DOUBLE, without one a DECIMAL.
    return [text if "e" in text else f"{text}e0" for text in map(repr, floats)]


_PLAIN: Final[dict[Kind, Encode]] = {
    **dict.fromkeys(INTEGERS, lambda values: list(map(int.__repr__, values))),
    Type.FLOAT32: _floats,
    Type.FLOAT64: _floats,
    Type.BOOLEAN: lambda values: ["1" if value else "0" for value in values],
    Type.STRING: _texts,
    JSON_NAME: _texts,
    Type.BYTES: lambda values: [f"x'{bytes.hex(value)}'" for value in values],
    DATE_NAME: lambda values: [f"'{dt.date.isoformat(value)}'" for value in values],
}
