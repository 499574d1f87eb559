"""What becomes of files that are read to their end: they are moved or deleted once all their offsets are committed."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.directory import DirectorySourceTask

Start = Callable[..., DirectorySourceTask]
Read = Callable[[DirectorySourceTask], list[Any]]


def commit(context: Any, record: Any) -> None:
    context.commit(record.source_partition, record.source_offset)


@pytest.mark.parametrize("action", ["move", "delete"])
def test_files_are_finished_only_after_their_last_offset_is_committed(
    action: str, folder: Any, tmp_path: Path, context: Any, start: Start, rows: Read
) -> None:
    file = folder.write("a.txt", "1\n2\n")
    done = tmp_path / "done" / "a.txt"
    props = {"finished.action": action, "finished.folder": str(done.parent)}
    task = start(context, **props)
    first, last = rows(task)
    task.commit()
    assert file.exists()
    commit(context, first)
    task.commit()
    assert rows(task) == []
    assert file.exists()
    assert task.drained()
    commit(context, last)
    task.commit()
    assert not file.exists()
    assert done.exists() == (action == "move")
    # Another file of the same name, even one that is the same, is read.
    folder.write("a.txt", "1\n2\n")
    again = rows(task)
    assert [record.value for record in again] == ["1", "2"]
    commit(context, again[-1])
    task.commit()
    assert not file.exists()
    if action == "move":
        assert sorted(path.name for path in done.parent.iterdir()) == ["a.txt", "a.txt.1"]


def test_a_kill_between_commit_and_move_moves_at_the_next_start(
    folder: Any, tmp_path: Path, context: Any, start: Start, rows: Read
) -> None:
    file = folder.write("sub/a.csv", "id\n1\n")
    props = {"finished.action": "move", "finished.folder": str(tmp_path / "done"), "recursive": "true"}
    commit(context, rows(start(context, **props))[-1])
    assert file.exists()
    assert rows(start(context, **props)) == []
    assert not file.exists()
    assert (tmp_path / "done" / "sub" / "a.csv").exists()


def test_a_file_that_changes_or_is_not_complete_is_not_moved(
    folder: Any, tmp_path: Path, context: Any, start: Start, rows: Read
) -> None:
    file = folder.write("a.txt", "1\n", fresh=True)
    task = start(context, **{"finished.action": "delete"})
    (record,) = rows(task)
    commit(context, record)
    task.commit()
    assert rows(task) == []
    assert not task.drained()
    assert file.exists()
    folder.append(file, "2\n")
    task.commit()
    (record,) = rows(task)
    assert record.value == "2"
    assert file.exists()
    commit(context, record)
    task.commit()
    assert not file.exists()


def test_every_member_of_an_archive_must_be_committed(folder: Any, context: Any, start: Start, rows: Read) -> None:
    with zipfile.ZipFile(file := folder.path / "a.zip", "w") as archive:
        for name, text in {"x.txt": "1\n", "y.txt": "2\n", "z.txt": ""}.items():
            archive.writestr(name, text)
    folder.settle(file)
    task = start(context, **{"finished.action": "delete"})
    first, second = rows(task)
    commit(context, second)
    task.commit()
    assert file.exists()
    commit(context, first)
    task.commit()
    assert not file.exists()


@pytest.mark.parametrize("text", ["n\nx\n", "n\n1\nx\n"], ids=["all", "the last"])
def test_a_file_is_there_until_the_reports_of_its_malformed_rows_are_kept(
    text: str, folder: Any, source_context: Any, start: Start, rows: Read
) -> None:
    """A commit keeps them, before the task is told of it; a kill before that is to find the rows again."""
    file = folder.write("a.csv", text)
    context = source_context(tolerate=True)
    task = start(context, types="n:int64", **{"finished.action": "delete"})
    for record in rows(task):
        commit(context, record)
    assert rows(task) == []
    assert len(context.errant_record_reporter.reported) == 1
    assert file.exists()
    task.commit()
    assert not file.exists()


def test_a_finished_folder_inside_is_not_read(folder: Any, context: Any, start: Start, rows: Read) -> None:
    folder.write("a.txt", "1\n")
    done = folder.path / "done"
    props = {"finished.action": "move", "finished.folder": str(done), "recursive": "true"}
    task = start(context, **props)
    commit(context, rows(task)[-1])
    task.commit()
    assert (done / "a.txt").exists()
    assert rows(task) == []
