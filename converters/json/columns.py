"""Decoding and encoding of many values of one schema at once, field by field.

Values read by orjson usually match the schema, and orjson can usually write the values that connectors send. A column
is therefore inspected (Python types, smallest and largest number) rather than rebuilt. If any doubt remains,
``DoubtError`` makes the caller process the rows one by one, which is exact and reports errors precisely.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, islice
from operator import itemgetter
from types import NoneType
from typing import Any, Final

from connect.data import Schema, Type, logical
from connect.data.numerals import INT64_MAX, INT64_MIN
from connect.data.schema import INTEGER_RANGES
from connect.errors import DataError
from converters.json.decode import decode_schemaless, decoder
from converters.json.encode import (
    DecimalFormat,
    encode_decimal_column,
    encode_float64_column,
    encode_schemaless,
    encoder,
)
from converters.json.errors import DoubtError, InexactError, UnfitError
from converters.json.passthrough import SCHEMALESS

__all__ = ["Change", "column_decoder", "column_encoder", "field_encoders", "has_long_numbers"]

Row = Callable[[Any], Any]
Change = Callable[[Sequence[Any]], Sequence[Any]]
"""Returns the decoded or encoded values of a column, or the column itself if no value had to change.

Raises ``DoubtError`` when the rows have to be processed one by one.
"""

_Logical = Callable[[Schema], tuple[frozenset[type], Change]]

_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = b"0" * 19


def column_decoder(schema: Schema | None, *, replace_null: bool, brief: bool = False) -> Change:
    """Return the function that turns parsed JSON into the values of a schema. It modifies the nodes it is given.

    ``replace_null`` and ``brief`` have the same meaning as in :func:`~converters.json.decode.decoder`.
    """
    if schema is None:
        return _by_row(decode_schemaless)

    def row_of(part: Schema) -> Row:
        return decoder(part, replace_null=replace_null, nested=part is not schema, brief=brief)

    return _Direction(row_of, _READ, _decoded_struct, brief).change(schema)


def column_encoder(schema: Schema | None, *, replace_null: bool, decimal_format: DecimalFormat) -> Change:
    """Return the function that turns values of a schema into nodes that orjson writes as Jackson does.

    It leaves the values as they are.
    """
    if schema is None:
        return _encoded_schemaless

    def row_of(part: Schema) -> Row:
        return encoder(part, replace_null=replace_null, decimal_format=decimal_format)

    by_name: dict[str, _Logical] = {logical.TIMESTAMP_NAME: _encoded_timestamps}
    if decimal_format is DecimalFormat.BASE64:
        by_name[logical.DECIMAL_NAME] = _encoded_decimals
    return _Direction(row_of, _WRITTEN, _encoded_struct, by_name=by_name).change(schema)


def field_encoders(
    schema: Schema, *, replace_null: bool, decimal_format: DecimalFormat
) -> Sequence[tuple[str, Change]]:
    """Return the :func:`column_encoder` of each field of a struct, with its name."""
    return [
        (field.name, column_encoder(field.schema, replace_null=replace_null, decimal_format=decimal_format))
        for field in schema.fields
    ]


def has_long_numbers(text: bytes) -> bool:
    """Return whether JSON text may contain integers of more than 64 bits, which orjson reads unlike Kafka Connect."""
    return _LONG_NUMBER in text.translate(_DIGITS)


@dataclass(frozen=True, slots=True)
class _Direction:
    """Reading or writing: the row method of a schema, the types orjson handles natively, the conversion of structs."""

    row_of: Callable[[Schema], Row]
    handled: Mapping[Type, tuple[frozenset[type], Change]]
    struct: Callable[[Sequence[tuple[str, Change]]], Change]
    floats_are_exact: bool = False
    by_name: Mapping[str, _Logical] = field(default_factory=dict)
    """The handlers for columns of logical types. Other logical types are processed row by row."""

    def change(self, schema: Schema) -> Change:
        row = self.row_of(schema)
        if schema.name in logical.LOGICAL_NAMES:
            handled = self.by_name.get(schema.name)
            return _nullable(row, *handled(schema)) if handled is not None else _by_row(row)
        if schema.type in self.handled:
            return _nullable(row, *self._scalar(schema.type, row))
        if schema.type is Type.STRUCT:
            parts = [(field.name, self.change(field.schema)) for field in schema.fields]
            return _nullable(row, _DICT, self.struct(parts))
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            return _nullable(row, _LIST, _array(self.change(schema.value_schema)))
        if schema.type is Type.MAP and schema.value_schema is not None and schema.key_schema is Schema.string():
            return _nullable(row, _DICT, _map(self.change(schema.value_schema)))
        return _by_row(row)

    def _scalar(self, kind: Type, row: Row) -> tuple[frozenset[type], Change]:
        if self.floats_are_exact and kind in INTEGER_RANGES:
            return _NUMBER, _whole(row, *INTEGER_RANGES[kind])
        return self.handled[kind]


def _by_row(row: Row) -> Change:
    def change(column: Sequence[Any]) -> Sequence[Any]:
        try:
            return [row(value) for value in column]
        except (DataError, InexactError) as error:
            raise DoubtError from error

    return change


def _nullable(row: Row, kinds: frozenset[type], change: Change) -> Change:
    """Pass only values of these types to ``change``. The row method decides what a null becomes."""
    nulls = _by_row(row)

    def change_all(column: Sequence[Any]) -> Sequence[Any]:
        found = set(map(type, column))
        if found <= kinds:
            return change(column) if column else column
        if not found <= kinds | _NULL:
            raise DoubtError
        if (change is _unchanged or found == _NULL) and nulls([None])[0] is None:
            return column
        present = [value for value in column if value is not None]
        instead = nulls([None] * (len(column) - len(present)))
        changed = change(present) if present else present
        if changed is present and instead[0] is None:
            return column
        left, right = iter(instead), iter(changed)
        return [next(left if value is None else right) for value in column]

    return change_all


# -- scalars -----------------------------------------------------------------------------------------------------


def _unchanged(column: Sequence[Any]) -> Sequence[Any]:
    return column


def _within(low: int, high: int) -> Change:
    def change(column: Sequence[Any]) -> Sequence[Any]:
        if min(column) < low or max(column) > high:
            raise DoubtError
        return column

    return change


def _whole(row: Row, low: int, high: int) -> Change:
    """Accept integers, some of which may be written with a fraction."""
    whole, fraction = _within(low, high), _by_row(row)
    return lambda column: (fraction if float in set(map(type, column)) else whole)(column)


def _as_floats(column: Sequence[Any]) -> Sequence[Any]:
    return list(map(float, column)) if int in set(map(type, column)) else column


def _encoded_decimals(schema: Schema) -> tuple[frozenset[type], Change]:
    scale = logical.decimal_scale(schema)

    def change(column: Sequence[Any]) -> Sequence[Any]:
        try:
            return encode_decimal_column(column, scale)
        except (DataError, ArithmeticError) as error:
            raise DoubtError from error

    return frozenset({Decimal}), change


def _encoded_timestamps(_schema: Schema) -> tuple[frozenset[type], Change]:
    def change(column: Sequence[Any]) -> Sequence[Any]:
        try:
            return logical.milliseconds_from_timestamps(column)
        except DataError as error:
            raise DoubtError from error

    return frozenset({dt.datetime}), change


# -- containers --------------------------------------------------------------------------------------------------


def _decoded_struct(parts: Sequence[tuple[str, Change]]) -> Change:
    names = tuple(name for name, _ in parts)

    def change(rows: Sequence[Any]) -> Sequence[Any]:
        columns = _exact_columns(rows, names, in_order=_in_order(rows, names))
        if columns is None:
            columns = [[row.get(name) for row in rows] for name in names]
            return _rebuilt(names, [part(column) for (_, part), column in zip(parts, columns, strict=True)], rows)
        for (name, part), column in zip(parts, columns, strict=True):
            changed = part(column)
            if changed is not column:
                for row, value in zip(rows, changed, strict=True):
                    row[name] = value
        return rows

    return change


def _encoded_struct(parts: Sequence[tuple[str, Change]]) -> Change:
    names = tuple(name for name, _ in parts)

    def change(rows: Sequence[Any]) -> Sequence[Any]:
        in_order = _in_order(rows, names)
        columns = _exact_columns(rows, names, in_order=in_order)
        if columns is None:
            raise DoubtError
        changed = [part(column) for (_, part), column in zip(parts, columns, strict=True)]
        if not in_order:
            return _rebuilt(names, changed, rows)
        news = [(name, new) for name, new, old in zip(names, changed, columns, strict=True) if new is not old]
        return _copied(rows, news) if news else rows

    return change


def _copied(rows: Sequence[Any], news: Sequence[tuple[str, Sequence[Any]]]) -> Sequence[Any]:
    """Return copies of structs with other values in some fields: that is quicker than making whole new ones."""
    copies = list(map(dict.copy, rows))
    for name, values in news:
        for copy, value in zip(copies, values, strict=True):
            copy[name] = value
    return copies


def _exact_columns(rows: Sequence[Any], names: tuple[str, ...], *, in_order: bool) -> Sequence[Sequence[Any]] | None:
    """Return the values of each field, or ``None`` unless every row has exactly these fields."""
    if not names or not rows[0]:
        return None
    if not in_order and set(map(len, rows)) != {len(names)}:
        return None
    try:
        return [list(map(itemgetter(name), rows)) for name in names]
    except KeyError:
        return None


def _in_order(rows: Sequence[Any], names: tuple[str, ...]) -> bool:
    """Return whether every row has these fields in this order."""
    # Most rows share their key objects, so comparing with the keys of the first row is quickest. As no row has a key
    # twice, the concatenated keys of all rows suffice.
    first = list(rows[0])
    return tuple(first) == names and list(chain.from_iterable(rows)) == first * len(rows)


def _rebuilt(names: tuple[str, ...], columns: Sequence[Sequence[Any]], rows: Sequence[Any]) -> Sequence[Any]:
    if not names:
        return [{} for _ in rows]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _array(part: Change) -> Change:
    def change(arrays: Sequence[Any]) -> Sequence[Any]:
        items = list(chain.from_iterable(arrays))
        changed = part(items)
        if changed is items:
            return arrays
        left = iter(changed)
        return [list(islice(left, len(array))) for array in arrays]

    return change


def _map(part: Change) -> Change:
    def change(maps: Sequence[Any]) -> Sequence[Any]:
        if not set(map(type, chain.from_iterable(maps))) <= _STRING:
            raise DoubtError
        items = list(chain.from_iterable(map(dict.values, maps)))
        changed = part(items)
        if changed is items:
            return maps
        left = iter(changed)
        return [dict(zip(keys, islice(left, len(keys)), strict=True)) for keys in maps]

    return change


# -- without a schema --------------------------------------------------------------------------------------------


def _encoded_schemaless(column: Sequence[Any]) -> Sequence[Any]:
    """Encode values of any types with as few changes as possible. Usually all values of a field have the same type."""
    kinds = set(map(type, column))
    if kinds <= SCHEMALESS:
        return column
    change = _BY_KIND.get(kinds.pop()) if len(kinds) == 1 else None
    if change is not None:
        return change(column)
    if len(kinds) == 2 and NoneType in kinds:
        present = [value for value in column if value is not None]
        changed = _encoded_schemaless(present)
        if changed is present:
            return column
        left = iter(changed)
        return [None if value is None else next(left) for value in column]
    try:
        return [value if value.__class__ in SCHEMALESS else encode_schemaless(value) for value in column]
    except UnfitError as error:
        raise DoubtError from error


def _schemaless_objects(rows: Sequence[Any]) -> Sequence[Any]:
    names = tuple(rows[0])
    if not set(map(type, names)) <= _STRING:
        raise DoubtError
    if not _in_order(rows, names):
        return _schemaless_map(rows)
    columns = [list(map(itemgetter(name), rows)) for name in names]
    changed = list(map(_encoded_schemaless, columns))
    if all(new is old for new, old in zip(changed, columns, strict=True)):
        return rows
    return _rebuilt(names, changed, rows)


_schemaless_map: Final = _map(_encoded_schemaless)
_BY_KIND: Final[Mapping[type, Change]] = {
    int: _within(INT64_MIN, INT64_MAX),
    float: encode_float64_column,
    dict: _schemaless_objects,
    list: _array(_encoded_schemaless),
}
_NULL: Final = frozenset({NoneType})
_DICT: Final = frozenset({dict})
_LIST: Final = frozenset({list})
_NUMBER: Final = frozenset({int, float})
_STRING: Final = frozenset({str})
_SAME: Final[Mapping[Type, tuple[frozenset[type], Change]]] = {
    Type.BOOLEAN: (frozenset({bool}), _unchanged),
    Type.STRING: (_STRING, _unchanged),
    **{kind: (frozenset({int}), _within(low, high)) for kind, (low, high) in INTEGER_RANGES.items()},
}
_READ: Final = {**_SAME, Type.FLOAT64: (frozenset({float, int}), _as_floats)}
_WRITTEN: Final = {**_SAME, Type.FLOAT64: (frozenset({float}), encode_float64_column)}
