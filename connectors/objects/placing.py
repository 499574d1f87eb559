"""Where records go: the folder and the name of the file for each, and which records cannot share a file."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from connect.data import Constant, SinkBatch
from connect.errors import DataError
from connect.kits.files.name_template import NameTemplate
from connect.kits.files.names import FileNames, escaped
from connect.kits.files.partitioners import Partitioner, TimePartitioner, partitioner_of
from connectors.objects.sink_config import ObjectSinkConfig

__all__ = ["TOMBSTONE", "FolderPlacing", "Placing", "TemplatePlacing", "placing_of"]

TOMBSTONE: Final = "tombstone"
"""Distinguishes the files of records without a value."""
_LONGEST_PATH: Final = 1024
"""The most bytes in the name of an object, of all services."""
_LONGEST_NAME: Final = 255
"""The most bytes in the name of a folder or file."""


class Placing(Protocol):
    """Gives records their places. Records of one place and one schema are in one file."""

    @property
    def by_clock(self) -> bool:
        """Whether places depend on when a record comes."""

    @property
    def by_time(self) -> bool:
        """Whether places depend on the times of records."""

    @property
    def by_key(self) -> bool:
        """Whether a file has only the last record of its place."""

    def places(self, batch: SinkBatch, partition: int, times: Sequence[Any]) -> Sequence[str | DataError]:
        """Return the place of each record, or what is wrong with it."""

    def path(self, place: str, topic: str, partition: int, offset: int, infix: str, ending: str) -> str:
        """Return the path of a file in a place. ``topic``, ``partition`` and ``offset`` are those of the first record
        as it was consumed."""

    def folder(self, topic: str) -> str:
        """Return a folder that has all files of a topic."""

    def is_of(self, path: str, topic: str, partition: int) -> bool:
        """Whether a file is of a topic partition."""


@dataclass(frozen=True, slots=True)
class FolderPlacing:
    """Folders of a partitioner, as in Confluent's sinks."""

    names: FileNames
    partitioner: Partitioner
    tombstones: str | None
    affix: str = "NONE"
    is_local: bool = False
    by_key: bool = False

    @property
    def by_clock(self) -> bool:
        """Whether the partitioner goes by the clock."""
        return self.partitioner.by_clock

    @property
    def by_time(self) -> bool:
        """Whether the partitioner goes by time."""
        return isinstance(self.partitioner, TimePartitioner)

    def places(self, batch: SinkBatch, partition: int, times: Sequence[Any]) -> Sequence[str | DataError]:
        """Return the folders of records."""
        if self.tombstones is None or not batch.value.has_nulls():
            found = self.partitioner.places(batch.value, times, partition)
            if isinstance(found, Constant):
                return Constant(self._checked(batch, found.value), len(batch))
            known: dict[str | DataError, str | DataError] = {}
            return [known.get(place) or known.setdefault(place, self._checked(batch, place)) for place in found]
        return [self._each(batch, at, partition, times) for at in range(len(batch))]

    def _each(self, batch: SinkBatch, at: int, partition: int, times: Sequence[Any]) -> str | DataError:
        one = batch.slice(at, at + 1)
        if self.tombstones is not None and one.value.values()[0] is None:
            return self._folder(batch.topic, self.tombstones)
        return self._checked(one, self.partitioner.places(one.value, [times[at]], partition)[0])

    def _checked(self, batch: SinkBatch, place: str | DataError) -> str | DataError:
        if isinstance(place, DataError):
            return place
        folder = self._folder(batch.topic, self._affixed(batch, place))
        if self.is_local and any(len(part.encode()) > _LONGEST_NAME for part in folder.split("/")):
            return DataError(f"The name of a folder may have {_LONGEST_NAME} bytes, and {place[:80]}... has more.")
        if len(folder.encode()) > _LONGEST_PATH - _LONGEST_NAME:
            return DataError(
                f"The name of an object may have {_LONGEST_PATH} bytes, and {place[:80]}... takes too many."
            )
        return folder

    def _affixed(self, batch: SinkBatch, place: str) -> str:
        if self.affix == "NONE":
            return place
        schema = batch.value.schema
        name = "schema_name=" + escaped("null" if schema is None or schema.name is None else schema.name)
        parts = (name, place) if self.affix == "PREFIX" else (place, name)
        return self.names.directory_delimiter.join(filter(None, parts))

    def _folder(self, topic: str, place: str) -> str:
        parts = (self.names.topic_folder(escaped(topic)), place)
        return self.names.directory_delimiter.join(filter(None, parts))

    def path(self, place: str, topic: str, partition: int, offset: int, infix: str, ending: str) -> str:
        """Return the path of a file."""
        name = self.names.name(topic, partition, offset, infix + ending)
        return f"{place}{self.names.directory_delimiter}{name}"

    def shared_path(self, place: str, topic: str, number: int, mark: str, infix: str, ending: str) -> str:
        """Return the path of a file of several partitions."""
        name = self.names.shared_name(topic, number, mark, infix + ending)
        return f"{place}{self.names.directory_delimiter}{name}"

    def is_shared(self, path: str, topic: str) -> bool:
        """Whether a file is of several partitions of a topic."""
        return path.rpartition(self.names.directory_delimiter)[2].startswith(self.names.shared_start(topic))

    def folder(self, topic: str) -> str:
        """Return the folder of a topic."""
        return self.names.topic_folder(topic)

    def is_of(self, path: str, topic: str, partition: int) -> bool:
        """Whether the name of a file begins with those of the topic and the partition."""
        return path.rpartition(self.names.directory_delimiter)[2].startswith(self.names.start(topic, partition))


