"""Loads as they are printed."""

from __future__ import annotations

from typing import Any

from worker.cli.loads import load_lines

LOAD: dict[str, Any] = {
    "number": 8,
    "begun_at": "2026-01-31T12:00:00Z",
    "seconds": 12.4,
    "reason": "flush.size",
    "topics": 1,
    "partitions": 7,
    "records": 2_000_000,
    "ranges": [{"topic": "t", "partition": number, "first": 10, "end": 20} for number in range(7)],
    "progress": {"stage": "writing t", "records": 600_000, "rows": 580_000, "bytes": 9_123_456, "files": 2, "ui": None},
    "rows_per_second": 46_774,
    "error": None,
}


def shown(**task: Any) -> list[str]:
    lines = load_lines([{"current": None, "last": [], "retry": None, **task}])
    return "\n".join(lines).splitlines()


def test_a_load_that_runs_is_a_sentence() -> None:
    with_ui = {**LOAD, "progress": {**LOAD["progress"], "ui": "http://driver:4040"}}
    assert shown(current=with_ui) == [
        "",
        "Load 8, due by flush.size, for 12 s: writing t, 600,000 of 2,000,000 records (t-0: 10 to 19, t-1: 10 to 19, "
        "t-2: 10 to 19, t-3: 10 to 19, t-4: 10 to 19 and 2 more), 580,000 rows, 9.1 MB, 2 files, 46,774 rows/s",
        "Its Spark UI: http://driver:4040",
    ]


def test_a_load_that_has_written_no_file_yet_has_none() -> None:
    unknown = {**LOAD, "progress": {**LOAD["progress"], "bytes": 0, "files": 0}}
    (line,) = shown(current=unknown)[1:]
    assert line.endswith("and 2 more), 580,000 rows, 46,774 rows/s")


def test_the_last_ones_are_a_table_and_what_waits_is_told() -> None:
    retry = {"at": "2026-01-31T12:01:00Z", "attempts": 3, "error": "the target is away"}
    assert shown(last=[LOAD, {**LOAD, "number": 7, "error": "away"}], retry=retry) == [
        "",
        "A load has failed 3 times in a row and is tried again at 2026-01-31T12:01:00Z: the target is away",
        "",
        "LOAD  BEGUN                 SECONDS  RECORDS    ROWS     SIZE    FILES  ROWS/S  DUE BY      ERROR",
        "8     2026-01-31T12:00:00Z  12.4     2,000,000  580,000  9.1 MB  2      46,774  flush.size  -",
        "7     2026-01-31T12:00:00Z  12.4     2,000,000  580,000  9.1 MB  2      46,774  flush.size  away",
    ]


def test_without_loads_there_is_nothing_to_tell() -> None:
    assert shown() == []
