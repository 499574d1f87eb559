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

from collections.abc import Mapping
from typing import Final

from connect.kits.objects.gcs import GoogleAccount, GoogleObjects
from connect.kits.objects.location import Location
from connectors.spark.stores.google_parts import GooglePlace
from connectors.spark.stores.parts import PartPlace
from connectors.spark.stores.store import Store, Upload

__all__ = ["GcsStore"]

_PUBLISHED_AT_ONCE: Final = 16


class GcsStore(GoogleObjects, Store):
    """A prefix of a bucket; a :class:`~connectors.spark.stores.store.Store`."""

    concurrency = _PUBLISHED_AT_ONCE

    def __init__(self, account: GoogleAccount, location: Location) -> None:
        super().__init__(account, location.authority, location.path)
        self._location = location

    @property
    def url(self) -> str:
        """The URI of the prefix."""
        return self._location.uri

    # -- loads -----------------------------------------------------------------------------------------------

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace:  # noqa: ARG002
        """Return the folder itself, which executors write to with requests of their own."""
        return GooglePlace(self._account, self._location.authority, self._location.path, folder)

    def publish(self, staged: str, target: str, upload: Upload | None = None) -> None:  # noqa: ARG002
        """Give a staged object its final name, unless that is done already."""
        try:
            self.copy_if_absent(staged, target)
        except FileNotFoundError:
            # Whoever published it has removed the staged object.
            if self.size(target) is None:
                raise
        except FileExistsError:
            source, there = self.stat(staged), self.stat(target)
            if source is not None and source != there:
                raise
