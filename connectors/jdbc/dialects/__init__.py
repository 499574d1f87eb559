"""What differs between kinds of databases: names, metadata, types, cursors."""

from connectors.jdbc.dialects.column import Column, NativeType, TableId
from connectors.jdbc.dialects.dialect import Cursor, Dialect
from connectors.jdbc.dialects.registry import dialect_class
from connectors.jdbc.dialects.values import NumericMapping, Reading, TimestampGranularity, TypeOptions

__all__ = [
    "Column",
    "Cursor",
    "Dialect",
    "NativeType",
    "NumericMapping",
    "Reading",
    "TableId",
    "TimestampGranularity",
    "TypeOptions",
    "dialect_class",
]
