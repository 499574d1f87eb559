"""PostgreSQL: rows go in by COPY; upserts, updates and deletes go through a temporary table.

COPY sends each value as text, which the server parses according to the type of the column. So a string can go into
columns of type uuid, json, enum and anything else with a text form, and the server refuses an invalid one.
"""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.data import ArrowColumn, Schema, Type
from connect.data.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
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
    checked_decimals,
    checked_texts,
    kind_of,
    local_times,
    nulls_apart,
    run,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["PostgresqlWriter"]

_NULL: Final = "\\N"
_COMMA: Final = ","
_SPECIAL: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_TYPES: Final[dict[Kind, str]] = {
    Type.INT8: "SMALLINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE PRECISION",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
    Type.BYTES: "BYTEA",
    DECIMAL_NAME: "DECIMAL",
    DATE_NAME: "DATE",
    TIME_NAME: "TIME",
    TIMESTAMP_NAME: "TIMESTAMP",
    PRECISE_NAME: "TIMESTAMP",
    JSON_NAME: "JSONB",
}
_WITH_ZONE: Final = ("timestamp with time zone", "timestamptz")
_WITHOUT_ZONE: Final = ("timestamp without time zone", "timestamp")
_LOCAL_TIME: Final = "timestamp[ms]"
"""What Arrow calls times like those of Connect, without their zone."""
_FLOATING: Final = ("double precision", "float8", "real", "float4")
_ROW_CLASSES: Final = ("22", "23", "44")
"""The classes of SQLSTATE that are about values, constraints and views with a check."""
_ROW_STATES: Final = ("21000", "42804", "P0001")
"""Two rows of one key, a type that does not fit, an error that a trigger raised."""
_ORDER_STATES: Final = ("23503", "23505", "23P01", "23001", "23000", "P0001")
"""Foreign keys, duplicates, exclusion, and whatever a trigger looks for."""
_SHAPES: Final = """
SELECT (SELECT array_agg((attname, atttypid, atttypmod)::text ORDER BY attnum) FROM pg_catalog.pg_attribute
    WHERE attrelid = name::regclass AND attnum > 0 AND NOT attisdropped)
FROM unnest(%(tables)s::text[]) WITH ORDINALITY AS given (name, place) ORDER BY place
"""
_REACHED: Final = """
WITH RECURSIVE reached (id) AS (SELECT %(table)s::regclass::oid
UNION SELECT conrelid FROM pg_catalog.pg_constraint JOIN reached ON confrelid = id WHERE contype = 'f')
SELECT id, EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conrelid = id AND contype = 'f'),
EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = id AND NOT tgisinternal)
OR EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = id)
FROM reached
"""


