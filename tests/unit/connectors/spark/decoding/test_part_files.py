"""The Parquet files that tasks of Spark write from Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.internals.crash import CRASH_POINT_VARIABLE
from connectors.spark.decoding.part_files import PartFiles, PartWriter
from connectors.spark.stores.parts import FolderPlace

MARK = "0b9dd6ac-4a43-4ed1-a4ce-0a6a3b0a3c53"
COLUMNS = pa.schema([("id", pa.int64())])


def rows(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(ids)}, COLUMNS)


def ids(path: Path) -> Any:
    return pq.read_table(path)["id"].to_pylist()


def test_a_task_writes_one_file_with_the_name_that_spark_gives_its_part(tmp_path: Path) -> None:
    folder = tmp_path / "staging" / "t"
    with PartWriter(PartFiles(FolderPlace(str(folder)), MARK, "snappy"), COLUMNS, 7, 70) as writer:
        writer.write(rows(1, 2))
        writer.write(rows(3))
        writer.finish()
    (path,) = folder.iterdir()
    assert path.name == f"part-00007-{MARK}-c000.snappy.parquet"
    assert ids(path) == [1, 2, 3]


def test_files_have_no_more_rows_than_they_may(tmp_path: Path) -> None:
    files = PartFiles(FolderPlace(str(tmp_path)), MARK, "none", most=2)
    with PartWriter(files, COLUMNS, 0, 0) as writer:
        for batch in (rows(1), rows(2, 3, 4, 5), rows(6), rows(), rows(7)):
            writer.write(batch)
        writer.finish()
    found = sorted(tmp_path.iterdir())
    assert found == [tmp_path / files.name(0, counter) for counter in range(4)]
    assert list(map(ids, found)) == [[1, 2], [3, 4], [5, 6], [7]]


def test_an_attempt_that_is_not_finished_leaves_nothing_behind(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="cut off"),
        PartWriter(PartFiles(FolderPlace(str(tmp_path)), MARK, "zstd", most=1), COLUMNS, 0, 0) as writer,
    ):
        writer.write(rows(1, 2, 3))
        assert [path for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
        raise RuntimeError("cut off")
    assert list(tmp_path.iterdir()) == []


def test_a_second_attempt_leaves_what_the_first_has_finished(tmp_path: Path) -> None:
    files = PartFiles(FolderPlace(str(tmp_path)), MARK, "gzip")
    for attempt in (1, 2):
        with PartWriter(files, COLUMNS, 0, attempt) as writer:
            writer.write(rows(attempt))
            writer.finish()
    assert list(tmp_path.iterdir()) == [tmp_path / files.name(0, 0)]
    assert ids(tmp_path / files.name(0, 0)) == [1]


def test_an_attempt_that_is_killed_between_two_names_is_completed_by_the_next(tmp_path: Path) -> None:
    files = PartFiles(FolderPlace(str(tmp_path)), MARK, "snappy", most=2)
    code = (
        "import pyarrow as pa\n"
        "from connectors.spark.decoding.part_files import PartFiles, PartWriter\n"
        "from connectors.spark.stores.parts import FolderPlace\n"
        "columns = pa.schema([('id', pa.int64())])\n"
        f"with PartWriter({files!r}, columns, 0, 1) as writer:\n"
        "    writer.write(pa.RecordBatch.from_pydict({'id': list(range(6))}, columns))\n"
        "    writer.finish()\n"
    )
    environ = {**os.environ, CRASH_POINT_VARIABLE: "mid-link:2"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, check=False)
    assert done.returncode == -signal.SIGKILL
    named = sorted(tmp_path.glob("part-*"))
    assert list(map(ids, named)) == [[0, 1], [2, 3]]
    with PartWriter(files, COLUMNS, 0, 2) as writer:
        for number in range(6):
            writer.write(rows(number))
        writer.finish()
    named = sorted(tmp_path.glob("part-*"))
    assert list(map(ids, named)) == [[0, 1], [2, 3], [4, 5]]
    assert all(path.name.startswith(".") for path in set(tmp_path.iterdir()) - set(named))


def test_a_task_without_rows_writes_no_file(tmp_path: Path) -> None:
    with PartWriter(PartFiles(FolderPlace(str(tmp_path)), MARK, "snappy"), COLUMNS, 0, 0) as writer:
        writer.write(rows())
        writer.finish()
    assert list(tmp_path.iterdir()) == []


def test_types_are_stored_as_spark_stores_them(tmp_path: Path) -> None:
    columns = pa.schema(
        {
            "at": pa.timestamp("us", tz="UTC"),
            "price": pa.decimal128(9, 2),
            "large": pa.decimal128(38, 2),
            "small": pa.int8(),
            "names": pa.list_(pa.field("element", pa.string())),
        }
    )
    row = {"at": 1, "price": Decimal("1.25"), "large": Decimal("1.25"), "small": 1, "names": ["a"]}
    with PartWriter(PartFiles(FolderPlace(str(tmp_path)), MARK, "snappy"), columns, 0, 0) as writer:
        writer.write(pa.RecordBatch.from_pylist([row], columns))
        writer.finish()
    (path,) = tmp_path.iterdir()
    stored = pq.ParquetFile(path).schema
    kinds = [(stored.column(place).path, stored.column(place).physical_type) for place in range(len(stored))]
    assert kinds == [
        ("at", "INT64"),
        ("price", "INT32"),
        ("large", "FIXED_LEN_BYTE_ARRAY"),
        ("small", "INT32"),
        ("names.list.element", "BYTE_ARRAY"),
    ]
    assert "timeUnit=microseconds" in str(stored.column(0).logical_type)
    assert pq.read_schema(path).metadata is None
