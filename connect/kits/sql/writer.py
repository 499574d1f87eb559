"""The interface of a writer, the steps that it carries out, and what writers share."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.data import Schema, Type
from connect.data.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, decimal_scale
from connect.errors import DataError
from connect.kits.sql.column import Column, TableId
from connect.kits.sql.dialect import Dialect
from connect.kits.sql.values import PRECISION

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = [
    "INTEGERS",
    "JSON_NAME",
    "PRECISE_NAME",
    "Action",
    "Encode",
    "Kind",
    "Reached",
    "Row",
    "Step",
    "Target",
    "Writer",
    "check_scale",
    "checked_decimals",
    "checked_texts",
    "kind_of",
    "local_times",
    "nulls_apart",
    "precision_of",
    "referring",
    "run",
]

JSON_NAME: Final = "sluice.jdbc.Json"
"""The name of the schema of a column that holds JSON."""

PRECISE_NAME: Final = "sluice.jdbc.PreciseTimestamp"
"""The name of the schema of timestamps to the microsecond, whose values are aware ``datetime`` objects."""

Encode = Callable[[Sequence[Any]], Sequence[Any]]
"""Makes cells, as the writer sends them, of the values of a column."""

Kind = str | Type
"""The name of a logical type that has columns of its own, else the type."""

Reached = frozenset[Hashable] | None
"""The tables that the rows of one may concern; ``None`` if any may be among them."""

Row = tuple[Any, ...]
"""The encoded cells of a row, those of the primary key first."""

INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_KINDS: Final = frozenset({DECIMAL_NAME, DATE_NAME, TIME_NAME, TIMESTAMP_NAME, JSON_NAME, PRECISE_NAME})


_MOST_SCALE: Final = 1000
_DECIMALS: Final = ("numeric", "decimal", "dec", "fixed")


def kind_of(schema: Schema) -> Kind:
    """Return the kind of a schema's values."""
    return schema.name if schema.name in _KINDS else schema.type


