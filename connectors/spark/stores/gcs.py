"""Google Cloud Storage: objects are created, and renamed, on the condition that no object of that name exists.

The service checks that condition on an object's generation in one step. Loads stage files in a folder beside the
manifests; publishing a file is a *rewrite* to its final name: within one bucket the service creates the new object from
the old one's content, of any size, without moving it, and readers see it whole or not at all. The staged object is
removed with the staging folder, which no reader looks into. So the ledger's table of crash points applies unchanged:

=====================  ==========================================  ============================================
killed                 in the bucket                               the next start
=====================  ==========================================  ============================================
while staging          objects in the staging folder; the parts    deletes them; the service drops parts of
                       sent of objects not yet closed              objects after a week
while the manifest     the whole manifest, or none                 the same, or as below
is written
between two rewrites   some files exist, all are staged            rewrites the others: an existing file with
                                                                   the staged one's checksum is the right one
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
        """Put an object, unless it exists already."""
        self._objects.put_if_absent(path, data)

    def read(self, path: str) -> bytes:
        """Return the content of an object."""
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
        """Delete the objects below a prefix, including those with which Hadoop marks folders."""
        self._objects.delete([name for name, _ in self._objects.below(path)])

    # -- loads -----------------------------------------------------------------------------------------------

    def staging(self, connector: str) -> str:
        """Return a folder beside the manifests."""
        return f"_sluice/{connector}/staging"

    def begin(self, folder: str, table: str) -> None:
        """Do nothing: there are no folders to create."""

    def writer_options(self, folder: str, table: str, folders: Mapping[int, str]) -> Mapping[str, str]:  # noqa: ARG002
        """Return no options: Spark's own committer keeps failed attempts out of the folder."""
        return {}

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace:  # noqa: ARG002
        """Return the folder itself, which executors write to with requests of their own."""
        return GooglePlace(self._service, self._location.authority, self._location.path, folder)

    def uri(self, path: str) -> str:
        """A ``gs:`` URI."""
        return f"{self._location.uri}/{path}"

    def staged(self, folder: str) -> Iterator[StagedFile]:
        """Return the objects below a folder, which get their names when they are published."""
        yield from (StagedFile(name, size) for name, size in self._seen(folder))

    def sync_files(self, paths: Iterable[str]) -> None:
        """Do nothing: an object is durable once the service has acknowledged its upload."""

    def publish(self, staged: str, target: str, upload: Upload | None = None) -> None:  # noqa: ARG002
        """Give a staged object its final name, unless that is done already."""
        try:
            self._objects.copy_if_absent(staged, target)
        except FileNotFoundError:
            # Whoever published it has removed the staged object.
            if self.size(target) is None:
                raise
        except FileExistsError:
            source, there = self._objects.stat(staged), self._objects.stat(target)
            if source is not None and source != there:
                raise

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Do nothing: names are durable."""

    def abandon(self, folder: str, check: Callable[[], None]) -> None:  # noqa: ARG002
        """Delete the folder: it holds everything that was begun, and a writer that outlives its driver has no
        effect.
        """
        self.remove_tree(folder)

    def _seen(self, folder: str) -> Iterator[tuple[str, int]]:
        """The objects below a folder that readers see, by their paths in it, with their sizes."""
        start = f"{folder}/" if folder else ""
        for path, size in self._objects.below(folder):
            name = path.removeprefix(start)
            if name and not name.endswith("/") and not any(part.startswith(("_", ".")) for part in name.split("/")):
                yield name, size
