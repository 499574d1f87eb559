"""Rows from Arrow: the Connect schema of a file, and the lossless cast of its blocks to that schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as kinds

from connect.data import ArrowColumn, Schema, Type
from connect.data.arrow import check_ranges, conform, schema_from_arrow, to_values
from connect.errors import DataError, SchemaError
from connect.kits.files.readers.formats.table import Block

__all__ = ["ArrowRows"]

_DEEPEST: Final = 100
_FINE: Final = ("us", "ns")


class ArrowRows:
    """The rows of one file.

    Timestamps without a zone are taken as UTC. Micro- and nanoseconds must be whole milliseconds, or are read as
    numbers with ``fine_as_numbers``.
    """

    def __init__(self, columns: pa.Schema, name: str, *, fine_as_numbers: bool) -> None:
        if not len(columns):
            raise SchemaError("it has no columns")
        self._fine_as_numbers = fine_as_numbers
        fields: list[Any] = [
            pa.field(each.name, self._target(each.type, each.name, 0), each.nullable, each.metadata) for each in columns
        ]
        metadata: Any = columns.metadata
        schema = schema_from_arrow(pa.schema(fields, metadata))
        self.schema: Schema = schema if schema.name is not None else schema.replace(name=name)
        self._type: Any = pa.struct(fields)
        self._has_maps = _has_maps(self.schema)

    def block(self, batch: pa.RecordBatch) -> Block:
        """Cast the rows of a batch; if that fails, the rows that cannot be cast on their own are bad."""
        array: Any = batch.to_struct_array()
        good: list[int] = []
        bad: list[tuple[int, str]] = []
        parts = list(self._parts(array, 0, good, bad))
        column: Any = pa.concat_arrays(parts) if len(parts) != 1 else parts[0]
        return Block(len(array), ArrowColumn(column, self.schema), good if bad else None, bad)

    def _parts(self, array: Any, first: int, good: list[int], bad: list[tuple[int, str]]) -> Iterator[Any]:
        """Yield the rows that can be cast, bisecting around those that cannot."""
        try:
            cast = self._cast(array)
        except (pa.ArrowException, DataError, UnicodeDecodeError) as error:
            if len(array) == 1:
                bad.append((first, _reason(error)))
                yield self._cast(array.slice(0, 0))
                return
            middle = len(array) // 2
            yield from self._parts(array.slice(0, middle), first, good, bad)
            yield from self._parts(array.slice(middle), first + middle, good, bad)
            return
        good.extend(range(first, first + len(array)))
        yield cast

    def _cast(self, array: Any) -> Any:
        cast: Any = conform(_cast(array, self._type), self.schema)
        if self._has_maps:
            # Duplicate keys are found only when the dicts are built.
            to_values(cast, self.schema)
        else:
            check_ranges(cast, self.schema)
        return cast

    def _target(self, data_type: Any, path: str, depth: int) -> Any:  # noqa: PLR0911 - one for each kind
        """Return the Arrow type to cast to before the type of the schema."""
        if depth > _DEEPEST:
            raise SchemaError(f"its column {path} is nested more than {_DEEPEST} levels deep")
        if kinds.is_dictionary(data_type) or kinds.is_run_end_encoded(data_type):
            return self._target(data_type.value_type, path, depth + 1)
        if isinstance(data_type, pa.BaseExtensionType):
            return self._target(data_type.storage_type, path, depth + 1)
        if kinds.is_struct(data_type):
            return pa.struct([self._field(field, path, depth) for field in data_type])
        if kinds.is_map(data_type):
            key, item = (self._field(field, path, depth) for field in (data_type.key_field, data_type.item_field))
            if kinds.is_nested(key.type):
                raise SchemaError(f"its column {path} is a map with nested keys, which a Python dict cannot have")
            return pa.map_(key, item)
        if kinds.is_large_list(data_type):
            return pa.large_list(self._field(data_type.value_field, path, depth))
        if kinds.is_list(data_type) or kinds.is_fixed_size_list(data_type):
            return pa.list_(self._field(data_type.value_field, path, depth))
        if kinds.is_duration(data_type):
            return pa.int64()
        if kinds.is_timestamp(data_type):
            return self._moment(data_type, pa.timestamp("ms", "UTC"))
        return self._moment(data_type, pa.time32("ms")) if kinds.is_time(data_type) else data_type

    def _moment(self, data_type: Any, target: Any) -> Any:
        return pa.int64() if data_type.unit in _FINE and self._fine_as_numbers else target

    def _field(self, field: Any, path: str, depth: int) -> Any:
        target = self._target(field.type, f"{path}.{field.name}", depth + 1)
        return pa.field(field.name, target, field.nullable, field.metadata)


def _reason(error: Exception) -> str:
    text = str(error).rstrip(".")
    if "would lose data" not in text:
        return text
    return f"a time is finer than a millisecond ({text}); with fine.times=number such columns are read as numbers"


def _cast(array: Any, target: Any) -> Any:
    """Cast safely: a lossy cast is an error."""
    return array if array.type.equals(target) else array.cast(target)


def _has_maps(schema: Schema) -> bool:
    parts = [field.schema for field in schema.fields]
    parts += [each for each in (schema.key_schema, schema.value_schema) if each is not None]
    return schema.type is Type.MAP or any(map(_has_maps, parts))
