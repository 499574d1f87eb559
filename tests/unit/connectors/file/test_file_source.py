from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.config import InvalidConfigError
from connect.data import Schema, SourceBatch, SourceRecord
from connect.errors import ConfigError, ConnectError, DataError, MissingError
from connect.source import ExactlyOnceSupport
from connectors.file import FileStreamSourceConnector, FileStreamSourceTask, FileStreamTaskConfig
from connectors.file.lines import LineBuffer, Lines, LongLine, decode

Start = Callable[..., FileStreamSourceTask]


@pytest.fixture
def context(source_context: Callable[..., Any]) -> Any:
    return source_context()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    tasks = []

    def begin(context: Any, **props: str) -> FileStreamSourceTask:
        given = {"file": str(tmp_path / "in.txt"), "topic": "lines", **props}
        task = FileStreamSourceTask(FileStreamTaskConfig.parse(given), context)
        task.start()
        tasks.append(task)
        return task

    yield begin
    for task in tasks:
        task.stop()


def read(task: FileStreamSourceTask) -> list[SourceRecord]:
    """All there is until a poll gives nothing."""
    records: list[SourceRecord] = []
    while (batch := task.poll()) is not None:
        assert isinstance(batch, SourceBatch)
        assert batch.source_offsets[-1] == list(batch.source_offsets)[-1]
        records.extend(batch)
    return records


def values(task: FileStreamSourceTask) -> list[str]:
    return [record.value for record in read(task)]


def test_a_line_becomes_a_record_as_in_kafka(tmp_path: Path, context: Any, start: Start) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes("one\ntwö\r\nthree\rfour\n\n".encode())
    records = read(start(context))
    assert [record.value for record in records] == ["one", "twö", "three", "four", ""]
    assert [record.source_offset for record in records] == [{"position": n} for n in (4, 10, 16, 21, 22)]
    first = records[0]
    assert first.topic == "lines"
    assert first.value_schema is Schema.string()
    assert (first.key, first.key_schema, first.partition) == (None, None, None)
    assert first.source_partition == {"filename": str(file)}
    assert first.timestamp is not None


def test_resumes_after_every_offset(tmp_path: Path, context: Any, start: Start) -> None:
    (tmp_path / "in.txt").write_bytes("a\nbé\r\n\rc\r\nü\n\ndé\n".encode())
    records = [(record.value, record.source_offset) for record in read(start(context))]
    assert len(records) == 7
    for index, (_, offset) in enumerate(records):
        context.commit({"filename": str(tmp_path / "in.txt")}, offset)
        again = [(record.value, record.source_offset) for record in read(start(context))]
        assert again == records[index + 1 :]


def test_batch_size_bounds_a_poll_and_slices_keep_their_offsets(tmp_path: Path, context: Any, start: Start) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{n}\n" for n in range(10)))
    task = start(context, **{"batch.size": "4"})
    batches = [task.poll() for _ in range(4)]
    assert [batch and len(batch) for batch in batches] == [4, 4, 2, None]
    assert batches[1] is not None
    part = batches[1].slice(1, 3)
    assert [(record.value, record.source_offset) for record in part] == [
        ("5", {"position": 12}),
        ("6", {"position": 14}),
    ]


def test_a_batch_is_gathered_from_several_reads(tmp_path: Path, context: Any, start: Start) -> None:
    lines = [f"{n:05}" + "é" * (n % 90) for n in range(3000)]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    batch = start(context, **{"batch.size": "2500"}).poll()
    assert batch is not None
    assert list(batch.value) == lines[:2500]
    ends = list(accumulate(len(line.encode()) + 1 for line in lines[:2500]))
    assert [offset["position"] for offset in batch.source_offsets] == ends
    assert batch.source_offsets[-1] == {"position": ends[-1]}


