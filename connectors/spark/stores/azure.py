"""Azure: files are staged as invisible uncommitted blocks, and a commit is a put that requires the name to be free.

A block is sent under the final name of its file, and waits for a list of blocks to be committed. Committing is a single
request that moves no data, requires that no blob of that name exists, and leaves the id of the upload in the blob. So
publishing works as in S3, except that uploads need neither be begun nor aborted, because the service drops blocks that
nobody has committed for a week. What loads leave behind is in a folder beside the manifests::

    _sluice/<connector>/staging/<epoch>-<random>/<topic>-1/<table>/
        _attempts/<split>-<attempt>.json     the blocks of the files of an attempt at a split, by the executors' Python
        part-....orc                         a file that Spark's Java has written

Java cannot leave blocks uncommitted. What it writes is a blob in that folder, whose content is sent again, as blocks of
its final name, while it is staged; from then on there is no difference.

=====================  ==========================================  ============================================
killed                 in the container                            the next start
=====================  ==========================================  ============================================
while staging          blocks, and descriptions of some of them    deletes the descriptions; the service drops
                                                                   the blocks
while the manifest     the whole manifest, or none                 the same
is written
after the manifest     the manifest, and its blocks                commits their lists
between two lists      some files exist, the blocks of others      commits the others: an existing file with the
                                                                   id of its upload is the right one
after the mark         only descriptions of blocks                 deletes them
=====================  ==========================================  ============================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from connect.errors import ConnectError
from connect.kits.objects.azure import AzureBlobs
from connect.kits.objects.azure_account import AzureAccount
from connect.kits.objects.location import Location
from connectors.spark.stores.azure_parts import ATTEMPTS, AzurePlace, BlockUpload, staged_files
from connectors.spark.stores.parts import PartPlace
from connectors.spark.stores.store import StagedFile, Store, Upload, is_seen

__all__ = ["AzureStore"]

_PUBLISHED_AT_ONCE: Final = 16
_SENT_AT_ONCE: Final = 4
"""How many of Java's files are sent again at the same time: each has a block in memory."""
_PIECE_BYTES: Final = 4 << 20
_PART: Final = re.compile(r"part-(\d+)-")


class AzureStore(AzureBlobs, Store):
    """A prefix of a container; a :class:`~connectors.spark.stores.store.Store`."""

    names_when_staging = True
    concurrency = _PUBLISHED_AT_ONCE

    def __init__(self, account: AzureAccount, location: Location) -> None:
        super().__init__(account, location.container, location.path)
        self._account = account
        self._location = location
        self._java: dict[str, tuple[str, Mapping[int, str]]] = {}
        """The final folders of the files that Spark's Java writes into a folder."""

    @property
    def url(self) -> str:
        """The URI of the prefix."""
        return self._location.uri

    def remove_tree(self, path: str) -> None:
        """Delete the blobs below a prefix, and the blobs with which Hadoop marks folders. The service drops blocks."""
        super().remove_tree(path)
        for folder in [folder for folder in self._java if folder.startswith(f"{path}/")]:
            del self._java[folder]

    # -- loads -----------------------------------------------------------------------------------------------

    def writer_options(self, folder: str, table: str, folders: Mapping[int, str]) -> Mapping[str, str]:
        """Return no options: Spark's own committer keeps failed attempts out of the folder."""
        self._java[folder] = (table, folders)
        return {}

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace:
        """Return the place for blocks of the files' final names."""
        return AzurePlace(self._account, self._location.container, self._location.path, folder, table, folders)

    def staged(self, folder: str) -> Iterator[StagedFile]:
        """Return the files of the Python attempts that count, and those of Java, whose content is sent again."""
        found = [name.removeprefix(f"{folder}/") for name, _ in self.below(folder)]
        notes = [name for name in found if name.startswith(f"{ATTEMPTS}/")]
        with ThreadPoolExecutor(_PUBLISHED_AT_ONCE) as threads:
            contents = threads.map(lambda name: self.read(f"{folder}/{name}"), notes)
            yield from staged_files(dict(zip(notes, contents, strict=True)))
        written = [name for name in found if is_seen(name)]
        with ThreadPoolExecutor(_SENT_AT_ONCE) as threads:
            yield from threads.map(lambda name: self._sent_again(folder, name), written)

    def publish(self, staged: str, target: str, upload: Upload | None = None) -> None:
        """Commit a file's block list, unless that is done already."""
        if upload is None:
            raise FileNotFoundError(staged)
        try:
            self.commit_if_absent(target, upload.id, upload.parts)
        except (FileExistsError, FileNotFoundError):
            # Another driver rolling forward may have done so in the meantime.
            if self.written_by(target) != upload.id:
                raise

    # -- what is staged --------------------------------------------------------------------------------------

    def _sent_again(self, folder: str, name: str) -> StagedFile:
        """Stage one of Java's files as blocks of its final name."""
        table, folders = self._java[folder]
        match = _PART.match(name.rpartition("/")[2])
        if match is None:
            raise ConnectError(
                f"The staged file {name} in {self.url} was not written by Spark for this load. Make sure that "
                "nothing else writes there, and restart the task to load the records again."
            )
        target = "/".join(filter(None, (table, folders.get(int(match[1]), ""), name)))
        upload = BlockUpload(self, target)
        with self.open(f"{folder}/{name}") as content:
            while piece := content.read(_PIECE_BYTES):
                upload.stream.write(piece)
        upload.stream.close()
        return upload.staged()
