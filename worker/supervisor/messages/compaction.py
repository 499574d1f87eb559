"""The messages of a compaction: which tables to merge the files of, and what became of each."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CompactTables", "CompactionEnded", "TableCompacted"]


@dataclass(frozen=True, slots=True)
class CompactTables:
    """Merge the small files of a sink's tables, of all of them without ``tables``.

    Each that is done is a :class:`TableCompacted`, and :class:`CompactionEnded` comes after the last.
    """

    config: dict[str, str]
    worker: dict[str, str]
    tables: list[str] | None


@dataclass(frozen=True, slots=True)
class TableCompacted:
    """One table whose files were merged."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class CompactionEnded:
    """All tables are done, or had nothing to merge."""
