"""Partitioners divide tables into folders with the names that the storage sinks use."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import unquote

from connect.data import Schema, Type
from connect.data.logical import DATE_NAME, TIMESTAMP_NAME
from connect.errors import SchemaError
from connect.kits.files.time_folders import TimeFolders
from connectors.spark.decoding.placement import FOLDER_COLUMN, Extractor, Placement
from connectors.spark.folder_fields import FolderField
from connectors.spark.options.layout import LayoutOptions

__all__ = [
    "DefaultPartitioner",
    "FieldPartitioner",
    "Partitioner",
    "TimeBasedPartitioner",
    "check_parts",
    "make_partitioner",
    "make_result_partitioner",
]

_NO_FOLDER = (Type.STRUCT, Type.ARRAY, Type.MAP, Type.BYTES)
_NUMBERS = (Type.INT32, Type.INT64, Type.FLOAT64)


class Partitioner(Protocol):
    """Decides which columns partition Spark's output, and which folder of the table a file belongs in."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns of the frame whose values name folders and are not in the files."""

    @property
    def parts(self) -> Sequence[str] | None:
        """The names of a folder's parts, such as ``year`` and ``month`` of ``year=2013/month=01``; ``None`` if a part
        has no name."""

    @property
    def gathers(self) -> bool:
        """Whether to bring the rows of a folder together before writing.

        Otherwise each Spark task would write a file into each folder.
        """

    def placement(self) -> Placement | None:
        """Return what assigns folders to the rows of a load that starts now; ``None`` if columns of the rows do."""

    def folder_fields(self, table: Schema) -> Sequence[FolderField]:
        """Return the fields of a table whose values name folders."""

    def check(self, table: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if a table with this schema cannot be partitioned this way."""

    def check_fields(self, columns: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` for one of the columns that cannot name a folder."""

    def folder(self, partition: int, written: str) -> str:
        """Return the folder for a file with records of this partition; Spark put it in ``written``."""

    def may_hold(self, folder: str, partition: int) -> bool:
        """Return whether a folder may hold records of this partition of the topic."""


@dataclass(frozen=True, slots=True)
class DefaultPartitioner:
    """A folder for each partition of the topic: ``partition=0``."""

    gathers: bool = False
    parts: Sequence[str] | None = ("partition",)

    @property
    def columns(self) -> Sequence[str]:
        """The folder, if rows are gathered; otherwise it follows from the Spark task that wrote a file."""
        return (FOLDER_COLUMN,) if self.gathers else ()

    def placement(self) -> Placement | None:
        """Return the folders of topic partitions."""
        return Placement() if self.gathers else None

    def folder_fields(self, table: Schema) -> Sequence[FolderField]:  # noqa: ARG002
        """Return none: folders have other names."""
        return ()

    def check(self, table: Schema) -> None:
        """Accept any table."""

    def check_fields(self, columns: Schema) -> None:
        """Accept any columns."""

    def folder(self, partition: int, written: str) -> str:
        """Return ``partition=`` and the number."""
        return _placed_folder(written) if self.gathers else f"partition={partition}"

    def may_hold(self, folder: str, partition: int) -> bool:
        """Accept only the partition's own folder."""
        return folder == f"partition={partition}"


@dataclass(frozen=True, slots=True)
class ResultPartitioner:
    """No folders: the rows of a query's result are directly in the table."""

    gathers: bool = False
    columns: Sequence[str] = ()
    parts: Sequence[str] | None = ()

    def placement(self) -> Placement | None:
        """Return ``None``: there are no folders."""
        return None

    def folder_fields(self, table: Schema) -> Sequence[FolderField]:  # noqa: ARG002
        """Return none: folders have other names."""
        return ()

    def check(self, table: Schema) -> None:
        """Accept any table."""

    def check_fields(self, columns: Schema) -> None:
        """Accept any columns."""

    def folder(self, partition: int, written: str) -> str:  # noqa: ARG002
        """Return the table's own folder."""
        return ""

    def may_hold(self, folder: str, partition: int) -> bool:  # noqa: ARG002
        """Accept any folder."""
        return True


@dataclass(frozen=True, slots=True)
class FieldPartitioner:
    """A folder for each combination of values of some fields: ``origin=EWR/carrier=UA``.

    ``a.b`` is the field ``b`` of the struct ``a``, unless a field has that very name.
    """

    columns: Sequence[str]
    gathers: bool = True
    parts: Sequence[str] | None = None

    def placement(self) -> Placement | None:
        """Return ``None``: Spark derives the folders from the values."""
        return None

    def folder_fields(self, table: Schema) -> Sequence[FolderField]:
        """Return the fields, whose values Spark makes folders of."""
        return [
            FolderField((name,) if table.field(name) is not None else tuple(name.split(".")), name)
            for name in self.columns
        ]

    def check(self, table: Schema) -> None:
        """Require the fields to be columns or fields of columns, and to leave at least one column."""
        for name in self.columns:
            found = _field(table, name)
            if found is None:
                raise SchemaError(
                    f"partition.field.name={name} is not a field of the records. Use one of their fields: "
                    f"{', '.join(table.field_names)}."
                )
        self.check_fields(table)
        if set(table.field_names) <= set(self.columns):
            raise SchemaError(
                "partition.field.name lists every field of the records, which leaves no columns for the "
                "files: remove at least one."
            )

    def check_fields(self, columns: Schema) -> None:
        """Refuse fields whose values are no text."""
        for name in self.columns:
            found = _field(columns, name)
            if found is not None and found.type in _NO_FOLDER:
                raise SchemaError(
                    f"partition.field.name={name} is a field of type {found.type.value}, which cannot name a "
                    "folder: use another field, or derive one with a transformation."
                )

    def folder(self, partition: int, written: str) -> str:  # noqa: ARG002
        """Return the folder that Spark derived from the values."""
        return written

    def may_hold(self, folder: str, partition: int) -> bool:  # noqa: ARG002
        """Accept any folder."""
        return True


@dataclass(frozen=True, slots=True)
class TimeBasedPartitioner:
    """A folder for each period of time: ``year=2013/month=01/day=01``."""

    times: TimeFolders
    extractor: Extractor
    time_field: tuple[str, ...] = ()
    gathers: bool = True
    clock: Callable[[], float] = field(default=time.time, compare=False)

    @property
    def columns(self) -> Sequence[str]:
        """The column with the folder."""
        return (FOLDER_COLUMN,)

    @property
    def parts(self) -> Sequence[str] | None:
        """The texts before each ``=`` of the pattern."""
        found = [part.partition("=") for part in self.times.folder(0).split("/")]
        return [name for name, _, _ in found] if all(name and equals for name, equals, _ in found) else None

    def placement(self) -> Placement:
        """Return the folders by the records' times; by wall clock, all records share the time of the load."""
        return Placement(self.times, self.extractor, self.time_field, int(self.clock() * 1000))

    def folder_fields(self, table: Schema) -> Sequence[FolderField]:  # noqa: ARG002
        """Return none: folders have other names."""
        return ()

    def check(self, table: Schema) -> None:
        """Accept a table without the time field: each record without it is a bad one."""
        self.check_fields(table)

    def check_fields(self, columns: Schema) -> None:
        """Refuse a time field that tells no time."""
        if self.extractor is not Extractor.RECORD_FIELD:
            return
        name = ".".join(self.time_field)
        found = _nested(columns, self.time_field)
        if found is None:
            return
        if found.name not in (TIMESTAMP_NAME, DATE_NAME) and (
            found.name is not None or found.type not in (*_NUMBERS, Type.STRING)
        ):
            kind = found.name or found.type.value
            raise SchemaError(
                f"timestamp.field={name} is a field of type {kind}, which is not a time: it must be a "
                "Timestamp, a Date, milliseconds since 1970, or ISO 8601 text."
            )

    def folder(self, partition: int, written: str) -> str:  # noqa: ARG002
        """Return the folder that was assigned to the rows."""
        return _placed_folder(written)

    def may_hold(self, folder: str, partition: int) -> bool:  # noqa: ARG002
        """Accept any folder."""
        return True


def make_partitioner(config: LayoutOptions) -> Partitioner:
    """Return the partitioner that ``partitioner.class`` names."""
    if config.partitioner == "FieldPartitioner":
        return FieldPartitioner(config.partition_field_name)
    times = config.time_folders
    if times is None:
        return DefaultPartitioner(gathers=config.target_file_size_bytes is not None)
    extractor = Extractor(config.extractor)
    time_field = tuple(config.timestamp_field.split(".")) if extractor is Extractor.RECORD_FIELD else ()
    # By wall clock, all records of a load share one folder.
    gathers = extractor is not Extractor.WALLCLOCK or config.target_file_size_bytes is not None
    return TimeBasedPartitioner(times, extractor, time_field, gathers)


def make_result_partitioner(config: LayoutOptions) -> Partitioner:
    """Return the partitioner for the results of a query, whose rows belong to no partition of the topic."""
    if config.partitioner == "FieldPartitioner":
        return FieldPartitioner(config.partition_field_name)
    return ResultPartitioner(gathers=config.target_file_size_bytes is not None)


def check_parts(partitioner: Partitioner, table: Schema) -> None:
    """Raise :class:`~connect.errors.SchemaError` for a field that has the name of a part of the folders."""
    if list(partitioner.columns) != [FOLDER_COLUMN]:
        return
    for name in partitioner.parts or ():
        if table.field(name) is not None:
            raise SchemaError(
                f"The records have a field {name}, which is also the name of a part of the folders; this "
                "store cannot hold both. Rename one of them (ReplaceField, path.format)."
            )


def _placed_folder(written: str) -> str:
    return unquote(written.removeprefix(f"{FOLDER_COLUMN}="))


def _field(table: Schema, name: str) -> Schema | None:
    """Return the schema of a table field, possibly nested."""
    whole = table.field(name)
    return _nested(table, name.split(".")) if whole is None else whole.schema


def _nested(table: Schema, names: Sequence[str]) -> Schema | None:
    found: Schema | None = table
    for name in names:
        part = found.field(name) if found is not None and found.type is Type.STRUCT else None
        found = None if part is None else part.schema
    return found
