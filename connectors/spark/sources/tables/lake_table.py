"""Tables as sources: what the formats have in common."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from connectors.spark.sources.tables.steps import Commit, TablePosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["CHANGE", "DELETED", "INSERTED", "LakeTable", "TableFile", "files_within"]

CHANGE: Final = "_sluice_change"
"""The column that says whether a row of a change existed before it or exists after it."""
DELETED: Final = "deleted"
INSERTED: Final = "inserted"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file with rows of a table: its location, its size, and the key by which Java knows it."""

    path: str
    size: int
    java: Any


class LakeTable(Protocol):
    """A table, whose versions never change. Spark does the reading."""

    @property
    def name(self) -> str:
        """The table's name in messages."""

    @property
    def remembered(self) -> str | None:
        """The schema the Spark sink wrote the table with, if it did."""

    def refresh(self) -> int | None:
        """Look at the table again and return its newest version, ``None`` if it has none."""

    def commits(self, reached: TablePosition) -> Sequence[Commit]:
        """Return the commits after the version reached, in order.

        Raises :class:`~connect.errors.ConnectError` if the table's history does not go back that far.
        """

    def time_of(self, version: int) -> int:
        """Return when a version was made, in milliseconds since 1970."""

    def files(self, after: int | None, upto: int) -> Sequence[TableFile]:
        """Return the files of the rows added after one version up to another, ordered by path.

        Without a first version, all files of the second.
        """

    def rows(self, version: int, files: Sequence[TableFile]) -> AbstractContextManager[DataFrame]:
        """Return the rows of files, in the columns of a version; they can be read within the ``with`` block."""

    def changes(self, after: int, version: int) -> DataFrame:
        """Return the rows that a version removed and added relative to the one before, each with the column
        :data:`CHANGE`.

        Rows that are the same before and after may be present twice, or not at all.
        """


def files_within(files: Sequence[TableFile], done: int, most: int) -> Sequence[TableFile]:
    """Return the files after the first ``done`` that fit into this many bytes, but at least one if there are any."""
    size = 0
    for place, file in enumerate(files[done:], done):
        size += file.size
        if size > most and place > done:
            return files[done:place]
    return files[done:]
