"""The SpoolDir sources, and Confluent's SFTP sources: files of one format, which are moved away when they are read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from connect.data import Offset, SourceBatch, SourceRecord
from connect.errors import ConfigError, ConnectError
from connect.kits.files.folders.finished_files import Finisher
from connect.kits.files.folders.folder import Folder, Shape
from connect.kits.files.folders.folder_reader import FolderReader
from connect.kits.files.folders.listing import Listing
from connect.kits.files.readers.bookmark import Bookmark, check_offset
from connect.kits.files.readers.visit import KeptPlace, Reading
from connect.kits.files.systems.address import Address, place_in
from connect.kits.files.systems.sftp import SftpSystem
from connect.kits.files.systems.system import NANOSECONDS, FileSystem, SourceFile
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.directory.spool.config import (
    CleanupPolicy,
    SftpOptions,
    SpoolAvroConfig,
    SpoolBinaryConfig,
    SpoolConfig,
    SpoolCsvConfig,
    SpoolJsonConfig,
    SpoolLinesConfig,
    SpoolTextJsonConfig,
)
from connectors.directory.spool.records import shape_of

__all__ = [
    "SftpBinaryFileSourceConnector",
    "SftpCsvSourceConnector",
    "SftpJsonSourceConnector",
    "SftpSchemaLessJsonSourceConnector",
    "SpoolDirAvroSourceConnector",
    "SpoolDirBinaryFileSourceConnector",
    "SpoolDirCsvSourceConnector",
    "SpoolDirJsonSourceConnector",
    "SpoolDirLineDelimitedSourceConnector",
    "SpoolDirSchemaLessJsonSourceConnector",
]

C = TypeVar("C", bound=SpoolConfig)

_ORDERS: Final[Mapping[str, Callable[[SourceFile], Any]]] = {
    "Name": lambda file: file.name,
    "Length": lambda file: file.size,
    "LastModified": lambda file: file.status.modified_ns,
}


class _SpoolTask(SourceTask[C], Generic[C]):
    """Reads the files of a folder, and moves each away once the offsets of its records are committed.

    A file with a row that cannot be read is moved to ``error.path`` when the rows before it are committed; so a kill
    loses nothing, and a task that is to fail does so after that. Crash points: see
    :class:`~connect.kits.files.folders.folder_reader.FolderReader`.
    """

    def start(self) -> None:
        self._reader = FolderReader(_folder(self.config, shape_of(self.config), self._kept_place), self.context)

    def poll(self) -> SourceBatch | Iterable[SourceRecord] | None:
        return self._reader.poll()

    def commit(self) -> None:
        """Move the files whose last offsets are now committed."""
        self._reader.commit()

    def drained(self) -> bool:
        """Whether every file was read to its end."""
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


def _folder(config: SpoolConfig, shape: Shape, kept: KeptPlace) -> Folder:
    address = config.address
    system = _system(config, address)
    finished, error = config.finished_place, config.error_place
    listing = Listing(
        system,
        address,
        lambda name: config.name_pattern.fullmatch(name.rpartition("/")[2]) is not None,
        recursive=config.input_path_walk_recursively,
        index=config.task_index,
        count=config.task_count,
        left_out=[folder for folder in (finished, error) if folder is not None],
        order=_order(config.files_sort_attributes),
    )
    return Folder(
        address.shown(address.path),
        "input.path",
        Reading(config.reading, system, listing.matches, kept),
        listing,
        shape,
        config.topic_name,
        config.batch_size,
        config.empty_poll_wait_ms / 1000,
        finisher=_finisher(config, system, finished),
        rejecter=Finisher(system, lambda file: place_in(error, file.name)),
        halts=config.halts,
    )


def _system(config: SpoolConfig, address: Address) -> FileSystem:
    if isinstance(config, SftpOptions):
        account = config.sftp_account(config.sftp_known_hosts, config.sftp_host_key)
        return SftpSystem(address, account, config.host_rules)
    return config.system_at(address)


def _order(attributes: Sequence[str]) -> Callable[[list[SourceFile]], list[SourceFile]]:
    """Return what sorts files by several attributes, the first of which counts most."""

    def ordered(files: list[SourceFile]) -> list[SourceFile]:
        for attribute in reversed(attributes):
            descends = attribute.endswith("Desc")
            key = _ORDERS[attribute.removesuffix("Asc").removesuffix("Desc")]
            files = sorted(files, key=key, reverse=descends)
        return files

    return ordered


def _finisher(config: SpoolConfig, system: FileSystem, finished: str | None) -> Finisher | None:
    if config.cleanup_policy is CleanupPolicy.NONE:
        return None
    if config.cleanup_policy is CleanupPolicy.DELETE or finished is None:
        return Finisher(system, lambda _: None)

    def target(file: SourceFile) -> str:
        if config.cleanup_policy is CleanupPolicy.MOVE:
            return place_in(finished, file.name)
        day = dt.datetime.fromtimestamp(file.status.modified_ns / NANOSECONDS, dt.UTC).date()
        return place_in(place_in(finished, day.isoformat()), file.name)

    return Finisher(system, target)


class _SpoolConnector(SourceConnector[C], Generic[C]):
    """What these connectors share."""

    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return configs of tasks that share the files by their names, future files included."""
        props = {key: value for key, value in self.config.originals.items() if value is not None}
        return [{**props, "task.index": str(index), "task.count": str(max_tasks)} for index in range(max_tasks)]

    @classmethod
    def exactly_once_support(cls, config: C) -> ExactlyOnceSupport:  # noqa: ARG003
        """Supported: a file is read from its position."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Accept any position from 0 on; it must be the beginning of a row."""
        for partition, offset in offsets.items():
            if offset is not None:
                check_offset(offset)
            if '"filename"' not in partition:
                raise ConnectError("Partition objects should contain the key 'filename', the path or URL of the file")
        return True


