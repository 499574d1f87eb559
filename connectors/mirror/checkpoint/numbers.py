"""What a failover now would mean for each group, as numbers to be scraped."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from typing import Final

from connect.measurement import Measurement

__all__ = ["FailoverNumbers"]

_MOST: Final = 200
"""Most groups of a task that are told of: those that would read most again."""

_AGAIN: Final = "Records that the group would read again at most if it failed over now."
_UNKNOWN: Final = "Partitions of the group whose offset cannot be translated."


class FailoverNumbers:
    """The groups of one task, each with what was found of it last. For one thread."""

    def __init__(self, source_alias: str, target_alias: str) -> None:
        self._labels = (("source", source_alias), ("target", target_alias))
        self._found: dict[str, tuple[int, int]] = {}

    def note(self, group: str, again: int, unknown: int) -> None:
        """Say how many records a group would read again, and of how many partitions that is not known."""
        self._found[group] = again, unknown

    def measurements(self) -> Iterator[Measurement]:
        """The numbers of the groups that would read most again."""
        for group in nlargest(_MOST, self._found, key=self._found.__getitem__):
            again, unknown = self._found[group]
            labels = (*self._labels, ("group", group))
            yield Measurement("mirror_failover_read_again", again, _AGAIN, labels)
            yield Measurement("mirror_failover_unknown_partitions", unknown, _UNKNOWN, labels)
