"""The numbers of Java's SQL types, which Debezium tells of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connectors.cdc.mysql.column_types import ColumnType

__all__ = ["jdbc_type"]

_JDBC_TYPES: Final[Mapping[str, int]] = {
    "tinyint": 5,
    "smallint": 5,
    "mediumint": 4,
    "int": 4,
    "bigint": -5,
    "float": 6,
    "double": 8,
    "decimal": 3,
    "bit": -7,
    "char": 1,
    "enum": 1,
    "set": 1,
    "binary": -2,
    "varbinary": -3,
    "date": 91,
    "time": 92,
    "datetime": 93,
    "timestamp": 2014,
    "year": 4,
}
_VARCHAR, _BLOB, _OTHER = 12, 2004, 1111


def jdbc_type(kind: ColumnType) -> int:
    """Return the number of a type, as in ``java.sql.Types``."""
    if kind.kind.endswith("text") or kind.kind == "varchar":
        return _VARCHAR
    if kind.kind.endswith("blob"):
        return _BLOB
    return _JDBC_TYPES.get(kind.kind, _OTHER)