class SpoolDirCsvSourceTask(_SpoolTask[SpoolCsvConfig]):
    """Reads CSV files, whose rows become structs."""


class SpoolDirCsvSourceConnector(_SpoolConnector[SpoolCsvConfig]):
    """Reads CSV files, whose rows become structs."""

    task_class = SpoolDirCsvSourceTask


class SftpCsvConfig(SftpOptions, SpoolCsvConfig):
    """The options of CSV files on an SFTP server."""

    topic_key = "kafka.topic"

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from self.sftp_mistakes()
        yield from super().check()

    topic_name = property(lambda self: self.kafka_topic or "")
    halts = property(lambda self: self.behavior_on_error == "FAIL")
    folder_text = property(lambda self: f"sftp://{self.sftp_host}:{self.sftp_port}/{self.input_path.lstrip('/')}")


class SftpCsvSourceTask(_SpoolTask[SftpCsvConfig]):
    """Reads CSV files, whose rows become structs."""


class SftpCsvSourceConnector(_SpoolConnector[SftpCsvConfig]):
    """Reads CSV files, whose rows become structs, from an SFTP server."""

    task_class = SftpCsvSourceTask


class SpoolDirJsonSourceTask(_SpoolTask[SpoolJsonConfig]):
    """Reads JSON files, whose objects become structs."""


class SpoolDirJsonSourceConnector(_SpoolConnector[SpoolJsonConfig]):
    """Reads JSON files, whose objects become structs."""

    task_class = SpoolDirJsonSourceTask


class SftpJsonConfig(SftpOptions, SpoolJsonConfig):
    """The options of JSON files on an SFTP server."""

    topic_key = "kafka.topic"

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from self.sftp_mistakes()
        yield from super().check()

    topic_name = property(lambda self: self.kafka_topic or "")
    halts = property(lambda self: self.behavior_on_error == "FAIL")
    folder_text = property(lambda self: f"sftp://{self.sftp_host}:{self.sftp_port}/{self.input_path.lstrip('/')}")


class SftpJsonSourceTask(_SpoolTask[SftpJsonConfig]):
    """Reads JSON files, whose objects become structs."""


class SftpJsonSourceConnector(_SpoolConnector[SftpJsonConfig]):
    """Reads JSON files, whose objects become structs, from an SFTP server."""

    task_class = SftpJsonSourceTask


class SpoolDirSchemaLessJsonSourceTask(_SpoolTask[SpoolTextJsonConfig]):
    """Reads JSON files, whose values are published as text."""


class SpoolDirSchemaLessJsonSourceConnector(_SpoolConnector[SpoolTextJsonConfig]):
    """Reads JSON files, whose values are published as text."""

    task_class = SpoolDirSchemaLessJsonSourceTask


class SftpSchemaLessJsonConfig(SftpOptions, SpoolTextJsonConfig):
    """The options of JSON files on an SFTP server."""

    topic_key = "kafka.topic"

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from self.sftp_mistakes()
        yield from super().check()

    topic_name = property(lambda self: self.kafka_topic or "")
    halts = property(lambda self: self.behavior_on_error == "FAIL")
    folder_text = property(lambda self: f"sftp://{self.sftp_host}:{self.sftp_port}/{self.input_path.lstrip('/')}")


class SftpSchemaLessJsonSourceTask(_SpoolTask[SftpSchemaLessJsonConfig]):
    """Reads JSON files, whose values are published as text."""


class SftpSchemaLessJsonSourceConnector(_SpoolConnector[SftpSchemaLessJsonConfig]):
    """Reads JSON files, whose values are published as text, from an SFTP server."""

    task_class = SftpSchemaLessJsonSourceTask


class SpoolDirLineDelimitedSourceTask(_SpoolTask[SpoolLinesConfig]):
    """Reads text files, whose lines are published."""


class SpoolDirLineDelimitedSourceConnector(_SpoolConnector[SpoolLinesConfig]):
    """Reads text files, whose lines are published."""

    task_class = SpoolDirLineDelimitedSourceTask


class SpoolDirBinaryFileSourceTask(_SpoolTask[SpoolBinaryConfig]):
    """Reads files, each of which becomes one value of bytes."""


class SpoolDirBinaryFileSourceConnector(_SpoolConnector[SpoolBinaryConfig]):
    """Reads files, each of which becomes one value of bytes."""

    task_class = SpoolDirBinaryFileSourceTask


class SftpBinaryFileConfig(SftpOptions, SpoolBinaryConfig):
    """The options of files on an SFTP server."""

    topic_key = "kafka.topic"

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from self.sftp_mistakes()
        yield from super().check()

    topic_name = property(lambda self: self.kafka_topic or "")
    halts = property(lambda self: self.behavior_on_error == "FAIL")
    folder_text = property(lambda self: f"sftp://{self.sftp_host}:{self.sftp_port}/{self.input_path.lstrip('/')}")


class SftpBinaryFileSourceTask(_SpoolTask[SftpBinaryFileConfig]):
    """Reads files, each of which becomes one value of bytes."""


class SftpBinaryFileSourceConnector(_SpoolConnector[SftpBinaryFileConfig]):
    """Reads files, each of which becomes one value of bytes, from an SFTP server."""

    task_class = SftpBinaryFileSourceTask


class SpoolDirAvroSourceTask(_SpoolTask[SpoolAvroConfig]):
    """Reads Avro container files."""


class SpoolDirAvroSourceConnector(_SpoolConnector[SpoolAvroConfig]):
    """Reads Avro container files."""

    task_class = SpoolDirAvroSourceTask
