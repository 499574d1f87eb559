from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connect.data import (
    Schema,
    SinkBatch,
    SinkRecord,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from connect.errors import ConnectError
from connect.internals.java.value_text import text_renderer
from connectors.file import FileStreamSinkConfig, FileStreamSinkConnector, FileStreamSinkTask


@pytest.fixture
def task(tmp_path: Path) -> Iterator[FileStreamSinkTask]:
    config = FileStreamSinkConfig.parse({"file": str(tmp_path / "out.txt")})
    task = FileStreamSinkTask(config, object())  # type: ignore[arg-type]
    task.start()
    yield task
    task.stop()


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def batch(values: Sequence[Any], schema: Schema | None = None) -> SinkBatch:
    (made,) = SinkBatch.from_records([SinkRecord("t", value, schema) for value in values])
    return made


def test_values_are_appended_one_a_line(tmp_path: Path, task: FileStreamSinkTask) -> None:
    file = tmp_path / "out.txt"
    task.put(batch(["one", "zwö", ""], Schema.string()))
    assert file.read_bytes() == "one\nzwö\n\n".encode()
    task.put(batch(["x", None], Schema.string(optional=True)))
    task.put(batch([1, {"a": 1, "b": ["x", None]}]))
    task.flush({})
    assert file.read_text() == "one\nzwö\n\nx\nnull\n1\n{a=1, b=[x, null]}\n"


def test_an_existing_file_is_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    file.write_text("before\n")
    tasks = [
        FileStreamSinkTask(FileStreamSinkConfig.parse({"file": str(file)}), object())  # type: ignore[arg-type]
        for _ in range(2)
    ]
    for task in tasks:
        task.start()
    tasks[0].put(batch(["a"]))
    tasks[1].put(batch(["b"]))
    tasks[0].put(batch(["c"]))
    for task in tasks:
        task.stop()
    assert file.read_text() == "before\na\nb\nc\n"


def test_an_empty_batch_writes_nothing(tmp_path: Path, task: FileStreamSinkTask) -> None:
    task.put(batch(["x"]).slice(0, 0))
    task.flush({})
    assert (tmp_path / "out.txt").read_text() == ""


def test_a_kill_between_put_and_flush_loses_nothing_that_is_committed(tmp_path: Path, task: FileStreamSinkTask) -> None:
    """The lines of a put that was not flushed come twice: at least once."""
    task.put(batch(["committed"]))
    task.flush({})
    task.put(batch(["again"]))
    # Nothing of the first task is told to the second: that is what a kill leaves.
    second = FileStreamSinkTask(task.config, object())  # type: ignore[arg-type]
    second.start()
    second.put(batch(["again"]))
    second.flush({})
    second.stop()
    assert (tmp_path / "out.txt").read_text() == "committed\nagain\nagain\n"


@pytest.mark.parametrize("props", [{}, {"file": ""}])
def test_without_a_file_lines_go_to_the_standard_output(props: dict[str, str]) -> None:
    read, write = os.pipe()
    saved = os.dup(1)
    os.dup2(write, 1)
    try:
        task = FileStreamSinkTask(FileStreamSinkConfig.parse(props), object())  # type: ignore[arg-type]
        task.start()
        task.put(batch(["out"]))
        task.flush({})
        task.stop()
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(write)
    with os.fdopen(read) as output:
        assert output.read() == "out\n"


def test_a_file_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    path = tmp_path / "no" / "out.txt"
    task = FileStreamSinkTask(FileStreamSinkConfig.parse({"file": str(path)}), object())  # type: ignore[arg-type]
    with pytest.raises(ConnectError, match="Couldn't find or create file") as refused:
        task.start()
    assert isinstance(refused.value.__cause__, FileNotFoundError)
    task.stop()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    task = FileStreamSinkTask(FileStreamSinkConfig.parse({"file": str(tmp_path)}), object())  # type: ignore[arg-type]
    with pytest.raises(ConnectError, match=r"Name a file, not a folder\.$"):
        task.start()
    task.stop()


def test_half_a_line_that_a_killed_task_left_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    file.write_text("whole\nha")
    for line in ("half", "next"):
        task = FileStreamSinkTask(FileStreamSinkConfig.parse({"file": str(file)}), object())  # type: ignore[arg-type]
        task.start()
        task.put(batch([line], Schema.string()))
        task.stop()
    assert file.read_text() == "whole\nha\nhalf\nnext\n"


def test_a_full_disk_fails_the_task() -> None:
    task = FileStreamSinkTask(FileStreamSinkConfig.parse({"file": "/dev/full"}), object())  # type: ignore[arg-type]
    task.start()
    with pytest.raises(ConnectError, match="Cannot write to file /dev/full"):
        task.put(batch(["x"]))
    task.stop()


def test_each_task_has_the_connectors_configuration() -> None:
    props = {"file": "/f"}
    connector = FileStreamSinkConnector(FileStreamSinkConfig.parse(props), object())  # type: ignore[arg-type]
    assert connector.task_configs(3) == [props] * 3
    assert FileStreamSinkConnector.alter_offsets(connector.config, {})


_ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "note": Schema.string(optional=True),
        "price": decimal_schema(2),
        "at": timestamp_schema(),
        "lines": Schema.array(Schema.struct({"q": Schema.float32(), "ok": Schema.boolean()})),
        "tags": Schema.map(Schema.string(), Schema.int32(optional=True)),
    }
)


