"""PostgreSQL, with psycopg 3."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.data import Schema, Type, date_schema, time_schema
from connect.errors import DataError
from connect.kits.sql.column import Column, NativeType, TableId
from connect.kits.sql.dialect import Cursor, Dialect
from connect.kits.sql.values import Reading, midnight, numeric_reading, timestamp_reading

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["PostgresqlDialect"]

_KINDS: Final = {"TABLE": "r", "PARTITIONED TABLE": "p", "VIEW": "v", "MATERIALIZED VIEW": "m", "FOREIGN TABLE": "f"}
_TABLES: Final = """
SELECT c.relname, n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind::text = ANY(%(kinds)s) AND NOT c.relispartition AND n.nspname <> 'information_schema'
AND n.nspname !~ '^pg_' AND (%(schema)s::text IS NULL OR n.nspname LIKE %(schema)s)
AND (%(catalog)s::text IS NULL OR current_database() LIKE %(catalog)s)
"""
_RESOLVE: Final = """
SELECT c.relname, n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = %(name)s AND c.relkind::text = ANY('{r,p,v,m,f}') AND (CASE WHEN %(schema)s = '' THEN
pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = %(schema)s END)
"""
_COLUMNS: Final = """
SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.atthasdef, a.attidentity::text, a.attgenerated::text,
pg_catalog.pg_get_expr(d.adbin, d.adrelid)
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relname = %(name)s AND n.nspname = %(schema)s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_PRIMARY_KEY: Final = """
SELECT a.attname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE i.indisprimary AND c.relname = %(name)s AND n.nspname = %(schema)s ORDER BY k.place
"""
_TYPES: Final = """
SELECT t.oid, t.typname, t.typtype::text, t.typelem, t.typbasetype, t.typtypmod, t.typcategory::text, t.typdelim::text,
ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)
FROM pg_catalog.pg_type t WHERE t.oid = ANY(%(oids)s)
"""
_MARK: Final = {"mark": int.from_bytes(b"slui"), "kind": int.from_bytes(b"jdbc")}
_MARK_READER: Final = "SELECT pg_catalog.pg_advisory_lock_shared(%(mark)s, %(kind)s)"
_OTHERS: Final = """
SELECT DISTINCT l.virtualtransaction FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity s ON s.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.granted AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
AND (s.pid IS NULL OR (s.usesysid IS NOT NULL
AND s.datid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())))
AND NOT EXISTS (SELECT FROM pg_catalog.pg_locks a WHERE a.pid = l.pid AND a.locktype = 'advisory'
AND a.classid = %(mark)s::oid AND a.objid = %(kind)s::oid AND a.objsubid = 2)
"""
"""The transactions of the database, without those of processes without a user (autovacuum) and of marked readers."""
_WRITERS: Final = """
SELECT DISTINCT l.virtualtransaction FROM pg_catalog.pg_locks l
WHERE l.locktype = 'relation' AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
'AccessExclusiveLock') AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
AND l.relation IN (SELECT relid FROM pg_catalog.pg_partition_tree(%(table)s::regclass)
UNION SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent = %(table)s::regclass
UNION SELECT %(table)s::regclass)
"""
_STILL: Final = """
SELECT 1 FROM pg_catalog.pg_locks l WHERE l.virtualtransaction = ANY(%(names)s) OR (l.pid IS NULL
AND l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())) LIMIT 1
"""
"""Those with a name, or any that was prepared for two-phase commit meanwhile, which has another name since."""
_IS_TABLE: Final = "SELECT relkind::text = ANY('{r,p}') FROM pg_catalog.pg_class WHERE oid = %(table)s::regclass"
_SNAPSHOT_END: Final = """
SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::bigint WHERE pg_catalog.pg_is_in_recovery()
"""
_OLDEST: Final = "SELECT pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text::bigint"
_NUMERIC_HEADER: Final = 4
_INTEGERS: Final = {"int2": Type.INT16, "int4": Type.INT32, "int8": Type.INT64, "oid": Type.INT64}
_TEXTS: Final = (
    "json", "jsonb", "uuid", "interval", "timetz", "inet", "cidr", "int4range", "int8range", "numrange", "daterange",
    "tsrange", "tstzrange", "int4multirange", "int8multirange", "nummultirange", "datemultirange", "tsmultirange",
    "tstzmultirange",
)  # fmt: skip
"""The types that psycopg makes objects of, and that are text here."""
_numbers: Final = count(1)


