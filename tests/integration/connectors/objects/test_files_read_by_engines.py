"""What the sinks write is what DuckDB and Spark read, in each format that they know."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

from connect.data import NO_HEADERS, Schema, SinkRecord, TimestampType, date_schema, decimal_schema, timestamp_schema
from connect.testing.sink_run import run_sink
from connectors.objects import FolderSinkConnector
from equipment.scripts import spark_files_reader

pytestmark = [pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(600)]

COUNT: Final = 25
TYPED: Final = {"day": date_schema(), "at": timestamp_schema(), "price": decimal_schema(2)}
PLAIN: Final = {
    "id": Schema.int64(),
    "name": Schema.string(optional=True),
    "ratio": Schema.float64(optional=True),
    "flag": Schema.boolean(),
}
PLAIN_COLUMNS: Final = ("cast(id as string)", "name", "cast(ratio as string)", "cast(flag as string)")
SPARK_COLUMNS: Final = (
    *PLAIN_COLUMNS,
    "cast(day as string)",
    "cast(unix_millis(at) as string)",
    "cast(price as string)",
)
DUCKDB_COLUMNS: Final = (
    *(column.replace("as string", "as varchar") for column in PLAIN_COLUMNS),
    "cast(day as varchar)",
    'cast(epoch_ms("at") as varchar)',
    "cast(price as varchar)",
)
EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def value_of(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": None if number % 3 == 0 else f'näme, "{number}"\t|',
        "ratio": None if number % 4 == 0 else number / 2,
        "flag": number % 2 == 0,
        "day": dt.date(1960, 1, 1) + dt.timedelta(days=number * 1000),
        "at": EPOCH + dt.timedelta(milliseconds=1_700_000_000_123 * number // 10),
        "price": Decimal(number - 5).scaleb(-2),
    }


def texts_of(number: int, count: int) -> tuple[str | None, ...]:
    """The row as texts, its first columns."""
    value = value_of(number)
    name, ratio = value["name"], value["ratio"]
    millis = str((value["at"] - EPOCH) // dt.timedelta(milliseconds=1))
    texts = (str(number), name, None if ratio is None else str(ratio), str(value["flag"]).lower())
    return (*texts, value["day"].isoformat(), millis, str(value["price"]))[:count]


def written(folder: Path, form: str) -> str:
    """Have a sink write the rows in three files, and return where they are."""
    has_types = form in ("Avro", "Parquet", "Orc")
    schema = Schema.struct(PLAIN | TYPED if has_types else PLAIN, name="row")
    values = [{name: value_of(number)[name] for name in schema.field_names} for number in range(COUNT)]
    records = [
        SinkRecord(
            form, value, schema, None, None, 0, 1_700_000_000_000, NO_HEADERS, number, TimestampType.CREATE_TIME,
            form, 0, number,
        )
        for number, value in enumerate(values)
    ]  # fmt: skip
    props = {"name": form, "topics": form, "format.class": f"{form}Format", "flush.size": "10"}
    props |= {"rotate.on.offset.commit": "true", "store.url": str(folder)}
    run_sink(FolderSinkConnector, props, records, batch_size=10)
    return f"{folder}/topics/{form}"


def test_spark_reads_each_format(tmp_path: Path) -> None:
    csv = {"header": "true", "escape": '"'}
    kinds: list[tuple[str, str, dict[str, str], Sequence[str]]] = [
        ("Parquet", "parquet", {}, SPARK_COLUMNS),
        ("Orc", "orc", {}, SPARK_COLUMNS),
        ("Avro", "avro", {}, SPARK_COLUMNS),
        ("Json", "json", {}, PLAIN_COLUMNS),
        ("Csv", "csv", csv, PLAIN_COLUMNS),
        ("Tsv", "csv", {**csv, "sep": "\t"}, PLAIN_COLUMNS),
    ]
    orders = [
        {"source": source, "options": options, "place": written(tmp_path, form), "columns": columns}
        for form, source, options, columns in kinds
    ]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(Path(spark_files_reader.__file__)), json.dumps(orders)]
    run = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, timeout=500, check=True)
    for (form, _, _, columns), rows in zip(kinds, json.loads(run.stdout.splitlines()[-1]), strict=True):
        found = sorted((tuple(row) for row in rows), key=lambda row: int(row[0]))
        assert found == [texts_of(number, len(columns)) for number in range(COUNT)], form


@pytest.mark.parametrize(
    ("form", "reader", "columns"),
    [
        ("Parquet", "read_parquet('{}/**/*.parquet')", DUCKDB_COLUMNS),
        ("Json", "read_json('{}/**/*.json')", DUCKDB_COLUMNS[:4]),
        ("Csv", "read_csv('{}/**/*.csv', header=true, all_varchar=true)", DUCKDB_COLUMNS[:4]),
        ("Tsv", "read_csv('{}/**/*.tsv', header=true, all_varchar=true, delim='\t')", DUCKDB_COLUMNS[:4]),
    ],
)
def test_duckdb_reads_what_it_can(tmp_path: Path, form: str, reader: str, columns: Sequence[str]) -> None:
    source = reader.format(written(tmp_path, form))
    rows = duckdb.sql(f"select {', '.join(columns)} from {source} order by cast(id as bigint)").fetchall()
    assert rows == [texts_of(number, len(columns)) for number in range(COUNT)]
