"""Where writing stands, and what follows when Redis says otherwise: pure.

A server that was emptied, or has lost its last writes in a failover or a crash, has older offsets than those that the
task wrote there, and with them the data between is gone. The task then goes back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from connect.data import TopicPartition

__all__ = ["Positions", "Reached"]


@dataclass(frozen=True, slots=True)
class Reached:
    """Which records of a batch are to be written, and where consuming has to go back to."""

    places: Sequence[int]
    backs: Mapping[TopicPartition, int]


@dataclass(slots=True)
class Positions:
    """The offsets that were last seen in Redis or written there; ``None`` where there was none."""

    refills: bool
    _known: dict[TopicPartition, int | None] = field(default_factory=dict)

    def unread(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions whose offset was not seen yet."""
        return sorted(set(partitions) - self._known.keys())

    def opened(self, stored: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
        """Note the offsets of partitions that were assigned, and return where to begin them."""
        self._known.update(stored)
        begin = {partition: 0 if offset is None else offset for partition, offset in stored.items()}
        return {partition: at for partition, at in begin.items() if self.refills or stored[partition] is not None}

    def unmarked(self, firsts: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the partitions, of these with their next offsets, whose loss would not be seen: Redis has no offset
        that could be gone."""
        return {tp: first for tp, first in firsts.items() if self.refills and self._known.get(tp) is None}

    def news(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return those of the offsets that were not stored yet."""
        return {partition: offset for partition, offset in offsets.items() if self._known.get(partition) != offset}

    def wrote(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note offsets that were stored."""
        self._known.update(offsets)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that were revoked."""
        for partition in partitions:
            self._known.pop(partition, None)

    def lost(self, stored: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
        """Return where to go back to because Redis has lost what was written, and note it."""
        backs: dict[TopicPartition, int] = {}
        for partition, offset in stored.items():
            known = self._known.get(partition)
            if known is not None and (self.refills if offset is None else offset < known):
                backs[partition] = offset or 0
                self._known[partition] = offset
        return backs

    def reached(
        self,
        origins: Sequence[TopicPartition],
        offsets: Sequence[int],
        stored: Mapping[TopicPartition, int | None],
    ) -> Reached:
        """Return which records of a batch Redis does not have yet, given the offsets that it has.

        Records beyond a gap are left out: consuming goes back to the gap.
        """
        firsts: dict[TopicPartition, int] = {}
        for origin, offset in zip(origins, offsets, strict=True):
            firsts.setdefault(origin, offset)
        backs: dict[TopicPartition, int] = {}
        for partition, first in firsts.items():
            back = self._gap(partition, first, stored[partition])
            if back is not None:
                backs[partition] = back
            self._known[partition] = stored[partition]
        places = [
            place
            for place, (origin, offset) in enumerate(zip(origins, offsets, strict=True))
            if origin not in backs and offset >= (stored[origin] or 0)
        ]
        return Reached(places, backs)

    def _gap(self, partition: TopicPartition, first: int, stored: int | None) -> int | None:
        """Return where to go back to if the first record of a batch comes after a gap."""
        if stored is None and not self.refills:
            return None
        target = stored or 0
        if first <= target:
            return None
        if partition not in self._known:
            # Read late, since the server did not answer before: the consumer may stand elsewhere.
            return target
        known = self._known[partition]
        return target if known is not None and target < known else None