class PostgresqlDialect(Dialect):
    """PostgreSQL 13 and later."""

    backend: ClassVar[str] = "postgresql"
    tells_transactions: ClassVar[bool] = True
    java_names: ClassVar[tuple[str, ...]] = ("PostgreSqlDatabaseDialect",)

    def tables(
        self,
        connection: Connection,
        *,
        types: Iterable[str] = ("TABLE",),
        catalog: str | None = None,
        schema: str | None = None,
    ) -> list[TableId]:
        kinds = [_KINDS[each] for each in types if each in _KINDS]
        if "TABLE" in types:
            # A partitioned table counts as a table.
            kinds.append(_KINDS["PARTITIONED TABLE"])
        found = connection.exec_driver_sql(_TABLES, {"kinds": kinds, "schema": schema, "catalog": catalog})
        return sorted(TableId(name, schema=namespace) for name, namespace in found)

    def resolve(self, connection: Connection, table: TableId) -> TableId | None:
        found = connection.exec_driver_sql(_RESOLVE, {"name": table.name, "schema": table.schema}).first()
        return None if found is None else TableId(found[0], schema=found[1])

    def columns(self, connection: Connection, table: TableId) -> tuple[Column, ...]:
        resolved = self._resolved(connection, table)
        rows = connection.exec_driver_sql(_COLUMNS, {"name": resolved.name, "schema": resolved.schema}).all()
        types = _Types(connection, [row[1] for row in rows])
        return tuple(
            Column(
                name,
                types.native(oid, modifier),
                nullable=not required,
                has_default=has_default or bool(identity),
                autoincrement=bool(identity) or (default or "").startswith("nextval("),
                generated=bool(generated),
            )
            for name, oid, modifier, required, has_default, identity, generated, default in rows
        )

    def primary_key(self, connection: Connection, table: TableId) -> tuple[str, ...]:
        resolved = self._resolved(connection, table)
        found = connection.exec_driver_sql(_PRIMARY_KEY, {"name": resolved.name, "schema": resolved.schema})
        return tuple(found.scalars())

    def result_columns(self, connection: Connection, cursor: Cursor, sql: str) -> tuple[Column, ...]:  # noqa: ARG002
        result: Any = cursor.pgresult  # type: ignore[attr-defined]
        names = [each[0] for each in cursor.description]
        oids = [result.ftype(index) for index in range(len(names))]
        types = _Types(connection, oids)
        return tuple(
            Column(name, types.native(oid, result.fmod(index)))
            for index, (name, oid) in enumerate(zip(names, oids, strict=True))
        )

    def size(self, connection: Connection, table: TableId) -> int:
        sql = "SELECT coalesce(sum(pg_relation_size(relid)), 0) FROM pg_partition_tree(%(table)s::regclass)"
        named = self._regclass(table)
        found = connection.exec_driver_sql(sql, {"table": named}).scalar()
        if not found:
            found = connection.exec_driver_sql(
                "SELECT pg_relation_size(%(table)s::regclass)", {"table": named}
            ).scalar()
        return int(found or 0)

    def prepare(self, connection: Connection, *, reads: bool) -> None:
        from psycopg.types.string import TextLoader  # noqa: PLC0415 - psycopg is loaded only where it is used

        driver: Any = connection.connection.driver_connection
        for name in _TEXTS:
            if (info := driver.adapters.types.get(name)) is not None:
                driver.adapters.register_loader(info.oid, TextLoader)
        connection.exec_driver_sql("SET TIME ZONE 'UTC'")
        connection.exec_driver_sql("SET intervalstyle = 'iso_8601'")
        if reads:
            # A shared advisory lock marks transactions that only read, so that they do not wait for each other.
            connection.exec_driver_sql(_MARK_READER, _MARK)

    def reading(self, column: Column) -> Reading | None:
        return self._reading(column.type)

    def cursor(self, connection: Connection) -> Cursor:
        from connect.kits.sql.databases.postgresql.cursor import PostgresqlCursor  # noqa: PLC0415 - as above

        driver: Any = connection.connection.driver_connection
        return PostgresqlCursor(driver, f"sluice_{next(_numbers)}")

    def now(self, connection: Connection) -> dt.datetime:
        moment: dt.datetime = connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one()
        return moment.astimezone(dt.UTC)

    def timestamp_parameter(self, columns: Sequence[Column], moment: dt.datetime) -> dt.datetime:
        if any(column.type.name == "timestamptz" for column in columns):
            return moment
        return moment.astimezone(self.options.zone).replace(tzinfo=None)

    def time_zone(self, columns: Sequence[Column]) -> dt.tzinfo:
        return dt.UTC if any(column.type.name == "timestamptz" for column in columns) else self.options.zone

    def under_way(self, connection: Connection, table: TableId | None) -> Hashable | None:
        """Return the transactions that hold a lock: an insert locks the table before it assigns a number.

        A transaction that has ended is visible before its locks are released. A standby does not know the locks; there
        the end of the snapshot decides.
        """
        end = connection.exec_driver_sql(_SNAPSHOT_END).scalar()
        if end is not None:
            return int(end)
        named = {"table": self._regclass(table)} if table is not None else {}
        if named and connection.exec_driver_sql(_IS_TABLE, named).scalar():
            found = connection.exec_driver_sql(_WRITERS, named)
        else:
            found = connection.exec_driver_sql(_OTHERS, _MARK)
        return tuple(found.scalars()) or None

    def are_over(self, connection: Connection, transactions: Hashable) -> bool:
        if isinstance(transactions, int):
            return bool(connection.exec_driver_sql(_OLDEST).scalar_one() >= transactions)
        assert isinstance(transactions, tuple)
        return connection.exec_driver_sql(_STILL, {"names": list(transactions)}).first() is None

    def _resolved(self, connection: Connection, table: TableId) -> TableId:
        return table if table.schema else self.resolve(connection, table) or table

    def _regclass(self, table: TableId) -> str:
        parts = (part.replace('"', '""') for part in (table.schema, table.name) if part)
        return ".".join(f'"{part}"' for part in parts)

    def _reading(self, kind: NativeType) -> Reading:
        if kind.element is not None:
            return _array_reading(self._reading(kind.element))
        if (integer := _INTEGERS.get(kind.name)) is not None:
            return Reading(Schema(integer))
        if kind.name == "numeric":
            plain = numeric_reading(kind.precision, kind.scale, self.options)
            # PostgreSQL writes every digit of a scale from 0 on; converters refuse values that are not numbers.
            is_exact = plain.schema.name is not None and (kind.scale or 0) >= 0
            return Reading(plain.schema) if is_exact else plain
        if kind.name in ("timestamp", "timestamptz"):
            found = timestamp_reading(self.options)
            return (
                replace(found, convert=None, only=dt.datetime)
                if kind.name == "timestamptz" and found.is_instant
                else found
            )
        if kind.name == "date":
            times = timestamp_reading(self.options, midnight)
            return Reading(date_schema(), None, times.instant, times.local, dt.date)
        return _READINGS.get(str(kind), _READINGS.get(kind.name, _TEXT))


