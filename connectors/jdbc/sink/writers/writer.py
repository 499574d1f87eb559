"""What writing does differently from one kind of database to the next."""

from __future__ import annotations

import datetime as dt
import decimal
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.data import Schema, Type
from connect.data.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, decimal_scale
from connect.errors import DataError
from connectors.jdbc.dialects.column import Column, TableId
from connectors.jdbc.dialects.dialect import Dialect
from connectors.jdbc.dialects.values import PRECISION
from connectors.jdbc.sink.conversions import JSON_NAME, PRECISE_NAME
from connectors.jdbc.sink.write_plan import Step

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = [
    "Encode",
    "Kind",
    "Target",
    "Writer",
    "check_scale",
    "checked_decimals",
    "checked_texts",
    "kind_of",
    "local_times",
    "nulls_apart",
    "precision_of",
    "run",
]

Encode = Callable[[Sequence[Any]], Sequence[Any]]
"""Makes cells, as the writer sends them, of the values of a column."""

Kind = str | Type
"""The name of a logical type that has columns of its own, else the type."""

_KINDS: Final = frozenset({DECIMAL_NAME, DATE_NAME, TIME_NAME, TIMESTAMP_NAME, JSON_NAME, PRECISE_NAME})


_MOST_SCALE: Final = 1000
_DECIMALS: Final = ("numeric", "decimal", "dec", "fixed")


def kind_of(schema: Schema) -> Kind:
    """The kind of values of a schema."""
    return schema.name if schema.name in _KINDS else schema.type


def precision_of(schema: Schema) -> int | None:
    """The digits of a Decimal, if its schema tells."""
    text = schema.parameters.get(PRECISION, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None


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
        """The names of the columns beside the key."""
        return self.names[self.key_size :]


class Writer(ABC):
    """Writes rows to a kind of database. It keeps no connection: each method is given one, in a transaction."""

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
        """The type of a new column for values of ``schema``; a ``DataError`` if there is none."""

    @abstractmethod
    def literal(self, schema: Schema, value: Any) -> str:
        """A default value in SQL."""

    def prepare(self, connection: Connection) -> None:  # noqa: B027 - most need nothing
        """Set a new connection up."""

    def prepare_table(self, connection: Connection, target: Target) -> None:  # noqa: B027 - as above
        """Prepare to write to a table, in a transaction of its own."""

    def release_tables(self, connection: Connection) -> None:  # noqa: B027 - as above
        """Undo :meth:`prepare_table` for all tables, in a transaction of its own."""

    # -- rows ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def encoder(self, schema: Schema, column: Column) -> Encode:
        """What makes cells of values of ``schema`` for a column.

        It raises for values that do not fit; then it is called for each of them alone.
        """

    @abstractmethod
    def write(self, connection: Connection, target: Target, step: Step) -> None:
        """Do a step in the transaction of the connection."""

    @abstractmethod
    def blames_row(self, error: Exception) -> bool:
        """Whether the driver's error is about a row: a constraint, or a value that does not fit."""

    # -- statements ----------------------------------------------------------------------------------------------

    def quoted(self, names: Sequence[str], between: str = ", ", form: str = "{}") -> str:
        """Names as SQL has them, each within ``form``."""
        return between.join(form.replace("{}", self.dialect.quote(name)) for name in names)

    def matching(self, names: Sequence[str], placeholder: str) -> str:
        """The condition that each of these columns equals a parameter."""
        return " AND ".join(f"{self.dialect.quote(name)} = {placeholder}" for name in names)

    def insert(self, target: Target) -> str:
        """The head of an INSERT, up to its rows."""
        return f"INSERT INTO {self.dialect.quoted(target.table)} ({self.quoted(target.names)})"


def run(connection: Connection, statement: str) -> None:
    """Run a statement that has no parameters, whatever characters the names in it have."""
    driver: Any = connection.connection.driver_connection
    cursor = driver.cursor()
    try:
        cursor.execute(statement)
    finally:
        cursor.close()


def nulls_apart(encode: Encode, null: Any) -> Encode:
    """``encode`` for columns that may hold null, which becomes the cell ``null``."""

    def encode_some(values: Sequence[Any]) -> Sequence[Any]:
        missing = [value is None for value in values]
        if not any(missing):
            return encode(values)
        cells = iter(encode([value for value in values if value is not None]))
        return [null if is_missing else next(cells) for is_missing in missing]

    return encode_some


def checked_texts(values: Sequence[str]) -> str:
    """The texts joined; raises if one of them is none, or cannot be written as UTF-8."""
    joined = "".join(values)
    if not joined.isascii():
        joined.encode()
    return joined


def check_scale(schema: Schema) -> None:
    """Refuse decimals that would be written with thousands of zeros."""
    scale = decimal_scale(schema)
    if abs(scale) > _MOST_SCALE:
        raise DataError(f"A Decimal with a scale of {scale} has no column: it must be from -1000 to 1000.")


def local_times(zone: dt.tzinfo) -> Callable[[Sequence[dt.datetime]], list[str]]:
    """Writes instants as times of a zone, without it."""
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
    """``write`` for decimals, refusing those with more digits after the point than the column keeps.

    The database would round them.
    """
    kept = None if column is None or column.type.name not in _DECIMALS else column.type.scale
    if column is None or kept is None or decimal_scale(schema) <= kept:
        return write
    exact, name = decimal.Context(prec=decimal.MAX_PREC), column.name

    def encode(values: Sequence[Any]) -> Sequence[Any]:
        for value in values:
            if value.is_finite() and exact.scaleb(value, kept) % 1:
                raise DataError(f"{value} has more digits after the point than column {name} keeps, which are {kept}.")
        return write(values)

    return encode
