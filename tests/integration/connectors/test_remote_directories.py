"""Folders on servers: SFTP by OpenSSH and asyncssh, FTP, SMB, HTTP."""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import os
import socket
import ssl
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.data import SourceRecord, TopicPartition
from connect.errors import ConfigError, ConnectError, MissingError, RetriableError
from connect.testing import SourceTaskTestContext, TopicLog, run_sink, sink_records
from connectors.directory import (
    DirectorySinkConfig,
    DirectorySinkConnector,
    DirectorySourceConfig,
    DirectorySourceTask,
    DirectoryTaskConfig,
)
from connectors.directory.spool import (
    SftpBinaryFileSourceConnector,
    SftpCsvSourceConnector,
    SftpJsonSourceConnector,
    SftpSchemaLessJsonSourceConnector,
)
from equipment.brokers.certificates import Authority
from equipment.servers.file_servers import (
    FileServer,
    SftpServer,
    running_asyncssh,
    running_ftp,
    running_openssh,
    running_samba,
)
from equipment.waiting import wait_until
from worker.embedded.ports import HOST

pytestmark = pytest.mark.integration


@pytest.fixture
def openssh(tmp_path: Path) -> Iterator[FileServer]:
    try:
        with running_openssh(tmp_path) as server:
            yield server
    except ConnectError as error:
        pytest.skip(f"no OpenSSH here: {error}")


@pytest.fixture
def sftp(tmp_path: Path) -> Iterator[SftpServer]:
    (tmp_path / "files").mkdir()
    with running_asyncssh(tmp_path / "files") as server:
        yield server


@pytest.fixture
def ftp(tmp_path: Path) -> Iterator[FileServer]:
    (tmp_path / "files").mkdir()
    with running_ftp(tmp_path / "files") as server:
        yield server


@pytest.fixture
def samba(tmp_path: Path) -> Iterator[FileServer]:
    try:
        with running_samba(tmp_path) as samba:
            yield samba.server
    except ConnectError as error:
        pytest.skip(f"no Samba here: {error}")


@pytest.fixture(params=["openssh", "asyncssh", "ftp", "samba"])
def server(request: pytest.FixtureRequest) -> FileServer:
    if request.param == "asyncssh":
        sftp: SftpServer = request.getfixturevalue("sftp")
        return sftp.server
    found: FileServer = request.getfixturevalue(request.param)
    return found


class Tasks:
    """Tasks of one connector that share what is committed."""

    def __init__(self, context: SourceTaskTestContext, server: FileServer) -> None:
        self.context = context
        self._server = server
        self._tasks: list[DirectorySourceTask] = []

    def start(self, folder: str = "in", **props: str | None) -> DirectorySourceTask:
        own = {"path": f"{self._server.url.rstrip('/')}/{folder}", "topic": "rows", "settle.ms": "0"}
        given = {**own, **self._server.props, **props}
        task = DirectorySourceTask(DirectoryTaskConfig.parse(given), self.context)
        task.start()
        self._tasks.append(task)
        return task

    def close(self) -> None:
        for task in self._tasks:
            task.stop()

    def commit(self, records: list[SourceRecord]) -> None:
        self.context.offset_storage_reader.keep(records)


@pytest.fixture
def tasks(server: FileServer) -> Iterator[Tasks]:
    with closing(Tasks(SourceTaskTestContext(), server)) as tasks:
        yield tasks


def read(task: DirectorySourceTask) -> list[SourceRecord]:
    records: list[SourceRecord] = []
    while (batch := task.poll()) is not None:
        records.extend(batch)
    return records


def values(records: list[SourceRecord]) -> list[Any]:
    return [record.value for record in records]


def put_files(folder: Path) -> None:
    """A file of each way to be read."""
    (folder / "sub").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.txt").write_text("never")
    (folder / "a.txt").write_text("1\n2\n")
    (folder / "b.csv.gz").write_bytes(gzip.compress(b"x\n3\n4\n"))
    pq.write_table(pa.table({"x": ["5", "6"]}), folder / "c.parquet")
    with zipfile.ZipFile(folder / "sub" / "d.csv.zip", "w") as archive:
        archive.writestr("one.csv", "x\n7\n")
        archive.writestr("two.csv", "x\n8\n")
    (folder / "sub" / "e.txt").write_text("9\nno end")


