"""Measurements of the groups of a checkpoint task. For the task's thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest
from typing import Final, NamedTuple

from connect.data import Offset
from connect.measurement import Measurement
from connectors.mirror.source.measurements import Recent

__all__ = ["CheckpointLatencies", "FailoverMeasurements"]

_MOST_SHOWN: Final = 200
"""Most groups of a task that are reported, or partitions of groups: those with the greatest numbers."""

_AGAIN: Final = "Most records that the group would read again if it failed over now."
_UNKNOWN: Final = "Partitions of the group whose offset cannot be translated."
_LATENCY: Final = "Time from the translation of an offset to its acknowledgement by the target."


class FailoverMeasurements:
    """Measures what a failover would mean for each group of one task."""

    def __init__(self, source_alias: str, target_alias: str) -> None:
        self._labels = (("source", source_alias), ("target", target_alias))
        self._found: dict[str, tuple[int, int]] = {}

    def note(self, group: str, again: int, unknown: int) -> None:
        """Set how many records a group would read again, and in how many partitions that is unknown."""
        self._found[group] = again, unknown

    def measurements(self) -> Iterator[Measurement]:
        """Yield the measurements of the groups that would read the most records again."""
        for group in nlargest(_MOST_SHOWN, self._found, key=self._found.__getitem__):
            again, unknown = self._found[group]
            labels = (*self._labels, ("group", group))
            yield Measurement("mirror_failover_read_again", again, _AGAIN, labels)
            yield Measurement("mirror_failover_unknown_partitions", unknown, _UNKNOWN, labels)


class _Place(NamedTuple):
    group: str
    topic: str
    """The target's name."""

    partition: int


@dataclass(slots=True)
class _Latency:
    last: float
    recent: Recent


class CheckpointLatencies:
    """Measures how long each checkpoint takes until the target has acknowledged it. Times are in seconds since 1970."""

    def __init__(self, source_alias: str, target_alias: str) -> None:
        self._labels = (("source", source_alias), ("target", target_alias))
        self._found: dict[_Place, _Latency] = {}

    def acknowledged(self, checkpoint: Offset, emitted: float, now: float) -> None:
        """Count a checkpoint, given by its source partition."""
        place = _Place(checkpoint["group"], checkpoint["topic"], checkpoint["partition"])
        seconds = max(0.0, now - emitted)
        kept = self._found.setdefault(place, _Latency(seconds, Recent(now)))
        kept.last = seconds
        kept.recent.add(now, 1, seconds, seconds, seconds)

    def measurements(self, now: float) -> Iterator[Measurement]:
        """Yield the measurements of the partitions whose last checkpoint took longest."""
        for place in nlargest(_MOST_SHOWN, self._found, key=lambda each: self._found[each].last):
            kept = self._found[place]
            own = ("group", place.group), ("topic", place.topic), ("partition", str(place.partition))
            labels = (*self._labels, *own)
            yield Measurement(
                "mirror_checkpoint_latency_seconds", round(kept.last, 3), f"{_LATENCY} That of the last one.", labels
            )
            for kind, value in kept.recent.bounds(now):
                yield Measurement(f"mirror_checkpoint_latency_{kind}_seconds", round(value, 3), _LATENCY, labels)
