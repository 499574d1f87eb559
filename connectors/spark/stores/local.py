"""Local and mounted folders: files are linked to their names only if absent, renamed in one step, and synced."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final

from connectors.spark.stores.parts import FolderPlace, PartPlace, sync_path
from connectors.spark.stores.store import StagedFile, Upload

__all__ = ["LocalStore"]

_AT_ONCE: Final = 16


class LocalStore:
    """A folder of a POSIX file system with hard links; a :class:`~connectors.spark.stores.store.Store`.

    A change is durable when its method returns, because files and the folders that list them are synced. Only after
    :meth:`publish` must the caller call :meth:`sync_folders`, once for many files.
    """

    names_when_staging = False
    concurrency = 1

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def url(self) -> str:
        """The path of the folder."""
        return str(self.root)

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

    def files(self, path: str) -> Iterator[str]:
        """The files below a folder, by their paths in it, without those that a reader would ignore."""
        top = self.root / path
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
            for name in sorted(names):
                if not name.startswith(("_", ".")):
                    yield (Path(folder) / name).relative_to(top).as_posix()

    def size(self, path: str) -> int | None:
        """Return the size of a file, ``None`` if it does not exist."""
        try:
            return (self.root / path).stat().st_size
        except FileNotFoundError:
            return None

    def staging(self, connector: str) -> str:
        """Return a folder beside the manifests."""
        return f"_sluice/{connector}/staging"

    def begin(self, folder: str, table: str) -> None:
        """Do nothing: Spark creates the folder."""

    def writer_options(self, folder: str, table: str, folders: Mapping[int, str]) -> Mapping[str, str]:  # noqa: ARG002
        """Return no options: Spark's own committer keeps failed attempts out of the folder."""
        return {}

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace:  # noqa: ARG002
        """Return the folder itself: executors run here, or have it mounted."""
        return FolderPlace(str(self.root / folder))

    def uri(self, path: str) -> str:
        """Return a ``file:`` URI, in which Hadoop wants nothing escaped."""
        return f"file://{self.root / path}"

    def staged(self, folder: str) -> Iterator[StagedFile]:
        """Return the files below a folder, which get their names when they are published."""
        for path in self.files(folder):
            yield StagedFile(path, self.size(f"{folder}/{path}") or 0)

    def publish(self, staged: str, target: str, upload: Upload | None = None) -> None:  # noqa: ARG002
        """Rename a file, unless that is done already."""
        source, place = self.root / staged, self.root / target
        # The target is checked first: another driver rolling forward may rename the file in the meantime.
        if place.exists():
            if source.exists():
                raise FileExistsError(target)
            return
        # The folders are synced along with the names in them.
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.rename(place)
        except FileNotFoundError:
            if not place.exists():
                raise

    def sync_files(self, paths: Iterable[str]) -> None:
        """Make these files, and the folders that list them, durable, whichever process wrote them."""
        paths = list(paths)
        _sync_all(self.root / path for path in paths)
        self.sync_folders(_folder_of(path) for path in paths)

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Make the names in these folders and in their parents durable."""
        folders: set[Path] = set()
        for path in set(paths):
            place = self.root / path
            folders.add(place)
            folders.update(above for above in place.parents if above.is_relative_to(self.root))
        _sync_all(folders)

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

    def abandon(self, folder: str, check: Callable[[], None]) -> None:  # noqa: ARG002
        """Remove the folder, which holds everything that was begun."""
        self.remove_tree(folder)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _sync_all(paths: Iterable[Path]) -> None:
    """Sync many files and folders, several at once: a disk makes them durable together."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for _ in threads.map(sync_path, paths):
            pass
