"""How the partitions of the source are divided among tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from connect.data import TopicPartition

__all__ = ["ASSIGNED", "BYTES", "GROWING", "IDS", "INDEX", "assigned", "shared", "written"]

ASSIGNED: Final = "task.assigned.partitions"
INDEX: Final = "task.index"
BYTES: Final = "task.bytes.per.second"
IDS: Final = "task.topic.ids"
"""Has another item for a topic that was made anew at either end, so that the task is restarted and sees to it."""
GROWING: Final = f"{ASSIGNED},{IDS}"
"""What may gain items while a task runs."""


def shared(
    partitions: Sequence[TopicPartition], most: int, before: Sequence[Sequence[TopicPartition]] = ()
) -> list[tuple[TopicPartition, ...]]:
    """The partitions of each task, of which there are at most ``most``.

    Tasks that ran ``before`` keep what they have, and more tasks get what is new: so nobody is restarted but who loses
    something. If there are to be fewer tasks, the partitions are dealt in turn, as MirrorMaker 2 does.
    """
    tasks = min(most, len(partitions))
    if not before or len(before) > tasks:
        return [tuple(partitions[task::tasks]) for task in range(tasks)]
    present = set(partitions)
    kept = [[partition for partition in share if partition in present] for share in before]
    kept += [[] for _ in range(tasks - len(before))]
    known = {partition for share in kept for partition in share}
    for partition in partitions:
        if partition not in known:
            min(kept, key=len).append(partition)
    if not all(kept):
        return shared(partitions, most)
    return [tuple(share) for share in kept]


def written(share: Iterable[TopicPartition]) -> str:
    """The share of a task as its configuration has it."""
    return ",".join(f"{partition.topic}-{partition.partition}" for partition in share)


def assigned(items: Iterable[str]) -> tuple[TopicPartition, ...]:
    """The share that a task's configuration says; a topic may have dashes."""
    split = (item.rpartition("-") for item in items)
    return tuple(TopicPartition(topic, int(number)) for topic, _, number in split)
