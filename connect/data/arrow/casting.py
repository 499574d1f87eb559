"""Lossless casts of Arrow arrays to the Arrow type of a schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from connect.data import logical
from connect.data.arrow.arrays import null_refused, to_array
from connect.data.arrow.types import arrow_type
from connect.data.schema import Field, Schema, Type
from connect.errors import DataError

__all__ = ["conform"]


def conform(array: pa.Array[Any], schema: Schema) -> pa.Array[Any]:
    """Cast an array to the Arrow type of ``schema``. An array of that type is returned unchanged.

    Wider integers, large strings, dictionaries, fixed-size lists, timestamps of other units and similar types are cast
    if every value stays equal. A column missing from a struct gets the field's default, or nulls if the field is
    optional. Anything else raises a :class:`~connect.errors.DataError` that names the field and says what to cast.
    """
    if array.type.equals(arrow_type(schema)) and _is_complete(array, schema):
        return array
    made: pa.Array[Any] = _conformed(array, schema, "")
    return made


def _is_complete(array: Any, schema: Schema) -> bool:
    """Return whether no required value is null; also false if finding out would need a closer look."""
    if array.null_count and not schema.optional:
        return False
    if schema.type is Type.STRUCT:
        return all(_is_complete(array.field(field.index), field.schema) for field in schema.fields)
    if schema.value_schema is None:
        return True
    if schema.key_schema is None:
        return _is_complete(array.values, schema.value_schema)
    return _is_complete(array.items, schema.value_schema)


def _conformed(array: Any, schema: Schema, path: str) -> Any:
    if kinds.is_dictionary(array.type):
        array = array.dictionary_decode()
    elif kinds.is_run_end_encoded(array.type):
        array = pc.call_function("run_end_decode", [array])
    if kinds.is_null(array.type):
        data_type: Any = arrow_type(schema)
        array = pa.nulls(len(array), data_type)
    elif schema.name in logical.LOGICAL_NAMES or schema.type.is_primitive:
        array = _leaf(array, schema, path)
    elif schema.type is Type.STRUCT:
        array = _struct(array, schema, path)
    else:
        array = _list(array, schema, path) if schema.key_schema is None else _map(array, schema, path)
    if array.null_count and not schema.optional:
        array = _filled(array, schema, path)
    return array


def _filled(array: Any, schema: Schema, path: str) -> Any:
    if schema.default is None:
        raise null_refused(schema, path)
    default = _repeated(schema, 1)
    everything = pa.concat_arrays([array, default])
    last = pa.scalar(len(array), pa.int64())
    places = pc.if_else(array.is_valid(), pa.array(range(len(array)), pa.int64()), last)
    return everything.take(places)


def _repeated(schema: Schema, length: int) -> Any:
    return to_array([schema.default] * length, schema)


# -- nested types --------------------------------------------------------------------------------------------


def _struct(array: Any, schema: Schema, path: str) -> Any:
    if not kinds.is_struct(array.type):
        raise _refused(array, schema, path)
    unknown = {field.name for field in array.type} - set(schema.field_names)
    if unknown or len(set(array.type.names)) < array.type.num_fields:
        what = f"columns that the schema does not have: {', '.join(sorted(unknown))}" if unknown else "a column twice"
        raise DataError(f'Struct "{path or "value"}" has {what}; select the columns first.')
    target: Any = arrow_type(schema)
    if not schema.fields:
        return array
    mask = array.is_null() if array.null_count else None
    children = [_child(array, field, path, mask) for field in schema.fields]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _child(array: Any, field: Field, path: str, mask: Any) -> Any:
    place = array.type.get_field_index(field.name)
    where = f"{path}.{field.name}" if path else field.name
    if place < 0:
        if field.schema.default is None and not field.schema.optional:
            raise DataError(
                f'Column "{where}" is missing and its field has no default: add it, or make the field optional.'
            )
        return _repeated(field.schema, len(array))
    child = array.field(place)
    if mask is None or field.schema.optional:
        return _conformed(child, field.schema, where)
    # Where the struct is null, what its children hold does not matter: only the others must have a value.
    _conformed(child.filter(pc.invert(mask)), field.schema, where)
    return _conformed(child, field.schema.as_optional(), where)


def _list(array: Any, schema: Schema, path: str) -> Any:
    if not any(is_list(array.type) for is_list in _LISTS):
        raise _refused(array, schema, path)
    assert schema.value_schema is not None
    items = _conformed(array.flatten(), schema.value_schema, f"{path}[]")
    target: Any = arrow_type(schema)
    return pa.ListArray.from_arrays(_offsets(array, path), items, type=target, mask=_mask(array))


def _map(array: Any, schema: Schema, path: str) -> Any:
    if not kinds.is_map(array.type):
        raise _refused(array, schema, path)
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    # Taking every row leaves out entries that belong to none: those of null maps and outside of a slice.
    array = array.take(pa.array(range(len(array)), pa.int64()))
    keys = _conformed(array.keys, schema.key_schema, f"{path}{{key}}")
    items = _conformed(array.items, schema.value_schema, f"{path}[]")
    target: Any = arrow_type(schema)
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=target, mask=_mask(array))


def _offsets(array: Any, path: str) -> Any:
    lengths: Any = pc.list_value_length(array)
    ends: Any = pc.cumulative_sum(lengths.fill_null(0).cast(pa.int64()))
    start: Any = pa.array([0], pa.int64())
    try:
        return pa.concat_arrays([start, ends]).cast(pa.int32())
    except pa.ArrowInvalid as error:
        raise DataError(f'"{path or "value"}" has more than 2**31 elements: use smaller batches.') from error


def _mask(array: Any) -> Any:
    return array.is_null() if array.null_count else None


# -- values that hold no others ------------------------------------------------------------------------------


def _leaf(array: Any, schema: Schema, path: str) -> Any:
    target = arrow_type(schema)
    if array.type.equals(target):
        return array
    if not _castable(array.type, target):
        raise _refused(array, schema, path)
    try:
        return array.cast(target)
    except pa.ArrowException as error:
        raise DataError(
            f'A value of column "{path or "value"}" cannot be cast from {array.type} to {target} without loss: {error}.'
            "  Cast the column yourself, with safe=False if you accept the loss."
        ) from error


def _castable(source: Any, target: Any) -> bool:
    """Return whether pyarrow's safe cast between the types either keeps every value or fails."""
    return (
        any(accepts(target) and any(is_kind(source) for is_kind in sources) for accepts, sources in _CASTS)
        or (kinds.is_timestamp(source) and kinds.is_timestamp(target) and source.tz is not None)
        or (kinds.is_decimal(source) and kinds.is_decimal(target) and source.scale == target.scale)
    )


def _refused(array: Any, schema: Schema, path: str) -> DataError:
    target = arrow_type(schema)
    if kinds.is_timestamp(array.type) and kinds.is_timestamp(target):
        advice = "say which time zone it is in with pyarrow.compute.assume_timezone()"
    else:
        advice = f"cast it to {target}"
    return DataError(f'Column "{path or "value"}" is {array.type} where the schema wants {target}: {advice}.')


_LISTS = (
    kinds.is_list,
    kinds.is_large_list,
    kinds.is_fixed_size_list,
    kinds.is_list_view,
    kinds.is_large_list_view,
)


def _is_whole(data_type: Any) -> bool:
    return kinds.is_decimal(data_type) and data_type.scale == 0


_CASTS = (
    (kinds.is_integer, (kinds.is_integer,)),
    (kinds.is_floating, (kinds.is_integer, kinds.is_float16, kinds.is_float32)),
    (kinds.is_string, (kinds.is_large_string, kinds.is_string_view)),
    (kinds.is_binary, (kinds.is_large_binary, kinds.is_binary_view, kinds.is_fixed_size_binary)),
    (kinds.is_date, (kinds.is_date,)),
    (kinds.is_time, (kinds.is_time,)),
    (_is_whole, (kinds.is_integer,)),
)