def test_files_of_all_kinds_are_read_once_moved_and_resumed(server: FileServer, tasks: Tasks) -> None:
    folder = server.folder / "in"
    put_files(folder)
    props = {"recursive": "true", "finished.action": "move", "finished.folder": _place(server, "done")}
    task = tasks.start(**props)
    records = read(task)
    rows = [{"x": "3"}, {"x": "4"}, {"x": "5"}, {"x": "6"}, {"x": "7"}, {"x": "8"}]
    assert values(records) == ["1", "2", *rows, "9", "no end"]
    names = {record.source_partition["filename"] for record in records}
    assert f"{server.url.rstrip('/')}/in/sub/d.csv.zip" in names
    assert not any("cret" in name or "sluice@" in name for name in names)
    # A kill here: rows of the first file, and of the archive, are committed in part.
    tasks.commit([records[0], records[6]])
    again = tasks.start(**props)
    assert values(read(again)) == ["2", {"x": "3"}, {"x": "4"}, {"x": "5"}, {"x": "6"}, {"x": "8"}, "9", "no end"]
    tasks.commit(records)
    again.commit()
    assert sorted(path.name for path in (server.folder / "done").rglob("*.*")) == [
        "a.txt",
        "b.csv.gz",
        "c.parquet",
        "d.csv.zip",
        "e.txt",
    ]
    assert [path for path in folder.rglob("*") if path.is_file() and ".hidden" not in str(path)] == []
    assert read(again) == []
    assert again.drained()
    assert again.remaining() == {"bytes": 0, "files": 0}


def _place(server: FileServer, name: str) -> str:
    return f"{server.url.rstrip('/')}/{name}"


def test_a_file_is_read_when_it_is_unchanged_for_long_enough_and_when_it_grows(
    server: FileServer, tasks: Tasks
) -> None:
    folder = server.folder / "in"
    folder.mkdir()
    file = folder / "a.txt"
    file.write_text("1\n")
    # By the clock of the server it is old; what counts is what is seen.
    os.utime(file, (1_000_000, 1_000_000))
    task = tasks.start(**{"settle.ms": "400"})
    began = time.monotonic()
    assert read(task) == []
    records: list[SourceRecord] = []
    wait_until("the file is read", lambda: bool(records.extend(read(task)) or records), seconds=10)
    assert time.monotonic() - began >= 0.4
    assert values(records) == ["1"]
    with file.open("a") as appended:
        appended.write("2\n3")
    wait_until("the rest is read", lambda: len(records.extend(read(task)) or records) == 3, seconds=10)
    assert values(records) == ["1", "2", "3"]
    assert [record.source_offset["position"] for record in records] == [2, 4, 5]


def test_markers(server: FileServer, tasks: Tasks) -> None:
    folder = server.folder / "in"
    folder.mkdir()
    for name in ("a.csv", "b.csv", "b.csv.done"):
        (folder / name).write_text("x\n1\n")
    task = tasks.start(**{"done.suffix": ".done", "finished.action": "delete"})
    records = read(task)
    assert values(records) == [{"x": "1"}]
    assert records[0].source_partition["filename"].endswith("/b.csv")
    tasks.commit(records)
    task.commit()
    assert [path.name for path in folder.iterdir()] == ["a.csv"]


def test_damaged_files_are_reported_and_nothing_of_them_is_published(server: FileServer) -> None:
    folder = server.folder / "in"
    folder.mkdir()
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"x\n" + b"1\n" * 100_000)[:-9])
    (folder / "b.parquet").write_bytes(b"PAR1 no")
    (folder / "c.csv").write_text("x\n1\n2,2\n3\n")
    context = SourceTaskTestContext(tolerate_errors=True)
    with closing(Tasks(context, server)) as tasks:
        task = tasks.start()
        assert values(read(task)) == [{"x": "1"}, {"x": "3"}]
    first, second, third = (str(error) for _, error in context.errant_record_reporter.reported)
    assert "a.csv.gz is corrupt" in first
    assert "Cannot read" in second
    assert "line 3: the row is malformed" in third


