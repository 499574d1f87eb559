"""The loads of a bulk sink as text: the current one, pending retries, and the last ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from worker.cli.output import Long, columns
from worker.formatting import counted, size_text, written_text

__all__ = ["load_lines"]

_SHOWN: Final = 5
_HEADER: Final = ("LOAD", "BEGUN", "SECONDS", "RECORDS", "ROWS", "SIZE", "FILES", "ROWS/S", "DUE BY", "ERROR")


def load_lines(tasks: list[Mapping[str, Any]]) -> list[str]:
    """Return the lines for the tasks of ``GET /connectors/NAME/loads``; empty if there are no loads."""
    return [line for task in tasks for line in _of_task(task)]


def _of_task(task: Mapping[str, Any]) -> Iterator[str]:
    if (current := task["current"]) is not None:
        yield from ("", _current(current))
        if current["progress"]["ui"]:
            yield f"Its Spark UI: {current['progress']['ui']}"
    if (retry := task["retry"]) is not None:
        times = f"{retry['attempts']} times in a row" if retry["attempts"] > 1 else "once"
        yield from ("", f"A load has failed {times} and is tried again at {retry['at']}: {retry['error']}")
    if task["last"]:
        yield from ("", columns(_HEADER, [_row(load) for load in task["last"][:_SHOWN]], long=Long.CUT))


def _current(load: Mapping[str, Any]) -> str:
    progress = load["progress"]
    of = f"{progress['records']:,} of " if progress["records"] else ""
    written = written_text(progress["rows"], progress["bytes"], progress["files"])
    ranges = ", ".join(map(_range, load["ranges"][:_SHOWN]))
    more = f" and {load['partitions'] - _SHOWN} more" if load["partitions"] > _SHOWN else ""
    return (
        f"Load {load['number']}, due by {load['reason']}, for {load['seconds']:,.0f} s: {progress['stage']}, "
        f"{of}{counted(load['records'], 'record')} ({ranges}{more}){written}, {load['rows_per_second']:,} rows/s"
    )


def _range(item: Mapping[str, Any]) -> str:
    return f"{item['topic']}-{item['partition']}: {item['first']} to {item['end'] - 1}"


def _row(load: Mapping[str, Any]) -> tuple[object, ...]:
    progress = load["progress"]
    return (
        load["number"],
        load["begun_at"],
        f"{load['seconds']:,.1f}",
        f"{load['records']:,}",
        f"{progress['rows']:,}",
        size_text(progress["bytes"]),
        f"{progress['files']:,}",
        f"{load['rows_per_second']:,}",
        load["reason"],
        load["error"],
    )
