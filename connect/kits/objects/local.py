"""Local and mounted folders: files are linked to their names only if absent, and synced."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["LocalFiles", "folder_problem", "sync_path"]


class LocalFiles:
    """The files below a folder of a POSIX file system with hard links; an
    :class:`~connect.kits.objects.store.ObjectStore`.

    A change is durable when its method returns, because files and the folders that list them are synced.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self, path: str, data: bytes) -> None:
        """Create a file with this content; raises :class:`FileExistsError` if the name is taken.

        The content appears whole or not at all: it is written to a hidden file beside it, and a link never replaces a
        file.
        """
        target = self.root / path
        self.make_folders(_folder_of(path))
        beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with beside.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            target.hardlink_to(beside)
        finally:
            beside.unlink(missing_ok=True)
        sync_path(target.parent)

    def append(self, path: str, data: bytes | bytearray, position: int) -> None:
        """Add bytes to the end of a file, which has so many already, and is created if that is none.

        They are durable after a move. Raises :class:`FileNotFoundError` if somebody has removed the file.
        """
        target = self.root / path
        if not position:
            self.make_folders(_folder_of(path))
        with target.open("r+b" if position else "xb") as stream:
            stream.seek(position)
            stream.write(data)

    def sync(self, path: str) -> None:
        """Make a file durable."""
        sync_path(self.root / path)
        sync_path((self.root / path).parent)

    def move(self, source: str, target: str) -> None:
        """Give a file its name, in place of another that has it, and make its content durable."""
        sync_path(self.root / source)
        self.make_folders(_folder_of(target))
        (self.root / source).replace(self.root / target)
        sync_path((self.root / target).parent)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        return (self.root / path).read_bytes()

    def open(self, path: str) -> BinaryIO:
        """Open a file."""
        return (self.root / path).open("rb")

    def names(self, path: str) -> list[str]:
        """List the names in a folder; none if the folder does not exist."""
        try:
            return sorted(entry.name for entry in (self.root / path).iterdir())
        except FileNotFoundError:
            return []

    def below(self, path: str) -> Iterator[tuple[str, int]]:
        """Yield the files below a folder, ordered by path, with their sizes."""
        yield from _files(self.root / path, f"{path}/" if path else "")

    def size(self, path: str) -> int | None:
        """Return the size of a file, ``None`` if it does not exist."""
        try:
            return (self.root / path).stat().st_size
        except FileNotFoundError:
            return None

    def make_folders(self, path: str) -> None:
        """Create a folder and its parents, if missing."""
        place = self.root / path
        missing = [folder for folder in (place, *place.parents) if not folder.exists()]
        place.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_path(folder.parent)

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        (self.root / path).unlink(missing_ok=True)

    def remove_tree(self, path: str) -> None:
        """Remove a folder and everything below it, if it exists; something may still be writing into it."""
        shutil.rmtree(self.root / path, ignore_errors=True)


def _files(folder: Path, start: str) -> Iterator[tuple[str, int]]:
    """Yield the files below a folder, as far as they are still there, with their sizes; paths begin with ``start``."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry.name + "/" * entry.is_dir(), entry) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, entry in found:
        if not name.endswith("/"):
            with suppress(FileNotFoundError):
                yield start + name, entry.stat().st_size
        elif not entry.is_symlink():
            yield from _files(folder / name, start + name)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def sync_path(path: Path) -> None:
    """Make a file or a folder's entries durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folder_problem(folder: Path, *, writes: bool) -> str | None:
    """Return why a folder cannot be read, or, if it ``writes``, be made or written to; ``None`` if it can."""
    if not writes:
        readable = folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)
        return (
            None if readable else f"{folder} is no folder that this process may read: create it, or correct its name."
        )
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        return f"{folder} cannot be created, as {existing} is a file: correct its name."
    if not os.access(existing, os.W_OK | os.X_OK):
        return f"This process may not write to {existing}: grant it the right, or choose another folder."
    return None
