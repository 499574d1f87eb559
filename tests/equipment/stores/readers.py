"""Reads tables with DuckDB and Spark, for tests that already use other readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equipment.scripts import spark_reader

__all__ = ["rows_of_duckdb", "rows_of_spark"]


def rows_of_duckdb(files: Sequence[str], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of Parquet files, sorted."""
    import duckdb  # noqa: PLC0415 - at the end of a process that has imported it, it tells of leaks

    if not files:
        return []
    found = duckdb.read_parquet(list(files), union_by_name=True, hive_partitioning=False)
    return sorted(found.select(", ".join(columns)).fetchall())


def rows_of_spark(props: Mapping[str, str], source: str, place: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of the table that a sink with this configuration writes, sorted."""
    order = {"props": dict(props), "source": source, "place": place, "columns": list(columns)}
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(Path(spark_reader.__file__)), json.dumps(order)]
    run = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    return sorted(tuple(row) for row in json.loads(run.stdout.splitlines()[-1]))
