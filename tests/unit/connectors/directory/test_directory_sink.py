"""The directory sink: names and contents of files, records that cannot be lines, and what comes again."""

from __future__ import annotations

import datetime as dt
import gzip
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connect.data import Schema, SinkBatch, SinkRecord, TopicPartition, decimal_schema, timestamp_schema
from connect.errors import ConfigError, ConnectError, DataError, RetriableError
from connect.testing import ErrantRecords, SinkTaskTestContext, sink_records
from connectors.directory import DirectorySinkConfig, DirectorySinkConnector, DirectorySinkTask
from equipment.fakes.late_reports import LateReports

PARTITION = TopicPartition("test", 0)
Start = Callable[..., DirectorySinkTask]


@pytest.fixture
def context() -> SinkTaskTestContext:
    return SinkTaskTestContext([PARTITION], errant_record_reporter=ErrantRecords(tolerate=True))


@pytest.fixture
def start(tmp_path: Path, context: SinkTaskTestContext) -> Iterator[Start]:
    tasks: list[DirectorySinkTask] = []

    def begin(**props: str) -> DirectorySinkTask:
        config = DirectorySinkConfig.parse({"path": str(tmp_path / "out"), "rotate.interval.ms": "0", **props})
        tasks.append(DirectorySinkTask(config, context))
        tasks[-1].start()
        tasks[-1].open([PARTITION])
        return tasks[-1]

    yield begin
    for task in tasks:
        task.stop()


def put(task: DirectorySinkTask, records: list[SinkRecord]) -> None:
    for batch in SinkBatch.from_records(records):
        task.put(batch)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*+*")) if not path.name.startswith(".")}


def test_files_have_the_offsets_of_their_records_as_names(tmp_path: Path, start: Start) -> None:
    task = start(**{"flush.size": "2", "rotate.interval.ms": "3600000"})
    put(task, sink_records([{"n": number} for number in range(5)]))
    folder = tmp_path / "out" / "test" / "partition=0"
    assert files(folder) == {
        "test+0+0000000000+0000000001.jsonl": b'{"n":0}\n{"n":1}\n',
        "test+0+0000000002+0000000003.jsonl": b'{"n":2}\n{"n":3}\n',
    }
    assert task.pre_commit({PARTITION: 5}) == {PARTITION: 4}


@pytest.mark.parametrize(
    ("props", "records", "name", "content"),
    [
        ({"format": "text"}, sink_records(["a", "", "ü"]), ".txt", "a\n\nü\n".encode()),
        ({"format": "bytes"}, sink_records([b"\x00", b"\n", bytearray(b"x")]), ".bin", b"\x00\nx"),
        (
            {"format": "csv", "delimiter": ";"},
            sink_records([{"a": 1, "b": 'say "x";'}, {"b": None, "a": True}, {"a": 1.5, "b": [1]}]),
            ".csv",
            b'a;b\n1;"say ""x"";"\ntrue;\n1.5;[1]\n',
        ),
        ({"format": "csv"}, sink_records([{"a": None}, {"a": ""}, {"a": "\n"}]), ".csv", b'a\n""\n""\n"\n"\n'),
        ({}, sink_records([None, "x", 1, [True]]), ".jsonl", b'null\n"x"\n1\n[true]\n'),
    ],
)
def test_formats(
    tmp_path: Path, start: Start, props: dict[str, str], records: list[SinkRecord], name: str, content: bytes
) -> None:
    task = start(**props)
    put(task, records)
    assert files(tmp_path) == {f"test+0+0000000000+{len(records) - 1:010}{name}": content}
    zipped = start(**props, compression="gzip", path=str(tmp_path / "zipped"))
    put(zipped, records)
    (found,) = files(tmp_path / "zipped").items()
    assert found[0].endswith(f"{name}.gz")
    assert gzip.decompress(found[1]) == content


def test_logical_types_are_written_as_the_json_converter_does(tmp_path: Path, start: Start) -> None:
    schema = Schema.struct({"d": decimal_schema(2), "t": timestamp_schema(), "b": Schema.bytes()})
    value = {"d": Decimal("1.50"), "t": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "b": b"\x01"}
    put(start(), sink_records([value], schema=schema))
    assert list(files(tmp_path).values()) == [b'{"d":1.50,"t":1704067200000,"b":"AQ=="}\n']


def test_other_columns_begin_another_file(tmp_path: Path, start: Start) -> None:
    task = start(format="csv")
    put(task, sink_records([{"a": 1}, {"a": 2}, {"a": 3, "b": 4}, {"a": 5}]))
    assert list(files(tmp_path).values()) == [b"a\n1\n2\n", b"a,b\n3,4\n", b"a\n5\n"]


