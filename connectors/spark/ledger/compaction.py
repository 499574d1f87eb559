"""The compaction of tables that are folders of files: Spark merges, the ledger replaces."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from connect.crash import crash_point
from connect.data import Schema
from connect.errors import ConnectError
from connect.sink import CompactedTable
from connectors.spark.formats import FileFormat
from connectors.spark.ledger.files_merger import FilesMerger
from connectors.spark.ledger.ledger import Ledger
from connectors.spark.ledger.merge_groups import MergeGroup, merge_groups

__all__ = ["FilesCompaction"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 64
"""How many files are made in one entry of the ledger: what is done stays done, and readers miss little at a time."""


class FilesCompaction:
    """Merges the small files of each folder of the tables of one connector into files of ``file_size`` bytes."""

    def __init__(self, ledger: Ledger, file_format: FileFormat, merger: FilesMerger, file_size: int) -> None:
        self._ledger = ledger
        self._format = file_format
        self._merger = merger
        self._file_size = file_size

    def run(self, tables: Collection[str] | None, stopping: Callable[[], bool]) -> Iterator[CompactedTable]:
        """Compact these tables, or all that the ledger knows; each is done when it is yielded."""
        if not self._format.compacts:
            raise ConnectError(f"Files in {self._format.name} are not compacted, for they have no schema.")
        known = self._ledger.tables
        for name in sorted(known) if tables is None else tables:
            if name not in known:
                raise ConnectError(f"There is no table {name}: there are {', '.join(sorted(known)) or 'none'}.")
            if stopping():
                return
            done = self._compact(name, known[name], stopping)
            if done is not None:
                yield done

    def _compact(self, table: str, schema: Schema, stopping: Callable[[], bool]) -> CompactedTable | None:
        before = self._merger.data_files(table)
        groups = list(merge_groups(before, self._file_size))
        merged = False
        for start in range(0, len(groups), _AT_ONCE):
            if stopping():
                break
            merged |= self._replace(table, schema, groups[start : start + _AT_ONCE])
        if not merged:
            return None
        after = self._merger.data_files(table)
        sizes = [sum(file.size for file in files) for files in (before, after)]
        return CompactedTable(table, len(before), len(after), *sizes)

    def _replace(self, table: str, schema: Schema, groups: Sequence[MergeGroup]) -> bool:
        """Merge some groups, and let their files be replaced by the merged ones."""
        groups = [group for group in groups if self._is_known(table, schema, group)]
        if not groups:
            return False
        staging = self._ledger.new_staging()
        try:
            moves = self._merger.merge(table, schema, groups, staging, self._ledger.next_number)
        except Exception:
            self._ledger.check_fence()
            raise
        crash_point("after-compaction-staging")
        self._ledger.commit(staging, moves, {}, {}, removals=self._merger.removals(table, groups))
        return True

    def _is_known(self, table: str, schema: Schema, group: MergeGroup) -> bool:
        """Whether the table has every field of the files: one that it does not know of would be lost."""
        unknown = self._merger.unknown_field(table, schema, group)
        if unknown is not None:
            logger.warning(
                "The files in %s/%s are not merged: the table does not know the field %s.",
                self._merger.place(table),
                group.folder,
                unknown,
            )
        return unknown is None
