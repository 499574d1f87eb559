"""The directory source: each row of the files in a folder becomes a record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from connect.data import Offset, SourceBatch, SourceRecord
from connect.errors import ConnectError
from connect.kits.files.folders.finished_files import Finisher
from connect.kits.files.folders.folder import Folder
from connect.kits.files.folders.folder_reader import FolderReader
from connect.kits.files.folders.listing import Listing, matcher
from connect.kits.files.readers.bookmark import Bookmark, check_offset
from connect.kits.files.readers.row_reader import Rows
from connect.kits.files.readers.visit import FileState, KeptPlace, Reading, source_partition
from connect.kits.files.systems.address import place_in
from connect.kits.files.systems.system import FileSystem
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.directory.config import DirectorySourceConfig, DirectoryTaskConfig, FinishedAction
from connectors.directory.splits import FileSplits

__all__ = ["DirectorySourceConnector", "DirectorySourceTask"]


class DirectorySourceTask(SourceTask[DirectoryTaskConfig]):
    """Reads its share of the files, as a :class:`~connect.kits.files.folders.folder_reader.FolderReader` does."""

    def start(self) -> None:
        self._reader = FolderReader(folder_of(self.config, self._kept_place), self.context)

    def poll(self) -> SourceBatch | Iterable[SourceRecord] | None:
        return self._reader.poll()

    def commit(self) -> None:
        """Move or delete the files whose last offsets are now committed."""
        self._reader.commit()

    def drained(self) -> bool:
        """Whether every file was read to its end; false while a file is incomplete."""
        return self._reader.is_drained

    def remaining(self) -> Mapping[str, int]:
        """The number of unread bytes and files in the task's share, as of the last scan."""
        return self._reader.remaining()

    def total(self) -> Mapping[str, int]:
        """What there is to read in all, as far as it is known."""
        return self._reader.total()

    def stop(self) -> None:
        if hasattr(self, "_reader"):
            self._reader.close()

    def _kept_place(self, partition: Offset) -> Bookmark | None:
        return Bookmark.from_offset(self.context.offset_storage_reader.offset(partition))


def folder_of(config: DirectoryTaskConfig, kept: KeptPlace) -> Folder:
    """Return what the configuration says of the folder."""
    address = config.address
    system = config.system_at(address)
    listing = Listing(
        system,
        address,
        matcher(config.pattern),
        recursive=config.recursive,
        index=config.task_index,
        count=config.task_count,
        left_out=[] if config.finished_place is None else [config.finished_place],
        names=config.names_of_split,
        marker=config.done_suffix,
    )

    def shape(rows: Rows, state: FileState, member: str | None) -> SourceBatch:
        partition = source_partition(state.file, member)
        return SourceBatch.of(config.topic, rows.column, source_partition=partition, source_offsets=rows.offsets)

    return Folder(
        address.shown(address.path),
        "path",
        Reading(config, system, listing.matches, kept),
        listing,
        shape,
        config.topic,
        config.batch_size,
        config.scan_interval_ms / 1000,
        is_split=bool(config.split_files),
        finisher=_finisher(config, system),
    )


def _finisher(config: DirectoryTaskConfig, system: FileSystem) -> Finisher | None:
    if config.finished_action is FinishedAction.LEAVE:
        return None
    folder = config.finished_place if config.finished_action is FinishedAction.MOVE else None
    return Finisher(system, lambda file: None if folder is None else place_in(folder, file.name), config.done_suffix)


class DirectorySourceConnector(SourceConnector[DirectorySourceConfig]):
    """Reads CSV, TSV, JSON lines, text, Avro, Parquet and ORC files in a folder, row by row."""

    task_class = DirectorySourceTask
    watches = False

    def start(self) -> None:
        self._splits: FileSplits | None = None

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return configs of tasks that share the files by their paths, future files included."""
        props = {key: value for key, value in self.config.originals.items() if value is not None}
        return [{**props, "task.index": str(index), "task.count": str(max_tasks)} for index in range(max_tasks)]

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str]]:
        """Return the files that have something to read, each with its present content."""
        props = {key: value for key, value in self.config.originals.items() if value is not None}
        if self._splits is None:
            self._splits = FileSplits(
                folder_of(DirectoryTaskConfig.parse(props), lambda _: None), self.context.offset_storage_reader
            )
        return [{**props, "split.files": json.dumps(names)} for names in self._splits.next(max_splits)]

    @classmethod
    def exactly_once_support(cls, config: DirectorySourceConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Supported as long as files are only added or appended to."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: DirectorySourceConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Accept any file and any position from 0 on; the position must be the beginning of a row."""
        for partition, offset in offsets.items():
            if offset is None:
                continue
            check_offset(offset)
            if "filename" not in (json.loads(partition) or ()):
                raise ConnectError(
                    "Partition objects should contain the key 'filename', and 'member' for a file in a zip archive"
                )
        return True