class PostgresqlWriter(Writer):
    """Writes to PostgreSQL with psycopg."""

    has_arrays: ClassVar[bool] = True
    longest_name: ClassVar[int | None] = 63

    def column_type(self, schema: Schema, *, in_key: bool) -> str:
        if schema.type is Type.ARRAY:
            assert schema.value_schema is not None
            return f"{self.column_type(schema.value_schema, in_key=in_key)}[]"
        return _TYPES[kind_of(schema)]

    def literal(self, schema: Schema, value: Any) -> str:
        if schema.type is Type.ARRAY:
            text = _array_text(self._element(schema), value)
        else:
            (text,) = self._plain(schema)([value])
        return "'" + text.replace("'", "''") + "'" if "\\" not in text else _escaped_literal(text)

    def encoder(self, schema: Schema, column: Column) -> Encode:
        kind = kind_of(schema)
        if schema.type is Type.ARRAY:
            between = _delimiter(column)
            element = self._element(schema, between)
            return nulls_apart(
                lambda values: _escaped([_array_text(element, value, between) for value in values]), _NULL
            )
        if kind in (TIMESTAMP_NAME, PRECISE_NAME) and column.type.name in _WITH_ZONE:
            return nulls_apart(_instants, _NULL)
        plain = self._plain(schema)
        if kind in (Type.STRING, Type.BYTES, JSON_NAME):
            return nulls_apart(lambda values: _escaped(plain(values)), _NULL)
        checked = checked_decimals(schema, column, plain) if kind == DECIMAL_NAME else plain
        cells = nulls_apart(checked, _NULL)
        return _by_arrow(cells, kind) if checked is plain and self._takes_arrow(kind, column) else cells

    def _takes_arrow(self, kind: Kind, column: Column) -> bool:
        """Return whether a column holds the same values if Arrow makes their texts, which are not always Python's."""
        if kind == TIMESTAMP_NAME:
            return self.zone is dt.UTC and column.type.name in _WITHOUT_ZONE
        return kind == DECIMAL_NAME or (kind == Type.FLOAT64 and column.type.name in _FLOATING)

    def prepare_table(self, connection: Connection, target: Target) -> None:
        """Create the temporary table, whose columns have the types of the table's."""
        if not target.key_size:
            return
        columns = self.quoted(target.names)
        run(
            connection,
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {_stage(target)} ON COMMIT DELETE ROWS AS "
            f"SELECT {columns} FROM {self.dialect.quoted(target.table)} WITH NO DATA",
        )

    def release_tables(self, connection: Connection) -> None:
        """Drop the temporary tables, each of which adds to the cost of every commit."""
        run(connection, "DISCARD TEMP")

    def shapes(self, connection: Connection, targets: Sequence[Target]) -> Sequence[Hashable]:
        """Return the types of the columns: those of a temporary table would change a value that passes through it.

        Rows without a key pass through none.
        """
        staged = [self.dialect.quoted(target.table) for target in targets if target.key_size]
        if not staged:
            return [None] * len(targets)
        found = connection.exec_driver_sql(_SHAPES, {"tables": staged}).scalars()
        return [tuple(next(found)) if target.key_size else None for target in targets]

    def reached(self, connection: Connection, table: TableId) -> Reached:
        found = connection.exec_driver_sql(_REACHED, {"table": self.dialect.quoted(table)}).all()
        if any(acts for _, _, acts in found):
            return None
        return frozenset(number for number, _, _ in found if any(refers for _, refers, _ in found))

    def write(self, connection: Connection, target: Target, step: Step) -> None:
        names = target.key_names if step.action is Action.DELETE else target.names
        if step.action is Action.INSERT:
            _copy(connection, self.dialect.quoted(target.table), self.quoted(names), step)
            return
        stage = _stage(target)
        _copy(connection, stage, self.quoted(names), step)
        run(connection, self.statement(target, stage, step.action))
        # For the next step of the transaction. Its end empties the table for good.
        run(connection, f"DELETE FROM {stage}")

    def blames_row(self, error: Exception) -> bool:
        state = getattr(error, "sqlstate", None)
        if state is None:
            import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

            return isinstance(error, psycopg.DataError)
        return state.startswith(_ROW_CLASSES) or state in _ROW_STATES

    def may_be_for_order(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) in _ORDER_STATES

    def statement(self, target: Target, stage: str, action: Action) -> str:
        """Return the statement that applies a step to the rows of the temporary table."""
        table, key = self.dialect.quoted(target.table), target.key_names
        same = " AND ".join(f"t.{name} = s.{name}" for name in map(self.dialect.quote, key))
        if action is Action.DELETE:
            return f"DELETE FROM {table} AS t USING {stage} AS s WHERE {same}"
        others = [self.dialect.quote(name) for name in target.other_names]
        if action is Action.UPDATE:
            changes = ", ".join(f"{name} = s.{name}" for name in others)
            return f"UPDATE {table} AS t SET {changes} FROM {stage} AS s WHERE {same}"
        changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        conflict = f"DO UPDATE SET {changes}" if others else "DO NOTHING"
        columns = self.quoted(target.names)
        # Without it, a key that is GENERATED ALWAYS AS IDENTITY is refused. COPY overrides anyway.
        given = "OVERRIDING SYSTEM VALUE " if any(column.autoincrement for column in target.columns) else ""
        into = f"INSERT INTO {table} ({columns}) {given}"
        return f"{into}SELECT {columns} FROM {stage} ON CONFLICT ({self.quoted(key)}) {conflict}"

    def _element(self, schema: Schema, between: str = _COMMA) -> Callable[[Any], str]:
        """Return the encoder of an array element."""
        element = schema.value_schema
        assert element is not None
        if element.type is Type.ARRAY:
            inner = self._element(element, between)
            return lambda value: _array_text(inner, value, between)
        plain = self._plain(element)
        return lambda value: _quoted_element(plain([value])[0])

    def _plain(self, schema: Schema) -> Callable[[Sequence[Any]], list[str]]:
        """Return the encoder of non-null values in the server's text form."""
        kind = kind_of(schema)
        if kind in (TIMESTAMP_NAME, PRECISE_NAME):
            return local_times(self.zone)
        return _PLAIN[kind]