_TEXT: Final = Reading(Schema.string())


class _Types:
    """The types of some columns by OID, including those they are composed of."""

    def __init__(self, connection: Connection, oids: Iterable[int]) -> None:
        self._rows: dict[int, Any] = {}
        wanted = set(oids)
        while wanted:
            rows = connection.exec_driver_sql(_TYPES, {"oids": list(wanted)}).all()
            self._rows |= {row[0]: row for row in rows}
            wanted = {oid for row in rows for oid in (row[3], row[4]) if oid} - self._rows.keys()
        self._register_domains(connection)
        self._register_arrays(connection)

    def native(self, oid: int, modifier: int) -> NativeType:
        """Return the type with that OID and modifier; for a domain, its base type."""
        _, name, kind, element, base, base_modifier, category, _, values = self._rows[oid]
        if kind == "d":
            return self.native(base, base_modifier)
        if category == "A" and element:
            return NativeType(name, element=self.native(element, modifier))
        if kind == "e":
            return NativeType(name, values=tuple(values))
        precision, scale = _digits(name, modifier)
        return NativeType(name, precision, scale)

    def _register_domains(self, connection: Connection) -> None:
        """Register the loaders of base types for domains, which the elements of arrays are loaded by."""
        from psycopg.pq import Format  # noqa: PLC0415 - as above

        driver: Any = connection.connection.driver_connection
        for oid, _, kind, *_ in self._rows.values():
            loader = driver.adapters.get_loader(self._base(oid), Format.TEXT) if kind == "d" else None
            if loader is not None:
                driver.adapters.register_loader(oid, loader)

    def _base(self, oid: int) -> int:
        while self._rows[oid][2] == "d":
            oid = self._rows[oid][4]
        return oid

    def _register_arrays(self, connection: Connection) -> None:
        """Register the arrays of types that psycopg does not know, such as enums."""
        from psycopg.types import TypeInfo  # noqa: PLC0415 - as above

        driver: Any = connection.connection.driver_connection
        for oid, name, _, element, _, _, category, delimiter, _ in self._rows.values():
            if category == "A" and element and driver.adapters.types.get(oid) is None:
                of = self._rows[element]
                TypeInfo(of[1] or name, element, oid, delimiter=delimiter).register(driver)


