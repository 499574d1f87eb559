from __future__ import annotations

import gzip
import io
import json
import logging
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect.config import InvalidConfigError
from connect.data import ArrowColumn, Schema, ValueColumn
from connect.errors import ConfigError, ConnectError, DataError, MissingError
from connect.source import ExactlyOnceSupport
from connectors.directory import (
    DirectorySourceConfig,
    DirectorySourceConnector,
    DirectorySourceTask,
    DirectoryTaskConfig,
)

Start = Callable[..., DirectorySourceTask]
Read = Callable[[DirectorySourceTask], list[Any]]

CSV = 'id,name,price\n1,"a\nb",1.50\n\n2,,NA\r\n3,"say ""hi""",3\n'


def zipped(**files: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def commit(context: Any, record: Any) -> None:
    context.commit(record.source_partition, record.source_offset)


def test_rows_become_structs(folder: Any, context: Any, start: Start, rows: Read) -> None:
    file = folder.write("a.csv", CSV)
    task = start(context, types="id:int64,price:decimal(2)", **{"null.tokens": "NA"})
    records = rows(task)
    assert [record.value["name"] for record in records] == ["a\nb", None, 'say "hi"']
    assert [record.value["id"] for record in records] == [1, 2, 3]
    assert [str(record.value["price"]) for record in records] == ["1.50", "None", "3.00"]
    schema = records[0].value_schema
    assert schema.name == "rows"
    assert schema.field("name").schema is Schema.string(optional=True)
    assert [record.source_partition for record in records] == [{"filename": str(file)}] * 3
    assert [(record.source_offset["row"], record.source_offset["line"]) for record in records] == [
        (1, 3),
        (2, 5),
        (3, 6),
    ]
    assert records[-1].source_offset["position"] == len(CSV)
    assert task.drained()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.zip", "a.csv.zip", "a.jsonl", "a.txt.gz", "a.tsv"])
@pytest.mark.parametrize("batch_size", ["1", "2", "5000"])
def test_resumes_after_every_offset(
    name: str, batch_size: str, folder: Any, source_context: Any, start: Start, rows: Read
) -> None:
    text = {"jsonl": '{"a":1}\n\n{"a":[2]}\n3\n', "tsv": CSV.replace(",", "\t")}.get(name.rpartition(".")[2], CSV)
    data: Any = text
    if name.endswith(".gz"):
        data = gzip.compress(text.encode(), mtime=0)
    elif name.endswith(".zip"):
        data = zipped(**{"x.csv": text, "y.csv": text}) if name == "a.zip" else zipped(inner=text)
    folder.write(name, data)
    props = {"batch.size": batch_size, **({"format": "csv"} if name == "a.csv.zip" else {})}
    records = rows(start(source_context(), **props))
    assert len(records) in (3, 6, 7)
    for index in range(len(records)):
        context = source_context()
        for record in records[: index + 1]:
            commit(context, record)
        assert rows(start(context, **props)) == records[index + 1 :]


def test_types_are_inferred(folder: Any, context: Any, start: Start, rows: Read) -> None:
    folder.write("a.csv", "n,x,zip,day\n1,1.5,01234,2013-01-01\n2,,2345,\n")
    (first, _) = rows(start(context, **{"infer.rows": "10"}))
    assert [field.schema.type.value for field in first.value_schema.fields] == ["int64", "float64", "string", "int32"]
    assert first.value["zip"] == "01234"


def test_rows_are_read_by_column_and_malformed_blocks_by_row(folder: Any, source_context: Any, start: Start) -> None:
    folder.write("a.csv", "n\n1\n2\n")
    folder.write("b.csv", "n\n1\nx\n")
    task = start(source_context(tolerate=True), types="n:int8")
    good, mixed = task.poll(), task.poll()
    assert good is not None
    assert mixed is not None
    assert isinstance(good.value, ArrowColumn)
    assert isinstance(mixed.value, ValueColumn)
    assert good.value_schema is mixed.value_schema


def test_malformed_rows_are_reported_with_file_and_line(
    folder: Any, source_context: Any, start: Start, rows: Read
) -> None:
    data = b'id,name\n1,"a\nb"\nx,c\n3\n4,"q"z\n5,\xff\n6,ok\n'
    file = folder.write("a.csv", data)
    context = source_context(tolerate=True)
    records = rows(start(context, types="id:int64"))
    assert [record.value["id"] for record in records] == [1, 6]
    reported = context.errant_record_reporter.reported
    assert [record.value for record, _ in reported] == ["x,c", "3", '4,"q"z', "5,\ufffd"]
    assert [str(error).partition(": ")[0] for _, error in reported] == [f"{file}, line {n}" for n in (4, 5, 6, 7)]
    assert all(isinstance(error, DataError) for _, error in reported)
    texts = [str(error) for _, error in reported]
    assert "id is 'x' where int64 is expected" in texts[0]
    assert "id:string" in texts[0]
    assert "it has 1 columns, not 2" in texts[1]
    assert "a quote is not closed" in texts[2]
    assert "decode" in texts[3]
    record = reported[0][0]
    assert record.topic == "rows"
    assert record.source_partition == {"filename": str(file)}
    assert record.source_offset["position"] == data.index(b"3\n")
    # Offsets of good rows are their own, whatever lies between.
    assert [record.source_offset["row"] for record in records] == [1, 6]


def test_without_tolerance_the_rows_before_a_malformed_one_are_published(
    folder: Any, context: Any, start: Start
) -> None:
    folder.write("a.csv", "id\n1\n2\nx\n4\n")
    task = start(context, types="id:int8")
    batch = task.poll()
    assert batch is not None
    assert [record.value for record in batch] == [{"id": 1}, {"id": 2}]
    for _ in range(2):
        with pytest.raises(DataError, match="line 4"):
            task.poll()
    # After a restart it is the next thing again.
    commit(context, list(batch)[-1])
    with pytest.raises(DataError, match="line 4"):
        start(context, types="id:int8").poll()


def test_invalid_json_and_text_are_reported(folder: Any, source_context: Any, start: Start, values: Read) -> None:
    folder.write("a.jsonl", b'{"a":1}\n{"a":\nnull\n[1,"\xc3\xa9"]\n{"b":NaN}\n')
    folder.write("b.txt", b"one\r\n\n\xff\nlast")
    context = source_context(tolerate=True)
    assert values(start(context)) == [{"a": 1}, None, [1, "é"], "one", "", "last"]
    assert [record.value for record, _ in context.errant_record_reporter.reported] == [
        '{"a":',
        '{"b":NaN}',
        "\ufffd",
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_value(folder: Any, context: Any, start: Start, values: Read) -> None:
    folder.write("a.csv", b"\xef\xbb\xbfid\n1\n")
    folder.write("b.jsonl", b"\xef\xbb\xbf1\n")
    folder.write("c.txt", b"\xef\xbb\xbfx\n")
    assert values(start(context)) == [{"id": "1"}, 1, "x"]


def test_other_dialects(folder: Any, context: Any, start: Start, values: Read) -> None:
    folder.write("a.csv", "1;'x;''y'''\n2;z\n".encode("cp1252"))
    task = start(context, delimiter=";", quote="'", header="false", columns="id,name", encoding="cp1252")
    assert values(task) == [{"id": "1", "name": "x;'y'"}, {"id": "2", "name": "z"}]


def test_without_names_columns_are_numbered_and_quotes_may_be_characters(
    folder: Any, context: Any, start: Start, values: Read
) -> None:
    folder.write("a.tsv", '5"\tx\n"\ty\n')
    assert values(start(context, header="false", quote="")) == [
        {"column_1": '5"', "column_2": "x"},
        {"column_1": '"', "column_2": "y"},
    ]


def test_empty_values_may_be_empty_strings(folder: Any, source_context: Any, start: Start, values: Read) -> None:
    folder.write("a.csv", 'a,b\n,1\n"",\n')
    assert values(start(source_context())) == [{"a": None, "b": "1"}, {"a": None, "b": None}]
    context = source_context(tolerate=True)
    task = start(context, types="b:int8", **{"empty.as.null": "false", "null.tokens": "NA"})
    assert values(task) == [{"a": "", "b": 1}]
    assert len(context.errant_record_reporter.reported) == 1


def test_patterns_hidden_files_and_folders(folder: Any, source_context: Any, start: Start, values: Read) -> None:
    for name in ("a.txt", ".b.txt", "c.csv", "sub/d.txt", "sub/e.log", ".git/f.txt"):
        folder.write(name, f"{name}\n")
    assert values(start(source_context(), pattern="*.txt")) == ["a.txt"]
    assert values(start(source_context(), pattern="*.txt", recursive="true")) == ["a.txt", "sub/d.txt"]
    assert values(start(source_context(), pattern="sub/*", recursive="true")) == ["sub/d.txt", "sub/e.log"]


def test_a_file_of_an_unknown_kind_is_told_once(
    folder: Any, source_context: Any, start: Start, values: Read, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write("a.dat", "x\n")
    task = start(source_context())
    assert values(task) == values(task) == []
    assert caplog.text.count("its format cannot be told from its name") == 1
    assert task.drained()
    assert values(start(source_context(), format="text")) == ["x"]


def test_members_of_an_archive(folder: Any, source_context: Any, start: Start, rows: Read) -> None:
    members = {"x/a.txt": "1\n2", "b.log": "3\n", "c.txt": "4\n", "__MACOSX/c.txt": "?", ".d.txt": "?"}
    file = folder.write("all.txt.zip", zipped(**members))
    records = rows(start(source_context(), pattern="*.txt.zip"))
    assert [(record.value, record.source_partition) for record in records] == [
        ("1", {"filename": str(file), "member": "x/a.txt"}),
        ("2", {"filename": str(file), "member": "x/a.txt"}),
        ("4", {"filename": str(file), "member": "c.txt"}),
    ]
    assert len(rows(start(source_context(), pattern="*.zip"))) == 4


def test_an_archive_without_a_matching_member_is_reported(
    folder: Any, source_context: Any, start: Start, values: Read
) -> None:
    folder.write("all.zip", zipped(**{"a.txt": "1\n", "b.txt": "2\n"}))
    with pytest.raises(DataError, match="no member that matches"):
        start(source_context(), pattern="all.*").poll()


@pytest.mark.parametrize("name", ["a.txt.gz", "a.zip"])
def test_a_corrupt_file_is_reported_and_none_of_it_is_read(
    name: str, folder: Any, source_context: Any, start: Start, values: Read
) -> None:
    noise = os.urandom(900_000).hex()
    text = "".join(f"{noise[start : start + 60]}\n" for start in range(0, len(noise), 60))
    whole = gzip.compress(text.encode(), mtime=0) if name.endswith("gz") else zipped(**{"a.txt": text})
    cut = whole[: len(whole) * 2 // 3] if name.endswith("gz") else whole[:900] + b"\xff" * 40 + whole[940:]
    file = folder.write(name, cut)
    folder.write("b.txt", "after\n")
    context = source_context(tolerate=True)
    task = start(context)
    assert values(task) == ["after"]
    ((record, error),) = context.errant_record_reporter.reported
    assert record.value == str(file)
    assert f"{file}" in str(error)
    assert "corrupt" in str(error)
    assert values(task) == []
    assert len(context.errant_record_reporter.reported) == 1
    assert task.drained()
    # A whole one in its place is read.
    folder.write(name, whole + b"")
    os.utime(file, (1, 1))
    assert values(task) == text.splitlines()
    with pytest.raises(DataError, match="corrupt"):
        file.write_bytes(cut)
        os.utime(file, (2, 2))
        values(start(source_context()))


def test_half_a_row_waits_until_the_file_has_settled(
    folder: Any, source_context: Any, start: Start, values: Read
) -> None:
    context = source_context(tolerate=True)
    file = folder.write("a.csv", "id,name\n1,a\n2,b", fresh=True)
    task = start(context)
    assert values(task) == [{"id": "1", "name": "a"}]
    assert not task.drained()
    with file.open("a") as writer:
        writer.write("c\n3")
    assert values(task) == [{"id": "2", "name": "bc"}]
    assert not task.drained()
    folder.settle(file)
    assert values(task) == []
    ((record, _),) = context.errant_record_reporter.reported
    assert record.value == "3"
    assert task.drained()


def test_a_growing_file_is_read_on(folder: Any, context: Any, start: Start, rows: Read) -> None:
    file = folder.write("a.txt", "1\n")
    task = start(context)
    assert [record.value for record in rows(task)] == ["1"]
    for value in ("2", "3"):
        folder.append(file, f"{value}\n")
        (record,) = rows(task)
        assert (record.value, record.source_offset["row"]) == (value, int(value))
    commit(context, record)
    folder.append(file, "4\n")
    assert [record.value for record in rows(start(context))] == ["4"]


def test_a_header_that_is_half_written_is_waited_for(folder: Any, context: Any, start: Start, values: Read) -> None:
    file = folder.write("a.csv", "id,na", fresh=True)
    task = start(context)
    assert values(task) == []
    assert not task.drained()
    file.write_text("id,name\n1,x\n")
    folder.settle(file)
    assert values(task) == [{"id": "1", "name": "x"}]


def test_rows_to_infer_from_are_waited_for(folder: Any, context: Any, start: Start, values: Read) -> None:
    file = folder.write("a.csv", "n\n1\n", fresh=True)
    task = start(context, **{"infer.rows": "2"})
    assert values(task) == []
    with file.open("a") as writer:
        writer.write("1.5\n")
    assert values(task) == [{"n": 1.0}, {"n": 1.5}]


def test_a_compressed_file_is_begun_when_it_has_settled(folder: Any, context: Any, start: Start, values: Read) -> None:
    whole = gzip.compress(b"1\n2\n", mtime=0)
    file = folder.write("a.txt.gz", whole[:-9], fresh=True)
    task = start(context)
    assert values(task) == []
    assert not task.drained()
    file.write_bytes(whole)
    assert values(task) == []
    folder.settle(file)
    assert values(task) == ["1", "2"]
    assert task.drained()


def test_a_finished_compressed_file_is_not_unpacked_again(folder: Any, context: Any, start: Start, rows: Read) -> None:
    file = folder.write("a.txt.gz", gzip.compress(b"1\n2\n", mtime=0))
    records = rows(start(context))
    assert "finished" not in records[0].source_offset
    assert records[1].source_offset["finished"] == file.stat().st_size
    commit(context, records[1])
    assert rows(start(context)) == []
    # Another member at its end is a change.
    folder.settle(
        Path(file.write_bytes(gzip.compress(b"1\n2\n", mtime=0) + gzip.compress(b"3\n", mtime=0)) and str(file))
    )
    assert [record.value for record in rows(start(context))] == ["3"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_replaced_file_is_read_anew(restart: bool, folder: Any, context: Any, start: Start, rows: Read) -> None:
    folder.write("a.csv", "id\n1\n2\n3\n")
    task = start(context)
    commit(context, rows(task)[-1])
    folder.write("a.csv", "name,id\nx,1\ny,2\nz,3\n")
    again = rows(start(context) if restart else task)
    assert [record.value for record in again] == [{"name": n, "id": i} for n, i in zip("xyz", "123", strict=True)]
    folder.write("a.csv", "name,id\nx,1\n")
    commit(context, again[-1])
    assert [record.value for record in rows(start(context) if restart else task)] == [{"name": "x", "id": "1"}]


def test_many_blank_lines_are_passed_over(folder: Any, source_context: Any, start: Start, rows: Read) -> None:
    folder.write("a.csv", "id\n1\n" + "\n" * 3_000_000 + "x\n2\n\n")
    context = source_context(tolerate=True)
    records = rows(start(context, types="id:int8", **{"record.max.bytes": "1024"}))
    assert [(record.value["id"], record.source_offset["line"]) for record in records] == [(1, 2), (2, 3_000_004)]
    ((_, error),) = context.errant_record_reporter.reported
    assert "line 3000003:" in str(error)


def test_a_missing_folder_is_waited_for(tmp_path: Path, context: Any, start: Start, values: Read) -> None:
    task = start(context, path=str(tmp_path / "later"), **{"scan.interval.ms": "250"})
    for _ in range(2):
        with pytest.raises(MissingError, match=r"^Folder .*later does not exist; the source waits until it") as missing:
            task.poll()
        assert missing.value.retry_after == 0.25
    assert not task.drained()
    (tmp_path / "later").mkdir()
    assert values(task) == []
    assert task.drained()


def test_tasks_share_the_files(folder: Any, source_context: Any, start: Start, values: Read) -> None:
    for number in range(40):
        folder.write(f"{number}.txt", f"{number}\n")
    config = DirectorySourceConfig.parse({"path": str(folder.path), "topic": "rows", "name": "c"})
    connector = DirectorySourceConnector(config, object())  # type: ignore[arg-type]
    configs = connector.task_configs(4)
    assert len(configs) == 4
    assert all(props["name"] == "c" for props in configs)
    tasks = [start(source_context(), **props) for props in configs]
    shares = [values(task) for task in tasks]
    assert all(shares)
    assert sorted(int(value) for share in shares for value in share) == list(range(40))
    folder.write("new.txt", "new\n")
    assert max(values(task) for task in tasks) == ["new"]


def test_an_empty_file_and_a_header_alone_have_no_rows(folder: Any, context: Any, start: Start, values: Read) -> None:
    folder.write("a.csv", "")
    folder.write("b.csv", "id\n")
    folder.write("c.txt", "")
    task = start(context, columns="id")
    assert values(task) == []
    assert task.drained()


@pytest.mark.parametrize(
    ("data", "props", "message"),
    [
        ("id,id\n1,2\n", {}, "column 'id' twice"),
        ("id,\n1,2\n", {}, "column without a name"),
        ("id\n1\n", {"types": "nr:int8"}, "has no column nr"),
        ("id\n1\n", {"columns": "a,b"}, "has 1 columns, but 'columns' has 2 names"),
        ('"id"x\n1\n', {}, "header of"),
        ("x" * 200_000 + "\n", {"record.max.bytes": "1024", "format": "text"}, "longer than"),
        ("id\n" + "x" * 3_000_000 + "\n", {"record.max.bytes": "1024"}, r"a\.csv, after line 1: a row is longer than"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported(
    data: str, props: dict[str, str], message: str, folder: Any, context: Any, start: Start, values: Read
) -> None:
    folder.write("a.csv", data)
    if "longer" in message and "format" in props:
        folder.write("a.csv", "x" * 3_000_000 + "\n")
    with pytest.raises(DataError, match=message):
        values(start(context, **props))


@pytest.mark.parametrize(
    "props",
    [
        {"types": "a"},
        {"types": "a:int128"},
        {"delimiter": ";;"},
        {"delimiter": "é"},
        {"quote": ","},
        {"quote": ";", "delimiter": ";"},
        {"encoding": "utf-16"},
        {"encoding": "klingon"},
        {"finished.action": "move"},
        {"finished.action": "move", "finished.folder": "/in/"},
        {"columns": "a,a"},
        {"format": "xml"},
        {"batch.size": "0"},
    ],
)
def test_configurations_that_cannot_be_are_refused(props: dict[str, str]) -> None:
    with pytest.raises((ConfigError, InvalidConfigError)):
        DirectorySourceConfig.parse({"path": "/in", "topic": "t", **props})


def test_offsets_that_cannot_be_are_refused() -> None:
    config = DirectorySourceConfig.parse({"path": "/in", "topic": "t"})
    assert DirectorySourceConnector.exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED
    good = json.dumps({"filename": "/in/a.csv"})
    alter = DirectorySourceConnector.alter_offsets
    assert alter(config, {good: {"position": 0}, "{}": None})
    for partition, offset in [("{}", {"position": 1}), (good, {}), (good, {"position": -1}), (good, {"position": "1"})]:
        with pytest.raises(ConnectError):
            alter(config, {partition: offset})


def test_an_altered_offset_is_where_reading_goes_on(folder: Any, context: Any, start: Start, rows: Read) -> None:
    file = folder.write("a.csv", "id\n1\n2\n3\n")
    context.commit({"filename": str(file)}, {"position": 5})
    assert [record.value for record in rows(start(context))] == [{"id": "2"}, {"id": "3"}]
    context.commit({"filename": str(file)}, {"position": 0})
    assert len(rows(start(context))) == 3


def test_a_stop_in_mid_file_closes_it(folder: Any, context: Any, start: Start) -> None:
    folder.write("a.txt", "1\n2\n3\n")
    task = start(context, **{"batch.size": "1"})
    assert task.poll() is not None
    before = len(list(Path("/proc/self/fd").iterdir()))
    task.stop()
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 1


def test_a_file_that_vanishes_is_left_out(folder: Any, context: Any, start: Start, values: Read) -> None:
    folder.write("a.txt", "1\n")
    gone = folder.write("b.txt", "2\n")
    folder.write("c.txt", "3\n")
    task = start(context)
    assert task.poll() is not None
    gone.unlink()
    assert values(task) == ["3"]


def test_a_task_config_has_its_share() -> None:
    config = DirectoryTaskConfig.parse({"path": "/in", "topic": "t", "task.index": "1", "task.count": "3"})
    assert (config.task_index, config.task_count) == (1, 3)


def test_nothing_is_said_of_a_good_file(
    folder: Any, context: Any, start: Start, values: Read, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write("a.csv", "id\n1\n")
    with caplog.at_level(logging.INFO):
        values(start(context))
    assert caplog.text == ""


def test_what_remains_is_the_bytes_that_were_not_read(folder: Any, context: Any, start: Start, rows: Read) -> None:
    first = folder.write("a.csv", "x\n1\n2\n3\n")
    second = folder.write("b.csv.gz", gzip.compress(b"x\n1\n"))
    task = start(context, **{"batch.size": "2"})
    assert task.remaining() == {"bytes": 0, "files": 0}, "the folder was not looked at yet"
    assert task.poll() is not None
    assert task.remaining() == {"bytes": 2 + second.stat().st_size, "files": 2}
    assert task.total() == {"bytes": first.stat().st_size + second.stat().st_size, "files": 2}
    rows(task)
    assert task.remaining() == {"bytes": 0, "files": 0}
    folder.append(first, "4\n")
    rows(task)
    assert task.remaining() == {"bytes": 0, "files": 0}


@pytest.mark.parametrize(
    ("sample", "same", "others"),
    [
        ("90000", ("0", "-7", "12"), ("02134", "+5", "-0", " 7", "007", "1.0", "1e3")),
        ("1.5", ("-0.25", "12", "1e3"), ("+5.0", ".5", "5.", "02134.5", " 1.5", "nan", "inf")),
        ("2024-01-31", ("1999-12-31",), (" 2024-01-31", "2024-1-31", "31/01/2024", "20240131")),
        ("2024-01-31 10:00:00", ("1999-12-31 23:59",), ("2024-01-31", "2024-01-31 10", " 2024-01-31 10:00:00")),
        ("true", ("false",), ("TRUE", "True", "1", "0", "yes")),
        ("TRUE", ("FALSE",), ("true", "False", "1")),
    ],
)
def test_a_value_that_an_inferred_type_would_change_is_malformed(
    folder: Any, source_context: Any, start: Start, rows: Read, sample: str, same: tuple[str], others: tuple[str]
) -> None:
    lines = [sample, *same, *others, sample]
    folder.write("a.csv", "k,v\n" + "".join(f'{number},"{text}"\n' for number, text in enumerate(lines)))
    context = source_context(tolerate=True)
    records = rows(start(context, **{"infer.rows": "1"}))
    good = [*range(1 + len(same)), len(lines) - 1]
    assert [record.value["k"] for record in records] == good
    reported = [str(error) for _, error in context.errant_record_reporter.reported]
    assert len(reported) == len(others)
    assert all("declare the column in 'types', for example as v:string" in error for error in reported)


def test_given_types_take_what_inferred_ones_do_not(folder: Any, context: Any, start: Start, values: Read) -> None:
    folder.write("a.csv", "zip,paid\n90000,true\n02134,TRUE\n")
    given = {"infer.rows": "1", "types": "zip:string,paid:boolean"}
    assert values(start(context, **given)) == [{"zip": "90000", "paid": True}, {"zip": "02134", "paid": True}]


@pytest.mark.parametrize("name", ["B.CSV.GZ", "b.csv.Gz", "B.Csv.gz"])
def test_suffixes_are_known_in_any_case(folder: Any, context: Any, start: Start, values: Read, name: str) -> None:
    folder.write(name, gzip.compress(b"n\nx\n"))
    assert values(start(context, pattern="[Bb].*")) == [{"n": "x"}]


def test_an_archive_is_known_in_any_case(folder: Any, context: Any, start: Start, values: Read) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("A.CSV", "n\nx\n")
        archive.writestr("readme.txt", "no")
    folder.write("A.CSV.ZIP", packed.getvalue())
    assert values(start(context, pattern="*.CSV.ZIP")) == [{"n": "x"}]


@pytest.mark.parametrize("cut", [1, 9, 20])
def test_a_cut_archive_gives_no_row(folder: Any, source_context: Any, start: Start, rows: Read, cut: int) -> None:
    folder.write("a.csv.gz", gzip.compress(b"n\n" + b"x\n" * 1000)[:-cut])
    context = source_context(tolerate=True)
    assert rows(start(context, pattern="*")) == []
    ((_, error),) = context.errant_record_reporter.reported
    assert "is corrupt" in str(error)