def test_a_missing_folder_is_waited_for(server: FileServer, tasks: Tasks) -> None:
    task = tasks.start("missing")
    with pytest.raises(MissingError, match="missing does not exist"):
        task.poll()
    (server.folder / "missing").mkdir()
    assert task.poll() is None


def test_a_cut_connection_costs_no_record(sftp: SftpServer) -> None:
    """The connection is cut within a large file, and between two."""
    folder = sftp.folder / "in"
    folder.mkdir()
    lines = [f"{number:09}" for number in range(700_000)]
    (folder / "a.txt").write_text("\n".join(lines) + "\n")
    (folder / "b.txt").write_text("last\n")
    with closing(Tasks(SourceTaskTestContext(), sftp.server)) as tasks:
        task = tasks.start(**{"batch.size": "100000"})
        found: list[Any] = []
        errors = 0
        cuts = 0
        while len(found) < len(lines) + 1:
            if len(found) >= 100_000 * (2 * cuts + 1) and cuts < 3:
                cuts += 1
                assert sftp.cut() == 1
            try:
                batch = task.poll()
            except RetriableError as error:
                errors += 1
                assert "Cannot" in str(error)
                continue
            found.extend(batch.value if batch is not None else ())
    assert errors == 3
    assert found == [*lines, "last"]


def test_servers_with_another_key_and_wrong_passwords_are_refused(sftp: SftpServer, tmp_path: Path) -> None:
    server = sftp.server
    (sftp.folder / "in").mkdir()
    (tmp_path / "none").write_text("")
    public = sftp.key.export_public_key().decode().strip()
    (tmp_path / "known").write_text(f"[{HOST}]:{sftp.port} {public}\n")
    with closing(Tasks(SourceTaskTestContext(), server)) as tasks:
        with pytest.raises(ConnectError, match=r"is not known.*sftp\.host\.key"):
            tasks.start(**{"sftp.host.key": "SHA256:another"}).poll()
        with pytest.raises(ConnectError, match="is not known"):
            tasks.start(**{"sftp.known.hosts": str(tmp_path / "none"), "sftp.host.key": None}).poll()
        with pytest.raises(ConnectError, match="refuses the user sluice") as refused:
            tasks.start(**{"file.system.password": "wr0ng"}).poll()
        assert "wr0ng" not in str(refused.value)
        unchecked = {"sftp.host.key.check": "false", "sftp.host.key": None}
        assert tasks.start(**unchecked).poll() is None
        known = {"sftp.known.hosts": str(tmp_path / "known")}
        assert tasks.start(**{**known, "sftp.host.key": None}).poll() is None


def test_what_the_sink_writes_is_passed_over_and_read_back(server: FileServer, tasks: Tasks) -> None:
    """In the root of the server, where it serves one folder."""
    props = {"path": server.url, "format": "text", "rotate.interval.ms": "0", **server.props}
    texts = [f"record {number}" for number in range(12)]
    records = sink_records(texts, partitions=2)
    for given in (records[:7], records):
        # The offsets of the first run are lost.
        run_sink(DirectorySinkConnector, props, TopicLog(given), batch_size=5)
    assert [path.name for path in server.folder.iterdir() if path.name != "samba"] == ["test"]
    assert sorted(values(read(tasks.start("", recursive="true")))) == sorted(texts)
    config = DirectorySinkConfig.parse(props)
    with pytest.raises(ConnectError, match=r"have the records of test-0 before 6"):
        DirectorySinkConnector.alter_offsets(config, {TopicPartition("test", 0): 3})
    assert DirectorySinkConnector.alter_offsets(config, {TopicPartition("test", 0): 6})


