"""Parquet and ORC files in a folder."""

# ruff: noqa: DTZ001 - columns of local times are among those that are read

from __future__ import annotations

import datetime as dt
import decimal
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from connect.data import Schema, date_schema, decimal_schema, time_schema, timestamp_schema, validate
from connect.data.arrow import to_values
from connect.errors import DataError
from connect.kits.files.readers.formats.arrow_rows import ArrowRows
from connect.kits.files.readers.formats.orc import OrcTable
from connect.kits.files.readers.formats.parquet import ParquetTable
from connect.kits.files.readers.formats.table import BLOCK_BYTES, MOST_ROWS
from connectors.directory import DirectorySourceConfig
from equipment.examples import examples
from equipment.growth import assert_grows_evenly

FORMATS = ["parquet", "orc"]
NUMBERS = pa.table({"n": list(range(100)), "t": [f"text {number}" if number % 3 else None for number in range(100)]})
ROWS = NUMBERS.to_pylist()


def write(table: pa.Table, path: Path, **options: Any) -> Path:
    """A file with small parts."""
    if path.suffix == ".orc":
        orc.write_table(table, str(path), **options)
    else:
        pq.write_table(table, str(path), **({"row_group_size": 7} | options))
    return path


def open_table(path: Path, *, numbers: bool = False) -> ParquetTable | OrcTable:
    made = OrcTable if path.suffix == ".orc" else ParquetTable
    return made(str(path), "rows", fine_as_numbers=numbers)


def rows_of(path: Path, start: int = 0, *, numbers: bool = False) -> list[Any]:
    """The good rows."""
    table = open_table(path, numbers=numbers)
    total = table.verify()
    blocks = list(table.blocks(start))
    table.close()
    assert sum(block.size for block in blocks) == total - start
    return [row for block in blocks for row in block.column]


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_is_read_from_any_row(tmp_path: Path, form: str) -> None:
    file = write(NUMBERS, tmp_path / f"x.{form}")
    for begin in (0, 1, 6, 7, 8, 50, 99, 100):
        assert rows_of(file, begin) == ROWS[begin:]


KINDS = [
    (pa.int8(), Schema.int8(), [-128, 127]),
    (pa.uint8(), Schema.int16(), [0, 255]),
    (pa.uint16(), Schema.int32(), [65535]),
    (pa.uint32(), Schema.int64(), [2**32 - 1]),
    (
        pa.uint64(),
        decimal_schema(0, parameters={"connect.decimal.precision": "20"}),
        [2**64 - 1],
    ),
    (pa.float32(), Schema.float32(), [0.5]),
    (pa.float16(), Schema.float32(), [0.5]),
    (pa.bool_(), Schema.boolean(), [True, False]),
    (pa.large_string(), Schema.string(), ["x"]),
    (pa.dictionary(pa.int8(), pa.string()), Schema.string(), ["a", "b", "a"]),
    (pa.binary(2), Schema.bytes(), [b"ab"]),
    (pa.date32(), date_schema(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (pa.time32("ms"), time_schema(), [dt.time(23, 59, 59, 999_000)]),
    (pa.time64("us"), time_schema(), [dt.time(1, 2, 3, 4000)]),
    (pa.timestamp("ms"), timestamp_schema(), [dt.datetime(2013, 5, 1, 12)]),
    (pa.timestamp("ns"), timestamp_schema(), [dt.datetime(2013, 5, 1, 12, 0, 0, 1000)]),
    (pa.timestamp("us", tz="Europe/Berlin"), timestamp_schema(), [dt.datetime(2013, 5, 1, 12, tzinfo=dt.UTC)]),
    (pa.duration("s"), Schema.int64(), [dt.timedelta(seconds=5)]),
    (
        pa.decimal128(9, 2),
        decimal_schema(2, parameters={"connect.decimal.precision": "9"}),
        [decimal.Decimal("1.25")],
    ),
    (pa.list_(pa.timestamp("us")), Schema.array(timestamp_schema(optional=True)), [[dt.datetime(2013, 5, 1)], []]),
    (pa.map_(pa.string(), pa.uint8()), Schema.map(Schema.string(), Schema.int16(optional=True)), [[("a", 1)]]),
    (pa.struct([("x", pa.int8())]), Schema.struct({"x": Schema.int8(optional=True)}), [{"x": 1}, {"x": None}]),
]
READ = {
    2**64 - 1: decimal.Decimal(2**64 - 1),
    dt.timedelta(seconds=5): 5,
    dt.datetime(2013, 5, 1, 12): dt.datetime(2013, 5, 1, 12, tzinfo=dt.UTC),
    dt.datetime(2013, 5, 1, 12, 0, 0, 1000): dt.datetime(2013, 5, 1, 12, 0, 0, 1000, dt.UTC),
}


@pytest.mark.parametrize(("kind", "schema", "values"), KINDS, ids=str)
def test_every_type_has_its_schema_and_values(tmp_path: Path, kind: Any, schema: Schema, values: list[Any]) -> None:
    file = write(pa.table({"x": pa.array([*values, None], kind)}), tmp_path / "x.parquet")
    table = open_table(file)
    (block,) = table.blocks(0)
    assert block.column.schema is not None
    assert block.column.schema.field("x").schema is schema.as_optional()  # type: ignore[union-attr]
    expected = [READ.get(value, value) if not isinstance(value, (list, dict)) else value for value in values]
    if pa.types.is_list(kind):
        expected = [[item.replace(tzinfo=dt.UTC) for item in value] for value in values]
    if pa.types.is_map(kind):
        expected = [dict(value) for value in values]
    found = [row["x"] for row in block.column]
    assert found == [*expected, None]
    assert list(map(type, found)) == list(map(type, [*expected, None]))
    for row in block.column:
        validate(block.column.schema, row)


@pytest.mark.parametrize("form", FORMATS)
def test_required_columns_are_required(tmp_path: Path, form: str) -> None:
    columns = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    file = write(pa.table({"a": [1], "b": [2]}, schema=columns), tmp_path / f"x.{form}")
    (block,) = open_table(file).blocks(0)
    optional = {field.name: field.schema.optional for field in block.column.schema.fields}  # type: ignore[union-attr]
    assert optional == {"a": form == "orc", "b": True}


COLUMNS = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        "b": st.none() | st.binary(max_size=9),
        "f": st.none() | st.floats(allow_nan=False),
        "d": st.none() | st.dates(dt.date(1, 1, 1)),
        "at": st.none()
        | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC)).map(
            lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
        ),
        "l": st.none() | st.lists(st.none() | st.integers(-128, 127), max_size=4),
        "st": st.none() | st.fixed_dictionaries({"x": st.none() | st.booleans(), "y": st.none() | st.text("ab")}),
        "p": st.none() | st.decimals(-1000, 1000, places=2),
    }
)
SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("f", pa.float64()),
        ("d", pa.date32()),
        ("at", pa.timestamp("ns", tz="UTC")),
        ("l", pa.list_(pa.int8())),
        ("st", pa.struct([("x", pa.bool_()), ("y", pa.string())])),
        ("p", pa.decimal128(9, 2)),
    ]
)


