"""What a package imports that brings the dialect of another database."""

from connect.kits.sql.column import Column, NativeType, TableId
from connect.kits.sql.dialect import Cursor, Dialect
from connect.kits.sql.values import NumericMapping, Reading, TimestampGranularity, TypeOptions

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
]
