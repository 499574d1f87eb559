"""What a sink tells of the tables whose small files it has merged."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CompactedTable"]


@dataclass(frozen=True, slots=True)
class CompactedTable:
    """A table before and after its compaction: how many files it has, and how many bytes these have."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
