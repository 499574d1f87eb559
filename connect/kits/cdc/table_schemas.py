"""The schemas of a table's records, and the compiled function that makes values of its rows.

A :class:`TableSchema` is made once for a version of a table; the snapshot, the stream and incremental snapshots all use
its columns, so that one row has one value.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from connect.data import Schema, Type
from connect.data.logical import LOGICAL_NAMES
from connect.errors import ConnectError, DataError, SchemaError
from connect.kits.cdc.conversion import Conversion, Dialect
from connect.kits.cdc.filters import ColumnRules, KeyRules
from connect.kits.cdc.semantic_types import VARIABLE_SCALE_DECIMAL
from connect.kits.cdc.tables import Column, Table
from connect.kits.cdc.topics import TopicNaming
from connect.kits.cdc.transactions import BLOCK_SCHEMA

__all__ = ["UNAVAILABLE", "ConversionFailureMode", "RowColumn", "TableSchema", "TableSchemas"]

logger = logging.getLogger(__name__)

UNAVAILABLE: Final = object()
"""The raw value of a column that the database has not sent because it did not change."""

_Row = dict[str, Any]


class ConversionFailureMode(StrEnum):
    """The values of ``event.converting.failure.handling.mode``."""

    FAIL = "fail"
    WARN = "warn"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of the records: ``place`` is its position in a raw row, ``name`` that of the field."""

    place: int
    name: str
    schema: Schema
    convert: Callable[[Any], Any]
    unavailable: Any


@dataclass(frozen=True, slots=True)
class TableSchema:
    """What the records of a version of a table look like.

    ``row`` makes the value of a whole raw row. ``key`` makes a key of such a value; it is None if some of the key's
    columns are masked or left out there. ``key_of_raw`` makes a key of the raw row. ``lacks`` tells whether a raw row
    has null where the schemas do not allow it.
    """

    table: Table
    topic: str
    key_schema: Schema | None
    value_schema: Schema
    envelope_schema: Schema
    columns: tuple[RowColumn, ...]
    key_columns: tuple[RowColumn, ...]
    row: Callable[[Sequence[Any]], _Row]
    key_of_raw: Callable[[Sequence[Any]], _Row]
    key: Callable[[_Row], _Row] | None
    lacks: Callable[[Sequence[Any]], bool]
    recover: Callable[[RowColumn, Exception], Any]