@dataclass(frozen=True, slots=True)
class TemplatePlacing:
    """Names by a template, as in Aiven's sinks."""

    template: NameTemplate
    by_event: bool

    @property
    def by_clock(self) -> bool:
        """Whether names have the time by the clock."""
        return self.template.has_time and not self.by_event

    @property
    def by_time(self) -> bool:
        """Whether names have a time."""
        return self.template.has_time

    @property
    def by_key(self) -> bool:
        """Whether names have the key."""
        return self.template.by_key

    def places(self, batch: SinkBatch, partition: int, times: Sequence[Any]) -> Sequence[str | DataError]:
        """Return the names of records' files, but for the first offset."""
        if batch.topic != batch.original_topic:
            error = DataError(
                f"A transformation made {batch.topic} of topic {batch.original_topic}, and files of several topics "
                "could get one name by file.name.template: use folders (topics.dir, partitioner.class) instead."
            )
            return Constant(error, len(batch))
        return self.template.places(batch.topic, partition, times, batch.key.values(), batch.key.schema)

    def path(self, place: str, topic: str, partition: int, offset: int, infix: str, ending: str) -> str:  # noqa: ARG002
        """Return the name of a file; the template has its ending."""
        return self.template.path(place, offset) + infix

    def folder(self, topic: str) -> str:  # noqa: ARG002
        """Return the whole store."""
        return ""

    def is_of(self, path: str, topic: str, partition: int) -> bool:
        """Whether a name can only be of a topic partition."""
        pattern = self.template.names_of(topic, partition)
        return pattern is not None and pattern.fullmatch(path) is not None


def placing_of(config: ObjectSinkConfig, *, is_local: bool) -> Placing:
    """Return the placing that a configuration describes."""
    if config.has_template:
        return TemplatePlacing(config.template, config.record_times.extractor == "Record")
    names = FileNames(
        config.topics_dir, config.directory_delim, config.file_delim, config.filename_offset_zero_pad_width
    )
    partitioner = partitioner_of(
        config, config.record_times, config.directory_delim, is_shared=config.combine_partitions
    )
    writes_nulls = config.on_null == "write" and not config.has_output_type
    tombstones = config.tombstone_encoded_partition if writes_nulls else None
    return FolderPlacing(names, partitioner, tombstones, config.s3_schema_partition_affix_type, is_local)


def strands_of(batch: SinkBatch, schema_key: Hashable, *, splits_nulls: bool) -> Sequence[Hashable]:
    """Return what tells apart records that cannot share a file."""
    if splits_nulls and batch.value.has_nulls():
        return [TOMBSTONE if value is None else schema_key for value in batch.value.values()]
    return Constant(schema_key, len(batch))
