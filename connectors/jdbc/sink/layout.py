"""The columns of a row: how records of one pair of schemas become the columns of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Schema, SinkBatch, Type
from connect.errors import DataError
from connectors.jdbc.sink.config import JdbcSinkConfig, KeyMode, NestedValues
from connectors.jdbc.sink.conversions import json_schema, json_writer, precise_reader, precise_schema

__all__ = ["Layout", "LayoutColumn", "key_layout", "row_layout"]

Read = Callable[[SinkBatch], Sequence[Any]]
"""Returns the values of a column, one for each record of a batch."""

_KAFKA_SCHEMAS: Final = (Schema.string(), Schema.int32(), Schema.int64())


@dataclass(frozen=True, slots=True)
class LayoutColumn:
    """A column: its name, the schema of its values, and how to read them from a batch."""

    name: str
    schema: Schema
    read: Read


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a row, the first ``key_size`` of them the primary key."""

    columns: tuple[LayoutColumn, ...]
    key_size: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the columns of the primary key."""
        return self.names[: self.key_size]


def key_layout(config: JdbcSinkConfig, key_schema: Schema | None) -> Layout:
    """Return the columns of a record without a value: those of its key. Raises ``DataError`` if there are none."""
    columns = tuple(_key_columns(config, key_schema, None))
    return Layout(columns, len(columns))


def row_layout(
    config: JdbcSinkConfig, key_schema: Schema | None, value_schema: Schema | None, *, arrays: bool
) -> Layout:
    """Return the columns of records with these schemas; ``arrays`` means that the database has array columns.

    Raises :class:`~connect.errors.DataError` if records of these schemas cannot be written.
    """
    keys = tuple(_key_columns(config, key_schema, value_schema))
    names = {column.name for column in keys}
    values = [
        column
        for column in _value_columns(config, value_schema, arrays=arrays, besides=names)
        if column.name not in names
    ]
    seen: set[str] = set()
    for column in (*keys, *values):
        if column.name in seen:
            raise DataError(
                f"Two fields of the record map to column {column.name}. Rename one with a transformation, or change "
                "nested.delimiter."
            )
        seen.add(column.name)
    if not seen:
        raise DataError("The record has no field to write. Check fields.whitelist and pk.mode.")
    return Layout((*keys, *values), len(keys))


# -- the primary key -----------------------------------------------------------------------------------------


def _key_columns(
    config: JdbcSinkConfig, key_schema: Schema | None, value_schema: Schema | None
) -> Iterator[LayoutColumn]:
    match config.pk_mode:
        case KeyMode.KAFKA:
            for name, schema, read in zip(config.kafka_columns, _KAFKA_SCHEMAS, _KAFKA_READERS, strict=True):
                yield LayoutColumn(name, schema, read)
        case KeyMode.RECORD_KEY:
            yield from _record_key_columns(config, key_schema)
        case KeyMode.RECORD_VALUE:
            yield from _record_value_columns(config, value_schema)
        case KeyMode.NONE:
            pass


def _record_key_columns(config: JdbcSinkConfig, schema: Schema | None) -> Iterator[LayoutColumn]:
    if schema is None:
        raise DataError(
            "pk.mode=record_key requires keys with a schema, but the key of the record has none. Use a key.converter "
            "that provides one, such as AvroConverter, StringConverter or JsonConverter with schemas."
        )
    if schema.type is not Type.STRUCT:
        if not schema.type.is_primitive:
            raise DataError(
                f"A key of type {schema.type.value} cannot be a primary key. It must be a struct or a primitive value."
            )
        if len(config.pk_fields) != 1:
            raise DataError(
                f"The key of the record is a primitive value of type {schema.type.value}. Set pk.fields to the name "
                f"of its column; it has {len(config.pk_fields)} names."
            )
        yield LayoutColumn(config.pk_fields[0], schema, lambda batch: batch.key.values())
        return
    for name in config.pk_fields or schema.field_names:
        yield LayoutColumn(name, _primitive(schema, name, "key"), _key_reader(name))


def _record_value_columns(config: JdbcSinkConfig, schema: Schema | None) -> Iterator[LayoutColumn]:
    if schema is None or schema.type is not Type.STRUCT:
        raise DataError("pk.mode=record_value requires values that are structs with a schema.")
    replace = config.replace_null_with_default
    for name in config.pk_fields or schema.field_names:
        member = _primitive(schema, name, "value")
        yield LayoutColumn(name, member, _with_default(_field_reader((name,)), member if replace else None))


def _primitive(schema: Schema, name: str, part: str) -> Schema:
    field = schema.field(name)
    if field is None:
        fields = ", ".join(schema.field_names)
        raise DataError(f"pk.fields has {name}, but the fields of the record's {part} are {fields}.")
    if not field.schema.type.is_primitive:
        raise DataError(
            f"Field {name} of the {part} is of type {field.schema.type.value}, which cannot be a primary key."
        )
    return field.schema


# -- the value ----------------------------------------------------------------------------------------------


def _value_columns(
    config: JdbcSinkConfig, schema: Schema | None, *, arrays: bool, besides: Iterable[str]
) -> Iterator[LayoutColumn]:
    if schema is None or schema.type not in (Type.STRUCT, Type.STRING):
        found = "has no schema" if schema is None else f"is of type {schema.type.value}"
        raise DataError(
            f"The value of the record {found}, but a struct or a string with a schema is required. Use a "
            "value.converter that provides one, such as AvroConverter, or JsonConverter with "
            "value.converter.schemas.enable=true."
        )
    if schema.type is Type.STRING:
        yield LayoutColumn(config.string_output_value_column_name, schema, lambda batch: batch.value.values())
        return
    wanted = set(config.fields_whitelist)
    if missing := wanted - set(schema.field_names) - set(besides):
        raise DataError(f"fields.whitelist has {min(missing)}, but the value of the record has no such field.")
    for field in schema.fields:
        if not wanted or field.name in wanted:
            yield from _columns_of(config, (field.name,), field.schema, optional=schema.optional, arrays=arrays)


def _columns_of(
    config: JdbcSinkConfig, path: tuple[str, ...], schema: Schema, *, optional: bool, arrays: bool
) -> Iterator[LayoutColumn]:
    name = config.nested_delimiter.join(path)
    optional = optional or schema.optional
    nested = config.nested_values
    replace = config.replace_null_with_default
    if schema.type is Type.STRUCT and nested is NestedValues.FLATTEN:
        for field in schema.fields:
            yield from _columns_of(config, (*path, field.name), field.schema, optional=optional, arrays=arrays)
        return
    read = _with_default(_field_reader(path), schema if replace else None)
    shown = schema.as_optional() if optional else schema
    if len(path) == 1 and path[0] in config.timestamp_fields_list:
        change = precise_reader(schema, config.timestamp_precision_mode)
        yield LayoutColumn(name, precise_schema(optional=optional), lambda batch: change(read(batch)))
    elif schema.type.is_primitive or (arrays and _is_plain_array(schema)):
        yield LayoutColumn(name, shown, read)
    elif nested is NestedValues.FAIL:
        raise DataError(
            f"Field {name} is of type {schema.type.value}, which has no column type. Set nested.values=json or "
            "flatten, or leave the field out with fields.whitelist."
        )
    else:
        write = json_writer(schema)
        yield LayoutColumn(name, json_schema(optional=optional), lambda batch: list(map(write, read(batch))))


def _is_plain_array(schema: Schema) -> bool:
    element = schema.value_schema
    return schema.type is Type.ARRAY and element is not None and (element.type.is_primitive or _is_plain_array(element))


# -- reading by column ----------------------------------------------------------------------------------------


def _field_reader(path: tuple[str, ...]) -> Read:
    first, *rest = path

    def read(batch: SinkBatch) -> Sequence[Any]:
        values = batch.value.members(first)
        for name in rest:
            values = [None if value is None else value.get(name) for value in values]
        return values

    return read


def _key_reader(name: str) -> Read:
    return lambda batch: batch.key.members(name)


def _with_default(read: Read, schema: Schema | None) -> Read:
    if schema is None or schema.default is None:
        return read
    default = schema.default

    def defaulted(batch: SinkBatch) -> Sequence[Any]:
        return [default if value is None else value for value in read(batch)]

    return defaulted


_KAFKA_READERS: Final[tuple[Read, Read, Read]] = (
    lambda batch: [batch.original_topic] * len(batch),
    lambda batch: batch.original_partitions,
    lambda batch: batch.original_offsets,
)
