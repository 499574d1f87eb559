"""Decides which files of a table to merge, and the names of the merged files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["DataFile", "MergeGroup", "all_groups", "data_file", "merge_groups"]

_NAME: Final = re.compile(
    r"(?P<topic>[^+/]+)\+(?P<low>\d+)(?:-(?P<high>\d+))?(?:\+(?P<first>\d+)\+(?P<last>\d+))?"
    r"(?:\+(?:load|compacted)-\d+)?(?:\+\d+)?\.(?P<extension>[^+/]+)"
)
_GIVEN: Final = re.compile(r"part-\d+-[0-9a-f-]{36}[.-]c\d+\.(?P<extension>.+)")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that a load or a compaction has named, with its path in the table.

    ``offsets`` are its first and last offset if it holds records of a single partition.
    """

    path: str
    size: int
    topic: str
    partitions: tuple[int, int]
    offsets: tuple[int, int] | None
    extension: str

    @property
    def folder(self) -> str:
        """The folder of the table that the file is in."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Files of one folder and one topic that are to become one file."""

    files: Sequence[DataFile]

    @property
    def folder(self) -> str:
        """The folder of the files, and of the merged one."""
        return self.files[0].folder

    @property
    def size(self) -> int:
        """Their total size in bytes."""
        return sum(file.size for file in self.files)

    def merged_path(self, digits: int, number: int, counter: int, extension: str) -> str:
        """Return the path of the merged file, for the compaction with this number in the ledger."""
        low = min(file.partitions[0] for file in self.files)
        high = max(file.partitions[1] for file in self.files)
        origin = f"{low}" if low == high else f"{low}-{high}"
        offsets = [file.offsets for file in self.files if file.offsets is not None]
        if low == high and len(offsets) == len(self.files):
            origin += f"+{min(first for first, _ in offsets):0{digits}}+{max(last for _, last in offsets):0{digits}}"
        again = f"+{counter}" if counter else ""
        name = f"{self.files[0].topic}+{origin}+compacted-{number:0{digits}}{again}.{extension}"
        return f"{self.folder}/{name}" if self.folder else name


def data_file(path: str, size: int, *, named: bool = True) -> DataFile | None:
    """Return the file with this path in its table, or ``None`` if Sluice has not named it.

    In a store where files keep the names that Spark gave them, they are not ``named``, and their names do not say which
    records they hold.
    """
    name = path.rpartition("/")[2]
    if not named:
        given = _GIVEN.fullmatch(name)
        return None if given is None else DataFile(path, size, "", (0, 0), None, given["extension"])
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    low = int(match["low"])
    high = low if match["high"] is None else int(match["high"])
    offsets = None if match["first"] is None else (int(match["first"]), int(match["last"]))
    return DataFile(path, size, match["topic"], (low, high), offsets, match["extension"])


def merge_groups(files: Iterable[DataFile], target: int) -> Iterator[MergeGroup]:
    """Yield the groups of small files to merge into one file each, of about ``target`` bytes.

    A file of at least half the target size is left alone, so files are rewritten only until they reach that size.
    """
    small = (file for file in files if file.size < target / 2)
    yield from (group for group in all_groups(small, target) if len(group.files) > 1)


def all_groups(files: Iterable[DataFile], target: int) -> Iterator[MergeGroup]:
    """Yield all files in groups to merge into one file each, of about ``target`` bytes or as large as they are."""
    places: dict[tuple[str, str], list[DataFile]] = {}
    for file in files:
        places.setdefault((file.folder, file.topic), []).append(file)
    for _, found in sorted(places.items()):
        yield from _groups_of(
            sorted(found, key=lambda file: (file.partitions, file.offsets or (0, 0), file.path)), target
        )


def _groups_of(files: Sequence[DataFile], target: int) -> Iterator[MergeGroup]:
    group: list[DataFile] = []
    size = 0
    for file in files:
        group.append(file)
        size += file.size
        if size >= target:
            yield MergeGroup(tuple(group))
            group, size = [], 0
    if group:
        yield MergeGroup(tuple(group))