def test_records_that_cannot_be_lines_are_reported_and_passed(
    tmp_path: Path, start: Start, context: SinkTaskTestContext
) -> None:
    task = start(format="text")
    put(task, sink_records(["a", 7, "two\nlines", "b"]))
    put(task, sink_records(["a", 7, "two\nlines", "b", None]))
    assert task.pre_commit({PARTITION: 5}) == {PARTITION: 5}
    assert list(files(tmp_path)) == ["test+0+0000000000+0000000003.txt"]
    reporter = context.errant_record_reporter
    assert reporter is not None
    assert [(record.original_offset, str(error)) for record, error in reporter.reported] == [
        (1, "The record at offset 1 of test-0 has a value of type int, and format=text writes texts."),
        (2, "The record at offset 2 of test-0 has a line ending in its text, which would make two lines of it."),
        (4, "The record at offset 4 of test-0 has a value of type NoneType, and format=text writes texts."),
    ]
    context.errant_record_reporter = None
    with pytest.raises(DataError, match="offset 5"):
        put(task, sink_records(["a", "b", "c", "d", "e", 5]))


def test_reports_are_durable_before_a_file_has_the_records_after_them(
    tmp_path: Path, start: Start, context: SinkTaskTestContext
) -> None:
    """What is below the name of a file is passed over by the next task, bad records too."""
    context.errant_record_reporter = reporter = LateReports()
    task = start(format="text")
    with pytest.raises(RetriableError):
        put(task, sink_records(["a", 7, "b"]))
    assert files(tmp_path) == {}
    reporter.are_durable = True
    put(task, sink_records(["a", 7, "b"]))
    assert files(tmp_path) == {"test+0+0000000000+0000000002.txt": b"a\nb\n"}
    assert [record.original_offset for record, _ in reporter.reported] == [1]


@pytest.mark.parametrize("again", ["1", "2", "3", "100"])
def test_records_that_come_again_are_passed_over_however_files_end(tmp_path: Path, start: Start, again: str) -> None:
    """A kill after the files were renamed, before any offset was committed."""
    put(start(format="text", **{"flush.size": "3"}), sink_records(list("abcdefgh")))
    second = start(format="text", **{"flush.size": again})
    put(second, sink_records(list("abcdefghij")))
    assert b"".join(files(tmp_path).values()) == b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"
    assert second.pre_commit({PARTITION: 10}) == {PARTITION: 10}


def test_what_a_killed_task_left_is_removed(tmp_path: Path, start: Start) -> None:
    folder = tmp_path / "out" / "test" / "partition=0"
    folder.mkdir(parents=True)
    (folder / ".test+0+0000000000+0000000003.txt.0abc.part").write_text("a\n")
    (folder / ".test+1+0000000000+0000000003.txt.0abc.part").write_text("of another")
    (folder / "test+0+notes.txt").write_text("of somebody else")
    put(start(format="text"), sink_records(["a"]))
    assert sorted(path.name for path in folder.iterdir()) == [
        ".test+1+0000000000+0000000003.txt.0abc.part",
        "test+0+0000000000+0000000000.txt",
        "test+0+notes.txt",
    ]


def test_a_file_is_complete_by_its_age_without_further_records(
    tmp_path: Path, start: Start, context: SinkTaskTestContext
) -> None:
    task = start(format="text", **{"rotate.interval.ms": "40"})
    put(task, sink_records(["a"]))
    assert task.pre_commit({PARTITION: 1}) == {PARTITION: 0}
    assert context.retry_after is not None
    assert 0 < context.retry_after <= 0.04
    while task.pre_commit({PARTITION: 1}) == {PARTITION: 0}:
        context.wait(context.retry_after)
    assert list(files(tmp_path).values()) == [b"a\n"]


def test_a_topic_that_was_created_again_is_refused(start: Start, context: SinkTaskTestContext) -> None:
    context.ids["test"] = "first"
    put(start(), sink_records(["a"]))
    put(start(), sink_records(["a", "b"]))
    context.ids["test"] = "second"
    with pytest.raises(ConnectError, match="was deleted and created again since"):
        put(start(), sink_records(["a"]))


def test_offsets_of_written_records_cannot_be_set(tmp_path: Path, start: Start) -> None:
    put(start(format="text"), sink_records(["a", "b"]))
    config = DirectorySinkConfig.parse({"path": str(tmp_path / "out")})
    for offset in (None, 1):
        with pytest.raises(ConnectError, match="have the records of test-0 before 2, which would be passed over"):
            DirectorySinkConnector.alter_offsets(config, {PARTITION: offset})
    assert DirectorySinkConnector.alter_offsets(config, {PARTITION: 2, TopicPartition("other", 0): None})


def test_a_full_disk_or_a_missing_right_fails_the_task_and_loses_nothing(tmp_path: Path, start: Start) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    task = start(path=str(blocked / "out"))
    with pytest.raises(ConnectError, match="cannot be listed"):
        put(task, sink_records(["a"]))
    assert task.pre_commit({}) == {}


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"path": "http://h/x"}, "can only be read"),
        ({"flush.size": "0"}, "at least 1"),
        ({"delimiter": '"'}, "one character"),
        ({"path": "sftp://u:p@h/x"}, "must not contain a password"),
    ],
)
def test_options(props: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DirectorySinkConfig.parse({"path": "/out", **props})
