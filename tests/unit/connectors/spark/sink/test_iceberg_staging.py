"""What a load may stage of changes for Iceberg tables."""

from __future__ import annotations

from typing import Any

import pytest

from connect.data import Schema
from connect.errors import ConnectError
from connectors.spark.decoding.changes import CHANGE_COLUMN
from connectors.spark.iceberg.catalog import TableName
from connectors.spark.sink.iceberg.merge import Written
from connectors.spark.sink.iceberg.staging import Staging

KEY = Schema.struct({"id": Schema.int64()})
CHANGES = Schema.struct({"id": Schema.int64(), CHANGE_COLUMN: Schema.struct({"key": KEY})})


class Merging:
    """A table of which nothing is written."""

    def __init__(self, merged: list[Schema]) -> None:
        self.columns: Schema | None = None
        self._merged = merged

    def widen(self, schema: Schema) -> None:
        self.columns = schema

    def merge(self, _: Any, schema: Schema) -> Written:
        self._merged.append(schema)
        return Written()


def test_changes_reach_a_table_under_one_name() -> None:
    merged: list[Schema] = []
    begin: Any = lambda name, columns: Merging(merged)  # noqa: E731
    staging = Staging(begin, lambda table: TableName(("lake",), table[0]), ())
    nothing: Any = None
    staging.write(nothing, "events", CHANGES, 1)
    staging.write(nothing, "others", CHANGES, 1)
    # Another attempt at the same rows.
    staging.write(nothing, "events", CHANGES, 2)
    assert merged == [CHANGES] * 3
    with pytest.raises(ConnectError, match=r"to events and elsewhere, which are both table lake\.e"):
        staging.write(nothing, "elsewhere", CHANGES, 2)
