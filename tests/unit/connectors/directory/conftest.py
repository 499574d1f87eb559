"""A folder, and tasks that read it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.data import SourceRecord
from connectors.directory import DirectorySourceTask, DirectoryTaskConfig


class Folder:
    """A folder of files that are old enough to be complete, unless a test says otherwise."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def write(self, name: str, data: str | bytes, *, fresh: bool = False) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file if fresh else self.settle(file)

    def append(self, file: Path, data: str) -> Path:
        with file.open("a", newline="") as appended:
            appended.write(data)
        return self.settle(file)

    @staticmethod
    def settle(file: Path) -> Path:
        before = time.time() - 3600
        os.utime(file, (before, before))
        return file


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "in")


@pytest.fixture
def context(source_context: Callable[..., Any]) -> Any:
    return source_context()


@pytest.fixture
def start(folder: Folder) -> Iterator[Callable[..., DirectorySourceTask]]:
    tasks: list[DirectorySourceTask] = []

    def begin(context: Any, **props: str) -> DirectorySourceTask:
        given = {"path": str(folder.path), "topic": "rows", **props}
        task = DirectorySourceTask(DirectoryTaskConfig.parse(given), context)
        task.start()
        tasks.append(task)
        return task

    yield begin
    for task in tasks:
        task.stop()


def read(task: DirectorySourceTask) -> list[SourceRecord]:
    """All there is until a poll gives nothing."""
    records: list[SourceRecord] = []
    while (batch := task.poll()) is not None:
        assert len(batch)
        assert batch.source_offsets[-1] == list(batch.source_offsets)[-1]
        records.extend(batch)
    return records


@pytest.fixture
def rows() -> Callable[[DirectorySourceTask], list[SourceRecord]]:
    return read


@pytest.fixture
def values() -> Callable[[DirectorySourceTask], list[Any]]:
    return lambda task: [record.value for record in read(task)]