def _by_arrow(encode: Encode, kind: Kind) -> Encode:
    """Return ``encode`` for Python's values; columns in Arrow are written by Arrow, in a tenth of the time."""

    def encode_either(values: Sequence[Any]) -> Sequence[Any]:
        if not isinstance(values, ArrowColumn):
            return encode(values)
        array: Any = values.to_arrow()
        if kind == TIMESTAMP_NAME:
            array = array.cast("int64").cast(_LOCAL_TIME)
        cells: list[str] = array.cast("string").fill_null(_NULL).to_pylist()
        return cells

    return encode_either


def _texts(values: Sequence[str]) -> list[str]:
    checked_texts(values)
    return list(values)


def _escaped(values: list[str]) -> list[str]:
    """Escape strings for COPY."""
    joined = "".join(values)
    if "\\" in joined or "\n" in joined or "\t" in joined or "\r" in joined:
        return [value.translate(_SPECIAL) for value in values]
    return values


def _floats(values: Sequence[float]) -> list[str]:
    return list(map(float.__repr__, map(_float, values)))


def _float(value: float) -> float:
    if value.__class__ is float:
        return value
    if isinstance(value, (int, float)):
        return float(value)
    raise DataError(f"{value!r} is not a number.")


def _instants(values: Sequence[dt.datetime]) -> list[str]:
    if any(value.tzinfo is None for value in values):
        raise DataError("A timestamp has no time zone.")
    return [value.isoformat(" ") for value in values]


_PLAIN: Final[dict[Kind, Callable[[Sequence[Any]], list[str]]]] = {
    **dict.fromkeys(INTEGERS, lambda values: list(map(int.__repr__, values))),
    Type.FLOAT32: _floats,
    Type.FLOAT64: _floats,
    Type.BOOLEAN: lambda values: ["1" if value else "0" for value in values],
    Type.STRING: _texts,
    JSON_NAME: _texts,
    Type.BYTES: lambda values: ["\\x" + bytes.hex(value) for value in values],
    DECIMAL_NAME: lambda values: list(map(decimal.Decimal.__str__, values)),
    DATE_NAME: lambda values: list(map(dt.date.isoformat, values)),
    TIME_NAME: lambda values: list(map(dt.time.isoformat, values)),
}


def _delimiter(column: Column) -> str:
    """Return what separates the elements of an array: a comma, but for ``box``, which has commas itself."""
    kind = column.type
    while kind.element is not None:
        kind = kind.element
    return ";" if kind.name == "box" else _COMMA


def _array_text(element: Callable[[Any], str], values: Sequence[Any], between: str = _COMMA) -> str:
    return "{" + between.join("NULL" if value is None else element(value) for value in values) + "}"


def _quoted_element(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped_literal(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _stage(target: Target) -> str:
    """Return the name of the temporary table, derived from the table and its columns."""
    identity = repr((target.table, [(column.name, str(column.type)) for column in target.columns], target.key_size))
    return f"pg_temp.sluice_{hashlib.sha256(identity.encode()).hexdigest()[:24]}"


def _copy(connection: Connection, table: str, columns: str, step: Step) -> None:
    driver: Any = connection.connection.driver_connection
    data = "\n".join(map("\t".join, step.rows)) + "\n"
    with driver.cursor() as cursor, cursor.copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy:
        copy.write(data.encode())
