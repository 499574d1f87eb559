"""What rows may not have in the tables of a target, found for each row alone."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from connectors.spark.decoding.row_limits import RowLimits
from connectors.spark.folder_fields import FolderField


def batch(**columns: Sequence[str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(values, pa.string()) for name, values in columns.items()})


def test_values_that_a_folder_cannot_tell_are_found() -> None:
    values = ["x", "", None, "__HIVE_DEFAULT_PARTITION__", "y" * 253, "y" * 254, "/" * 84, "/" * 85]
    limits = RowLimits([FolderField(("k",), "k")], longest=255)
    found = limits.mistakes(batch(k=values))
    assert sorted(found) == [1, 3, 5, 7]
    assert str(found[1]).startswith('The field k, whose values name folders, is "", whose folder readers take for null')
    assert sorted(RowLimits([FolderField(("k",), "k")]).mistakes(batch(k=values))) == [1, 3]


def test_folders_of_iceberg_are_only_too_long() -> None:
    values = ["", "__HIVE_DEFAULT_PARTITION__", None, "y" * 253, "y" * 254, "ü" * 42, "ü" * 43, " " * 253, "~" * 85]
    limits = RowLimits([FolderField(("k",), "k")], hive=False, longest=255)
    assert sorted(limits.mistakes(batch(k=values))) == [4, 6, 8]
    cut = RowLimits([FolderField(("k",), "k_trunc", 10)], hive=False, longest=255)
    assert cut.mistakes(batch(k=values)) == {}


def test_nested_values_name_folders_too() -> None:
    structs = pa.RecordBatch.from_pylist([{"gate": {"name": "a"}}, {"gate": {"name": ""}}, {"gate": None}])
    assert list(RowLimits([FolderField(("gate", "name"), "gate.name")]).mistakes(structs)) == [1]


def test_a_single_column_without_a_value_is_no_row_of_text() -> None:
    values = ["a", None, "", "b\nc", "b\rc", "\u2028"]
    lines = RowLimits(single="StringFormat", lines=True).mistakes(batch(value=values))
    assert {index: str(error).partition(",")[0] for index, error in lines.items()} == {
        1: "The only column value is null",
        3: "The only column value has a line break",
        4: "The only column value has a line break",
    }
    assert list(RowLimits(single="CsvFormat").mistakes(batch(value=values))) == [1]
    assert RowLimits(single="CsvFormat").mistakes(batch(value=values, other=values)) == {}
    beside = RowLimits([FolderField(("k",), "k")], single="CsvFormat").mistakes(batch(k=["x"] * 6, value=values))
    assert list(beside) == [1]


def test_values_that_a_table_requires_are_missed_unless_their_struct_is_null() -> None:
    values = [{"v": "x", "of": {"a": "y"}}, {"v": None, "of": None}, {"v": "x", "of": {"a": None}}]
    rows = pa.RecordBatch.from_pylist(values)
    assert sorted(RowLimits(required=[("v",), ("of", "a")]).mistakes(rows)) == [1, 2]
    assert str(RowLimits(required=[("of", "a")]).mistakes(rows)[2]).startswith("of.a is null, which the table does not")
    assert sorted(RowLimits(required=[("of", "a")], required_always=True).mistakes(rows)) == [1, 2]
    about = pa.array([{"deleted": False}, {"deleted": True}, {"deleted": False}])
    changes = pa.RecordBatch.from_arrays([*rows.columns, about], [*rows.schema.names, "_sluice_change"])
    assert sorted(RowLimits(required=[("v",), ("of", "a")]).mistakes(changes)) == [2]
    assert sorted(RowLimits([FolderField(("v",), "v")], longest=2).mistakes(changes)) == [0, 2]


def test_a_text_in_a_column_of_uuids_is_one() -> None:
    values = ["00000000-0000-0000-0000-00000000000a", None, "", "1-1-1-1-1", "00000000-0000-0000-0000-00000000000A "]
    assert sorted(RowLimits(uuids=[("u",)]).mistakes(batch(u=values))) == [2, 3, 4]