@pytest.mark.parametrize("form", FORMATS)
@given(rows=st.lists(COLUMNS, max_size=12), begin=st.integers(0, 12))
@settings(deadline=None, max_examples=examples(40))
def test_rows_and_columns_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, form: str, rows: list[dict[str, Any]], begin: int
) -> None:
    file = write(pa.Table.from_pylist(rows, SCHEMA), tmp_path_factory.mktemp("tables") / f"x.{form}")
    table = open_table(file)
    assert table.verify() == len(rows)
    blocks = list(table.blocks(min(begin, len(rows))))
    assert [row for block in blocks for row in block.column] == rows[begin:]
    by_column = [row for block in blocks for row in to_values(block.column.to_arrow(), block.column.schema)]
    assert by_column == rows[begin:]
    for block in blocks:
        alone = [block.column.take([index]).values()[0] for index in range(len(block.column))]
        assert alone == list(block.column)


# -- rows that are malformed ---------------------------------------------------------------------------------------


def bad_of(column: Any, tmp_path: Path) -> tuple[list[Any], list[tuple[int, str]]]:
    (block,) = open_table(write(pa.table({"x": column}), tmp_path / "x.parquet", row_group_size=100)).blocks(0)
    assert block.good == (None if not block.bad else [i for i in range(block.size) if i not in dict(block.bad)])
    return [row["x"] for row in block.column], list(block.bad)


def test_a_moment_that_is_too_fine_is_malformed_or_read_as_its_number(tmp_path: Path) -> None:
    micros = pa.array([1000, 1001, None, -1, 2000], pa.timestamp("us"))
    good, bad = bad_of(micros, tmp_path)
    assert [value and value.microsecond for value in good] == [1000, None, 2000]
    assert [index for index, _ in bad] == [1, 3]
    assert "with fine.times=number such columns are read as numbers" in bad[0][1]
    found = rows_of(tmp_path / "x.parquet", numbers=True)
    assert [row["x"] for row in found] == [1000, 1001, None, -1, 2000]


