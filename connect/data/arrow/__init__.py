"""Conversions between Connect's schemas and values and Arrow's types and arrays. Importing this needs pyarrow.

=============  =========================================================================
Connect        Arrow
=============  =========================================================================
int8 - int64   int8 - int64
float32, 64    float32, float64
boolean        bool
string         string
bytes          binary
array          list
map            map
struct         struct
Decimal        decimal128 or decimal256, the precision from ``connect.decimal.precision``
Date           date32
Time           time32[ms]
Timestamp      timestamp[ms, tz=UTC]
=============  =========================================================================

An optional schema becomes a nullable field. Attributes that Arrow lacks (name, version, doc, parameters, default) are
kept in the field metadata, so a schema that went through Arrow comes back as the same object. Nothing is coerced
silently (invariant I5): a value that the schema refuses or that Arrow cannot hold raises a
:class:`~connect.errors.DataError` that names the field. As everywhere in Connect, times and timestamps have
millisecond resolution: finer digits of a Python value are cut off.
"""

from connect.data.arrow.arrays import check_ranges, to_array
from connect.data.arrow.casting import conform
from connect.data.arrow.late_pandas import await_pandas
from connect.data.arrow.rows import to_values
from connect.data.arrow.types import (
    arrow_field,
    arrow_schema,
    arrow_type,
    schema_from_arrow,
    schema_from_arrow_type,
)

__all__ = [
    "arrow_field",
    "arrow_schema",
    "arrow_type",
    "check_ranges",
    "conform",
    "schema_from_arrow",
    "schema_from_arrow_type",
    "to_array",
    "to_values",
]

await_pandas()
