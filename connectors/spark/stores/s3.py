"""S3: files are staged as incomplete multipart uploads, and a commit is a put that requires the name to be free.

Besides the tables and the manifests, a store in S3 has one folder for each connector, where its loads stage files::

    __magic_job-sluice/<connector>/<epoch>-<random>/<topic>-1/<table>.table        below which table files are staged
    __magic_job-sluice/<connector>/<epoch>-<random>/<topic>-1/<table>/
        <attempt>/__base/topics/<table>/partition=0/part-....parquet.pending      an upload: id, key, parts, size
        committed/<attempt>.pendingset                                            this attempt at a task counts
    _sluice/tables/topics/<table>                                                 the connector that owns a table

When a file is created below ``__magic_job-.../__base/``, Hadoop's S3A starts a multipart upload of the path without
these parts, and does not complete it; beside an empty file it leaves a ``.pending`` file that describes the upload. So
any of Spark's writers stages files under their final names, and nobody sees them. ``sluice.StagingCommitter`` (in
``staging.jar``, its source beside it) gives each attempt at a task its own folder and records which attempts count.
Where the Python of executors writes the files, it makes the same uploads and the same notes (``uploads.py``).

The ledger copies upload ids and parts into the manifest; publishing completes the uploads. A kill leaves:

=====================  ======================================  ============================================
killed                 in the bucket                           the next start
=====================  ======================================  ============================================
while staging          incomplete uploads, some of them        aborts all uploads to the tables that
                       without a ``.pending`` file             ``.table`` files name, and deletes the folder
while the manifest     the whole manifest, or none: the put    the same, or as below
is written             is one request
after the manifest     the manifest, and its uploads           completes them
between two            some files exist, the uploads of        completes the others: a name has a random
completions            the others                              part, so a file of that name is that file
after the mark         only the ``.pending`` files             deletes them
=====================  ======================================  ============================================

**Whose uploads.** An upload is aborted if its ``.pending`` file is in the folder that is removed. It is also aborted if
its target is a table for which something was staged there, and it was listed *before* the ledger showed that no other
driver has taken over: then it is older than any upload of such a driver. This is why a table has only one owner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from connect.errors import ConnectError, RetriableError
from connect.kits.objects.location import Location
from connect.kits.objects.s3 import S3Account, S3Objects
from connectors.spark.stores.parts import PartPlace
from connectors.spark.stores.s3_parts import UploadPlace
from connectors.spark.stores.store import StagedFile, Store, Upload

__all__ = ["S3Store"]

_MAGIC: Final = "__magic_job-sluice"
_OWNERS: Final = "_sluice/tables"
_TABLE: Final = ".table"
_PENDING: Final = ".pending"
_COMMITTED: Final = re.compile(r"committed/(attempt_\d+_\d+_m_(\d+)_(\d+))\.pendingset")
_COMMITTER: Final = "sluice.StagingCommitter"
_THREADS: Final = 16


class S3Store(S3Objects, Store):
    """A prefix of a bucket; a :class:`~connectors.spark.stores.store.Store`."""

    names_when_staging = True
    concurrency = _THREADS

    def __init__(self, account: S3Account, location: Location, part_size: int) -> None:
        super().__init__(account, location.authority, location.path)
        self._location = location
        self._part_size = part_size
        self._owned: set[tuple[str, str]] = set()

    @property
    def url(self) -> str:
        """The URI of the prefix."""
        return self._location.uri

    def remove_tree(self, path: str) -> None:
        """Delete the objects below a prefix, and abort the uploads that they describe."""
        found = [name for name, _ in self.below(path)]
        open_ones = {upload for table in self._tables(found) for _, upload in self.uploads(table)}
        if open_ones:
            for file in self._pending(path, [name for name in found if name.endswith(_PENDING)]):
                if file.upload is not None and file.target is not None and file.upload.id in open_ones:
                    self.abort(file.target, file.upload.id)
        self.remove_all(found)

    # -- loads -----------------------------------------------------------------------------------------------

    def staging(self, connector: str) -> str:
        """Return a folder in which S3A creates uploads instead of files."""
        return f"{_MAGIC}/{connector}"

    def begin(self, folder: str, table: str) -> None:
        """Claim the table, and record that uploads to it are about to begin."""
        self._claim(folder.split("/")[1], table)
        self.put(folder + _TABLE, table.encode())

    def writer_options(self, folder: str, table: str, folders: Mapping[int, str]) -> Mapping[str, str]:  # noqa: ARG002
        """Return the options for the committer of all formats, and for where each of its tasks writes."""
        return {
            "spark.sql.parquet.output.committer.class": _COMMITTER,
            "spark.sql.sources.outputCommitterClass": _COMMITTER,
            "sluice.staging.table": table,
            **{f"sluice.staging.folder.{number}": place for number, place in folders.items() if place},
        }

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace:
        """Return the place for uploads, described in the same way as those of Spark's writers."""
        place = self._location
        return UploadPlace(self._account, place.authority, place.path, folder, table, folders, self._part_size)

    def staged(self, folder: str) -> Iterator[StagedFile]:
        """Return the uploads of the task attempts that count."""
        found = [name.removeprefix(f"{folder}/") for name, _ in self.below(folder)]
        # If two attempts committed, Spark lost the first and waited for the second.
        counting: dict[str, tuple[int, str]] = {}
        for match in filter(None, map(_COMMITTED.fullmatch, found)):
            counting[match[2]] = max(counting.get(match[2], (-1, "")), (int(match[3]), match[1]))
        attempts = {attempt for _, attempt in counting.values()}
        pending = [name for name in found if name.endswith(_PENDING) and name.partition("/")[0] in attempts]
        yield from self._pending(folder, [f"{folder}/{name}" for name in pending])

    def publish(self, staged: str, target: str, upload: Upload | None = None) -> None:
        """Complete an upload, unless that is done already."""
        if self.size(target) is not None:
            return
        if upload is None:
            raise FileNotFoundError(staged)
        try:
            self.complete(target, upload.id, upload.parts)
        except (FileNotFoundError, RetriableError) as error:
            # Another driver rolling forward may have completed it in the meantime; some services then fail.
            if self.size(target) is not None:
                return
            if not self.has_upload(target, upload.id):
                raise FileNotFoundError(target) from error
            raise

    def abandon(self, folder: str, check: Callable[[], None]) -> None:
        """Abort all uploads to the tables for which something was staged, and delete the folder."""
        found = [name for name, _ in self.below(folder)]
        uploads = [upload for table in self._tables(found) for upload in self.uploads(table)]
        check()
        for path, upload in uploads:
            self.abort(path, upload)
        self.remove_all(found)

    # -- what is staged --------------------------------------------------------------------------------------

    def _tables(self, found: Iterable[str]) -> list[str]:
        """Return the tables that the ``.table`` files among these name."""
        tables: set[str] = set()
        for name in found:
            if name.endswith(_TABLE):
                try:
                    tables.add(self.read(name).decode())
                except FileNotFoundError:
                    continue
        return sorted(tables)

    def _pending(self, folder: str, paths: list[str]) -> Iterator[StagedFile]:
        with ThreadPoolExecutor(_THREADS) as threads:
            for path, content in zip(paths, threads.map(self._read_pending, paths), strict=True):
                if content is not None:
                    yield self._staged_file(path.removeprefix(f"{folder}/"), content)

    def _read_pending(self, path: str) -> bytes | None:
        try:
            return self.read(path)
        except FileNotFoundError:
            return None

    def _staged_file(self, path: str, content: bytes) -> StagedFile:
        try:
            document = json.loads(content)
            parts = tuple(part if isinstance(part, str) else part["etag"] for part in document["etags"])
            target = self.path_of(document["destinationKey"])
            return StagedFile(path, int(document["length"]), target, Upload(document["uploadId"], parts))
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectError(
                f"The staged file {path} in {self.url} does not describe an upload ({error!r}). Make sure that "
                "nothing else writes there, and restart the task to load the records again."
            ) from error

    def _claim(self, connector: str, table: str) -> None:
        """Make sure that no other connector stages uploads to a table: each would abort the other's."""
        if (connector, table) in self._owned:
            return
        path = f"{_OWNERS}/{table}"
        try:
            self.create(path, connector.encode())
        except FileExistsError:
            owner = self.read(path).decode()
            if owner != connector:
                raise ConnectError(
                    f"The table {table} in {self.url} belongs to connector {owner}: give this one a topics.dir of its "
                    f"own. If {owner} is gone for good, delete the object {path} of the store."
                ) from None
        self._owned.add((connector, table))