def test_files_of_a_web_server(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x\n1\n2\n")
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer((HOST, 0), handler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        try:
            server = FileServer(tmp_path, f"http://{HOST}:{web.server_port}", {})
            with closing(Tasks(SourceTaskTestContext(), server)) as tasks:
                records = read(tasks.start())
        finally:
            web.shutdown()
            thread.join()
    assert values(records) == [{"x": "1"}, {"x": "2"}]
    assert records[0].source_partition == {"filename": f"http://{HOST}:{web.server_port}/in/a.csv"}


def test_a_server_with_a_certificate_of_anybody_gets_no_password(tmp_path: Path) -> None:
    """FTP over TLS: the first that is sent after the encryption begins would be the user and the password."""
    identity = Authority().sign(HOST)
    (tmp_path / "key.pem").write_text(identity.certificate_pem + identity.key_pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "key.pem")
    commands: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(b"220 ready\r\n")
            commands.append(connection.recv(100))
            connection.sendall(b"234 go on\r\n")
            with context.wrap_socket(connection, server_side=True) as secured:
                commands.append(secured.recv(100))

    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        url = f"ftps://{HOST}:{listener.getsockname()[1]}"
        login = {"file.system.username": "me", "file.system.password": "secret"}
        with closing(Tasks(SourceTaskTestContext(), FileServer(tmp_path, url, login))) as tasks:
            task = tasks.start()
            with pytest.raises(ConnectError, match="certificate is not trusted") as caught:
                task.poll()
        thread.join()
    assert not isinstance(caught.value, RetriableError)
    assert commands == [b"AUTH TLS\r\n"]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"path": "sftp://u:s3cret@h/x"}, "must not contain a password: set file.system.password"),
        ({"path": "gopher://h/x"}, "Use a path, a file: URL, or a URL with a host that begins with sftp://"),
        ({"path": "sftp:///x"}, "a URL with a host"),
        ({"path": "sftp://h:port/x"}, "host or port is not valid"),
        ({"path": "http://h/x", "finished.action": "delete"}, "can only be read"),
        ({"path": "sftp://169.254.169.254/x"}, "169.254.169.254"),
        (
            {"path": "sftp://h/x", "sftp.private.key": "k3y", "sftp.private.key.path": "/k"},
            "sftp.private.key or sftp.private.key.path",
        ),
        ({"path": "s3:///x"}, "configuration path: It has no bucket: write s3://BUCKET/FOLDER"),
        ({"path": "gcs://b/x"}, "configuration path: Write gs://BUCKET/FOLDER"),
        ({"path": "az://c/x"}, "configuration path: Write abfss://CONTAINER@ACCOUNT.dfs"),
        ({"path": "abfss://c/x"}, "configuration path: Write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"),
        (
            {"path": "abfss://con@accdev.dfs.core.windows.net/x", "azblob.endpoint": "http://127.0.0.1:1/accdev"},
            "configuration path: abfss: is reached by https: alone",
        ),
        ({"path": "sftp://h/x", "finished.action": "move", "finished.folder": "/x"}, "must not be the same folder"),
        ({"path": "s3://b/x", "finished.action": "move", "finished.folder": "s3://c/y"}, "a folder on s3://b"),
        ({"path": "sftp://h/x", "finished.action": "move", "finished.folder": "sftp://i/y"}, "a folder on sftp://h"),
        ({"path": "/x", "finished.action": "move", "finished.folder": "s3://b/y"}, "a folder on this machine"),
    ],
)
def test_addresses_that_cannot_be_are_refused(props: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        DirectorySourceConfig.parse({"topic": "rows", **props})
    assert message in str(refused.value)
    assert "s3cret" not in str(refused.value)
    assert "k3y" not in str(refused.value)


def test_confluents_quick_start_on_an_sftp_server(sftp: SftpServer, caplog: pytest.LogCaptureFixture) -> None:
    """The configuration is that of the quick start, but for host, port, user and password."""
    for name in ("input", "error", "finished"):
        (sftp.folder / "upload" / name).mkdir(parents=True)
    rows = "id,first_name\n1,Salmon\n2,Debby\n"
    (sftp.folder / "upload" / "input" / "csv-sftp-source.csv").write_text(rows)
    props = {
        "cleanup.policy": "MOVE",
        "behavior.on.error": "IGNORE",
        "input.path": "/upload/input",
        "error.path": "/upload/error",
        "finished.path": "/upload/finished",
        "input.file.pattern": "csv-sftp-source.csv",
        "sftp.username": sftp.server.props["file.system.username"],
        "sftp.password": sftp.server.props["file.system.password"],
        "sftp.host": HOST,
        "sftp.port": str(sftp.port),
        "kafka.topic": "sftp-testing-topic",
        "csv.first.row.as.header": "true",
        "schema.generation.enabled": "true",
    }
    task_class = SftpCsvSourceConnector.task_class
    context = SourceTaskTestContext()
    task = task_class(task_class.config_class.parse(props), context)
    task.start()
    try:
        records = list(task.poll() or ())
        assert [record.value for record in records] == [
            {"id": "1", "first_name": "Salmon"},
            {"id": "2", "first_name": "Debby"},
        ]
        assert task.poll() is None
        context.offset_storage_reader.keep(records)
        task.commit()
    finally:
        task.stop()
    assert [path.name for path in (sftp.folder / "upload").rglob("*.csv")] == ["csv-sftp-source.csv"]
    assert (sftp.folder / "upload" / "finished" / "csv-sftp-source.csv").read_text() == rows
    assert f"set sftp.host.key={sftp.key.get_fingerprint()}" in caplog.text


USER_SCHEMA = {
    "name": "com.example.users.User",
    "type": "STRUCT",
    "isOptional": False,
    "fieldSchemas": {
        "id": {"type": "INT64", "isOptional": False},
        "first_name": {"type": "STRING", "isOptional": True},
    },
}
KEY_SCHEMA = {
    **USER_SCHEMA,
    "name": "com.example.users.UserKey",
    "fieldSchemas": {"id": USER_SCHEMA["fieldSchemas"]["id"]},
}  # type: ignore[index]
USERS = '{"id":1,"first_name":"Roscoe"}\n{"id":2,"first_name":"Gregoire"}'


@pytest.mark.parametrize(
    ("connector_class", "more", "expected"),
    [
        (
            SftpJsonSourceConnector,
            {
                "cleanup.policy": "NONE",
                "key.schema": json.dumps(KEY_SCHEMA),
                "value.schema": json.dumps(USER_SCHEMA),
            },
            [({"id": 1}, {"id": 1, "first_name": "Roscoe"}), ({"id": 2}, {"id": 2, "first_name": "Gregoire"})],
        ),
        (
            SftpJsonSourceConnector,
            {"schema.generation.enabled": "true"},
            [(None, {"id": "1", "first_name": "Roscoe"}), (None, {"id": "2", "first_name": "Gregoire"})],
        ),
        (SftpSchemaLessJsonSourceConnector, {}, [(None, line) for line in USERS.splitlines()]),
        (SftpBinaryFileSourceConnector, {}, [(None, USERS.encode())]),
    ],
)
def test_confluents_other_sources_on_an_sftp_server(
    sftp: SftpServer, connector_class: Any, more: dict[str, str], expected: list[tuple[Any, Any]]
) -> None:
    """The public examples, but for host, port, user and password."""
    for name in ("input", "error", "finished"):
        (sftp.folder / "upload" / name).mkdir(parents=True)
    (sftp.folder / "upload/input/json-sftp-source.json").write_text(USERS)
    props = {
        "topics": "test_sftp_sink",
        "behavior.on.error": "IGNORE",
        "input.path": "/upload/input",
        "error.path": "/upload/error",
        "finished.path": "/upload/finished",
        "input.file.pattern": "json-sftp-source.json",
        "kafka.topic": "sftp-testing-topic",
        **sftp.confluent_props,
        **more,
    }
    context = SourceTaskTestContext()
    task = connector_class.task_class(connector_class.task_class.config_class.parse(props), context)
    task.start()
    try:
        records: list[Any] = []
        while (batch := task.poll()) is not None:
            records.extend(batch)
        assert [(record.topic, record.key, record.value) for record in records] == [
            ("sftp-testing-topic", *each) for each in expected
        ]
        context.offset_storage_reader.keep(records)
        task.commit()
        assert task.poll() is None
    finally:
        task.stop()
    where = "input" if "cleanup.policy" in more else "finished"
    assert [str(path.relative_to(sftp.folder)) for path in sftp.folder.rglob("*.json")] == [
        f"upload/{where}/json-sftp-source.json"
    ]
