"""Files as Spark leaves them, checked and given their final names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.data import Schema
from connect.errors import ConnectError, SchemaError
from connectors.spark.decoding.report import PassReports, Report, Reports
from connectors.spark.file_metadata import parquet_rows
from connectors.spark.partitioner import DefaultPartitioner, FieldPartitioner, make_partitioner
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.ledger.staging import FileNames, staged_moves
from connectors.spark.stores.local import LocalStore

UUID = "0f3c9a52-5d0e-4a58-9a87-3f5f0c5c1f11"
NAMES = FileNames("topics", DefaultPartitioner(), 10)
BY_FIELD = FileNames("topics", FieldPartitioner(("origin",)), 4)


def write(root: Path, path: str, rows: int) -> None:
    file = root / "staging" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": pa.array(range(rows), pa.int64())}), file)


def report(partition: int, first: int, last: int, written: int) -> Report:
    return Report("flights", partition, first, last, last - first + 1, written)


def moves(root: Path, reports: Mapping[int, Report], names: FileNames = NAMES) -> dict[str, tuple[str, int]]:
    found = staged_moves(LocalStore(root), "staging", "table", Reports(dict(reports)), names, parquet_rows)
    assert all(move.size == (root / move.source).stat().st_size for move in found)
    return {move.source.removeprefix("staging/"): (move.target, move.rows) for move in found}


def test_names_carry_topic_partition_and_offsets(tmp_path: Path) -> None:
    write(tmp_path, f"part-00000-{UUID}-c000.snappy.parquet", 3)
    write(tmp_path, f"part-00001-{UUID}-c000.snappy.parquet", 2)
    write(tmp_path, f"part-00002-{UUID}-c000.snappy.parquet", 0)
    (tmp_path / "staging/_SUCCESS").touch()
    reports = {0: report(0, 0, 2, 3), 1: report(7, 12, 15, 2), 2: report(8, -1, -1, 0)}
    assert moves(tmp_path, reports) == {
        f"part-00000-{UUID}-c000.snappy.parquet": (
            "topics/table/partition=0/flights+0+0000000000+0000000002.snappy.parquet",
            3,
        ),
        f"part-00001-{UUID}-c000.snappy.parquet": (
            "topics/table/partition=7/flights+7+0000000012+0000000015.snappy.parquet",
            2,
        ),
    }


def test_files_in_folders_of_values_stay_there(tmp_path: Path) -> None:
    write(tmp_path, f"origin=EWR/part-00000-{UUID}.c000.zstd.parquet", 3)
    write(tmp_path, f"origin=EWR/part-00000-{UUID}.c001.zstd.parquet", 1)
    write(tmp_path, f"origin=J%2FK/part-00000-{UUID}.c000.zstd.parquet", 2)
    found = moves(tmp_path, {0: report(0, 5, 10, 6)}, BY_FIELD)
    assert {target for target, _ in found.values()} == {
        "topics/table/origin=EWR/flights+0+0005+0010.zstd.parquet",
        "topics/table/origin=EWR/flights+0+0005+0010+1.zstd.parquet",
        "topics/table/origin=J%2FK/flights+0+0005+0010.zstd.parquet",
    }


@pytest.mark.parametrize("written", [2, 4])
def test_rows_too_many_or_too_few_are_found(tmp_path: Path, written: int) -> None:
    write(tmp_path, f"part-00000-{UUID}-c000.snappy.parquet", 3)
    with pytest.raises(ConnectError, match="has 3 rows of Spark partition 0, not as many as were decoded"):
        moves(tmp_path, {0: report(0, 0, 9, written)})


def test_a_report_without_its_file_is_found(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="has 0 rows of Spark partition 4"):
        moves(tmp_path, {4: report(0, 0, 9, 1)})


def test_rows_without_a_report_are_found(tmp_path: Path) -> None:
    write(tmp_path, f"part-00003-{UUID}-c000.snappy.parquet", 3)
    with pytest.raises(ConnectError, match="Spark partition 3"):
        moves(tmp_path, {})


def test_a_broken_file_and_a_foreign_one_are_found(tmp_path: Path) -> None:
    broken = tmp_path / f"staging/part-00000-{UUID}-c000.snappy.parquet"
    broken.parent.mkdir()
    broken.write_bytes(b"PAR1")
    with pytest.raises(ConnectError, match="cannot be read"):
        moves(tmp_path, {0: report(0, 0, 0, 1)})
    broken.rename(broken.with_name("notes.txt"))
    with pytest.raises(ConnectError, match="not a file that Spark was asked to write"):
        moves(tmp_path, {0: report(0, 0, 0, 1)})


def test_a_partition_that_is_computed_again_is_counted_once() -> None:
    reports = Reports({0: report(0, 0, 4, 5)}).merge(Reports({0: report(0, 0, 4, 5), 1: report(1, 0, 0, 1)}))
    assert sum(each.written for each in reports) == 6


def test_reports_go_to_their_pass_and_those_that_come_late_to_none() -> None:
    driver: PassReports[Reports] = PassReports(awaited=True)
    driver.begin(1, Reports())
    driver.begin(2, Reports())
    for number, partition, count in [(2, 0, 5), (1, 0, 1), (2, 1, 2), (3, 0, 9)]:
        sent = PassReports({number: Reports({partition: report(partition, 0, 9, count)})})
        driver.merge(PassReports[Reports]().merge(sent))
    assert [each.written for each in driver.end(2)] == [5, 2]
    driver.merge(PassReports({2: Reports({0: report(0, 0, 4, 5)})}))
    assert [each.written for each in driver.end(1)] == [1]
    assert driver.passes == {}


def test_fields_to_divide_by_must_be_columns_that_can_name_folders() -> None:
    table = Schema.struct({"origin": Schema.string(), "tags": Schema.array(Schema.string())})
    FieldPartitioner(("origin",)).check(table)
    for names, reason in [
        (("gone",), "not a field"),
        (("tags",), "of type array"),
        (("origin", "tags"), "of type"),
    ]:
        with pytest.raises(SchemaError, match=reason):
            FieldPartitioner(names).check(table)
    with pytest.raises(SchemaError, match="at least one"):
        FieldPartitioner(("origin",)).check(Schema.struct({"origin": Schema.string()}))


def test_partitioners_go_by_the_names_of_the_storage_sinks() -> None:
    java = "io.confluent.connect.storage.partitioner."
    props = {"store.url": "/lake", "partition.field.name": "a,b"}
    assert isinstance(make_partitioner(SparkSinkConfig.parse(props)), DefaultPartitioner)
    for name in ("FieldPartitioner", f"{java}FieldPartitioner"):
        found = make_partitioner(SparkSinkConfig.parse({**props, "partitioner.class": name}))
        assert found == FieldPartitioner(("a", "b"))
