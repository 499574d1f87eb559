"""The files of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from connect.kits.files.systems.system import FileStatus, FoundFile, OpenedFile, is_hidden, is_part, part_name

__all__ = ["LocalSystem"]


class LocalSystem:
    """Local and mounted folders; a :class:`~connect.kits.files.systems.system.FileSystem`."""

    is_local = True
    reads_ranges = True
    files_grow = True

    def shown(self, place: str) -> str:
        """Return the path itself."""
        return place

    def walk(self, folder: str, *, recursive: bool, enters: Callable[[str], bool]) -> Iterator[FoundFile]:
        """Yield the files in a folder, and in those below it."""
        return self._walk(folder, "", recursive, enters)

    def _walk(self, folder: str, prefix: str, recursive: bool, enters: Callable[[str], bool]) -> Iterator[FoundFile]:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if is_hidden(entry.name):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if recursive and enters(name):
                            yield from self._walk(entry.path, f"{name}/", recursive, enters)
                    elif entry.is_file():
                        yield FoundFile(name, str(Path(entry.path)), _status_of(entry.stat()))
                except FileNotFoundError:
                    # It was removed during the scan.
                    continue

    def status(self, place: str) -> FileStatus:
        """Return the present state of a file."""
        return _status_of(os.stat(place))  # noqa: PTH116 - beside the scan's own

    def open(self, place: str) -> OpenedFile:
        """Open a file."""
        stream = Path(place).open("rb")  # noqa: SIM115 - its reader closes it
        return OpenedFile(stream, lambda: _status_of(os.fstat(stream.fileno())))

    def copy(self, place: str, target: IO[bytes]) -> None:
        """Write the content of a file to another."""
        with Path(place).open("rb") as stream:
            shutil.copyfileobj(stream, target)

    def remove(self, place: str) -> None:
        """Remove a file."""
        Path(place).unlink()

    def move(self, place: str, target: str) -> None:
        """Rename a file within its file system."""
        if Path(target).exists():
            raise FileExistsError(target)
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(place).rename(target)

    @contextmanager
    def writing(self, place: str) -> Iterator[BinaryIO]:
        """Write a file under a hidden name, sync it, and rename it."""
        target = Path(place)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(part_name(target.name))
        try:
            with beside.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
        _sync_folder(target.parent)

    def remove_parts(self, folder: str, start: str) -> None:
        """Remove what :meth:`writing` has left."""
        for path in Path(folder).glob("*.part") if Path(folder).is_dir() else ():
            if is_part(path.name, start):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Do nothing."""


def _status_of(status: os.stat_result) -> FileStatus:
    # A time in the future is replaced by the time at which it was set.
    modified = min(status.st_mtime_ns, status.st_ctime_ns)
    return FileStatus(f"{status.st_dev}:{status.st_ino}", status.st_size, modified)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