def test_a_moment_beyond_the_years_of_python_is_malformed(tmp_path: Path) -> None:
    for kind, low, high in (
        (pa.date32(), -719_162, 2_932_896),
        (pa.timestamp("ms"), -62_135_596_800_000, 253402300799999),
    ):
        width = pa.int32() if kind == pa.date32() else pa.int64()
        good, bad = bad_of(pa.array([low, low - 1, high, high + 1], width).cast(kind), tmp_path)
        assert len(good) == 2
        assert [index for index, _ in bad] == [1, 3]
        assert "years 1 to 9999" in bad[0][1]


def test_a_text_that_is_not_unicode_is_malformed(tmp_path: Path) -> None:
    raw = pa.array([b"good", b"\xff", b"\xc3\xa9"], pa.binary())
    good, bad = bad_of(pa.Array.from_buffers(pa.string(), 3, raw.buffers()), tmp_path)
    assert good == ["good", "\u00e9"]
    assert [index for index, _ in bad] == [1]


def test_a_map_with_a_key_twice_is_malformed(tmp_path: Path) -> None:
    good, bad = bad_of(pa.array([[("a", 1)], [("a", 1), ("a", 2)], None], pa.map_(pa.string(), pa.int8())), tmp_path)
    assert good == [{"a": 1}, None]
    assert "more than once" in bad[0][1]


@pytest.mark.growth
def test_malformed_rows_cost_a_small_multiple(tmp_path: Path) -> None:
    def block(count: int) -> pa.RecordBatch:
        return pa.record_batch({"x": pa.array([1] * count, pa.timestamp("us"))})

    rows = ArrowRows(block(1).schema, "rows", fine_as_numbers=False)
    assert_grows_evenly(rows.block, block, 1_000)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (pa.map_(pa.list_(pa.string()), pa.int8()), "a map with nested keys"),
        (pa.month_day_nano_interval(), "which Connect lacks"),
        (pa.dense_union([pa.field("a", pa.int8())]), "which Connect lacks"),
    ],
)
def test_what_connect_lacks_is_refused(kind: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        ArrowRows(pa.schema([("x", kind)]), "rows", fine_as_numbers=False)


def test_very_deep_columns_are_refused() -> None:
    kind: Any = pa.int8()
    for _ in range(150):
        kind = pa.list_(kind)
    with pytest.raises(DataError, match="nested more than 100 levels deep"):
        ArrowRows(pa.schema([("x", kind)]), "rows", fine_as_numbers=False)


# -- files that are damaged ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_is_cut_is_refused(tmp_path: Path, form: str) -> None:
    data = write(NUMBERS, tmp_path / f"x.{form}").read_bytes()
    for end in range(0, len(data), 11):
        (tmp_path / f"x.{form}").write_bytes(data[:end])
        with pytest.raises(DataError):
            rows_of(tmp_path / f"x.{form}")


@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_file_is_read_whole_or_refused(tmp_path: Path, form: str) -> None:
    options: dict[str, Any] = {"write_page_checksum": True} if form == "parquet" else {}
    data = write(NUMBERS, tmp_path / f"x.{form}", **options).read_bytes()
    for place in range(4, len(data), 17):
        damaged = bytearray(data)
        damaged[place] ^= 0x55
        (tmp_path / f"x.{form}").write_bytes(damaged)
        try:
            table = open_table(tmp_path / f"x.{form}")
            total = table.verify()
        except DataError:
            continue
        assert sum(block.size for block in table.blocks(0)) == total


@pytest.mark.parametrize("form", FORMATS)
def test_large_parts_are_read_in_blocks(tmp_path: Path, form: str) -> None:
    wide = pa.table({"x": [f"{number:04}" * 2_000 for number in range(3_000)]})
    file = write(
        wide,
        tmp_path / f"x.{form}",
        **({"row_group_size": 3_000, "use_dictionary": False} if form == "parquet" else {}),
    )
    sizes = [block.column.to_arrow().nbytes for block in open_table(file).blocks(0)]
    assert len(sizes) > 1
    assert max(sizes) < 3 * BLOCK_BYTES
    narrow = write(
        pa.table({"x": range(20_000)}),
        tmp_path / f"y.{form}",
        **({"row_group_size": 20_000} if form == "parquet" else {}),
    )
    assert max(block.size for block in open_table(narrow).blocks(0)) <= MOST_ROWS


@pytest.mark.parametrize("form", FORMATS)
def test_a_part_that_is_larger_than_a_block_is_never_held_whole(tmp_path: Path, form: str) -> None:
    text = random.Random(1).randbytes(2_000_000).hex()
    large = pa.table({"x": [text[place : place + 400] for place in range(0, 4_000_000, 40)]})
    options = {"row_group_size": 1_000_000, "use_dictionary": False} if form == "parquet" else {"stripe_size": 1 << 30}
    file = write(large, tmp_path / f"x.{form}", **options)
    size = large.nbytes
    del large
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in open_table(file).blocks(0)]
    assert size > 38_000_000
    assert max(held) < size / 2


