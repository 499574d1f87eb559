"""The Spark sink and the object sinks put the same record into the same folder, and begin its file's name alike."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import pyarrow as pa
import pytest

from connect.data import ValueColumn
from connect.errors import DataError
from connect.kits.files.names import FileNames
from connect.kits.files.partition_options import PartitionOptions
from connect.kits.files.partitioners import partitioner_of
from connect.kits.files.record_time import RecordTimes
from connectors.objects.placing import FolderPlacing
from connectors.objects.sink_config import FolderSinkConfig
from connectors.spark.decoding.report import Report
from connectors.spark.options.layout import LayoutOptions
from connectors.spark.partitioner import make_partitioner
from connectors.spark.sink.ledger.staging import FileNames as TableNames

PARTITION: Final = 7
TIMESTAMPS: Final = (0, 1_700_000_000_000, 1_711_846_800_000, -1, None, 253_402_300_800_000)
TEXTS: Final = (
    "2024-03-31T01:59:59.999Z",
    "2024-03-31T02:30:00",
    "2024-10-27T02:30:00+02:00",
    "2023-12-31T24:00:00Z",
    "1969-12-31T23:59:59.9999",
    "2024-05-17",
    "0001-01-01",
    "9999-12-31T23:59:59.999",
    "9999-12-31T24:00",
    "soon",
    "",
    None,
)
TIMES: Final = (
    dt.datetime(2024, 2, 29, 23, 59, 59, 999_999, dt.UTC),
    dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_500, dt.UTC),
    None,
)
FIELDS: Final = {
    "texts": (TEXTS, pa.string()),
    "milliseconds": (TIMESTAMPS, pa.int64()),
    "numbers": ((1.9, -1.9, 1.7e12, None), pa.float64()),
    "times": (TIMES, pa.timestamp("us", tz="UTC")),
    "dates": ((dt.date(2024, 2, 29), dt.date(1969, 12, 31), None), pa.date32()),
}
FOLDERS: Final = {
    "daily": {"partitioner.class": "DailyPartitioner"},
    "hourly": {"partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner"},
    "zone": {"partitioner.class": "HourlyPartitioner", "timezone": "Europe/Berlin"},
    "pattern": {
        "partitioner.class": "TimeBasedPartitioner",
        "path.format": "'w'=xxxx-ww/HH-mm",
        "partition.duration.ms": "900000",
        "timezone": "America/St_Johns",
    },
}


def of_spark(props: dict[str, str], rows: pa.RecordBatch, timestamps: Any) -> list[str | None]:
    """The folders of rows, ``None`` for bad ones."""
    placement = make_partitioner(LayoutOptions.parse({**props, "target.file.size.bytes": str(1 << 20)})).placement()
    assert placement is not None
    placed = placement.place(rows, PARTITION, timestamps)
    found = iter(placed.rows.column(placed.rows.num_columns - 1).to_pylist())
    return [None if at in placed.refused else next(found) for at in range(len(rows))]


def of_objects(props: dict[str, str], values: list[Any], timestamps: list[int | None]) -> list[str | None]:
    options = PartitionOptions.parse(props)
    times = RecordTimes(options.extractor, options.timestamp_field)  # type: ignore[arg-type]
    told: list[Any] = [0] * len(values) if times.by_clock else times.of(values, timestamps)
    places = partitioner_of(options, times).places(ValueColumn(values), told, PARTITION)
    return [None if isinstance(place, DataError) else place for place in places]


@pytest.mark.parametrize("folders", FOLDERS)
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("nested", [False, True])
def test_a_fields_time_names_the_same_folder(folders: str, field: str, nested: bool) -> None:
    contents, kind = FIELDS[field]
    key = "event.at" if nested else "at"
    props = {**FOLDERS[folders], "timestamp.extractor": "RecordField", "timestamp.field": key}
    array: Any = pa.array(contents, kind)
    rows = pa.RecordBatch.from_arrays(
        [pa.StructArray.from_arrays([array], ["at"]) if nested else array], [key.partition(".")[0]]
    )
    values = [{"event": {"at": each}} if nested else {"at": each} for each in contents]
    mine = of_objects(props, values, [0] * len(values))
    assert mine == of_spark(props, rows, None)
    assert any(mine)
    assert None in mine


@pytest.mark.parametrize("folders", FOLDERS)
def test_a_records_time_names_the_same_folder(folders: str) -> None:
    props = {**FOLDERS[folders], "timestamp.extractor": "TimeBasedPartitioner$RecordTimestampExtractor"}
    stamps = [0, 1_700_000_000_000, 1_711_846_800_000]
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2, 3])], ["id"])
    assert of_objects(props, [{"id": 1}] * 3, stamps) == of_spark(props, rows, pa.array(stamps, pa.int64()))  # type: ignore[arg-type]


def test_a_partition_names_the_same_folder() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([1])], ["id"])
    assert of_objects({}, [{"id": 1}], [0]) == of_spark({}, rows, None) == ["partition=7"]


def test_names_begin_alike() -> None:
    """The names of Spark's files have the last offset, too."""
    spark = TableNames("lake", make_partitioner(LayoutOptions.parse({})), 6)
    placing = FolderPlacing(FileNames("lake", pad_width=6), partitioner_of(PartitionOptions.parse({}), None), None)  # type: ignore[arg-type]
    place = f"{placing.folder('flights')}/partition=7"
    objects = placing.path(place, "flights", PARTITION, 42, "", ".json")
    assert objects == "lake/flights/partition=7/flights+7+000042.json"
    report = Report("flights", PARTITION, 42, 99)  # type: ignore[call-arg]
    assert spark.path("flights", report, "", 0, "json") == objects.replace(".json", "+000099.json")


def test_both_have_the_same_keys_for_folders() -> None:
    """And the same defaults."""
    own = PartitionOptions.parse({})
    given = {"format.class": "JsonFormat", "flush.size": "1", "store.url": "/tmp"}
    for config in (LayoutOptions.parse({}), FolderSinkConfig.parse(given)):
        assert isinstance(config, PartitionOptions)
        assert config.partitioner == own.partitioner
        assert config.timezone == own.timezone