def _digits(name: str, modifier: int) -> tuple[int | None, int | None]:
    """Return precision and scale from the modifier of a type."""
    if modifier < 0:
        return None, None
    if name == "numeric":
        digits = modifier - _NUMERIC_HEADER
        return (digits >> 16) & 0xFFFF, ((digits & 0x7FF) ^ 0x400) - 0x400
    if name in ("varchar", "bpchar"):
        return modifier - _NUMERIC_HEADER, None
    return modifier, None


def _array_reading(element: Reading) -> Reading:
    schema = Schema.array(element.schema.as_optional())
    convert: Callable[[Any], Any] | None = element.convert or _only(element.only)

    def each(values: Any) -> list[Any]:
        if any(value.__class__ is list for value in values):
            raise DataError("the array has more than one dimension")
        if convert is None:
            return list(values)
        return [None if value is None else convert(value) for value in values]

    return Reading(schema, each)


def _only(kind: type | None) -> Callable[[Any], Any] | None:
    if kind is None:
        return None

    def checked(value: Any) -> Any:
        if value.__class__ is not kind:
            raise DataError(f"{str(value)[:40]!r} cannot be stored in a {kind.__name__}")
        return value

    return checked


def _bit(value: Any) -> bool:
    return str(value) == "1"


_READINGS: Final[Mapping[str, Reading]] = {
    "bool": Reading(Schema.boolean()),
    "bit(1)": Reading(Schema.boolean(), _bit),
    "float4": Reading(Schema.float32()),
    "float8": Reading(Schema.float64()),
    "bytea": Reading(Schema.bytes()),
    "time": Reading(time_schema(), only=dt.time),
}
