"""The ledger beside the data: makes a load happen exactly once, whichever process is killed and when (I3).

Below the store, besides the tables, there is one hidden folder for each connector::

    _sluice/<connector>/staging/<epoch>-<random>/...    what a load writes before it is committed
    _sluice/<connector>/manifests/0000000042.json       number 42 of the ledger: offsets, schemas, files
    _sluice/<connector>/manifests/0000000042.done       every file of number 42 has its final name

A load goes through these steps; a kill between two of them leaves this:

=====================  =====================================  =============================================
killed                 on disk                                the next start
=====================  =====================================  =============================================
while staging          part of the files in a staging folder  deletes it, because no manifest names it; the
                                                              records are loaded again, from the offsets
                                                              of the last manifest
after staging          all files in the staging folder,       the same
                       synced
while the manifest     a hidden file beside the manifests,    the same: a manifest is linked to its name
is written             or the same as above                   whole, or it does not exist
after the manifest     the manifest, all files in staging     rolls forward: renames all, marks it done;
(the commit)                                                  loading continues from the manifest's offsets
between two renames    some files have their final names      rolls forward: renames the rest
after the renames      all files have their final names       marks it done
after the done mark    the same, an empty staging folder      deletes the staging folder
before Kafka's         the ledger is ahead of the offsets     loading continues from the ledger's offsets,
offsets are committed  of the group                           which take precedence over the group's
=====================  =====================================  =============================================

A compaction takes the same steps with a manifest that also lists the files it has merged. After the commit these are
removed first, then the merged ones get their names:

=====================  =====================================  =============================================
killed                 on disk                                the next start
=====================  =====================================  =============================================
while staging          the old files, part of the new ones    deletes the staging folder; nothing has
                       in a staging folder                    changed for readers
after the manifest,    the manifest, some of the old files,   rolls forward: removes the rest, renames all,
between two removals   the new ones in the staging folder     marks it done
between removals and   no old files, some of the new ones     rolls forward: renames the rest
renames, or renames
after the renames      all new files                          marks it done
=====================  =====================================  =============================================

A load that rewrites its table (``schema.conflict=rewrite``) combines both: its manifest has the offsets, the files of
the load, and the rewritten files together with those they replace. None of these counts without the others.

In that order, a reader that lists a folder and then opens its files never sees a record twice. It may miss records of
the old files from the first removal to the last rename, or fail because a file it has listed is gone. The name of a
merged file carries the number of its manifest, so a removal never hits a new file, however late and often it is tried.

Staged files are synced before the manifest is written, the manifest before the first rename, and the renames before the
done mark. So the table also holds for a power failure, as far as the disk keeps its promises.

A reader of the tables sees each record once at any moment: staging is elsewhere and hidden, and a rename is atomic.
Between a manifest and its done mark, a reader may see a part of a load.

**Fencing.** A starting driver takes the next number of the ledger with a manifest that moves nothing: its claim. An
earlier driver that is still alive but was cut off then finds its own next number taken and fails with
:class:`FencedError`; it has changed nothing and deletes nothing. Staging folders carry the number of their driver's
claim, so a driver knows which belong to drivers it has fenced, and deletes only those. A Spark JVM that survives its
driver writes into such a folder, where it does no harm.

**Growth.** A manifest repeats all offsets and schemas, so only the last one matters and old ones are pruned. A number
is still never used twice: a driver that slept while its next number was used and pruned sees higher numbers after
writing its manifest, and has lost; and only the highest manifest is ever rolled forward.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from connect.data import Schema, TopicPartition
from connect.internals.crash import crash_point
from connectors.spark.sink.ledger.manifest import LedgerError, Manifest, Move
from connectors.spark.sink.sql.windows import OpenWindows
from connectors.spark.sink.target import FencedError
from connectors.spark.stores.store import Store, ask_all

__all__ = ["Ledger", "folder_name"]

logger = logging.getLogger(__name__)

_KEPT: Final = 20
_WIDTH: Final = 10
_MANIFEST: Final = re.compile(rf"(\d{{{_WIDTH},}})\.json")
_STAGING: Final = re.compile(r"(\d+)-[0-9a-f]+")


class Ledger:
    """The ledger of one connector in one store. It belongs to the driver that called :meth:`open` last."""

    def __init__(self, files: Store, connector: str) -> None:
        name = folder_name(connector)
        self._files = files
        self._connector = connector
        self._manifests = f"_sluice/{name}/manifests"
        self._windows = f"_sluice/{name}/windows"
        self._staging = files.staging(name)
        self._head = Manifest(number=0, epoch=0)

    def open(self) -> None:
        """Finish or delete the loads that an earlier driver left behind, and fence it if it is still running."""
        while True:
            head = self._last()
            self._roll_forward(head)
            number = head.number + 1
            claim = replace(head, number=number, epoch=number, staging=None, moves=(), removals=())
            try:
                self._files.create(self._path(number), claim.to_bytes())
            except FileExistsError:
                logger.info(
                    "Another driver created manifest %d of %s; reading the ledger again.", number, self._connector
                )
                continue
            if self._last_number() == number:
                break
        self._head = claim
        self._clear()
        self._prune()

    def peek(self) -> None:
        """Read the ledger without taking it over; nothing can be committed afterwards."""
        self._head = self._last()

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The next offset of every partition that was ever loaded."""
        return self._head.offsets

    @property
    def topics(self) -> Mapping[str, str]:
        """The topic ids the offsets belong to, as far as known."""
        return self._head.topics

    @property
    def tables(self) -> Mapping[str, Schema]:
        """The schema of every table, as in its newest files."""
        return self._head.tables

    @property
    def records(self) -> Mapping[str, Schema]:
        """The schema of the rows that the query turns into those of a table, by table."""
        return self._head.records

    @property
    def windows(self) -> Mapping[str, OpenWindows]:
        """The open windows of the query, by ``topic/table``."""
        return self._head.windows

    @property
    def next_number(self) -> int:
        """The number of this driver's next manifest, unless it is fenced."""
        return self._head.number + 1

    def recover(self) -> None:
        """Finish a failed load of this driver, and delete the files that fenced drivers have written since."""
        last = self._last()
        if last.epoch != self._head.epoch:
            raise self._fenced()
        # It may be a manifest of this driver that the driver does not know of, if the error came after the commit.
        self._head = last
        self._roll_forward(last)
        self._clear()

    def new_staging(self) -> str:
        """Return the path of a new folder for one attempt at a load."""
        return f"{self._staging}/{self._head.epoch:0{_WIDTH}}-{uuid.uuid4().hex}"

    def new_windows(self) -> str:
        """Return the path of a new folder for rows held for the query."""
        return f"{self._windows}/{self._head.epoch:0{_WIDTH}}-{uuid.uuid4().hex}"

    def check_fence(self) -> None:
        """Raise :class:`FencedError` if another driver has taken over."""
        if self._last_number() > self._head.number:
            raise self._fenced()

    def commit(
        self,
        staging: str,
        moves: Sequence[Move],
        offsets: Mapping[TopicPartition, int],
        tables: Mapping[str, Schema],
        topics: Mapping[str, str] | None = None,
        records: Mapping[str, Schema] | None = None,
        removals: Sequence[str] = (),
        windows: Mapping[str, OpenWindows] | None = None,
    ) -> None:
        """Commit a load: once this returns, its files have their final names and its offsets count.

        ``moves`` are all files of the load; ``offsets``, ``tables``, ``topics`` and ``records`` are its changes to the
        ledger's. From now on, the id of a topic that is in ``offsets`` but not in ``topics`` is unknown. ``removals``
        are files whose rows are in the moved ones. ``windows`` are all windows that are open from now on, by default
        those that were open before. Raises :class:`FencedError` if another driver has taken over.
        """
        self._check_free(moves)
        try:
            self._files.sync_files(move.source for move in moves)
            self._sync_windows(windows or {})
        except FileNotFoundError:
            # A driver that takes over deletes this driver's staging folders.
            self.check_fence()
            raise
        named = {topic for topic, _ in offsets}
        others = {topic: known for topic, known in self._head.topics.items() if topic not in named}
        manifest = Manifest(
            number=self._head.number + 1,
            epoch=self._head.epoch,
            offsets={**self._head.offsets, **offsets},
            tables={**self._head.tables, **tables},
            staging=staging,
            moves=tuple(moves),
            topics={**others, **(topics or {})},
            records={**self._head.records, **(records or {})},
            removals=tuple(removals),
            windows=self._head.windows if windows is None else windows,
        )
        try:
            self._files.create(self._path(manifest.number), manifest.to_bytes())  # the commit
        except FileExistsError as error:
            raise self._fenced() from error
        if self._last_number() > manifest.number:
            raise self._fenced()
        self._head = manifest
        crash_point("after-manifest")
        try:
            self._roll_forward(manifest)
        except LedgerError:
            # A driver that has taken over has rolled it forward, and may have merged its files since.
            self.check_fence()
            raise
        self._prune()
        self._clear_windows()

    def _check_free(self, moves: Sequence[Move]) -> None:
        """Check that none of the load's file names is taken."""
        sizes = ask_all(self._files, lambda move: self._files.size(move.target), moves)
        for move, size in zip(moves, sizes, strict=True):
            if size is not None:
                self.check_fence()
                raise self._occupied(move)

    # -- recovery --------------------------------------------------------------------------------------------

    def _roll_forward(self, manifest: Manifest) -> None:
        """Give the files of a manifest their final names, as far as still needed, and mark it done."""
        if not (manifest.moves or manifest.removals) or self._files.size(self._mark(manifest.number)) is not None:
            return
        for path in manifest.removals:
            self._files.remove(path)
            crash_point("mid-removal")
        # A power failure must not bring back a removed file beside the one that replaces it.
        self._files.sync_folders(path.rpartition("/")[0] for path in manifest.removals)
        with ThreadPoolExecutor(self._files.concurrency) as threads:
            for _ in threads.map(self._publish, manifest.moves):
                pass
        # The names must be on disk before the mark says so.
        self._files.sync_folders(move.target.rpartition("/")[0] for move in manifest.moves)
        crash_point("before-done")
        try:
            self._files.create(self._mark(manifest.number), b"")
        except FileExistsError:
            logger.info("Another driver marked manifest %d of %s done.", manifest.number, self._connector)
        if manifest.staging is not None:
            self._files.remove_tree(manifest.staging)

    def _publish(self, move: Move) -> None:
        try:
            self._files.publish(move.source, move.target, move.upload)
        except FileExistsError as error:
            raise self._occupied(move) from error
        except FileNotFoundError as error:
            raise self._damaged(move, None) from error
        size = self._files.size(move.target)
        if size != move.size:
            raise self._damaged(move, size)
        crash_point("mid-rename")

    def _clear(self) -> None:
        """Delete staging folders of fenced drivers, and of this driver's finished attempts (I6)."""
        for name in self._files.names(self._staging):
            match = _STAGING.fullmatch(name)
            if match is not None and int(match[1]) <= self._head.epoch:
                self._files.abandon(f"{self._staging}/{name}", self.check_fence)
        self._clear_windows()

    def _clear_windows(self) -> None:
        """Delete the folders of held rows that nothing refers to: those of finished attempts and of earlier loads.

        A fenced driver deletes none that is in use: its successor refers to those it knew, or to newer ones.
        """
        named = {folder for windows in self._head.windows.values() for folder in windows.folders}
        for name in self._files.names(self._windows):
            match = _STAGING.fullmatch(name)
            if match is not None and int(match[1]) <= self._head.epoch and f"{self._windows}/{name}" not in named:
                self._files.remove_tree(f"{self._windows}/{name}")

    def _sync_windows(self, windows: Mapping[str, OpenWindows]) -> None:
        """Make the rows durable to which a commit is about to refer."""
        kept = {folder for known in self._head.windows.values() for folder in known.folders}
        for folder in {folder for each in windows.values() for folder in each.folders} - kept:
            self._files.sync_files(f"{folder}/{path}" for path in self._files.files(folder))

    def _prune(self) -> None:
        for name in self._files.names(self._manifests):
            stem = name.partition(".")[0]
            if stem.isdigit() and int(stem) <= self._head.number - _KEPT:
                self._files.remove(f"{self._manifests}/{name}")

    # -- the chain of manifests ------------------------------------------------------------------------------

    def _last_number(self) -> int:
        found = (_MANIFEST.fullmatch(name) for name in self._files.names(self._manifests))
        return max((int(match[1]) for match in found if match is not None), default=0)

    def _last(self) -> Manifest:
        while True:
            number = self._last_number()
            if number == 0:
                return Manifest(number=0, epoch=0)
            path = self._path(number)
            try:
                manifest = Manifest.from_bytes(self._files.read(path), path)
            except FileNotFoundError:
                logger.info(
                    "Manifest %d of %s was pruned in the meantime; reading the ledger again.", number, self._connector
                )
                continue
            if manifest.number != number:
                raise LedgerError(f"{path} says it is number {manifest.number}: restore the ledger's files.")
            return manifest

    def _path(self, number: int) -> str:
        return f"{self._manifests}/{number:0{_WIDTH}}.json"

    def _mark(self, number: int) -> str:
        return f"{self._manifests}/{number:0{_WIDTH}}.done"

    # -- errors ----------------------------------------------------------------------------------------------

    def _fenced(self) -> FencedError:
        return FencedError(
            f"Another driver has taken over connector {self._connector} in {self._files.url}, after number "
            f"{self._head.number} of the ledger. This one stops. If that was not a restart, make sure that no other "
            "worker or cluster runs a connector of the same name against the same store.url."
        )

    def _damaged(self, move: Move, size: int | None) -> LedgerError:
        state = "is gone" if size is None else f"has {size} bytes instead of {move.size}"
        why = " The store may have removed its unfinished upload." if size is None and move.upload is not None else ""
        return LedgerError(
            f"{move.target}, which the ledger of {self._connector} has committed, {state}.{why} Restore it from "
            f"a backup, or remove the ledger ({self._manifests}) and the table, and load the topics again."
        )

    def _occupied(self, move: Move) -> LedgerError:
        return LedgerError(
            f"{move.target} in {self._files.url} exists, and connector {self._connector} did not put it there."
            " Move it away, and make sure that nothing else writes into the table: another connector for the same"
            " topic needs a topics.dir of its own."
        )


def folder_name(connector: str) -> str:
    """Return the connector's name as a folder name: characters with a meaning in paths become ``%`` and hex."""
    return re.sub(r"[^A-Za-z0-9._-]|^\.", _escaped, connector)


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