# -- in a folder ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_a_task_resumes_after_any_row(
    folder: Any, start: Any, source_context: Any, rows: Callable[..., Any], form: str
) -> None:
    file = folder.settle(write(NUMBERS.slice(0, 20), folder.path / f"a.{form}"))
    records = rows(start(source_context(), **{"batch.size": "3"}))
    assert [record.value for record in records] == ROWS[:20]
    assert records[0].value_schema.name == "rows"
    assert {**records[4].source_offset, "fingerprint": ""} == {"position": 5, "row": 5, "fingerprint": ""}
    assert records[-1].source_offset["finished"] == file.stat().st_size
    for count in range(1, 21):
        context = source_context()
        context.commit(records[count - 1].source_partition, records[count - 1].source_offset)
        assert [record.value for record in rows(start(context))] == ROWS[count:20]


@pytest.mark.parametrize("form", FORMATS)
def test_another_file_of_the_name_is_read_from_its_beginning(
    folder: Any, start: Any, source_context: Any, rows: Callable[..., Any], form: str
) -> None:
    """Though both begin alike, and have as many bytes."""
    file = folder.settle(write(NUMBERS, folder.path / f"a.{form}"))
    context = source_context()
    records = rows(start(context))
    context.commit(records[49].source_partition, records[49].source_offset)
    other = NUMBERS.set_column(0, "n", pa.array([*range(99), 1000]))
    folder.settle(write(other, file))
    assert [record.value["n"] for record in rows(start(context))] == [*range(99), 1000]


def test_malformed_rows_are_reported_and_the_others_published(
    folder: Any, start: Any, source_context: Any, rows: Callable[..., Any]
) -> None:
    table = pa.table({"n": range(5), "at": pa.array([0, 1, 1000, 2, 3], pa.timestamp("us"))})
    folder.settle(write(table, folder.path / "a.parquet"))
    context = source_context(tolerate=True)
    records = rows(start(context))
    assert [record.value["n"] for record in records] == [0, 2]
    assert [record.source_offset["row"] for record in records] == [1, 3]
    reported = context.errant_record_reporter.reported
    assert [record.value.partition(" of ")[0] for record, _ in reported] == ["row 2", "row 4", "row 5"]
    assert "a.parquet, row 2: the row is malformed" in str(reported[0][1])
    again = source_context(tolerate=True)
    again.commit(reported[1][0].source_partition, reported[1][0].source_offset)
    assert rows(start(again)) == []
    assert len(again.errant_record_reporter.reported) == 1


def test_a_finished_table_is_moved(
    folder: Any, start: Any, context: Any, rows: Callable[..., Any], tmp_path: Path
) -> None:
    folder.settle(write(NUMBERS, folder.path / "a.parquet"))
    done = tmp_path / "done"
    task = start(context, **{"finished.action": "move", "finished.folder": str(done)})
    records = rows(task)
    context.commit(records[-1].source_partition, records[-1].source_offset)
    task.commit()
    assert [file.name for file in done.iterdir()] == ["a.parquet"]
    assert task.remaining() == {"bytes": 0, "files": 0}


def test_formats_may_be_named(folder: Any, start: Any, context: Any, rows: Callable[..., Any]) -> None:
    write(NUMBERS, folder.path / "a.parquet").rename(folder.path / "data")
    folder.settle(folder.path / "data")
    assert len(rows(start(context, format="parquet"))) == 100


WITHOUT_ARROW = """
import sys
sys.modules["pyarrow"] = None
from connectors.directory import DirectorySourceConfig
for format, pattern in (("parquet", "*"), ("orc", "*"), ("auto", "*.parquet"), ("auto", "*"), ("avro", "*")):
    props = {"path": "/tmp", "topic": "t", "format": format, "pattern": pattern}
    print([error for value in DirectorySourceConfig.validate(props) for error in value.errors])
"""


def test_a_missing_extra_is_told_with_the_command_that_installs_it() -> None:
    told = subprocess.run([sys.executable, "-c", WITHOUT_ARROW], capture_output=True, text=True, check=True)
    said = "[\"Parquet and ORC files need pyarrow, which is not installed: pip install 'sluice-connect[arrow]'\"]"
    assert told.stdout.splitlines() == [said, said, said, "[]", "[]"]


def test_partition_folders_need_folders() -> None:
    props = {"path": "/tmp", "topic": "t", "partition.fields": "string"}
    (error,) = [error for value in DirectorySourceConfig.validate(props) for error in value.errors]
    assert "needs recursive=true" in error