class TableSchemas:
    """Makes the schemas of tables as a connector's configuration asks for them."""

    def __init__(
        self,
        dialect: Dialect,
        naming: TopicNaming,
        source_schema: Schema,
        *,
        columns: ColumnRules,
        keys: KeyRules,
        placeholder: str,
        on_failure: ConversionFailureMode,
    ) -> None:
        self._dialect = dialect
        self._naming = naming
        self._source_schema = source_schema
        self._columns = columns
        self._keys = keys
        self._placeholder = placeholder
        self._on_failure = on_failure
        self._left_out: set[str] = set()
        """The columns that were reported."""

    def of(self, table: Table) -> TableSchema:
        """Make the schemas of a version of a table."""
        places = {column.name: place for place, column in enumerate(table.columns)}
        made = {place: self._row_column(table, place, column) for place, column in enumerate(table.columns)}
        columns = tuple(
            self._masked(table, table.columns[place], column)
            for place, column in made.items()
            if column is not None and self._columns.includes(table.id, table.columns[place])
        )
        names = self._keys.key_columns(table)
        keys = tuple(column for name in names if (column := made[places[name]]) is not None)
        in_row = {column.place: column for column in columns}
        name = self._naming.schema_name(table.id)
        topic = self._naming.topic(table.id)
        value_schema = Schema.struct(
            {column.name: column.schema for column in columns},
            optional=True,
            name=f"{name}.Value",
        )
        extra = self._naming.key_field(table.id)
        recover = self._recovery(table)
        is_derived = all(in_row.get(column.place) is column for column in keys)
        return TableSchema(
            table,
            topic,
            self._key_schema(name, keys, extra),
            value_schema,
            envelope_schema(f"{name}.Envelope", value_schema, self._source_schema),
            columns,
            keys,
            _compiled_row(columns, recover),
            _compiled_row(keys, recover, extra),
            _compiled_key(keys, extra) if is_derived else None,
            _compiled_gaps({column.place for column in (*columns, *keys) if not column.schema.optional}),
            recover,
        )

    def with_nulls(self, schema: TableSchema, raw: Sequence[Any]) -> TableSchema:
        """Return the schemas with null allowed where a row has it: it was written before its column was NOT NULL."""
        columns = tuple(
            replace(column, optional=True) if value is None else column
            for column, value in zip(schema.table.columns, raw, strict=True)
        )
        return self.of(replace(schema.table, columns=columns))

    def _key_schema(self, name: str, keys: Sequence[RowColumn], extra: Mapping[str, str]) -> Schema | None:
        if not keys:
            return None
        fields = {column.name: column.schema for column in keys} | {each: Schema.string() for each in extra}
        return Schema.struct(fields, name=f"{name}.Key")

    def _row_column(self, table: Table, place: int, column: Column) -> RowColumn | None:
        conversion = self._dialect.conversion(column)
        if conversion is None:
            self._tell_left_out(f"{table.id}.{column.name}", column.type_name)
            return None
        return self._made(table, place, column, conversion)

    def _tell_left_out(self, name: str, type_name: str) -> None:
        if name not in self._left_out:
            self._left_out.add(name)
            logger.warning("Column %s is left out of events: values of type %s are not supported.", name, type_name)

    def _masked(self, table: Table, column: Column, plain: RowColumn) -> RowColumn:
        conversion = Conversion(plain.schema, plain.convert)
        masked = self._columns.masked(table.id, column, conversion)
        if masked is conversion and not self._columns.is_propagated(table.id, column):
            return plain
        schema = masked.schema
        if self._columns.is_propagated(table.id, column):
            schema = schema.replace(
                parameters={**schema.parameters, **_declaration(column, tells_comment=self._columns.tells_comments)}
            )
        return RowColumn(plain.place, plain.name, schema, masked.convert, plain.unavailable)

    def _made(self, table: Table, place: int, column: Column, conversion: Conversion) -> RowColumn:
        schema = conversion.schema
        if column.optional:
            schema = schema.as_optional()
        if column.default is not None:
            try:
                schema = schema.replace(default=conversion.convert(column.default))
            except (ValueError, ArithmeticError, SchemaError, DataError) as error:
                logger.warning("The default of column %s.%s is left out: %s", table.id, column.name, error)
        unavailable = unavailable_value(conversion.schema, self._placeholder)
        return RowColumn(place, self._naming.field_name(column.name), schema, conversion.convert, unavailable)

    def _recovery(self, table: Table) -> Callable[[RowColumn, Exception], Any]:
        """Return what to do about a value that cannot be converted: raise an error, or return null."""

        def recover(column: RowColumn, error: Exception) -> None:
            told = f"A value of column {column.name} of table {table.id} cannot be converted: {error}"
            if self._on_failure is ConversionFailureMode.FAIL or not column.schema.optional:
                raise ConnectError(
                    f"{told} Correct the row, leave the column out by column.exclude.list, or, if it may be null, set "
                    "event.converting.failure.handling.mode=warn to send null."
                ) from error
            level = logging.WARNING if self._on_failure is ConversionFailureMode.WARN else logging.DEBUG
            logger.log(level, "%s; null is sent in its place.", told)

        return recover


