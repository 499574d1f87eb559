"""The options of the directory source."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    at_least,
    matches,
    non_empty,
    option,
)
from connect.errors import ConfigError
from connect.kits.files.readers.delimited import schema_name
from connect.kits.files.readers.options import PartitionFields, ReadingOptions
from connect.kits.files.systems.address import Address, parse_address, place_beside
from connect.kits.files.systems.options import FileSystemOptions

__all__ = ["DirectorySourceConfig", "DirectoryTaskConfig", "FinishedAction"]


class FinishedAction(StrEnum):
    """What to do with a file after the offset of its last record is committed."""

    LEAVE = "leave"
    MOVE = "move"
    DELETE = "delete"


class DirectorySourceConfig(ReadingOptions, FileSystemOptions):
    """The options of the directory source."""

    passed_keys = ()

    path: str = option(
        importance=HIGH,
        validator=non_empty,
        doc="Folder of the files: a path, or a URL such as sftp://HOST/FOLDER, ftp://, ftps://, "
        "smb://HOST/SHARE/FOLDER, s3://BUCKET/FOLDER, gs://, abfss://, http:// or https://.",
    )
    pattern: str = option(
        default="*",
        importance=HIGH,
        validator=non_empty,
        doc="Pattern for the names of the files to read, with *, ? and [...]; a pattern with a slash applies to their "
        "paths in the folder. Files whose names begin with a dot are never read. A zip archive may contain "
        "several files: those whose names match are read, either as they are or with .zip appended.",
    )
    recursive: bool = option(default=False, importance=MEDIUM, doc="Whether files in subfolders are read, too.")
    topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish the rows to.")
    batch_size: int = option(
        default=5000, importance=LOW, validator=at_least(1), doc="Maximum number of records per poll."
    )
    scan_interval_ms: Long = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        doc="How often to scan the folder while there is nothing to read.",
    )
    finished_action: FinishedAction = option(
        default=FinishedAction.LEAVE,
        importance=MEDIUM,
        doc="What to do with a file after all its records are published and its offset is committed.",
    )
    finished_folder: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="Folder for finished.action=move, on the same file system: a path, there if path is a URL. Subfolders "
        "are created as needed.",
    )
    done_suffix: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=matches(r"[^/]+", "what the names of markers end with, such as .done"),
        doc="What a marker adds to the name of a file, such as .done: a file is read only once its marker is beside "
        "it. Markers are not read, and are removed with their files.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        if self.finished_action is FinishedAction.MOVE and not self.finished_folder:
            yield ConfigRuleError("finished.action=move needs finished.folder: name a folder", "finished.folder")
        if self.partition_fields is not PartitionFields.NONE and not self.recursive:
            yield ConfigRuleError("partition.fields needs recursive=true, to read the folders", "partition.fields")
        yield from self.reading_mistakes(self.pattern)
        mistakes = list(self.system_mistakes("path", self.path))
        yield from mistakes
        if mistakes:
            return
        try:
            finished = self.finished_place
        except ConfigError as error:
            yield error
            return
        if finished is not None and finished == self.address.path:
            yield ConfigRuleError("finished.folder must not be the same folder as path", "finished.folder")
        if self.address.scheme in ("http", "https") and self.finished_action is not FinishedAction.LEAVE:
            yield ConfigRuleError("Files at http:// can only be read: set finished.action=leave", "finished.action")

    @property
    def address(self) -> Address:
        """The address of the folder."""
        return parse_address("path", self.path)

    @property
    def finished_place(self) -> str | None:
        """The folder for finished files, as the file system names it; raises
        :class:`~connect.errors.ConfigError` if it is elsewhere.
        """
        return place_beside("finished.folder", self.address, self.finished_folder) if self.finished_folder else None

    @property
    def struct_name(self) -> str:
        """The name of the schema of rows that have none of their own: the topic."""
        return schema_name(self.topic)


class DirectoryTaskConfig(DirectorySourceConfig):
    """The options of one task: those of the connector, and the task's share of the files."""

    task_index: int = option(default=0, importance=LOW, internal=True, doc="The index of the task.")
    task_count: int = option(default=1, importance=LOW, internal=True, doc="The number of tasks.")
    split_files: str = option(
        default="", importance=LOW, internal=True, doc="The files of a split as JSON, by their paths in the folder."
    )

    @property
    def names_of_split(self) -> frozenset[str] | None:
        """The files of a split, which is read to its current end; ``None`` for an endless task."""
        return frozenset(json.loads(self.split_files)) if self.split_files else None
