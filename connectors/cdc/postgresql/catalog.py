"""PostgreSQL's catalog: the tables that are captured, their columns, keys and types."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from connect.kits.cdc.filters import NameFilter
from connect.kits.cdc.tables import Column, Table, TableId
from connectors.cdc.postgresql.dialect import Native, PgType, is_temporal, type_length
from connectors.cdc.postgresql.pgoutput import Relation

if TYPE_CHECKING:
    import psycopg

__all__ = ["CapturedTable", "Catalog", "captured_tables", "default_text"]

logger = logging.getLogger(__name__)

_TABLES: Final = """
SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.relispartition, c.relreplident::text, c.reltuples::bigint,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary),
       CASE WHEN c.relispartition THEN pg_partition_root(c.oid)::oid END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%'
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
"""
_COLUMNS: Final = """
SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attgenerated::text,
       a.attidentity::text, col_description(a.attrelid, a.attnum)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_KEY: Final = """
SELECT array_agg(a.attname ORDER BY k.place)
FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place), pg_attribute a
WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indisvalid
  AND a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.place <= i.indnkeyatts
GROUP BY i.indexrelid, i.indisprimary
HAVING i.indisprimary OR bool_and(a.attnotnull)
ORDER BY i.indisprimary DESC, i.indexrelid
LIMIT 1
"""
_TYPE: Final = """
SELECT t.typname, t.typtype::text, t.typelem, t.typbasetype, t.typtypmod, t.typcategory::text, t.typdelim::text,
       (SELECT array_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)
FROM pg_type t WHERE t.oid = %s
"""


def captured_tables(
    tables: Iterable[CapturedTable], names: NameFilter, schemas: NameFilter, *, via_root: bool
) -> list[CapturedTable]:
    """Return the tables that the filters accept: of a partitioned table its partitions, or itself if ``via_root``."""
    return [
        table
        for table in tables
        if schemas(table.id.schema)
        and names(str(table.id))
        and not (table.is_partition if via_root else table.is_partitioned)
    ]


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A table of the catalog; ``rows`` is the planner's estimate, ``identity`` its replica identity.

    ``root_oid`` is the partitioned table at the top of a partition.
    """

    oid: int
    id: TableId
    is_partitioned: bool
    is_partition: bool
    identity: str
    rows: int
    has_primary_key: bool
    root_oid: int | None = None


class Catalog:
    """Reads the catalog through a connection. Types are remembered until :meth:`forget_types`."""

    def __init__(self, connection: psycopg.Connection[Any], database: str) -> None:
        self._connection = connection
        self._database = database
        self._types: dict[int, tuple[PgType, int]] = {}

    def tables(self) -> list[CapturedTable]:
        """Return all tables whose changes are logged, by name; partitions too, and what they are partitions of."""
        return [
            CapturedTable(
                oid, TableId(self._database, schema, name), kind == "p", is_part, identity, rows, has_key, root
            )
            for oid, schema, name, kind, is_part, identity, rows, has_key, root in self._all(_TABLES, ())
        ]

    def table(self, oid: int, table_id: TableId) -> Table | None:
        """Return a table as it is now; None if it does not exist."""
        rows = self._all(_COLUMNS, (oid,))
        if not rows:
            return None
        columns = tuple(self._column(*row) for row in rows)
        return Table(table_id, columns, self._key(oid, columns))

    def streamed(self, relation: Relation) -> Table:
        """Return a table as the stream has it, with what the catalog knows of its columns now."""
        table_id = TableId(self._database, relation.schema, relation.table)
        known = self.table(relation.oid, table_id)
        then = {} if known is None else _names_then(relation, known)
        columns = []
        for streamed in relation.columns:
            column = known.column(then.get(streamed.name, streamed.name)) if known is not None else None
            native = self.native(streamed.type_oid, streamed.typmod)
            if column is None or column.native != native:
                nullable = column.optional if column is not None else not streamed.is_key or relation.identity == "f"
                column = self._bare(streamed.name, native, optional=nullable)
            columns.append(replace(column, name=streamed.name))
        return Table(table_id, tuple(columns), _key_then(relation, known, then))

    def forget_types(self) -> None:
        """Read types anew: a label may have been added to an enum."""
        self._types = {}

    def native(self, oid: int, typmod: int) -> Native:
        """Return a type with its limits, of a domain those of the type below."""
        kind, own_typmod = self._type(oid)
        return Native(kind, typmod if own_typmod < 0 else own_typmod)

    def _type(self, oid: int) -> tuple[PgType, int]:
        """Return a type, a domain's base type with its limit, and -1 as the limit of any other."""
        if oid not in self._types:
            self._types[oid] = self._read_type(oid)
        return self._types[oid]

    def _read_type(self, oid: int) -> tuple[PgType, int]:
        rows = self._all(_TYPE, (oid,))
        if not rows:
            return PgType(oid, f"dropped type {oid}"), -1
        name, kind, element, base, typmod, category, delimiter, labels = rows[0]
        if kind == "d":
            below, below_typmod = self._type(base)
            return below, typmod if typmod >= 0 else below_typmod
        if category == "A" and element and name not in ("int2vector", "oidvector"):
            # An array of a domain has the limit of its elements in their type.
            inner, inner_typmod = self._type(element)
            return PgType(oid, name, kind, inner, delimiter), inner_typmod
        return PgType(oid, name, kind, None, delimiter, tuple(labels or ())), -1

    def _column(
        self,
        name: str,
        oid: int,
        typmod: int,
        not_null: bool,
        default: str | None,
        generated: str,
        identity: str,
        comment: str | None,
    ) -> Column:
        column = self._bare(name, self.native(oid, typmod), optional=not not_null)
        value = None if default is None or generated else default_text(default, column.native.type)
        return replace(
            column,
            default=value,
            is_generated=bool(generated),
            is_auto_incremented=bool(identity) or (default or "").startswith("nextval("),
            comment=comment,
        )

    @staticmethod
    def _bare(name: str, native: Native, *, optional: bool) -> Column:
        length, scale = type_length(native.type, native.typmod)
        return Column(name, native.type.name, length, scale, optional, enum_values=native.type.labels, native=native)

    def _key(self, oid: int, columns: Iterable[Column]) -> tuple[str, ...]:
        rows = self._all(_KEY, (oid,))
        names = {column.name for column in columns}
        keys = tuple(rows[0][0]) if rows else ()
        return keys if names.issuperset(keys) else ()

    def _all(self, query: str, arguments: Sequence[Any]) -> list[Any]:
        return self._connection.execute(query, arguments or None).fetchall()


