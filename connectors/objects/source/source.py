"""The sources of objects in S3, Google Cloud Storage and Azure Blob Storage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from connect.data import Offset, SourceBatch, SourceRecord
from connect.errors import ConnectError
from connect.kits.files.folders.finished_files import Finisher
from connect.kits.files.folders.folder import Folder
from connect.kits.files.folders.folder_reader import FilesToRead, FolderReader
from connect.kits.files.folders.listing import Listing
from connect.kits.files.readers.bookmark import Bookmark
from connect.kits.files.readers.visit import Reading
from connect.kits.files.systems.objects import ObjectSystem
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.objects.source.config import (
    AzureBlobSourceConfig,
    FinishedAction,
    GcsSourceConfig,
    ObjectSourceConfig,
    S3SourceConfig,
)
from connectors.objects.source.records import ObjectShape
from connectors.objects.source.splits import ObjectSplits, SplitObjects
from connectors.objects.source.told_objects import ToldObjects
from connectors.objects.source.unread_objects import UnreadObjects, object_partition

__all__ = [
    "AzureBlobSourceConnector",
    "AzureBlobSourceTask",
    "GcsSourceConnector",
    "GcsSourceTask",
    "S3SourceConnector",
    "S3SourceTask",
]

C = TypeVar("C", bound=ObjectSourceConfig)

_PAUSE_SECONDS: Final = 0.02
"""Between two questions to a queue, which waits for messages itself, and at the end of a split."""


class ObjectSourceTask(SourceTask[C], Generic[C]):
    """Reads its share of the objects one after the other, in the order of their keys, then lists them again.

    Crash points: reading resumes at the last committed place in each object, so records published after it come again,
    unless the worker supports exactly once. An object is moved or deleted when its last offset is committed; a kill
    between the two leaves it, and the next start does it without reading it again.
    """

    def start(self) -> None:
        config = self.config
        self._bucket = config.address.host
        system = ObjectSystem(config.address, config)
        readings = {part: config.reading_of(part) for part in ("values", "keys", "headers")}
        objects = UnreadObjects(
            config, system, readings["values"], self.context.offset_storage_reader, self.context.pass_offset
        )
        files = self._files(objects)

        def reading_of(part: str) -> Reading:
            return Reading(readings[part], system, lambda _: True, lambda _: None)

        self._shape = ObjectShape(config, objects.found, reading_of, self.context.errant_record_reporter)
        reading = Reading(
            readings["values"],
            system,
            lambda _: True,
            self._kept_place,
            lambda file, _: object_partition(self._bucket, file),
            lambda file: readings["keys" if objects.has_keys_alone(file) else "values"],
        )
        folder = Folder(
            config.url,
            config.bucket_key,
            reading,
            Listing(system, config.address, lambda _: True, recursive=True),
            self._shape,
            config.topic or "",
            config.batch_size,
            config.poll_interval_ms / 1000 if files is objects else _PAUSE_SECONDS,
            finisher=_finisher(config, system),
        )
        self._reader = FolderReader(folder, self.context, files)

    def _files(self, objects: UnreadObjects) -> FilesToRead:
        """Return what finds objects: by lists alone, for a split, or by a queue."""
        keys, queue = self.config.keys_of_split, self.config.queue
        self._told = None
        if keys is not None:
            return SplitObjects(objects, keys)
        if queue is None:
            return objects
        self._told = ToldObjects(self.config, objects, queue, self.context)
        return self._told

    def poll(self) -> SourceBatch | Iterable[SourceRecord] | None:
        if self._told is not None:
            self._told.stay_hidden()
        return self._reader.poll()

    def commit(self) -> None:
        """Move or delete the objects whose last offsets are now committed, and delete the messages about them."""
        if self._told is not None:
            self._told.committed()
        self._reader.commit()

    def drained(self) -> bool:
        """Whether a whole list has shown nothing new."""
        return self._reader.is_drained

    def remaining(self) -> Mapping[str, int]:
        """The unread bytes and objects, as far as the present list has come."""
        return self._reader.remaining()

    def total(self) -> Mapping[str, int]:
        """What there is to read in all, as far as it is known."""
        return self._reader.total()

    def stop(self) -> None:
        if hasattr(self, "_reader"):
            self._shape.close()
            self._reader.close()

    def _kept_place(self, partition: Offset) -> Bookmark | None:
        offset = self.context.offset_storage_reader.offset(partition)
        if offset is not None and "position" not in offset:
            # Java's source counts records.
            self._shape.counted[str(partition["objectKey"])] = int(offset.get("recordCount") or 0)
            return None
        return Bookmark.from_offset(offset)


def _finisher(config: ObjectSourceConfig, system: ObjectSystem) -> Finisher | None:
    match config.finished_action:
        case FinishedAction.LEAVE:
            return None
        case FinishedAction.DELETE:
            return Finisher(system, lambda _: None)
        case FinishedAction.MOVE:
            return Finisher(system, lambda file: f"{config.finished_prefix}{file.name}")


class ObjectSourceConnector(SourceConnector[C], Generic[C]):
    """What the connectors share."""

    watches = False

    def start(self) -> None:
        self._splits: ObjectSplits | None = None

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return configs of tasks that share the objects by their names, future ones included."""
        props = {key: value for key, value in self.config.originals.items() if value is not None}
        # Any task could be sent the message about any object, and two could read one.
        max_tasks = max_tasks if self.config.queue is None else 1
        return [{**props, "task.index": str(index), "task.count": str(max_tasks)} for index in range(max_tasks)]

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str]]:
        """Return the objects that have something to read, each as it is when its split is read."""
        config = self.config
        if config.queue is not None:
            raise ConnectError("Splits are made from a list of the bucket: remove sqs.url, or set engine=worker.")
        if self._splits is None:
            system = ObjectSystem(config.address, config)
            self._splits = ObjectSplits(config, system, self.context.offset_storage_reader)
        props = {key: value for key, value in config.originals.items() if value is not None}
        return [{**props, "split.objects": json.dumps(keys)} for keys in self._splits.next(max_splits)]

    @classmethod
    def exactly_once_support(cls, config: C) -> ExactlyOnceSupport:  # noqa: ARG003
        """Supported: an object is read from its position."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Accept numbers of records from 0 on, as for Java's source."""
        for partition, offset in offsets.items():
            if "objectKey" not in (json.loads(partition) or ()):
                raise ConnectError("Partition objects should contain the keys 'bucket' and 'objectKey'")
            count = 0 if offset is None else offset.get("recordCount")
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                raise ConnectError(
                    f"The value for the 'recordCount' key in the offset is {count!r}: give the number of records of "
                    "the object to pass over, or 0 to read it from its beginning."
                )
        return True


class S3SourceTask(ObjectSourceTask[S3SourceConfig]):
    """Reads objects of S3."""


class S3SourceConnector(ObjectSourceConnector[S3SourceConfig]):
    """Reads objects in S3: those of a storage sink, or any of JSON, CSV, Avro, Parquet, ORC, text and bytes."""

    task_class = S3SourceTask


class GcsSourceTask(ObjectSourceTask[GcsSourceConfig]):
    """Reads objects of Google Cloud Storage."""


class GcsSourceConnector(ObjectSourceConnector[GcsSourceConfig]):
    """Reads objects in Google Cloud Storage: those of a storage sink, or any of JSON, Avro or Parquet."""

    task_class = GcsSourceTask


class AzureBlobSourceTask(ObjectSourceTask[AzureBlobSourceConfig]):
    """Reads blobs of Azure."""


class AzureBlobSourceConnector(ObjectSourceConnector[AzureBlobSourceConfig]):
    """Reads blobs in Azure Blob Storage: those of a storage sink, or any of JSON, Avro or Parquet."""

    task_class = AzureBlobSourceTask
