"""Stand-ins for values and records that are equal only if both types and contents are the same.

Python considers ``1``, ``1.0`` and ``True`` equal, and a NaN unequal to itself; a converter must tell them apart.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from connect.data import Headers, Record, Schema, SchemaAndValue

__all__ = ["exact", "exact_pair", "exact_record"]


def exact(value: Any) -> object:
    """Return a hashable stand-in for a value; stand-ins are equal only if the values are the same."""
    same: object = (type(value).__name__, value)
    match value:
        case None | str() | Schema():
            same = value
        case bytes() | bytearray() | memoryview():
            same = bytes(value)
        case float() | decimal.Decimal() | dt.date() | dt.time():
            # Their texts distinguish values that compare equal, such as 0.0 and -0.0 or 1.0 and 1.00, and are equal for
            # NaNs.
            same = (type(value).__name__, str(value))
        case Mapping():
            same = ("map", frozenset((exact(key), exact(item)) for key, item in value.items()))
        case Headers():
            same = tuple((header.key, header.schema, exact(header.value)) for header in value)
        case list() | tuple():
            same = ("array", tuple(exact(item) for item in value))
    return same


def exact_pair(pair: SchemaAndValue) -> tuple[object, object]:
    """Return a stand-in for a value and its schema."""
    return pair.schema, exact(pair.value)


def exact_record(record: Record) -> tuple[tuple[str, object], ...]:
    """Return a stand-in for a record: its attributes by name."""
    return tuple((field.name, exact(getattr(record, field.name))) for field in fields(record))
