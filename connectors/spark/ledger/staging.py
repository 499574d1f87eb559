"""The files that Spark has written into a staging folder: their rows and their final names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from connect.errors import ConnectError
from connectors.spark.decoding.report import Report, Reports
from connectors.spark.ledger.filesystem import LocalFileSystem
from connectors.spark.ledger.manifest import Move
from connectors.spark.partitioner import Partitioner

__all__ = ["FileNames", "staged_moves"]

_PART: Final = re.compile(r"part-(\d+)-[0-9a-f-]{36}[.-]c(\d+)\.(.+)")


@dataclass(frozen=True, slots=True)
class FileNames:
    """Gives files their final names: ``topics/flights/partition=0/flights+0+0000000000+0000000099.…``."""

    topics_dir: str
    partitioner: Partitioner
    offset_digits: int

    def path(self, table: str, report: Report, written: str, counter: int, extension: str) -> str:
        """The path of a file with rows of one report; ``written`` is the folder and ``counter`` the place
        among the files of one report in that folder that Spark has given it."""
        digits = self.offset_digits
        offsets = f"{report.first:0{digits}}+{report.last:0{digits}}"
        again = f"+{counter}" if counter else ""
        name = f"{report.topic}+{report.partition}+{offsets}{again}.{extension}"
        folder = self.partitioner.folder(report.partition, written)
        return "/".join(part for part in (self.topics_dir, table, folder, name) if part)


def staged_moves(files: LocalFileSystem, folder: str, table: str, reports: Reports, names: FileNames) -> list[Move]:
    """The files in a staging folder with their final names.

    Raises :class:`~connect.errors.ConnectError` when they do not hold exactly the rows that were reported: then nothing
    may be committed.
    """
    moves: list[Move] = []
    found: Counter[int] = Counter()
    for path in files.files(folder):
        written, _, name = path.rpartition("/")
        match = _PART.fullmatch(name)
        if match is None:
            raise _unexpected(path, "is not a file that Spark was asked to write")
        number = int(match[1])
        rows = _row_count(files, f"{folder}/{path}")
        found[number] += rows
        report = reports.by_partition.get(number)
        if rows and report is not None:
            target = names.path(table, report, written, int(match[2]), match[3])
            size = files.size(f"{folder}/{path}") or 0
            moves.append(Move(f"{folder}/{path}", target, size, rows))
    for number, rows in _counts(reports, found):
        raise _unexpected(folder, f"has {rows} rows of Spark partition {number}, not as many as were decoded")
    return moves


def _counts(reports: Reports, found: Counter[int]) -> Iterator[tuple[int, int]]:
    for number in sorted({*reports.by_partition, *found}):
        report = reports.by_partition.get(number)
        if found[number] != (0 if report is None else report.written):
            yield number, found[number]


def _row_count(files: LocalFileSystem, path: str) -> int:
    try:
        return int(pq.read_metadata(files.root / path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unexpected(path, f"cannot be read ({error})") from error


def _unexpected(path: str, what: str) -> ConnectError:
    return ConnectError(
        f"The staged file {path} {what}. Nothing of this load is committed; make sure that nothing else writes into "
        "the store's _sluice folder, and restart the task to load the records again."
    )
