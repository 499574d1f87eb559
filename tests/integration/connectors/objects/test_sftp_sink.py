"""Confluent's SFTP sink by its alias: the public configurations run unchanged, but for where the server is."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq
import pytest

from connect.data import NO_HEADERS, Schema, SinkRecord, TimestampType
from connect.errors import ConnectError, RetriableError
from connect.internals.plugins.registry import PluginKind, PluginRegistry
from connect.testing.sink_run import SinkTaskRun, TopicLog, run_sink
from connectors.objects import SftpSinkConnector
from connectors.objects.sftp_config import SftpSinkConfig
from connectors.objects.sinks import SftpSinkTask
from equipment.servers.file_servers import FileServer, SftpServer, running_asyncssh, running_openssh

TOPIC: Final = "test_sftp_sink"
FORMATS: Final = "io.confluent.connect.sftp.sink.format"
QUICK_START: Final = {
    "name": "sftp-sink",
    "topics": TOPIC,
    "tasks.max": "1",
    "connector.class": "io.confluent.connect.sftp.SftpSinkConnector",
    "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
    "schema.generator.class": "io.confluent.connect.storage.hive.schema.DefaultSchemaGenerator",
    "flush.size": "3",
    "schema.compatibility": "NONE",
    "format.class": f"{FORMATS}.avro.AvroFormat",
    "storage.class": "io.confluent.connect.sftp.sink.storage.SftpSinkStorage",
    "sftp.host": "sftp-server",
    "sftp.port": "22",
    "sftp.username": "foo",
    "sftp.password": "pass",
    "sftp.working.dir": "/upload",
    "confluent.license": "",
    "confluent.topic.bootstrap.servers": "broker:9092",
    "confluent.topic.replication.factor": "1",
}
SCHEMA: Final = Schema.struct({"f1": Schema.string()}, name="myrecord")
FIRST: Final = f"topics/{TOPIC}/partition=0/{TOPIC}+0+0000000000"


def records(count: int, values: Mapping[str, Any] | None = None) -> list[SinkRecord]:
    return [
        SinkRecord(
            TOPIC, values or {"f1": f"value{number + 1}"}, SCHEMA, None, None, 0, 1_700_000_000_000, NO_HEADERS, number,
            TimestampType.CREATE_TIME, TOPIC, 0, number,
        )
        for number in range(count)
    ]  # fmt: skip


@pytest.fixture
def sftp(tmp_path: Path) -> Iterator[SftpServer]:
    (tmp_path / "files").mkdir()
    with running_asyncssh(tmp_path / "files") as server:
        yield server


@pytest.fixture
def openssh(tmp_path: Path) -> Iterator[FileServer]:
    try:
        with running_openssh(tmp_path) as server:
            yield server
    except ConnectError as error:
        pytest.skip(f"OpenSSH: {error}")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_confluent_s_quick_start(sftp: SftpServer, caplog: pytest.LogCaptureFixture) -> None:
    (sftp.folder / "upload").mkdir()
    login = sftp.confluent_props
    del login["sftp.host.key"]
    run_sink(SftpSinkConnector, {**QUICK_START, **login}, records(10))
    found = files(sftp.folder / "upload")
    assert {name: [row["f1"] for row in fastavro.reader(BytesIO(data))] for name, data in found.items()} == {  # type: ignore[index, call-overload]
        f"topics/{TOPIC}/partition=0/{TOPIC}+0+{first:010d}.avro": [f"value{first + n + 1}" for n in range(3)]
        for first in (0, 3, 6)
    }
    assert f"set sftp.host.key={sftp.key.get_fingerprint()}" in caplog.text


@pytest.mark.parametrize(
    ("name", "ending", "content"),
    [
        ("csv.CsvFormat", ".csv", b'f1,f2\n"a,b",c\td\n'),
        ("tsv.TsvFormat", ".tsv", b'f1\tf2\na,b\t"c\td"\n'),
        ("json.JsonFormat", ".json", b'{"f1":"a,b","f2":"c\\td"}\n'),
        ("parquet.ParquetFormat", ".snappy.parquet", None),
    ],
)
def test_its_formats(sftp: SftpServer, name: str, ending: str, content: bytes | None) -> None:
    values = {"f1": "a,b", "f2": "c\td"}
    schema = Schema.struct({"f1": Schema.string(), "f2": Schema.string()})
    one = [record.replace(value=values, value_schema=schema) for record in records(1)]
    run_sink(
        SftpSinkConnector,
        {**QUICK_START, **sftp.confluent_props, "format.class": f"{FORMATS}.{name}", "flush.size": "1"},
        one,
    )
    ((path, data),) = files(sftp.folder / "upload").items()
    assert path == FIRST + ending
    if content is None:
        assert pq.read_table(BytesIO(data)).to_pylist() == [values]
    else:
        assert data == content


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["tls.pemfile", "tls.private.key"])
def test_a_key_signs_in_at_openssh(openssh: FileServer, by: str) -> None:
    """As in the public examples there is an empty password, and a phrase that the key does not need."""
    key = Path(openssh.props["sftp.private.key.path"])
    props = {
        "sftp.host": "127.0.0.1",
        "sftp.port": openssh.url.split(":")[2].partition("/")[0],
        "sftp.username": openssh.props["file.system.username"],
        "sftp.password": "",
        by: str(key) if by == "tls.pemfile" else key.read_text().replace("\n", "\\n"),
        "tls.public.key": "",
        "tls.passphrase": "mypassword",
        "sftp.working.dir": str(openssh.folder / "upload"),
        "format.class": f"{FORMATS}.csv.CsvFormat",
    }
    run_sink(SftpSinkConnector, {**QUICK_START, **props}, records(6))
    assert files(openssh.folder / "upload") == {
        FIRST + ".csv": b"f1\nvalue1\nvalue2\nvalue3\n",
        FIRST[:-1] + "3.csv": b"f1\nvalue4\nvalue5\nvalue6\n",
    }


@pytest.mark.parametrize("folder", ["~", "~/out", "out", "/home/foo/"])
def test_the_working_folder_is_where_the_user_is_at_home_or_absolute(folder: str) -> None:
    config = SftpSinkConfig.parse({**QUICK_START, "sftp.working.dir": folder})
    expected = {"~": "./a", "~/out": "./out/a", "out": "./out/a", "/home/foo/": "/home/foo/a"}
    assert config.open_store()._place("a") == expected[folder]


def test_a_cut_connection_costs_no_record(sftp: SftpServer) -> None:
    log = TopicLog(records(9))
    run = SinkTaskRun(SftpSinkTask, {**QUICK_START, **sftp.confluent_props, "retry.backoff.ms": "1"}, log)
    run.start(log.partitions)
    cuts = iter(range(5))
    while set(log.committed.values()) != {9}:
        if next(cuts, None) is not None:
            sftp.cut()
        if run.at_end:
            run.put_nothing()
        else:
            run.put(1)
        with suppress(RetriableError):
            run.commit()
    run.stop()
    names = {f"topics/{TOPIC}/partition=0/{TOPIC}+0+{first:010d}.avro" for first in (0, 3, 6)}
    assert {name for name in files(sftp.folder / "upload") if not name.startswith("_sluice")} == names


@pytest.mark.parametrize("goes_on", [True, False])
def test_offsets_stay_before_files_that_could_not_be_written(sftp: SftpServer, goes_on: bool) -> None:
    """Also at a last commit, after which nobody would consume the records again."""
    log, rules = TopicLog(records(6)), {"flush.size": "100", "rotate.on.offset.commit": "true", "retry.backoff.ms": "1"}
    run = SinkTaskRun(SftpSinkTask, {**QUICK_START, **sftp.confluent_props, **rules}, log)
    run.start(log.partitions)
    run.put(3)
    (partition,) = log.partitions
    sftp.largest = 1
    assert run.commit() == {partition: 0}
    assert run.commit() == {partition: 0}
    if not goes_on:
        run.stop()
        assert log.committed == {partition: 0}
        run = SinkTaskRun(SftpSinkTask, {**QUICK_START, **sftp.confluent_props, **rules}, log)
        run.start(log.partitions)
    sftp.largest = None
    while not run.at_end:
        run.put(2)
    assert run.commit() == {partition: 6}
    run.stop()
    found = {name: data for name, data in files(sftp.folder / "upload").items() if not name.startswith("_sluice")}
    assert list(found) == [FIRST + ".avro"]
    assert [row["f1"] for row in fastavro.reader(BytesIO(found[FIRST + ".avro"]))] == [  # type: ignore[index, call-overload]
        f"value{number}" for number in range(1, 7)
    ]


def test_a_folder_that_may_not_be_written_is_told(openssh: FileServer) -> None:
    """A permanent error fails the task."""
    closed = openssh.folder / "closed"
    closed.write_text("a file in place of the folder")
    login = {
        "sftp.host": "127.0.0.1",
        "sftp.port": openssh.url.split(":")[2].partition("/")[0],
        "sftp.username": openssh.props["file.system.username"],
        "tls.pemfile": openssh.props["sftp.private.key.path"],
        "sftp.working.dir": str(closed),
    }
    with pytest.raises(ConnectError, match=r"sftp://127.0.0.1:\d+/.*closed"):
        run_sink(SftpSinkConnector, {**QUICK_START, **login}, records(3))
    assert stat.S_ISREG(closed.stat().st_mode)


def test_the_check_of_the_system_signs_in(sftp: SftpServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    good = {**QUICK_START, **sftp.confluent_props}
    assert list(SftpSinkConfig.parse(good).check_system()) == []
    (wrong,) = SftpSinkConfig.parse({**good, "sftp.password": "s3cret"}).check_system()
    assert "refuses the user" in str(wrong)
    assert "s3cret" not in str(wrong) + caplog.text
    (other,) = SftpSinkConfig.parse({**good, "sftp.host.key": "SHA256:other"}).check_system()
    assert "is not known" in str(other)


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({"sftp.proxy.url": "proxy"}, "sftp.proxy.url"),
        ({"kerberos.keytab.path": "/k"}, "kerberos.keytab.path"),
        ({"kerberos.user.principal": "me"}, "kerberos.user.principal"),
        ({"sftp.working.dir": None}, "sftp.working.dir"),
        ({"sftp.username": None}, "sftp.username"),
        ({"engine": "spark"}, "engine"),
        ({"directory.delim": "_"}, "directory.delim"),
        ({"tls.pemfile": "/k", "tls.private.key": "k3y"}, "tls.pemfile"),
        ({"sftp.host": "169.254.169.254"}, "sftp.host"),
        ({"format.class": f"{FORMATS}.xml.XMLFormat"}, "format.class"),
    ],
)
def test_what_is_not_supported_is_refused(props: dict[str, Any], key: str) -> None:
    given = {name: value for name, value in {**QUICK_START, **props}.items() if value is not None}
    wrong = {value.name: value.errors for value in SftpSinkConfig.validate(given) if value.errors}
    assert list(wrong) == [key], wrong
    assert "k3y" not in str(wrong)


def test_the_java_class_names_the_sink() -> None:
    assert list(SftpSinkConfig.parse(QUICK_START).warnings()) == [
        f"The key confluent.topic.{key} has no effect: it belongs to a licence that is not needed here."
        for key in ("bootstrap.servers", "replication.factor")
    ]
    entry = PluginRegistry.discover().find(PluginKind.CONNECTOR, QUICK_START["connector.class"])
    assert entry.class_name == "connectors.objects.SftpSinkConnector"
