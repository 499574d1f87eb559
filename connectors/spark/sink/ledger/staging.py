"""Checks the files that Spark has written into a staging folder, and gives them their final names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from connect.errors import ConnectError
from connect.kits.files import names
from connectors.spark.decoding.report import Report, Reports
from connectors.spark.partitioner import Partitioner
from connectors.spark.sink.ledger.manifest import Move
from connectors.spark.stores.store import StagedFile, Store, ask_all

__all__ = ["FileNames", "counted_rows", "gathered_moves", "result_moves", "staged_moves"]

_PART: Final = re.compile(r"part-(\d+)-[0-9a-f-]{36}[.-]c(\d+)\.(.+)")


@dataclass(frozen=True, slots=True)
class _Part:
    """The parts of a file name given by Spark: its partition, the file's number within that partition, and the
    extension.
    """

    number: int
    counter: int
    extension: str


@dataclass(frozen=True, slots=True)
class FileNames:
    """Generates the final names of files: ``topics/flights/partition=0/flights+0+0000000000+0000000099.…``."""

    topics_dir: str
    partitioner: Partitioner
    offset_digits: int

    def path(self, table: str, report: Report, written: str, counter: int, extension: str) -> str:
        """Return the path for a file with rows of one report, which Spark put into the folder ``written``; ``counter``
        is its number among the files of that report there.
        """
        again = f"+{counter}" if counter else ""
        ending = f"+{report.last:0{self.offset_digits}}{again}.{extension}"
        name = self._names.name(report.topic, report.partition, report.first, ending)
        return self._path(table, self.partitioner.folder(report.partition, written), name)

    def gathered_path(
        self, table: str, reports: Sequence[Report], folder: str, number: int, counter: int, extension: str
    ) -> str:
        """Return the path for a file in ``folder`` with rows of any of these reports, of the load with this number."""
        topic = reports[0].topic
        partitions = sorted({report.partition for report in reports})
        digits = self.offset_digits
        if len(partitions) == 1:
            first, last = min(report.first for report in reports), max(report.last for report in reports)
            origin = f"{partitions[0]}+{first:0{digits}}+{last:0{digits}}"
        else:
            origin = f"{partitions[0]}-{partitions[-1]}+load-{number:0{digits}}"
        again = f"+{counter}" if counter else ""
        return self._path(table, folder, f"{topic}+{origin}{again}.{extension}")

    @property
    def _names(self) -> names.FileNames:
        return names.FileNames(self.topics_dir, pad_width=self.offset_digits)

    def _path(self, table: str, folder: str, name: str) -> str:
        return "/".join(filter(None, (self._names.topic_folder(table), folder, name)))


def staged_moves(
    files: Store,
    folder: str,
    table: str,
    reports: Reports,
    names: FileNames,
    count_rows: Callable[[BinaryIO], int],
) -> list[Move]:
    """Return the files in a staging folder with their final names.

    Raises :class:`~connect.errors.ConnectError` if they do not hold exactly the rows that were reported; then nothing
    may be committed.
    """
    staged = [(_part(file), file) for file in files.staged(folder)]
    if files.names_when_staging:
        return _named_moves(folder, staged, reports)
    moves: list[Move] = []
    found: Counter[int] = Counter()
    for (part, file), rows in zip(staged, _all_counted(files, folder, staged, count_rows), strict=True):
        source = f"{folder}/{file.path}"
        found[part.number] += rows
        report = reports.by_partition.get(part.number)
        if rows and report is not None:
            target = names.path(table, report, file.path.rpartition("/")[0], part.counter, part.extension)
            moves.append(Move(source, target, file.size, rows))
    for number, rows in _counts(reports, found):
        raise _unexpected(folder, f"has {rows} rows of Spark partition {number}, not as many as were decoded")
    return moves


def gathered_moves(
    files: Store,
    folder: str,
    table: str,
    reports: Reports,
    names: FileNames,
    count_rows: Callable[[BinaryIO], int],
    number: int,
) -> list[Move]:
    """Like :func:`staged_moves`, for rows that were gathered by folder: any file may hold rows of any report.

    ``number`` is the number of the load in the ledger.
    """
    written = sum(report.written for report in reports)
    staged = [(_part(file), file) for file in files.staged(folder)]
    if files.names_when_staging:
        if not written:
            return []
        if not staged:
            raise _unexpected(folder, f"has no file with the {written} rows that were decoded")
        return [Move(f"{folder}/{file.path}", file.target or "", file.size, None, file.upload) for _, file in staged]
    moves: list[Move] = []
    found = 0
    counters: Counter[str] = Counter()
    for (part, file), rows in zip(staged, _all_counted(files, folder, staged, count_rows), strict=True):
        found += rows
        if rows:
            place = names.partitioner.folder(-1, file.path.rpartition("/")[0])
            origins = [
                report for report in reports if report.written and names.partitioner.may_hold(place, report.partition)
            ]
            if not origins:
                raise _unexpected(file.path, "has rows of no partition of the topic that was decoded")
            target = names.gathered_path(table, origins, place, number, counters[place], part.extension)
            counters[place] += 1
            moves.append(Move(f"{folder}/{file.path}", target, file.size, rows))
    if found != written:
        raise _unexpected(folder, f"has {found} rows, not the {written} that were decoded")
    return moves


def _named_moves(folder: str, staged: Sequence[tuple[_Part, StagedFile]], reports: Reports) -> list[Move]:
    """Return the moves of files that nobody can read yet; it can only be checked that each Spark partition
    has files.
    """
    written = {number: report.written for number, report in reports.by_partition.items() if report.written}
    files = Counter(part.number for part, _ in staged)
    for number in written.keys() - files.keys():
        raise _unexpected(folder, f"has no file with the {written[number]} rows of Spark partition {number}")
    return [
        Move(
            f"{folder}/{file.path}",
            file.target or "",
            file.size,
            written[part.number] if files[part.number] == 1 else None,
            file.upload,
        )
        for part, file in staged
        if part.number in written
    ]


def result_moves(
    files: Store,
    folder: str,
    table: str,
    rows: int,
    origins: Sequence[Report],
    names: FileNames,
    count_rows: Callable[[BinaryIO], int],
    number: int,
) -> list[Move]:
    """Like :func:`gathered_moves`, for the result of a query with this many rows, made from the records of
    ``origins``.
    """
    staged = [(_part(file), file) for file in files.staged(folder)] if rows else []
    if files.names_when_staging:
        if rows and not staged:
            raise _unexpected(folder, f"has no file with the {rows} rows of the query's result")
        return [Move(f"{folder}/{file.path}", file.target or "", file.size, None, file.upload) for _, file in staged]
    moves: list[Move] = []
    counters: Counter[str] = Counter()
    for (part, file), found in zip(staged, _all_counted(files, folder, staged, count_rows), strict=True):
        source = f"{folder}/{file.path}"
        if found:
            place = names.partitioner.folder(-1, file.path.rpartition("/")[0])
            target = names.gathered_path(table, origins, place, number, counters[place], part.extension)
            counters[place] += 1
            moves.append(Move(source, target, file.size, found))
    if (total := sum(move.rows or 0 for move in moves)) != rows:
        raise _unexpected(folder, f"has {total} rows of the query's result, which has {rows}")
    return moves


def _part(file: StagedFile) -> _Part:
    match = _PART.fullmatch((file.target or file.path).rpartition("/")[2])
    if match is None:
        raise _unexpected(file.path, "is not a file that Spark was asked to write")
    return _Part(int(match[1]), int(match[2]), match[3])


def _counts(reports: Reports, found: Counter[int]) -> Iterator[tuple[int, int]]:
    for number in sorted({*reports.by_partition, *found}):
        report = reports.by_partition.get(number)
        if found[number] != (0 if report is None else report.written):
            yield number, found[number]


def counted_rows(files: Store, path: str, count_rows: Callable[[BinaryIO], int]) -> int:
    """Count the rows of a load's file; raise :class:`~connect.errors.ConnectError` if it is broken."""
    try:
        with files.open(path) as content:
            return count_rows(content)
    except (ValueError, OSError) as error:
        raise _unexpected(path, f"cannot be read ({error})") from error


def _all_counted(
    files: Store, folder: str, staged: Sequence[tuple[_Part, StagedFile]], count_rows: Callable[[BinaryIO], int]
) -> list[int]:
    """Count the rows of each staged file."""
    paths = [f"{folder}/{file.path}" for _, file in staged]
    return ask_all(files, lambda path: counted_rows(files, path, count_rows), paths)


def _unexpected(path: str, what: str) -> ConnectError:
    return ConnectError(
        f"The staged file {path} {what}. Nothing of this load is committed; make sure that nothing else writes into "
        "the store's _sluice folder, and restart the task to load the records again."
    )
