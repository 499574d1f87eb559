"""What the kernel tells of a file that is followed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from connectors.file import FileStreamSourceTask, FileStreamTaskConfig
from connectors.file.changes import Changes, file_system

DEADLINE = 10.0
MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/root rw
30 22 0:30 / /data rw shared:1 - nfs4 server:/ rw
31 30 0:31 / /data/a\\040folder rw - xfs /dev/sdb rw
32 22 0:32 / /database rw - tmpfs tmpfs rw
33 22 0:33 / /database rw - fuse.sshfs host:/ rw
"""


class Followed(Changes):
    """Changes that set an event."""

    def __init__(self, path: Path) -> None:
        self.rung = threading.Event()
        super().__init__(str(path), self.rung.set)


Told: TypeAlias = Callable[[Followed], bool]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "in.txt"
    file.write_text("one\n")
    return file


@pytest.fixture
def changes(file: Path) -> Iterator[Followed]:
    changes = Followed(file)
    yield changes
    changes.close()


@pytest.fixture(scope="module")
def fence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], None]]:
    """Returns once all that has happened before was told: the kernel tells a process of its files in order."""
    last = tmp_path_factory.mktemp("fence") / "last"
    changes = Followed(last)

    def wait() -> None:
        changes.rung.clear()
        changes.forget()
        append(last)
        assert changes.rung.wait(DEADLINE)

    append(last)
    wait()
    yield wait
    changes.close()


@pytest.fixture
def told(fence: Callable[[], None]) -> Callable[[Followed], bool]:
    """Whether there was a change since the last time."""

    def told_of(changes: Followed) -> bool:
        fence()
        is_told = changes.rung.is_set()
        changes.rung.clear()
        changes.forget()
        return is_told

    return told_of


def append(file: Path) -> None:
    with file.open("a") as stream:
        stream.write("more\n")


def test_what_is_appended_or_truncated_is_told_once(file: Path, changes: Followed, told: Told) -> None:
    assert not told(changes)
    append(file)
    append(file)
    assert told(changes)
    assert not told(changes)
    file.write_text("")
    assert told(changes)


def test_the_file_that_takes_its_place_is_followed_and_the_one_before_it_too(
    file: Path, changes: Followed, told: Told
) -> None:
    for number in range(4):
        old = file.rename(f"{file}.{number}")
        assert told(changes)
        append(old)
        assert told(changes), "a writer may still be at the old one"
        file.touch()
        assert told(changes)
        append(old)
        assert told(changes)
        append(file)
        assert told(changes)
    append(Path(f"{file}.0"))
    assert not told(changes)


def test_a_file_that_goes_and_comes_again_is_followed(file: Path, changes: Followed, told: Told) -> None:
    file.unlink()
    assert told(changes)
    append(file)
    assert told(changes)
    append(file)
    assert told(changes)


def test_a_link_is_followed_to_its_file(file: Path, told: Told) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    changes = Followed(link)
    append(file)
    assert told(changes)
    changes.close()


def test_a_file_that_is_not_there_yet_is_told_of_and_one_without_a_folder_is_not(tmp_path: Path, told: Told) -> None:
    changes = Followed(tmp_path / "new")
    append(tmp_path / "new")
    assert told(changes)
    append(tmp_path / "new")
    assert told(changes)
    changes.close()
    with pytest.raises(FileNotFoundError):
        Followed(tmp_path / "no" / "new")


def test_many_files_of_a_process_take_one_instance_of_inotify(tmp_path: Path, told: Told) -> None:
    files = [tmp_path / str(number) for number in range(200)]
    watched = [Followed(file) for file in files]
    append(files[7])
    assert [number for number, changes in enumerate(watched) if told(changes)] == [7]
    same = Followed(files[7])
    watched[7].close()
    append(files[7])
    assert told(same), "who else follows the file goes on"
    for changes in [*watched[:7], *watched[8:], same]:
        changes.close()


def test_the_kernel_does_not_tell_of_every_file_system() -> None:
    with pytest.raises(OSError, match="changes on a file system of type proc are not reported"):
        Followed(Path("/proc/version"))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/etc/hosts", "ext4"),
        ("/data", "nfs4"),
        ("/data/a", "nfs4"),
        ("/data/a folder/b", "xfs"),
        ("/data-2/b", "ext4"),
        ("/database/b", "fuse.sshfs"),
    ],
)
def test_the_file_system_is_that_of_the_deepest_and_last_mount(path: str, kind: str, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert file_system(path, mounts) == kind


def test_a_source_at_the_end_asks_to_be_polled_when_there_is_more(file: Path, source_context: Any) -> None:
    context = source_context()
    task = FileStreamSourceTask(FileStreamTaskConfig.parse({"file": str(file), "topic": "t"}), context)
    task.start()
    assert task.poll() is not None
    assert context.wishes == [((), 0.0625)], "lines that come one by one are gathered, and nobody wakes up for each"
    assert task.poll() is None
    assert context.wishes[-1] == ((), 5.0)
    assert not context.woken.is_set()
    append(file)
    assert context.woken.wait(DEADLINE)
    context.woken.clear()
    batch = task.poll()
    assert batch is not None
    assert list(batch.value) == ["more"]
    context.wishes.clear()
    assert [task.poll() for _ in range(5)] == [None] * 5
    assert context.wishes == [((), seconds) for seconds in (5.0, 10.0, 20.0, 40.0, 40.0)]
    assert not context.woken.is_set()
    task.stop()


def test_a_source_looks_again_by_itself_where_the_kernel_does_not_tell(source_context: Any) -> None:
    context = source_context()
    # An empty file of a file system that changes unnoticed.
    task = FileStreamSourceTask(FileStreamTaskConfig.parse({"file": "/proc/self/timers", "topic": "t"}), context)
    task.start()
    assert [task.poll() for _ in range(5)] == [None] * 5
    assert context.wishes == []
    assert context.waits == [0.02, 0.04, 0.08, 0.1, 0.1]
    task.stop()


def test_a_change_that_is_told_after_its_lines_were_read_does_not_hide_the_next(
    file: Path, source_context: Any, fence: Callable[[], None]
) -> None:
    task = FileStreamSourceTask(FileStreamTaskConfig.parse({"file": str(file), "topic": "lines"}), source_context())
    task.start()
    try:
        assert task.poll() is not None
        append(file)
        assert task.poll() is not None, "the line is read"
        fence()
        assert task.context.woken.is_set(), "and told of afterwards"
        assert task.poll() is None
        task.context.woken.clear()
        append(file)
        assert task.context.woken.wait(DEADLINE)
    finally:
        task.stop()
