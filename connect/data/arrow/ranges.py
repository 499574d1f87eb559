"""Checks for values that Arrow can represent and Python cannot."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.data import logical
from connect.data.schema import Schema, Type
from connect.errors import DataError

__all__ = ["check_ranges"]

_DAYS: Final = (-719_162, 2_932_896)
_MILLISECONDS: Final = (-62_135_596_800_000, 253_402_300_799_999)
_DAY_MS: Final = (0, 86_399_999)
_RANGES: Final = {
    logical.DATE_NAME: (pa.int32(), _DAYS),
    logical.TIME_NAME: (pa.int32(), _DAY_MS),
    logical.TIMESTAMP_NAME: (pa.int64(), _MILLISECONDS),
}
"""The numbers that stand for dates and times Python can represent: the years 1 to 9999."""


def check_ranges(array: Any, schema: Schema, path: str = "") -> None:
    """Refuse dates and times outside Python's years and text that is not UTF-8, at any depth of an array.

    ``array`` has the Arrow type of ``schema``. Raises :class:`~connect.errors.DataError` with the path of the field, or
    pyarrow's error for text.
    """
    if schema.name in _RANGES:
        numbers, (low, high) = _RANGES[schema.name]
        found: Any = pc.min_max(array.view(numbers)).as_py()
        if found["min"] is not None and not low <= found["min"] <= found["max"] <= high:
            raise DataError(f"{path} has a value outside the years 1 to 9999, or a time of day outside a day")
    elif schema.type is Type.STRING:
        array.validate(full=True)
    elif schema.type is Type.STRUCT:
        for field, child in zip(schema.fields, array.flatten(), strict=True):
            check_ranges(child, field.schema, f"{path}.{field.name}" if path else field.name)
    elif schema.type is Type.ARRAY and schema.value_schema is not None:
        check_ranges(array.flatten(), schema.value_schema, f"{path}[]")
    elif schema.type is Type.MAP and schema.value_schema is not None:
        # The items of a slice are those of the whole array.
        taken = array.take(pa.array(range(len(array)), pa.int64()))
        check_ranges(taken.items, schema.value_schema, f"{path}[]")