@pytest.mark.usefixtures("in_utc")
def test_a_struct_is_written_as_in_java() -> None:
    value = {
        "id": 7,
        "note": None,
        "price": Decimal("12.50"),
        "at": dt.datetime(2026, 11, 21, 0, 18, 26, 999000, dt.UTC),
        "lines": [{"q": 0.1, "ok": True}, {"q": 2.0, "ok": False}],
        "tags": {"a": 1, "b": None},
    }
    assert text_renderer(_ORDER, None)(value) == (
        "Struct{id=7,price=12.50,at=Sat Nov 21 00:18:26 UTC 2026,"
        "lines=[Struct{q=0.1,ok=true}, Struct{q=2.0,ok=false}],tags={a=1, b=null}}"
    )


@pytest.mark.usefixtures("in_utc")
@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (date_schema(), dt.date(2026, 11, 21), "Sat Nov 21 00:00:00 UTC 2026"),
        (time_schema(), dt.time(0, 18, 26), "Thu Jan 01 00:18:26 UTC 1970"),
        (
            timestamp_schema(),
            dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            "Sun Mar 01 10:00:00 UTC 2026",
        ),
        (Schema.bytes(), b"\x00abc", "AGFiYw=="),
        (Schema.boolean(), True, "true"),
        (Schema.int32(), -5, "-5"),
        (Schema.array(Schema.string()), [], "[]"),
        (Schema.struct({"a": Schema.string(optional=True)}), {"a": None}, "Struct{}"),
        (Schema.float64(), 3, "3.0"),
        (None, None, "null"),
        (None, {"n": None, "f": 1.0, "b": False}, "{n=null, f=1.0, b=false}"),
        (None, Decimal("1E+3"), "1E+3"),
    ],
)
def test_values_are_written_as_in_java(schema: Schema | None, value: object, text: str) -> None:
    assert text_renderer(schema, None)(value) == text


# What Double.toString and Float.toString of Java 19 and later say.
_DOUBLES = [
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (1.0, "1.0"),
    (0.001, "0.001"),
    (0.000999, "9.99E-4"),
    (9999999.0, "9999999.0"),
    (1e7, "1.0E7"),
    (12345678.9, "1.23456789E7"),
    (1e21, "1.0E21"),
    (2e23, "2.0E23"),
    (1.7976931348623157e308, "1.7976931348623157E308"),
    (5e-324, "4.9E-324"),
    (-1.5e-5, "-1.5E-5"),
    (100.0, "100.0"),
    (1e10 / 3, "3.3333333333333335E9"),
    (float("nan"), "NaN"),
    (float("inf"), "Infinity"),
    (float("-inf"), "-Infinity"),
]
_FLOATS = [
    (0.1, "0.1"),
    (0.10000000149011612, "0.1"),
    (3.4028235e38, "3.4028235E38"),
    (1.4e-45, "1.4E-45"),
    (16777216.0, "1.6777216E7"),
    (123456.79, "123456.79"),
    (1e10, "1.0E10"),
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (100.0, "100.0"),
    (float("nan"), "NaN"),
    (float("-inf"), "-Infinity"),
    (1e300, "Infinity"),
]


@pytest.mark.parametrize(("value", "text"), _DOUBLES)
def test_doubles_are_written_as_in_java(value: float, text: str) -> None:
    assert text_renderer(Schema.float64(), None)(value) == text
    assert text_renderer(None, None)(value) == text


@pytest.mark.parametrize(("value", "text"), _FLOATS)
def test_floats_are_written_as_in_java(value: float, text: str) -> None:
    assert text_renderer(Schema.float32(), None)(value) == text
