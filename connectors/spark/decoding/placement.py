"""Assigns each row its folder, in a column that exists only until the rows are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from connect.errors import DataError
from connect.kits.files.record_time import END_MS, FIRST_MS, parsed_time
from connect.kits.files.time_folders import TimeFolders

__all__ = ["FOLDER_COLUMN", "Extractor", "Placed", "Placement", "field_of"]

FOLDER_COLUMN: Final = "sluice-folder"
"""A name that no field of a record has by accident."""


class Extractor(StrEnum):
    """Where a record's time comes from."""

    WALLCLOCK = "Wallclock"
    RECORD = "Record"
    RECORD_FIELD = "RecordField"


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows with their folders, and the reasons why some of the given rows have none."""

    rows: pa.RecordBatch
    refused: Mapping[int, DataError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placement:
    """Adds the folder column to rows; plain data, sent to the executors.

    Without ``times``, the folder is that of the topic partition.
    """

    times: TimeFolders | None = None
    extractor: Extractor = Extractor.WALLCLOCK
    time_field: tuple[str, ...] = ()
    now: int = 0
    """The time of the load, which applies to all its records in wall-clock mode."""

    @property
    def reads_timestamps(self) -> bool:
        """Whether the timestamps of the records are needed."""
        return self.times is not None and self.extractor is Extractor.RECORD

    def place(self, rows: pa.RecordBatch, partition: int, timestamps: Any) -> Placed:
        """Place the rows into folders. ``timestamps`` is an array of their records' timestamps, if they are needed."""
        if self.times is None:
            return Placed(_with_folders(rows, pa.repeat(f"partition={partition}", len(rows))))
        if self.extractor is Extractor.WALLCLOCK:
            return Placed(_with_folders(rows, pa.repeat(self.times.folder(self.now), len(rows))))
        if self.extractor is Extractor.RECORD:
            instants, refused = _instants(timestamps)
        else:
            instants, refused = _instants(field_of(rows, self.time_field))
        if refused:
            kept = [index for index in range(len(rows)) if index not in refused]
            rows, instants = rows.take(pa.array(kept, pa.int64())), instants[kept]
        return Placed(_with_folders(rows, _folders(self.times, instants)), self._named(refused))

    def _named(self, refused: Mapping[int, str]) -> dict[int, DataError]:
        where = f"timestamp.field={'.'.join(self.time_field)}"
        return {index: DataError(f"{where} {reason}") for index, reason in refused.items()}


def field_of(rows: pa.RecordBatch, path: Sequence[str]) -> Any:
    """Return the values of a field, which may be nested; nulls if no row has it."""
    array: Any = None
    for name in path:
        parent, array = array, None
        if parent is None:
            index = rows.schema.get_field_index(name)
            array = rows.column(index) if index >= 0 else None
        elif types.is_struct(parent.type) and parent.type.get_field_index(name) >= 0:
            array = compute.struct_field(parent, name)
        if array is None:
            return pa.nulls(len(rows), pa.int64())
    return array


def _with_folders(rows: pa.RecordBatch, folders: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*rows.columns, folders], [*rows.schema.names, FOLDER_COLUMN])


def _folders(times: TimeFolders, instants: Any) -> Any:
    """Return the folders of many instants, computing each distinct one once."""
    distinct, places = np.unique(instants, return_inverse=True)
    common = [times.common_instant(int(instant)) for instant in distinct]
    named = {instant: times.folder(instant) for instant in set(common)}
    names = pa.array([named[instant] for instant in common], pa.string())
    chosen: Any = pa.array(places.reshape(-1), pa.int64())
    return names.take(chosen)


def _instants(array: Any) -> tuple[Any, dict[int, str]]:
    """Return the values of a field in milliseconds, and what is wrong with those that have no such meaning."""
    data_type = array.type
    if types.is_timestamp(data_type):
        microseconds = array.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        missing = compute.is_null(microseconds).to_numpy(zero_copy_only=False)
        whole = compute.fill_null(microseconds, 0).to_numpy(zero_copy_only=False)
        return _instants(pa.array(np.floor_divide(whole, 1000), mask=missing))
    if types.is_integer(data_type) and not array.null_count:
        instants = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        if not len(instants) or FIRST_MS <= instants.min() <= instants.max() < END_MS:
            return instants, {}
    if types.is_integer(data_type) or types.is_floating(data_type):
        return _of_values(array.to_pylist(), int)
    if types.is_string(data_type):
        return _of_values(array.to_pylist(), parsed_time)
    if types.is_date(data_type):
        return _of_values(array.cast(pa.int32()).to_pylist(), lambda value: int(value) * 86_400_000)
    return _of_values(array.to_pylist(), lambda _: _refuse(f"is of type {data_type}, which tells no time"))


def _of_values(values: Sequence[Any], instant_of: Callable[[Any], int]) -> tuple[Any, dict[int, str]]:
    instants = np.zeros(len(values), np.int64)
    refused: dict[int, str] = {}
    for index, value in enumerate(values):
        if value is None:
            refused[index] = "has no value"
            continue
        try:
            instant = instant_of(value)
            _check_year(instant)
            instants[index] = instant
        except (ValueError, OverflowError) as error:
            refused[index] = f"tells no time: {error}"
    return instants, refused


def _check_year(instant: int) -> None:
    if not FIRST_MS <= instant < END_MS:
        raise ValueError(f"{instant} ms is beyond the years 1 to 9999")


def _refuse(reason: str) -> int:
    raise ValueError(reason)
