"""Tables as sources: what the formats have in common."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from connectors.spark.sources.tables.steps import Commit, Reached

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["CHANGE", "DELETED", "INSERTED", "LakeTable", "TableFile", "files_within"]

CHANGE: Final = "_sluice_change"
"""The column that tells of a row of a change whether it was there before or is there after."""
DELETED: Final = "deleted"
INSERTED: Final = "inserted"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file with rows of a table: where it is, its size, and what Java knows it by."""

    path: str
    size: int
    java: Any


class LakeTable(Protocol):
    """A table, whose versions never change. What it reads is read by Spark."""

    @property
    def name(self) -> str:
        """The table's name in messages."""

    @property
    def remembered(self) -> str | None:
        """The schema that the Spark sink has written it with, if it has."""

    def refresh(self) -> int | None:
        """Look at the table again; its newest version, ``None`` if it has none."""

    def commits(self, reached: Reached) -> Sequence[Commit]:
        """The commits after what is reached, in their order.

        Raises :class:`~connect.errors.ConnectError` if the history of the table does not go back that far.
        """

    def time_of(self, version: int) -> int:
        """When a version was made, in milliseconds since 1970."""

    def files(self, after: int | None, upto: int) -> Sequence[TableFile]:
        """The files of the rows that were added after a version up to another, in the order of their paths.

        Without a version all files that the other has.
        """

    def rows(self, version: int, files: Sequence[TableFile]) -> AbstractContextManager[DataFrame]:
        """The rows of files, in the columns of a version; they can be read within the block."""

    def changes(self, after: int, version: int) -> DataFrame:
        """The rows that a version has in place of others since the one before, each with the column :data:`CHANGE`.

        Rows that are the same before and after may be there twice, or not.
        """


def files_within(files: Sequence[TableFile], done: int, most: int) -> Sequence[TableFile]:
    """The files after the first ``done`` that have so many bytes together, but at least one if there are any."""
    size = 0
    for place, file in enumerate(files[done:], done):
        size += file.size
        if size > most and place > done:
            return files[done:place]
    return files[done:]
