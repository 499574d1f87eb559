"""Folders in buckets: s3://, gs:// and abfs:// for the directory connectors and the SpoolDir sources."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect.data import SourceRecord, TopicPartition
from connect.errors import ConnectError
from connect.testing import SourceTaskTestContext, TopicLog, run_sink, sink_records
from connectors.directory import (
    DirectorySinkConfig,
    DirectorySinkConnector,
    DirectorySourceTask,
    DirectoryTaskConfig,
)
from connectors.directory.spool import SpoolDirLineDelimitedSourceConnector
from equipment.proofs import thorough
from equipment.stores.object_targets import object_target

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Bucket:
    """A bucket: its URL, the keys that reach it, and its objects."""

    url: str
    props: dict[str, str]
    store: Any

    def put(self, **objects: bytes) -> None:
        """Put objects, by their keys."""
        for key, data in objects.items():
            self.store.put(key, data)

    def names(self) -> list[str]:
        """The keys of all objects."""
        return [key for key, _ in self.store.below("")]


@pytest.fixture(params=["s3", *thorough("gcs", "azure")])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bucket]:
    with ExitStack() as stack:
        try:
            target = stack.enter_context(object_target(request.param, tmp_path))
        except ConnectError as error:
            pytest.skip(f"no {request.param} here: {error}")
        names = {key.rpartition(".")[0]: value for key, value in target.props.items() if key.endswith(".name")}
        url = {
            "s3": "s3://{s3.bucket}",
            "gcs": "gs://{gcs.bucket}",
            "azure": "abfs://{azblob.container}@{azblob.account}.dfs.core.windows.net",
        }[request.param]
        for name, value in names.items():
            url = url.replace(f"{{{name}}}", value)
        props = {key: value for key, value in target.props.items() if not key.endswith((".name", ".size"))}
        yield Bucket(url, props, target.store)


class Reader:
    """Tasks of a source that share what is committed."""

    def __init__(self, task_class: Any, props: dict[str, str]) -> None:
        self.context = SourceTaskTestContext()
        self._class, self._props = task_class, props
        self._stack = ExitStack()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self) -> Any:
        task = self._class(self._class.config_class.parse(self._props), self.context)
        task.start()
        self._stack.callback(task.stop)
        return task

    def commit(self, task: Any, records: list[SourceRecord]) -> None:
        self.context.offset_storage_reader.keep(records)
        task.commit()


def read(task: Any) -> list[SourceRecord]:
    records: list[SourceRecord] = []
    while (batch := task.poll()) is not None:
        records.extend(batch)
    return records


def directory(bucket: Bucket, folder: str, **props: str) -> Reader:
    given = {"path": f"{bucket.url}{folder}", "topic": "rows", "recursive": "true", **bucket.props, **props}
    assert DirectorySourceTask.config_class is DirectoryTaskConfig
    return Reader(DirectorySourceTask, given)


def test_objects_of_a_bucket_are_files(bucket: Bucket) -> None:
    bucket.put(
        **{
            "in/a.txt": b"1\n2\n",
            "in/sub/b.csv.gz": gzip.compress(b"x\n3\n"),
            "in/.c.txt": b"never",
            "other.txt": b"never",
        }
    )
    with directory(bucket, "/in", **{"finished.action": "move", "finished.folder": f"{bucket.url}/done"}) as reader:
        task = reader.start()
        records = read(task)
        assert [record.value for record in records] == ["1", "2", {"x": "3"}]
        assert records[0].source_partition == {"filename": f"{bucket.url}/in/a.txt"}
        # A kill between the copy and the removal.
        bucket.put(**{"done/a.txt": b"1\n2\n"})
        reader.commit(task, records)
        assert bucket.names() == ["done/a.txt", "done/sub/b.csv.gz", "in/.c.txt", "other.txt"]
        assert read(task) == []
    with directory(bucket, "/none") as reader:
        assert reader.start().poll() is None, "a prefix need not exist"


@pytest.mark.parametrize("folder", ["", "/out/deep"])
def test_what_the_sink_writes_is_passed_over_and_read_back(bucket: Bucket, folder: str) -> None:
    """Also in the bucket itself, which has no name."""
    props = {"path": f"{bucket.url}{folder}", "format": "text", "rotate.interval.ms": "0", **bucket.props}
    texts = [f"record {number}" for number in range(12)]
    records = sink_records(texts, partitions=2)
    for given in (records[:7], records):
        # The offsets of the first run are lost.
        run_sink(DirectorySinkConnector, props, TopicLog(given), batch_size=5)
    start = f"{folder.lstrip('/')}/" if folder else ""
    assert all(key.startswith(f"{start}test/partition=") for key in bucket.names()), bucket.names()
    with directory(bucket, folder) as reader:
        assert sorted(record.value for record in read(reader.start())) == sorted(texts)
    config = DirectorySinkConfig.parse(props)
    with pytest.raises(ConnectError, match=r"have the records of test-0 before 6"):
        DirectorySinkConnector.alter_offsets(config, {TopicPartition("test", 0): 3})
    assert DirectorySinkConnector.alter_offsets(config, {TopicPartition("test", 0): 6})


def test_spool_dir_moves_objects(bucket: Bucket) -> None:
    bucket.put(**{"in/a.txt": b"1\n2\n", "in/b.txt": b"3\n\xff\n4\n"})
    folders = {"input.path": f"{bucket.url}/in", "finished.path": f"{bucket.url}/", "error.path": "/bad"}
    props = {"topic": "rows", "input.file.pattern": r".*\.txt", "halt.on.error": "false", **folders, **bucket.props}
    with Reader(SpoolDirLineDelimitedSourceConnector.task_class, props) as reader:
        task = reader.start()
        records = read(task)
        assert [record.value for record in records] == ["1", "2", "3"]
        reader.commit(task, records)
        assert read(task) == []
    assert bucket.names() == ["a.txt", "bad/b.txt"]