def _names_then(relation: Relation, known: Table) -> Mapping[str, str]:
    """Return the names that columns of the key have now, by those of the stream: they were renamed since.

    The stream numbers no columns: they are the same if all others have their places and names.
    """
    now = [column.name for column in known.columns if not column.is_generated or _has(relation, column.name)]
    streamed = [column.name for column in relation.columns]
    if len(now) != len(streamed):
        return {}
    renamed = {then: name for then, name in zip(streamed, now, strict=True) if then != name}
    return renamed if set(known.key_columns).issuperset(renamed.values()) else {}


def _has(relation: Relation, name: str) -> bool:
    return any(column.name == name for column in relation.columns)


def _key_then(relation: Relation, known: Table | None, then: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of a key as the stream has them: it may have been another, or had other names, than now."""
    sent = () if relation.identity == "f" else tuple(column.name for column in relation.columns if column.is_key)
    if known is None or (sent and relation.identity == "d" and set(sent) != set(known.key_columns)):
        keys = sent
    else:
        names_now = {now: name for name, now in then.items()}
        keys = tuple(names_now.get(name, name) for name in known.key_columns)
        keys = keys if all(_has(relation, name) for name in keys) else ()
    if not keys and (known is None or known.key_columns):
        logger.warning(
            "Changes of table %s.%s from before its key was changed, or the table dropped, have no key: the log does "
            "not tell which columns it had.",
            relation.schema,
            relation.table,
        )
    return keys


_LITERAL: Final = re.compile(r"'((?:[^']|'')*)'(?:::[\w\s\"\[\](),.]+)?", re.DOTALL)
_NUMBER: Final = re.compile(r"\(?(-?\d+(?:\.\d+)?)\)?(?:::[\w\s\"\[\](),.]+)?")
_TRUTHS: Final = {"true": b"t", "false": b"f"}
_ZERO_TIMES: Final = {
    "date": b"1970-01-01",
    "time": b"00:00:00",
    "timetz": b"00:00:00+00",
    "timestamp": b"1970-01-01 00:00:00",
    "timestamptz": b"1970-01-01 00:00:00+00",
}


def default_text(expression: str, kind: PgType) -> bytes | None:
    """Return the constant that is a column's default, in text form; None if it has none that a schema can state.

    A function for a date or time, such as ``now()``, becomes 1970-01-01, as in Debezium: a schema needs a constant, and
    consumers rely on there being one.
    """
    if match := _LITERAL.fullmatch(expression):
        return match[1].replace("''", "'").encode()
    if match := _NUMBER.fullmatch(expression):
        return match[1].encode()
    if expression in _TRUTHS:
        return _TRUTHS[expression]
    if is_temporal(kind) and kind.element is None and not expression.startswith("NULL"):
        return _ZERO_TIMES[kind.name]
    return None
