"""Partitioners: which folder below that of its topic a record belongs in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connect.data import Column, Constant
from connect.errors import DataError
from connect.kits.files.names import escaped
from connect.kits.files.partition_options import PartitionOptions
from connect.kits.files.record_time import RecordTimes, field_value
from connect.kits.files.time_folders import TimeFolders

__all__ = [
    "DefaultPartitioner",
    "FieldPartitioner",
    "Partitioner",
    "TimePartitioner",
    "TopicPartitioner",
    "partitioner_of",
]

Places = Sequence[str | DataError]


class Partitioner(Protocol):
    """Names folders: of the same record always the same one, unless it goes by the clock."""

    @property
    def by_clock(self) -> bool:
        """Whether folders depend on when a record comes."""

    def places(self, value: Column, times: Sequence[int | DataError], partition: int) -> Places:
        """Return the folder of each record of a topic partition, or what is wrong with the record."""


@dataclass(frozen=True, slots=True)
class DefaultPartitioner:
    """A folder for each partition: ``partition=0``."""

    by_clock: bool = False

    def places(self, value: Column, times: Sequence[int | DataError], partition: int) -> Places:  # noqa: ARG002
        """Return the partition's folder for all."""
        return Constant(f"partition={partition}", len(value))


@dataclass(frozen=True, slots=True)
class TopicPartitioner:
    """No folders below that of the topic."""

    by_clock: bool = False

    def places(self, value: Column, times: Sequence[int | DataError], partition: int) -> Places:  # noqa: ARG002
        """Return no folder for all."""
        return Constant("", len(value))


@dataclass(frozen=True, slots=True)
class FieldPartitioner:
    """A folder for each combination of values: ``origin=EWR/carrier=UA``. A null is written ``null``."""

    names: Sequence[str]
    delimiter: str = "/"
    by_clock: bool = False

    def places(self, value: Column, times: Sequence[int | DataError], partition: int) -> Places:  # noqa: ARG002
        """Return the folder that the fields of each record name."""
        paths = [(name, name.split(".")) for name in self.names]
        return [self._place(item, paths) for item in value.values()]

    def _place(self, value: Any, paths: Sequence[tuple[str, Sequence[str]]]) -> str | DataError:
        try:
            return self.delimiter.join(
                f"{name}={escaped(_text(name, _found(value, name, path)), self.delimiter)}" for name, path in paths
            )
        except DataError as error:
            return error


def _found(value: Any, name: str, path: Sequence[str]) -> Any:
    if not isinstance(value, dict):
        raise DataError(
            f"FieldPartitioner needs structs or maps, and the value is a {type(value).__name__}: use a converter that "
            "reads fields, or another partitioner.class."
        )
    missing = object()
    found = value.get(name, missing)
    if found is missing:
        parent = field_value(value, ".".join(path[:-1]), path[:-1]) if len(path) > 1 else None
        if not isinstance(parent, dict) or path[-1] not in parent:
            raise DataError(f"partition.field.name={name} is not a field of the record.")
        found = parent[path[-1]]
    return found


def _text(name: str, value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(value)
        case dt.date() if not isinstance(value, dt.datetime):
            return value.isoformat()
    raise DataError(
        f"partition.field.name={name} is a {type(value).__name__}, which names no folder: whole numbers, texts, "
        "booleans and dates do."
    )


@dataclass(frozen=True, slots=True)
class TimePartitioner:
    """A folder for each period of time: ``year=2013/month=01/day=01``."""

    folders: TimeFolders
    by_clock: bool

    def places(self, value: Column, times: Sequence[int | DataError], partition: int) -> Places:  # noqa: ARG002
        """Return the folder of each record's time."""
        if isinstance(times, Constant):
            return Constant(self.folders.folder(times.value), len(value))
        folders, known = self.folders, dict[int, str]()
        found: list[str | DataError] = []
        for time in times:
            if isinstance(time, DataError):
                found.append(time)
                continue
            common = folders.common_instant(time)
            place = known.get(common)
            if place is None:
                place = known[common] = folders.folder(common)
            found.append(place)
        return found


def partitioner_of(
    options: PartitionOptions, times: RecordTimes, delimiter: str = "/", *, is_shared: bool = False
) -> Partitioner:
    """Return the partitioner that options describe. If files are shared by partitions, these have no folders."""
    if options.partitioner == "FieldPartitioner":
        return FieldPartitioner(options.partition_field_name, delimiter)
    folders = options.time_folders
    if folders is not None:
        return TimePartitioner(folders, times.by_clock)
    return TopicPartitioner() if is_shared else DefaultPartitioner()
