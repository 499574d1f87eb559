"""Keeps a few of the offset syncs of a flow, and translates offsets by them as MirrorMaker 2 does."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from connectors.mirror.records import OffsetSync

__all__ = ["SyncStore"]

_SLOTS: Final = 64
_upstream = attrgetter("upstream")


class SyncStore:
    """Keeps offset syncs as MirrorMaker 2 does: densely near the end of a partition, ever more sparsely further back.

    Java fills 64 slots for each partition, most of them with the same sync; here each sync is kept once, with the slots
    that it would fill. Nothing is translated until :meth:`start` is called. If earlier checkpoints are unknown, only
    the last sync read before that is kept, because an older one could move a group back.
    """

    def __init__(self, *, keeps_history: bool = True) -> None:
        self._keeps_history = keeps_history
        self._started = False
        self._slots: dict[tuple[str, int], list[OffsetSync]] = {}

    def start(self) -> None:
        """Start to translate, once the topic has been read to its end."""
        self._started = True

    def add(self, sync: OffsetSync) -> None:
        """Take the next sync of the topic."""
        partition = sync.topic, sync.partition
        slots = self._slots.get(partition)
        restarted = slots is None or sync.upstream < slots[0].upstream
        if slots is None or restarted or not (self._started or self._keeps_history):
            self._slots[partition] = [sync]
        else:
            self._slots[partition] = _updated(slots, sync)

    def kept(self, topic: str, partition: int) -> Sequence[OffsetSync]:
        """Return the distinct syncs of a partition of the source, the newest first."""
        slots = self._slots.get((topic, partition), [])
        return [sync for index, sync in enumerate(slots) if index == 0 or sync is not slots[index - 1]]

    def downstream_of(self, topic: str, partition: int, offset: int) -> int | None:
        """Return where a group continues at the target that has read up to ``offset`` of a partition.

        -1 if the offset is older than all syncs; ``None`` if there are none, or the topic has not been read to its end
        yet.
        """
        slots = self._slots.get((topic, partition)) if self._started else None
        if not slots:
            return None
        if offset < slots[-1].upstream:
            return -1
        rising = slots[::-1]
        # Among syncs of the same offset, the newest counts.
        sync = rising[bisect_right(rising, offset, key=_upstream) - 1]
        return sync.downstream if offset == sync.upstream else sync.downstream + 1


def _updated(slots: list[OffsetSync], sync: OffsetSync) -> list[OffsetSync]:
    """Return the slots after another sync; the last one stands for all slots up to the 64th.

    Slot 0 is the newest. A sync that is too old for its slot moves on to the next one, if it is young enough there and
    not too close to its neighbours; otherwise the slot gets the last sync that was moved.
    """
    made = slots + slots[-1:] * (_SLOTS - len(slots))
    moved, made[0] = made[0], sync
    replacement = sync
    for slot in range(1, _SLOTS):
        before = made[slot - 1]
        is_apart = slot + 1 == _SLOTS or _is_apart(moved, made[slot + 1], slot)
        if is_apart and _is_near(before, moved, slot) and _is_apart(before, moved, slot - 1):
            replacement = moved
        if _is_near(before, made[slot], slot):
            break
        moved, made[slot] = made[slot], replacement
    while len(made) > 1 and made[-1] is made[-2]:
        made.pop()
    return made


def _is_near(newer: OffsetSync, older: OffsetSync, slot: int) -> bool:
    """Return whether a sync is young enough for a slot, seen from the one in the slot before."""
    return newer is older or newer.upstream <= older.upstream + (1 << slot) - (1 << slot - 1)


def _is_apart(newer: OffsetSync, older: OffsetSync, slot: int) -> bool:
    """Return whether a sync is far enough from the newer one, which is in ``slot``."""
    return newer is older or newer.upstream >= older.upstream + (1 << max(slot - 2, 0))
