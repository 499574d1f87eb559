"""Compaction of tables that are folders of files: Spark merges the files, and the ledger replaces them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from connect.data import Schema
from connect.errors import ConnectError
from connect.internals.crash import crash_point
from connect.sink import CompactedTable
from connectors.spark.formats import FileFormat
from connectors.spark.sink.ledger.files_merger import FilesMerger
from connectors.spark.sink.ledger.ledger import Ledger
from connectors.spark.sink.ledger.merge_groups import MergeGroup, merge_groups

__all__ = ["FilesCompaction"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 64
"""The maximum number of files merged in one ledger entry: finished entries persist, and readers miss little
at a time.
"""


class FilesCompaction:
    """Merges the small files in each folder of a connector's tables into files of ``file_size`` bytes."""

    def __init__(self, ledger: Ledger, file_format: FileFormat, merger: FilesMerger, file_size: int) -> None:
        self._ledger = ledger
        self._format = file_format
        self._merger = merger
        self._file_size = file_size

    def run(self, tables: Collection[str] | None, stopping: Callable[[], bool]) -> Iterator[CompactedTable]:
        """Compact these tables, or all that the ledger knows; yields each table once it is done."""
        if not self._format.compacts:
            raise ConnectError(f"Files in {self._format.name} cannot be compacted, because they have no schema.")
        known = self._ledger.tables
        for name in sorted(known) if tables is None else tables:
            if name not in known:
                raise ConnectError(f"There is no table {name}. The tables are: {', '.join(sorted(known)) or 'none'}.")
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
        """Merge some groups, and replace their files with the merged ones."""
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
        """Return whether the table knows every field of the files; merging would lose an unknown one."""
        unknown = self._merger.unknown_field(table, schema, group)
        if unknown is not None:
            logger.warning(
                "Not merging the files in %s/%s: the table does not know their field %s.",
                self._merger.place(table),
                group.folder,
                unknown,
            )
        return unknown is None