def test_a_missing_file_is_waited_for(tmp_path: Path, context: Any, start: Start) -> None:
    task = start(context)
    for _ in range(2):
        with pytest.raises(MissingError, match=r"^File .*in.txt does not exist; the source waits until it") as missing:
            task.poll()
        assert missing.value.retry_after == 1.0
    assert not task.drained()
    (tmp_path / "in.txt").write_text("there\n")
    assert values(task) == ["there"]


def test_half_a_line_waits_for_its_end(
    tmp_path: Path, context: Any, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    task = start(context)
    with (tmp_path / "in.txt").open("ab", buffering=0) as writer:
        writer.write("whole\nhalf é".encode()[:-1])
        assert values(task) == ["whole"]
        assert task.drained()
        assert "The last 6 bytes" in caplog.text
        writer.write("é".encode()[1:])
        assert values(task) == []
        writer.write(b"\r")
        # It may be half of \r\n.
        assert values(task) == []
        writer.write(b"\nnext\n")
        assert values(task) == ["half é", "next"]


def test_what_remains_is_the_bytes_after_the_last_record(tmp_path: Path, context: Any, start: Start) -> None:
    task = start(context, **{"batch.size": "2"})
    assert (task.remaining(), task.total()) == ({}, {}), "the file is not there yet"
    file = tmp_path / "in.txt"
    file.write_bytes(b"one\r\ntwo\r\nthree\r\nhalf")
    seen = [task.remaining() for _ in range(3) if task.poll() or True]
    assert seen == [{"bytes": 11}, {"bytes": 4}, {"bytes": 4}]
    with file.open("ab") as writer:
        writer.write(b" a line\n")
    assert (task.remaining(), task.total()) == ({"bytes": 12}, {"bytes": 29})
    assert values(task) == ["half a line"]
    assert task.remaining() == {"bytes": 0}


def test_a_carriage_return_at_the_end_of_a_read_is_one_line_end(tmp_path: Path, context: Any, start: Start) -> None:
    # 64 KiB is what one read takes: the \r is its last byte, the \n the first of the next.
    text = b"x" * (64 * 1024 - 1) + b"\r\nnext\n"
    (tmp_path / "in.txt").write_bytes(text)
    records = read(start(context))
    assert [len(record.value) for record in records] == [64 * 1024 - 1, 4]
    assert [record.source_offset["position"] for record in records] == [64 * 1024 + 1, len(text)]


def test_a_truncated_file_is_read_from_its_beginning(
    tmp_path: Path, context: Any, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "in.txt"
    file.write_text("first\nsecond\nhalf")
    task = start(context)
    assert values(task) == ["first", "second"]
    with file.open("r+") as writer:
        writer.truncate(0)
        writer.write("new\n")
    records = read(task)
    assert [(record.value, record.source_offset) for record in records] == [("new", {"position": 4})]
    assert "replaced or truncated" in caplog.text


def test_a_file_shorter_than_its_offset_is_read_from_its_beginning(tmp_path: Path, context: Any, start: Start) -> None:
    file = tmp_path / "in.txt"
    file.write_text("short\n")
    context.commit({"filename": str(file)}, {"position": 100})
    assert values(start(context)) == ["short"]


def test_an_offset_inside_of_a_line_is_told(
    tmp_path: Path, context: Any, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "in.txt"
    file.write_text("short\nmore\n")
    context.commit({"filename": str(file)}, {"position": 8})
    assert values(start(context)) == ["re"]
    assert "not at the beginning of a line" in caplog.text


def test_rotation_reads_the_old_file_to_its_end_first(tmp_path: Path, context: Any, start: Start) -> None:
    file, rotated = tmp_path / "in.txt", tmp_path / "in.txt.1"
    writer = file.open("a", buffering=1)
    writer.write("1\n")
    task = start(context)
    assert values(task) == ["1"]
    file.rename(rotated)
    writer.write("2\n")
    assert values(task) == ["2"]
    file.touch()
    # The new file is empty: the writer may still be at the old one.
    assert values(task) == []
    writer.write("3\n")
    writer.close()
    file.write_text("4\n")
    records = read(task)
    assert [(record.value, record.source_offset["position"]) for record in records] == [("3", 6), ("4", 2)]


def test_a_rotated_file_may_end_without_a_line_end(tmp_path: Path, context: Any, start: Start) -> None:
    file = tmp_path / "in.txt"
    file.write_text("1\n2")
    task = start(context)
    assert values(task) == ["1"]
    file.rename(tmp_path / "in.txt.1")
    file.write_text("3\n")
    assert [(record.value, record.source_offset["position"]) for record in read(task)] == [("2", 3), ("3", 2)]


def test_a_line_that_is_too_long_is_reported(tmp_path: Path, source_context: Callable[..., Any], start: Start) -> None:
    file = tmp_path / "in.txt"
    file.write_text(f"ok\n{'x' * 11}\nnext\n{'y' * 10}\n")
    context = source_context(tolerate=True)
    task = start(context, **{"line.max.bytes": "10"})
    assert [record.value for batch in (task.poll() for _ in range(4)) for record in batch or ()] == [
        "ok",
        "next",
        "y" * 10,
    ]
    ((record, error),) = context.errant_record_reporter.reported
    assert record.value == "x" * 11
    assert record.source_offset == {"position": 15}
    assert "line at byte 3" in str(error)
    assert "line.max.bytes=10" in str(error)
    with pytest.raises(DataError, match=r"line\.max\.bytes"):
        read(start(source_context(), **{"line.max.bytes": "10"}))


def test_the_standard_input_has_no_offsets(tmp_path: Path) -> None:
    script = """
import sys
from connectors.file import FileStreamTaskConfig, FileStreamSourceTask
class Context:
    def wait(self, seconds): return True
task = FileStreamSourceTask(FileStreamTaskConfig.parse({"topic": "t"}), Context())
task.start()
while not task.drained():
    for record in task.poll() or ():
        print(record.value, dict(record.source_partition), dict(record.source_offset))
task.stop()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], input=b"one\ntwo", capture_output=True, check=True, timeout=60
    )
    assert done.stdout.decode().splitlines() == ["one {} {}", "two {} {}"]


def test_what_is_not_a_file_is_refused(tmp_path: Path, context: Any, start: Start) -> None:
    with pytest.raises(ConnectError, match="not a regular file"):
        start(context, file=str(tmp_path)).poll()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConnectError, match="not a regular file"):
        start(context, file=str(tmp_path / "pipe")).poll()


def test_an_offset_of_a_wrong_type_is_refused(tmp_path: Path, context: Any, start: Start) -> None:
    file = tmp_path / "in.txt"
    file.touch()
    context.commit({"filename": str(file)}, {"position": "5"})
    with pytest.raises(ConnectError, match="incorrect type"):
        start(context).poll()


@settings(deadline=None)
@given(
    data=st.lists(st.sampled_from([b"a", b"\n", b"\r", "é".encode(), b"\xff"]), max_size=40).map(b"".join),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    count=st.integers(1, 4),
    limit=st.integers(1, 5),
)
def test_lines_are_the_same_however_the_bytes_come(data: bytes, cuts: list[int], count: int, limit: int) -> None:
    """Whole lines, long ones and positions, against ``bytes.splitlines``."""
    buffer = LineBuffer(0, limit)
    got: list[tuple[str, int]] = []
    too_long: list[int] = []

    def take() -> None:
        while (lines := buffer.take(count)) is not None:
            if isinstance(lines, LongLine):
                too_long.append(lines.start)
                continue
            assert isinstance(lines, Lines)
            got.extend(zip(lines.values, lines.ends, strict=True))
            assert lines.ends[-1] == lines.end

    edges = [0, *sorted(cut for cut in cuts if cut <= len(data)), len(data)]
    for start, stop in pairwise(edges):
        if start < stop:
            buffer.feed(data[start:stop])
            take()
    buffer.finish()
    take()
    whole = data.splitlines(keepends=True)
    ends = list(accumulate(map(len, whole)))
    lines = [
        (decode(line.rstrip(b"\r\n")), end, len(line.rstrip(b"\r\n"))) for line, end in zip(whole, ends, strict=True)
    ]
    assert got == [(line, end) for line, end, length in lines if length <= limit]
    starts = [0, *ends]
    assert too_long == [start for start, (_, _, length) in zip(starts, lines, strict=False) if length > limit]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xe2\x28\xa1", "\ufffd(\ufffd"),
        (b"\xf0\x90\x80x", "\ufffdx"),
        (b"\xc0\xaf", "\ufffd\ufffd"),
        # A surrogate is one malformed sequence in Java, three in Python.
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xa0x", "\ufffdx"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xef\xbb\xbfbom", "\ufeffbom"),
    ],
)
def test_malformed_bytes_are_read_as_in_java(data: bytes, text: str) -> None:
    assert decode(data) == text


def config(**props: str) -> FileStreamTaskConfig:
    return FileStreamTaskConfig.parse({"topic": "t", **props})


def test_one_task_with_the_connectors_own_configuration() -> None:
    props = {"topic": "t", "file": "/f", "tasks.max": "5"}
    connector = FileStreamSourceConnector(FileStreamTaskConfig.parse(props), object())  # type: ignore[arg-type]
    assert connector.task_configs(5) == [props]


def test_exactly_once_needs_a_file() -> None:
    support = FileStreamSourceConnector.exactly_once_support
    assert support(config(file="/f")) is ExactlyOnceSupport.SUPPORTED
    assert support(config()) is ExactlyOnceSupport.UNSUPPORTED
    assert support(config(file="")) is ExactlyOnceSupport.UNSUPPORTED


@pytest.mark.parametrize("props", [{}, {"topic": ""}])
def test_a_topic_is_required(props: dict[str, str]) -> None:
    with pytest.raises((ConfigError, InvalidConfigError)):
        FileStreamTaskConfig.parse(props)


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        (
            {"filename": "/f"},
            {"foo": 1},
            "Offset objects should either be null or contain the key 'position'",
        ),
        (
            {"filename": "/f"},
            {"position": "x"},
            "The value for the 'position' key in the offset is expected to be a Long value",
        ),
        (
            {"filename": "/f"},
            {"position": True},
            "The value for the 'position' key in the offset is expected to be a Long value",
        ),
        (
            {"filename": "/f"},
            {"position": -1},
            "The value for the 'position' key in the offset should be a non-negative value",
        ),
        ({"nofile": "x"}, {"position": 1}, "Partition objects should contain the key 'filename'"),
        (None, {"position": 1}, "Partition objects cannot be null"),
    ],
)
def test_offsets_that_cannot_be_are_refused(partition: object, offset: dict[str, object], message: str) -> None:
    with pytest.raises(ConnectError) as refused:
        FileStreamSourceConnector.alter_offsets(config(file="/f"), {json.dumps(partition): offset})
    assert str(refused.value) == message


def test_offsets_of_any_file_and_resets_of_anything_are_allowed() -> None:
    offsets = {'{"filename":"/other"}': {"position": 3}, '{"garbage":1}': None}
    assert FileStreamSourceConnector.alter_offsets(config(file="/f"), offsets)
    with pytest.raises(ConnectError, match="Offsets cannot be modified"):
        FileStreamSourceConnector.alter_offsets(config(), offsets)


def test_nothing_is_logged_at_the_end_of_a_whole_file(
    tmp_path: Path, context: Any, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    task = start(context)
    with caplog.at_level(logging.WARNING):
        assert values(task) == ["a"]
        assert task.drained()
    assert caplog.text == ""
