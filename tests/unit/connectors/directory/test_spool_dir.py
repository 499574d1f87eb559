"""The SpoolDir sources: values, keys, headers, and where files go."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from connect.data import Schema, SourceRecord, timestamp_schema
from connect.errors import ConfigError, ConnectError, DataError
from connect.testing import SourceTaskTestContext
from connectors.directory import spool

MODIFIED = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)
KEY = {"name": "Key", "type": "STRUCT", "isOptional": False, "fieldSchemas": {"id": {"type": "INT64"}}}
VALUE = {
    "name": "Value",
    "type": "STRUCT",
    "isOptional": False,
    "fieldSchemas": {
        "id": {"type": "INT64", "isOptional": False},
        "name": {"type": "STRING", "isOptional": True},
        "price": {
            "name": "org.apache.kafka.connect.data.Decimal",
            "type": "BYTES",
            "version": 1,
            "parameters": {"scale": "2"},
            "isOptional": True,
        },
        "at": {"name": "org.apache.kafka.connect.data.Timestamp", "type": "INT64", "version": 1, "isOptional": False},
    },
}
SCHEMAS = {"key.schema": json.dumps(KEY), "value.schema": json.dumps(VALUE)}


class Spool:
    """The three folders, and tasks."""

    def __init__(self, folder: Path) -> None:
        self.input, self.finished, self.error = (folder / name for name in ("input", "finished", "error"))
        for path in (self.input, self.finished, self.error):
            path.mkdir()
        self.context = SourceTaskTestContext()
        self.tasks: list[Any] = []

    def write(self, name: str, data: str | bytes) -> Path:
        file = self.input / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        os.utime(file, (MODIFIED.timestamp(), MODIFIED.timestamp()))
        return file

    def start(self, kind: str, **props: str) -> Any:
        own = {
            "topic": "rows",
            "input.path": str(self.input),
            "finished.path": str(self.finished),
            "error.path": str(self.error),
            "input.file.pattern": r"[a-z]+\.[a-z.]+",
        }
        task_class = getattr(spool, f"SpoolDir{kind}SourceConnector").task_class
        task = task_class(task_class.config_class.parse({**own, **props}), self.context)
        task.start()
        self.tasks.append(task)
        return task

    def commit(self, task: Any, records: list[SourceRecord]) -> None:
        self.context.offset_storage_reader.keep(records)
        task.commit()

    @staticmethod
    def names(folder: Path) -> list[str]:
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def dirs(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path)
    yield spool
    for task in spool.tasks:
        task.stop()


def read(task: Any) -> list[SourceRecord]:
    records: list[SourceRecord] = []
    while (batch := task.poll()) is not None:
        records.extend(batch)
    return records


def test_csv_with_schemas(dirs: Spool) -> None:
    dirs.write("a.csv", 'name,id,at,price,more\n"say \\"x\\"",1,2024-01-02T03:04:05,1.5,x\n,2,2024-01-02 03:04:06,,y\n')
    task = dirs.start(
        "Csv", **SCHEMAS, **{"csv.first.row.as.header": "true", "timestamp.mode": "FIELD", "timestamp.field": "at"}
    )
    first, second = read(task)
    at = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert first.value == {"id": 1, "name": 'say "x"', "price": Decimal("1.50"), "at": at}
    assert second.value == {"id": 2, "name": "", "price": None, "at": at + dt.timedelta(seconds=1)}
    assert (first.key, first.key_schema) == ({"id": 1}, Schema.struct({"id": Schema.int64()}, name="Key"))
    assert first.value_schema is not None
    assert first.value_schema.name == "Value"
    assert first.timestamp == round(at.timestamp() * 1000)
    assert {header.key: header.value for header in first.headers} == {
        "file.name": "a.csv",
        "file.name.without.extension": "a",
        "file.path": str(dirs.input / "a.csv"),
        "file.parent.dir.name": "input",
        "file.length": (dirs.input / "a.csv").stat().st_size,
        "file.last.modified": MODIFIED,
        "file.offset": 2,
    }
    assert first.headers.last_with_key("file.last.modified").schema == timestamp_schema()  # type: ignore[union-attr]


def test_csv_without_a_header_in_a_time_zone(dirs: Spool) -> None:
    dirs.write("a.csv", "# a comment\n1;x;;01.07.2024 12:00\n")
    zone = {"parser.timestamp.timezone": "Europe/Paris", "parser.timestamp.date.formats": "dd.MM.yyyy HH:mm"}
    more = {"csv.separator.char": "59", "csv.skip.lines": "1", "csv.null.field.indicator": "BOTH"}
    (record,) = read(dirs.start("Csv", **SCHEMAS, **zone, **more))
    at = dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)
    assert record.value == {"id": 1, "name": "x", "price": None, "at": at}


def test_generated_schemas(dirs: Spool) -> None:
    dirs.write("a.csv", "id,name\n1,x\n")
    dirs.write("b.csv.gz", gzip.compress(b"id,other\n2,\n"))
    more = {"schema.generation.enabled": "true", "csv.first.row.as.header": "true"}
    first, second = read(dirs.start("Csv", **more, **{"schema.generation.key.fields": "id"}))
    text = Schema.string(optional=True)
    plain = "com.github.jcustenborder.kafka.connect.model"
    assert (first.key, first.key_schema) == ({"id": "1"}, Schema.struct({"id": text}, name=f"{plain}.Key"))
    assert first.value_schema == Schema.struct({"id": text, "name": text}, name=f"{plain}.Value")
    assert second.value == {"id": "2", "other": ""}
    (record, *_) = read(dirs.start("Csv", **more))
    assert record.key is None


def test_json_with_schemas_over_several_lines(dirs: Spool) -> None:
    dirs.write(
        "a.json",
        '{"id": 1,\n "at": 5, "price": 1.10, "extra": 1}\n{"id": "2", "at": "2024-01-02T03:04:05", "name": {"a": [1]}}',
    )
    dirs.write("b.json", '[\n  {"id": 3, "at": 0}\n]\n')
    records = read(dirs.start("Json", **SCHEMAS))
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert [record.value for record in records] == [
        {"id": 1, "name": None, "price": Decimal("1.10"), "at": epoch + dt.timedelta(milliseconds=5)},
        {"id": 2, "name": '{"a":[1]}', "price": None, "at": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)},
        {"id": 3, "name": None, "price": None, "at": epoch},
    ]


def test_json_with_generated_schemas_loses_no_field(dirs: Spool) -> None:
    dirs.write("a.json", '{"a": 1} {"a": true, "b": "x"}')
    first, second = read(dirs.start("Json", **{"schema.generation.enabled": "true"}))
    assert (first.value, second.value) == ({"a": "1"}, {"a": "true", "b": "x"})


def test_values_without_schemas(dirs: Spool) -> None:
    dirs.write("a.json", '{"b": 1, "a": [null]}\n7')
    texts = read(dirs.start("SchemaLessJson"))
    assert [(record.value, record.value_schema) for record in texts] == [
        ('{"b":1,"a":[null]}', Schema.string()),
        ("7", Schema.string()),
    ]
    lines = read(dirs.start("LineDelimited"))
    assert [record.value for record in lines] == ['{"b": 1, "a": [null]}', "7"]
    (whole,) = read(dirs.start("BinaryFile", **{"timestamp.mode": "FILE_TIME", "metadata.location": "NONE"}))
    assert (whole.value, whole.value_schema) == (b'{"b": 1, "a": [null]}\n7', Schema.bytes())
    assert whole.timestamp == round(MODIFIED.timestamp() * 1000)
    assert len(whole.headers) == 0


def test_avro(dirs: Spool) -> None:
    schema = {"type": "record", "name": "row", "fields": [{"name": "n", "type": "long"}]}
    with dirs.write("a.avro", b"").open("wb") as file:
        fastavro.writer(file, schema, [{"n": 1}, {"n": 2}])
    assert [record.value for record in read(dirs.start("Avro"))] == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("policy", "left", "finished"),
    [
        ("NONE", ["a.txt", "sub/b.txt"], []),
        ("DELETE", [], []),
        ("MOVE", [], ["a.txt", "sub/b.txt"]),
        ("MOVEBYDATE", [], ["2024-03-01/a.txt", "2024-03-01/sub/b.txt"]),
    ],
)
def test_files_go_where_the_policy_says_once_they_are_committed(
    dirs: Spool, policy: str, left: list[str], finished: list[str]
) -> None:
    dirs.write("a.txt", "1\n2\n")
    dirs.write("sub/b.txt", "3\n")
    task = dirs.start("LineDelimited", **{"cleanup.policy": policy, "input.path.walk.recursively": "true"})
    records = read(task)
    assert [record.value for record in records] == ["1", "2", "3"]
    dirs.commit(task, records[:1])
    assert dirs.names(dirs.input) == ["a.txt", "sub/b.txt"]
    dirs.commit(task, records)
    assert (dirs.names(dirs.input), dirs.names(dirs.finished)) == (left, finished)
    # A kill before the move, and a start after it.
    assert read(dirs.start("LineDelimited", **{"cleanup.policy": "NONE", "input.path.walk.recursively": "true"})) == []


def test_a_bad_row_moves_the_file_once_the_rows_before_are_committed_and_the_next_is_read(dirs: Spool) -> None:
    dirs.write("a.csv", "id,at\n1,2024-01-01T00:00:00\n2,never\n3,2024-01-01T00:00:00\n")
    dirs.write("b.csv", "id,at\n4,2024-01-01T00:00:00\n")
    dirs.write("c.csv", "id,at\nx,2024-01-01T00:00:00\n")
    task = dirs.start("Csv", **SCHEMAS, **{"csv.first.row.as.header": "true", "halt.on.error": "false"})
    records = read(task)
    assert [record.value["id"] for record in records] == [1, 4]
    assert dirs.names(dirs.error) == ["c.csv"], "no row of it is published, so none has to be committed"
    dirs.commit(task, records[:1])
    assert (dirs.names(dirs.error), dirs.names(dirs.finished)) == (["a.csv", "c.csv"], [])
    dirs.commit(task, records)
    assert (dirs.names(dirs.input), dirs.names(dirs.finished)) == ([], ["b.csv"])
    assert read(task) == []
    assert task.drained()


def test_a_task_that_halts_does_so_when_the_file_is_away(dirs: Spool) -> None:
    dirs.write("a.json", '{"id": 1, "at": 0} {"id": null}')
    dirs.write("b.json", '{"id": 2, "at": 0}')
    task = dirs.start("Json", **SCHEMAS)
    (record,) = task.poll()
    assert task.poll() is None
    assert dirs.names(dirs.input) == ["a.json", "b.json"]
    # A kill here, and the same again.
    again = dirs.start("Json", **SCHEMAS)
    assert [each.value["id"] for each in again.poll()] == [1]
    dirs.context.offset_storage_reader.keep([record])
    with pytest.raises(DataError, match=r"a\.json, line or record 2: the row is malformed: id is None: it is null"):
        again.poll()
    assert (dirs.names(dirs.error), dirs.names(dirs.input)) == (["a.json"], ["b.json"])
    assert [each.value["id"] for each in read(dirs.start("Json", **SCHEMAS))] == [2]


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv"])
def test_a_file_that_cannot_be_read_at_all_goes_to_the_errors(dirs: Spool, name: str) -> None:
    data = b"id\n" if name == "a.csv" else gzip.compress(b"id,at\n1,2\n")[:-4]
    dirs.write(name, data + (b"" if name != "a.csv" else b'"1,2\n'))
    task = dirs.start("Csv", **SCHEMAS, **{"csv.first.row.as.header": "true"})
    with pytest.raises(DataError, match=r"a\.csv"):
        read(task)
    assert dirs.names(dirs.error) == [name]


def test_files_are_read_in_the_order_asked_for(dirs: Spool) -> None:
    for name, text in (("a.txt", "1\n"), ("b.txt", "22\n"), ("c.txt", "333\n"), ("d.txt", "4\n")):
        dirs.write(name, text)
    for attributes, order in (("NameDesc", ["4", "333", "22", "1"]), ("LengthDesc,NameDesc", ["333", "22", "4", "1"])):
        task = dirs.start("LineDelimited", **{"files.sort.attributes": attributes, "cleanup.policy": "NONE"})
        assert [record.value for record in read(task)] == order


@pytest.mark.parametrize(
    ("kind", "props", "message"),
    [
        ("Csv", {}, "Give the schema, or set schema.generation.enabled=true"),
        ("Csv", {**SCHEMAS, "csv.strict.quotes": "true"}, "csv.strict.quotes"),
        ("Csv", {**SCHEMAS, "csv.null.field.indicator": "EMPTY_QUOTES"}, "use BOTH or NEITHER"),
        ("Csv", {"schema.generation.enabled": "true"}, "Schemas are made from the header"),
        ("Csv", {**SCHEMAS, "csv.separator.char": "34"}, "do not go together"),
        ("Json", {**SCHEMAS, "value.schema": "{"}, "It is not JSON"),
        ("Json", {**SCHEMAS, "value.schema": '{"type": "STRING"}'}, 'must be "STRUCT"'),
        ("Json", {**SCHEMAS, "value.schema": '{"type": "STRUCT", "fieldSchemas": {"a": {"type": "X"}}}'}, "type 'X'"),
        ("Json", {**SCHEMAS, "timestamp.mode": "FIELD"}, "needs timestamp.field"),
        ("Json", {**SCHEMAS, "parser.timestamp.timezone": "Mars"}, "Name a time zone"),
        ("Json", {**SCHEMAS, "parser.timestamp.date.formats": "bbb"}, "parser.timestamp.date.formats"),
        ("LineDelimited", {"timestamp.mode": "FIELD"}, "have no fields"),
        ("LineDelimited", {"finished.path": None}, "needs a folder"),
        ("LineDelimited", {"topic": None}, "Name the topic"),
        ("LineDelimited", {"input.path": "https://h/x"}, "Files at http:// can only be read: set NONE"),
        ("LineDelimited", {"finished.path": "s3://b/done"}, "a folder on this machine"),
        ("LineDelimited", {"error.path": "sftp://h/bad"}, "a folder on this machine"),
        ("LineDelimited", {"files.notifications.enabled": "true"}, "are not published"),
        ("LineDelimited", {"files.sort.attributes": "Size"}, "NameAsc"),
        ("LineDelimited", {"input.file.pattern": "("}, "input.file.pattern"),
    ],
)
def test_what_is_not_supported_is_refused(dirs: Spool, kind: str, props: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        dirs.start(kind, **props)
    assert message in str(refused.value)


def test_confluents_sftp_keys() -> None:
    config_class = spool.SftpCsvSourceConnector.task_class.config_class
    props = {
        "kafka.topic": "t",
        "sftp.host": "files",
        "sftp.username": "foo",
        "sftp.password": "s3cret",
        "input.path": "/upload/input",
        "error.path": "/upload/error",
        "finished.path": "/upload/finished",
        "input.file.pattern": "csv-sftp-source.csv",
        "behavior.on.error": "IGNORE",
        "csv.first.row.as.header": "true",
        "schema.generation.enabled": "true",
    }
    config: Any = config_class.parse(props)
    assert (config.topic_name, config.halts) == ("t", False)
    assert config.address.shown(config.address.path) == "sftp://files:22/upload/input"
    assert "s3cret" not in repr(config.sftp_account(None, None))
    for key, value in (("sftp.proxy.url", "p"), ("kerberos.keytab.path", "k"), ("kafka.topic", None)):
        with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
            config_class.parse({**props, key: value})


def test_offsets_are_checked() -> None:
    connector: Callable[..., bool] = spool.SpoolDirCsvSourceConnector.alter_offsets
    assert connector(None, {'{"filename": "/a"}': {"position": 3}})
    for partition, offset in (('{"fileName": "a"}', None), ('{"filename": "/a"}', {"offset": 3})):
        with pytest.raises(ConnectError):
            connector(None, {partition: offset})
