"""Local and mounted folders as stores of tables: Spark's files are renamed in one step, and synced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from connect.kits.objects.local import LocalFiles, sync_path
from connectors.spark.stores.parts import FolderPlace, PartPlace
from connectors.spark.stores.store import Store, Upload

__all__ = ["LocalStore"]

_AT_ONCE: Final = 16


class LocalStore(LocalFiles, Store):
    """A folder of a POSIX file system with hard links; a :class:`~connectors.spark.stores.store.Store`.

    After :meth:`publish`, the caller must call :meth:`sync_folders`, once for many files.
    """

    @property
    def url(self) -> str:
        """The path of the folder."""
        return str(self.root)

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace:  # noqa: ARG002
        """Return the folder itself: executors run here, or have it mounted."""
        return FolderPlace(str(self.root / folder))

    def uri(self, path: str) -> str:
        """Return a ``file:`` URI, in which Hadoop wants nothing escaped."""
        return f"file://{self.root / path}"

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


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _sync_all(paths: Iterable[Path]) -> None:
    """Sync many files and folders, several at once: a disk makes them durable together."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for _ in threads.map(sync_path, paths):
            pass
