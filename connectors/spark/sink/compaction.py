"""Compaction merges the small files of tables into large ones, on request and every ``compact.interval.ms``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from connect.errors import ConnectError
from connect.sink import CompactedTable

if TYPE_CHECKING:
    from connectors.spark.sink.target import Target

__all__ = ["Compactable", "CompactionClock", "compact"]

logger = logging.getLogger(__name__)


@runtime_checkable
class Compactable(Protocol):
    """A :class:`~connectors.spark.sink.target.Target` that can merge the files of its tables."""

    def compact(self, tables: Collection[str] | None, stopping: Callable[[], bool]) -> Iterator[CompactedTable]:
        """Merge the small files of these tables, or of all, and remove files that no reader needs any more.

        The target must be open. A table is yielded once its compaction is durable; a table with nothing to merge is not
        yielded. Stops early, keeping what is done, once ``stopping()`` returns true. A kill at any moment leaves
        nothing that the next :meth:`~connectors.spark.sink.target.Target.open` does not finish or undo.
        """


def compact(target: Target, tables: Collection[str] | None, stopping: Callable[[], bool]) -> Iterator[CompactedTable]:
    """Compact the tables of an open target, and log each."""
    if not isinstance(target, Compactable):
        raise ConnectError("The tables of this connector cannot be compacted: their table.format does not support it.")
    for done in target.compact(tables, stopping):
        logger.info(
            "Compacted table %s: merged %d files (%d bytes) into %d files (%d bytes).",
            done.table,
            done.files_before,
            done.bytes_before,
            done.files_after,
            done.bytes_after,
        )
        yield done


class CompactionClock:
    """Decides when the next compaction is due, the first one interval after the start."""

    def __init__(self, interval_ms: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = None if interval_ms is None else interval_ms / 1000
        self._clock = clock
        self._last = clock()

    def due(self) -> bool:
        """Return whether the interval has passed; if so, start the next one."""
        if self._interval is None or self._clock() - self._last < self._interval:
            return False
        self._last = self._clock()
        return True
