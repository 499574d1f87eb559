"""Google Cloud Storage: objects are created, and named, on the condition that there is none of that name.

The service decides that for the generation of an object in one step. What loads stage is in a folder beside the
manifests; publishing a file is a *rewrite* to its name: within one bucket the service makes the new object of the
old one's content, of any size, without moving it, and readers see it whole or not at all. The staged one goes with the
staging folder, which no reader looks into. So the table of crash points of the ledger holds as it stands:

=====================  ==========================================  ============================================
killed                 in the bucket                               the next start
=====================  ==========================================  ============================================
while staging          objects in the staging folder; what a       deletes them; the service forgets parts of
                       writer has sent of one it has not closed    objects after a week
while the manifest     it is there whole, or not at all            the same, or as below
is written
between two rewrites   some files are there, all are staged        rewrites the others: one that is there and has
                                                                   the checksum of the staged one is that one
after the mark         staged objects                              deletes them
=====================  ==========================================  ============================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO, Final

from connectors.spark.stores.google_objects import GoogleObjects, GoogleService, google_client
from connectors.spark.stores.google_parts import GooglePlace
from connectors.spark.stores.location import Location
from connectors.spark.stores.parts import PartPlace
from connectors.spark.stores.store import StagedFile, Upload

__all__ = ["GcsStore"]

_PUBLISHED_AT_ONCE: Final = 16


class GcsStore:
    """A prefix of a bucket; a :class:`~connectors.spark.stores.store.Store`.

    It relies on reads and lists that see every finished write, and on ``ifGenerationMatch=0``.
    """

    names_when_staging = False
    concurrency = _PUBLISHED_AT_ONCE

    def __init__(self, service: GoogleService, location: Location) -> None:
        self._service = service
        self._location = location
        self._connected: GoogleObjects | None = None

    @property
    def url(self) -> str:
        """The URI of the prefix."""
        return self._location.uri

    @property
    def _objects(self) -> GoogleObjects:
        if self._connected is None:
            client, place = google_client(self._service), self._location
            self._connected = GoogleObjects(client, place.authority, place.path, self._service.patience)
        return self._connected

    def create(self, path: str, data: bytes) -> None:
        """Put an object, unless there is one."""
        self._objects.put_if_absent(path, data)

    def read(self, path: str) -> bytes:
        """The content of an object."""
        return self._objects.get(path)

    def open(self, path: str) -> BinaryIO:
        """Open an object for reading by ranges."""
        return self._objects.open(path)

    def names(self, path: str) -> list[str]:
        """List the names directly below a prefix."""
        return self._objects.names(path)

    def files(self, path: str) -> Iterator[str]:
        """List the objects below a prefix."""
        yield from (name for name, _ in self._seen(path))

    def size(self, path: str) -> int | None:
        """Return the size of an object."""
        found = self._objects.stat(path)
        return None if found is None else found.size

    def remove(self, path: str) -> None:
        """Delete an object."""
        self._objects.delete([path])

    def remove_tree(self, path: str) -> None:
        """Delete the objects below a prefix, those with which Hadoop marks folders among them."""
        self._objects.delete([name for name, _ in self._objects.below(path)])

    # -- loads -----------------------------------------------------------------------------------------------

    def staging(self, connector: str) -> str:
        """Return a folder beside the manifests."""
        return f"_sluice/{connector}/staging"

    def begin(self, folder: str, table: str) -> None:
        """Do nothing: there are no folders to make."""

    def writer_options(self, folder: str, table: str, folders: Mapping[int, str]) -> Mapping[str, str]:  # noqa: ARG002
        """Return nothing: Spark's own committer keeps failed attempts out of the folder."""
        return {}

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace:  # noqa: ARG002
        """The folder itself, by requests of the executors' own."""
        return GooglePlace(self._service, self._location.authority, self._location.path, folder)

    def uri(self, path: str) -> str:
        """A ``gs:`` URI."""
        return f"{self._location.uri}/{path}"

    def staged(self, folder: str) -> Iterator[StagedFile]:
        """The objects below a folder, which are named when they are published."""
        yield from (StagedFile(name, size) for name, size in self._seen(folder))

    def sync_files(self, paths: Iterable[str]) -> None:
        """Do nothing: an object is durable when its upload has been answered."""

    def publish(self, staged: str, target: str, upload: Upload | None = None) -> None:  # noqa: ARG002
        """Give a staged object its final name, unless that is done already."""
        try:
            self._objects.copy_if_absent(staged, target)
        except FileNotFoundError:
            # Whoever has published it has removed what was staged.
            if self.size(target) is None:
                raise
        except FileExistsError:
            source, there = self._objects.stat(staged), self._objects.stat(target)
            if source is not None and source != there:
                raise

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Do nothing: names are durable."""

    def abandon(self, folder: str, check: Callable[[], None]) -> None:  # noqa: ARG002
        """Delete the folder: all that was begun is in it, and a writer that outlives its driver counts nowhere."""
        self.remove_tree(folder)

    def _seen(self, folder: str) -> Iterator[tuple[str, int]]:
        """The objects below a folder that readers do not ignore, by their paths in it, with their sizes."""
        start = f"{folder}/" if folder else ""
        for path, size in self._objects.below(folder):
            name = path.removeprefix(start)
            if name and not name.endswith("/") and not any(part.startswith(("_", ".")) for part in name.split("/")):
                yield name, size