def precision_of(schema: Schema) -> int | None:
    """Return the number of digits of a Decimal, if its schema has it."""
    text = schema.parameters.get(PRECISION, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None


def referring(table: str, references: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return a table with those that refer to it by foreign keys, directly or not: what a change of its rows concerns.

    ``references`` are pairs of a table and one it refers to. Without any from the table or to it, nothing is returned.
    Tables that refer to the same one do not concern each other.
    """
    pairs = set(references)
    if not any(table in pair for pair in pairs):
        return frozenset()
    children: dict[str, list[str]] = {}
    for child, parent in pairs:
        children.setdefault(parent, []).append(child)
    found, ahead = {table}, [table]
    while ahead:
        new = set(children.get(ahead.pop(), ())) - found
        found |= new
        ahead += new
    return frozenset(found)


class Action(enum.Enum):
    """What a step does with its rows."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Step:
    """One action for many rows; ``places`` are their indices in the input."""

    action: Action
    rows: Sequence[Row]
    places: Sequence[int]

    def slice(self, start: int, stop: int) -> Step:
        """Return the rows from ``start`` up to ``stop``."""
        return Step(self.action, self.rows[start:stop], self.places[start:stop])


@dataclass(frozen=True, slots=True)
class Target:
    """A table as rows are written to it: its columns in the order of the rows, those of the key first."""

    table: TableId
    columns: tuple[Column, ...]
    key_size: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the columns of the key."""
        return self.names[: self.key_size]

    @property
    def other_names(self) -> tuple[str, ...]:
        """The names of the columns that are not in the key."""
        return self.names[self.key_size :]


class Writer(ABC):
    """Writes rows to a kind of database. It holds no connection: each method gets one, in a transaction."""

    has_arrays: ClassVar[bool] = False
    """Whether there are columns that hold arrays."""
    longest_name: ClassVar[int | None] = None
    """How long a name may be, in bytes; longer ones would be cut."""
    table_options: ClassVar[str] = ""
    """The end of a CREATE TABLE."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.zone: dt.tzinfo = dialect.options.zone

    # -- tables --------------------------------------------------------------------------------------------------

    @abstractmethod
    def column_type(self, schema: Schema, *, in_key: bool) -> str:
        """Return the type of a new column for values of ``schema``. Raises ``DataError`` if there is none."""

    @abstractmethod
    def literal(self, schema: Schema, value: Any) -> str:
        """Return a default value in SQL."""

    def prepare(self, connection: Connection) -> None:  # noqa: B027 - most need nothing
        """Set up a new connection."""

    def prepare_table(self, connection: Connection, target: Target) -> None:  # noqa: B027 - as above
        """Prepare to write to a table, in a transaction of its own."""

    def release_tables(self, connection: Connection) -> None:  # noqa: B027 - as above
        """Undo :meth:`prepare_table` for all tables, in a transaction of its own."""

    def shapes(self, connection: Connection, targets: Sequence[Target]) -> Sequence[Hashable]:  # noqa: ARG002 - as above
        """Return what must not have changed of each table since it was prepared, for rows to arrive as they are.

        Called once for each transaction, whatever the number of tables.
        """
        return [None] * len(targets)

    def reached(self, connection: Connection, table: TableId) -> Reached:  # noqa: ARG002 - as above
        """Return what a row of the table may concern: itself and the tables that refer to it, by :func:`referring`.

        It is empty without foreign keys, from it or to it, and ``None`` if that cannot be told, as with triggers.
        """
        return None

    # -- rows ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def encoder(self, schema: Schema, column: Column) -> Encode:
        """Return a function that encodes values of ``schema`` as cells of a column.

        It raises for values that do not fit, and is then called for each value separately.
        """

    @abstractmethod
    def write(self, connection: Connection, target: Target, step: Step) -> None:
        """Carry out a step in the connection's transaction."""

    @abstractmethod
    def blames_row(self, error: Exception) -> bool:
        """Return whether a driver's error is about a row: a constraint, or a value that does not fit."""

    def may_be_for_order(self, error: Exception) -> bool:  # noqa: ARG002
        """Return whether an error that blames a row may come from the order in which rows are written."""
        return True

    # -- statements ----------------------------------------------------------------------------------------------

    def quoted(self, names: Sequence[str], between: str = ", ", form: str = "{}") -> str:
        """Return names for SQL, each formatted with ``form``."""
        return between.join(form.replace("{}", self.dialect.quote(name)) for name in names)

    def matching(self, names: Sequence[str], placeholder: str) -> str:
        """Return the condition that each of these columns equals a parameter."""
        return " AND ".join(f"{self.dialect.quote(name)} = {placeholder}" for name in names)

    def insert(self, target: Target) -> str:
        """Return the beginning of an INSERT, up to its rows."""
        return f"INSERT INTO {self.dialect.quoted(target.table)} ({self.quoted(target.names)})"


def run(connection: Connection, statement: str) -> None:
    """Run a statement without parameters, whatever characters the names in it contain."""
    driver: Any = connection.connection.driver_connection
    cursor = driver.cursor()
    try:
        cursor.execute(statement)
    finally:
        cursor.close()


def nulls_apart(encode: Encode, null: Any) -> Encode:
    """Return ``encode`` for nullable columns, with null as the cell ``null``."""

    def encode_some(values: Sequence[Any]) -> Sequence[Any]:
        missing = [value is None for value in values]
        if not any(missing):
            return encode(values)
        cells = iter(encode([value for value in values if value is not None]))
        return [null if is_missing else next(cells) for is_missing in missing]

    return encode_some


def checked_texts(values: Sequence[str]) -> str:
    """Join the strings; raise if one is not a string or cannot be encoded in UTF-8."""
    joined = "".join(values)
    if not joined.isascii():
        joined.encode()
    return joined


def check_scale(schema: Schema) -> None:
    """Refuse decimals that would be written with thousands of zeros."""
    scale = decimal_scale(schema)
    if abs(scale) > _MOST_SCALE:
        raise DataError(f"A Decimal with a scale of {scale} has no column type. The scale must be from -1000 to 1000.")


def local_times(zone: dt.tzinfo) -> Callable[[Sequence[dt.datetime]], list[str]]:
    """Return a function that writes instants as local times of a zone."""
    if zone is dt.UTC:
        return _utc_texts
    return lambda values: [value.astimezone(zone).replace(tzinfo=None).isoformat(" ") for value in values]


def _utc_texts(values: Sequence[dt.datetime]) -> list[str]:
    if set(map(attrgetter("tzinfo"), values)) == {dt.UTC}:
        # A third of the cost of their own text, which is made with the zone.
        return [f"{_day(value.toordinal())} {value.time().isoformat()}" for value in values]
    return [_in_utc(value) for value in values]


@lru_cache(4096)
def _day(ordinal: int) -> str:
    return dt.date.fromordinal(ordinal).isoformat()


def _in_utc(value: dt.datetime) -> str:
    if value.tzinfo is not dt.UTC:
        if value.tzinfo is None:
            raise DataError(f"The datetime {value} has no time zone.")
        value = value.astimezone(dt.UTC)
    return value.isoformat(" ")[:-6]


def checked_decimals(schema: Schema, column: Column | None, write: Encode) -> Encode:
    """Return ``write`` for decimals that refuses those with more decimal places than the column keeps.

    The database would round them.
    """
    kept = None if column is None or column.type.name not in _DECIMALS else column.type.scale
    if column is None or kept is None or decimal_scale(schema) <= kept:
        return write
    exact, name = decimal.Context(prec=decimal.MAX_PREC), column.name

    def encode(values: Sequence[Any]) -> Sequence[Any]:
        for value in values:
            if value.is_finite() and exact.scaleb(value, kept) % 1:
                raise DataError(f"{value} has more decimal places than the {kept} that column {name} keeps.")
        return write(values)

    return encode
