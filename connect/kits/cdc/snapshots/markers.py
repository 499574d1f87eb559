"""Markers of snapshot rows: which is the first and the last of the snapshot and of its table."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RowMarkers"]


@dataclass(slots=True)
class RowMarkers:
    """Says what ``source.snapshot`` is for each row of a snapshot. It is asked for each row in turn.

    The last row of a table is known when its reader has come to the end, so rows are asked for one behind.
    """

    _has_first: bool = False

    def marker(self, *, first_of_table: bool, last_of_table: bool, last_of_all: bool) -> str:
        """Return the marker of the next row."""
        is_first, self._has_first = not self._has_first, True
        if last_of_all:
            return "last"
        if is_first:
            return "first"
        if last_of_table:
            return "last_in_data_collection"
        return "first_in_data_collection" if first_of_table else "true"