def envelope_schema(name: str, value_schema: Schema, source_schema: Schema) -> Schema:
    """Return the schema of the change events of a table."""
    return Schema.struct(
        {
            "before": value_schema,
            "after": value_schema,
            "source": source_schema,
            "transaction": BLOCK_SCHEMA,
            "op": Schema.string(),
            "ts_ms": Schema.int64(optional=True),
            "ts_us": Schema.int64(optional=True),
            "ts_ns": Schema.int64(optional=True),
        },
        name=name,
        version=2,
    )


def unavailable_value(schema: Schema, placeholder: str) -> Any:
    """Return what stands for a value that was not sent; None if the schema has no room for the placeholder."""
    if schema.type is Type.STRING:
        return placeholder
    if schema.type is Type.BYTES and schema.name not in LOGICAL_NAMES:
        return placeholder.encode()
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        element = unavailable_value(schema.value_schema, placeholder)
        return None if element is None else [element]
    if schema.type is Type.MAP:
        return {placeholder: placeholder}
    if schema is VARIABLE_SCALE_DECIMAL:
        return {"scale": 0, "value": placeholder.encode()}
    return None


def _declaration(column: Column, *, tells_comment: bool) -> dict[str, str]:
    prefix = "__debezium.source.column."
    declared = {f"{prefix}type": column.type_name.upper(), f"{prefix}name": column.name}
    if column.length is not None:
        declared[f"{prefix}length"] = str(column.length)
    if column.scale is not None:
        declared[f"{prefix}scale"] = str(column.scale)
    if tells_comment and column.comment:
        declared[f"{prefix}comment"] = column.comment
    return declared


def _compiled_row(
    columns: Sequence[RowColumn],
    recover: Callable[[RowColumn, Exception], Any],
    extra: Mapping[str, str] = {},
) -> Callable[[Sequence[Any]], _Row]:
    """Compile the function that makes a struct of a raw row: a loop over columns takes twice the time."""

    def slowly(raw: Sequence[Any]) -> _Row:
        return {column.name: _value(column, raw[column.place], recover) for column in columns} | dict(extra)

    parts = [
        f"{column.name!r}: None if (v := raw[{column.place}]) is None else u{number} if v is U else c{number}(v)"
        for number, column in enumerate(columns)
    ]
    parts += [f"{name!r}: {value!r}" for name, value in extra.items()]
    source = (
        "def row(raw):\n"
        "    try:\n"
        f"        return {{{', '.join(parts)}}}\n"
        "    except (ValueError, ArithmeticError, ConnectError):\n"
        "        return slowly(raw)\n"
    )
    names: dict[str, Any] = {"U": UNAVAILABLE, "slowly": slowly, "ConnectError": ConnectError}
    names |= {f"c{number}": column.convert for number, column in enumerate(columns)}
    names |= {f"u{number}": column.unavailable for number, column in enumerate(columns)}
    exec(source, names)  # noqa: S102 - names of columns are only written as literals
    made: Callable[[Sequence[Any]], _Row] = names["row"]
    return made


def _value(column: RowColumn, raw: Any, recover: Callable[[RowColumn, Exception], Any]) -> Any:
    if raw is None:
        return None
    if raw is UNAVAILABLE:
        return column.unavailable
    try:
        return column.convert(raw)
    except (ValueError, ArithmeticError, ConnectError) as error:
        return recover(column, error)


def _compiled_gaps(places: Collection[int]) -> Callable[[Sequence[Any]], bool]:
    tests = " or ".join(f"raw[{place}] is None" for place in sorted(places))
    made: Callable[[Sequence[Any]], bool] = eval(f"lambda raw: {tests or False}")  # noqa: S307 - numbers alone
    return made


def _compiled_key(keys: Sequence[RowColumn], extra: Mapping[str, str]) -> Callable[[_Row], _Row]:
    parts = [f"{column.name!r}: row[{column.name!r}]" for column in keys]
    parts += [f"{name!r}: {value!r}" for name, value in extra.items()]
    made: Callable[[_Row], _Row] = eval(f"lambda row: {{{', '.join(parts)}}}")  # noqa: S307 - as above
    return made
