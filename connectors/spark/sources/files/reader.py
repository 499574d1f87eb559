"""Reads the rows of files with Spark: either whole files or none of their rows.

On its own, Spark would publish half of a file that turns out to be corrupt in the middle. So the files of a load are
read once beforehand. If they cannot be read together, they are split in half repeatedly until the unreadable file is
isolated. That also separates files whose columns have incompatible types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConfigError, ConnectError, DataError, RetriableError
from connect.internals.chain.stack_trace import error_text
from connectors.spark.errors import root_cause
from connectors.spark.sources.files.bookmark import FoundFile
from connectors.spark.sources.files.config import PartitionFields, SparkFileSourceConfig
from connectors.spark.sources.marks import divide_evenly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from connectors.spark.sources.record_frame import RecordFrame
    from connectors.spark.sources.row_publisher import RowPublisher

__all__ = ["BadFile", "FileGroup", "FilePart", "FileReader", "file_groups", "readable_parts"]

_NO_GLOBS: Final = {"__globPaths__": "false"}
"""Options that make Spark take paths literally: a path that looks like a pattern is a plain file name."""
_PASSING: Final = (
    "ConnectException",
    "SocketException",
    "SocketTimeoutException",
    "UnknownHostException",
    "NoRouteToHostException",
    "StandbyException",
    "SafeModeException",
    "OutOfMemoryError",
)
_CHANGED: Final = ("FileNotFoundException", "FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND", "RemoteFileChanged")


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read together: their rows go to one topic, and their folders have the same partition columns."""

    topic: str
    columns: tuple[str, ...]
    files: Sequence[FoundFile]


@dataclass(frozen=True, slots=True)
class FilePart:
    """Files that are read together, with their rows."""

    files: Sequence[FoundFile]
    records: RecordFrame
    columns: StructType | None = None
    """The columns of all the files combined."""


@dataclass(frozen=True, slots=True)
class BadFile:
    """An unreadable file, and why it cannot be read."""

    file: FoundFile
    reason: str


def file_groups(files: Iterable[FoundFile], config: SparkFileSourceConfig) -> Iterator[FileGroup]:
    """Group the files."""
    root = config.folder.rstrip("/").rpartition("/")[2]

    def about(file: FoundFile) -> tuple[str, tuple[str, ...]]:
        folders = file.name.split("/")[:-1]
        columns = [part.partition("=")[0] for part in folders if "=" in part]
        plain = ".".join(part for part in folders if "=" not in part)
        return config.topic_of(folder=plain or root), tuple(columns)

    for (topic, columns), group in groupby(sorted(files, key=lambda file: (about(file), file.place)), key=about):
        yield FileGroup(topic, columns, list(group))


def readable_parts(
    files: Sequence[FoundFile], read: Callable[[Sequence[FoundFile]], FilePart]
) -> Iterator[FilePart | BadFile]:
    """Yield the rows of the files, in as few parts as they can be read in, and the files that cannot be read.

    ``read`` reads all rows of the files it is given, and raises if it cannot.
    """
    try:
        part = read(files)
    except Exception as error:
        _check_passing(error)
        if len(files) == 1:
            yield BadFile(files[0], root_cause(error))
            return
        middle = len(files) // 2
        yield from readable_parts(files[:middle], read)
        yield from readable_parts(files[middle:], read)
    else:
        yield part


class FileReader:
    """Reads files as the connector's options say."""

    def __init__(self, spark: SparkSession, publisher: RowPublisher, config: SparkFileSourceConfig) -> None:
        self._spark = spark
        self._publisher = publisher
        self._config = config

    def parts(self, group: FileGroup) -> Iterator[FilePart | BadFile]:
        """Return the rows of a group's files, each of which has been read in full, and the files that cannot be
        read.
        """
        return readable_parts(group.files, lambda files: self._whole(group, files))

    def error(self, bad: BadFile) -> DataError:
        """Return the error for a file that cannot be read."""
        return DataError(f"The file {bad.file.path} cannot be read, and none of its rows is sent: {bad.reason}")

    def divided(self, group: FileGroup, part: FilePart, count: int) -> Sequence[FilePart]:
        """Divide a part into at most this many of roughly equal size, each with the columns of the whole."""
        divided = divide_evenly(part.files, count, lambda file: file.size)
        return [part] if len(divided) == 1 else [self._part(group, files, part.columns) for files in divided]

    def _whole(self, group: FileGroup, files: Sequence[FoundFile]) -> FilePart:
        part = self._part(group, files)
        writer = part.records.frame.write.format("noop").mode("overwrite")
        self._publisher.run(writer.save)
        return part

    def _part(self, group: FileGroup, files: Sequence[FoundFile], columns: StructType | None = None) -> FilePart:
        from connectors.spark.sources.record_frame import RowReading, line_frame  # noqa: PLC0415 - brings pyspark

        frame = self._publisher.run(lambda: self._frame(group, files, columns))
        if self._config.format == "StringFormat":
            return FilePart(files, line_frame(frame, group.topic))
        return FilePart(files, RowReading(self._config, frame.schema).frame(frame, group.topic), frame.schema)

    def _frame(self, group: FileGroup, files: Sequence[FoundFile], columns: StructType | None) -> DataFrame:
        config = self._config
        reader: Any = self._spark.read.format(config.source).options(**{**config.read_options, **_NO_GLOBS})
        if group.columns and config.partition_fields is not PartitionFields.NONE:
            reader = reader.option("basePath", config.folder)
        if (schema := columns or config.schema) is not None:
            reader = reader.schema(schema)
        frame: DataFrame = reader.load([file.path for file in files])
        return frame


def _check_passing(error: Exception) -> None:
    """Raise errors that no file is to blame for: those of the configuration, the session, or an unreachable store."""
    if isinstance(error, ConfigError | RetriableError):
        raise error
    text = f"{type(error).__name__}: {error_text(error)}"
    if isinstance(error, ConnectError) and not isinstance(error, DataError):
        raise error
    if any(name in text for name in _CHANGED):
        raise RetriableError(f"Files changed while they were read: {root_cause(error)}", retry_after=1.0) from error
    if "Py4JNetworkError" in text or any(name in text for name in _PASSING):
        raise RetriableError(f"The files could not be read: {root_cause(error)}") from error
