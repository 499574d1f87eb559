"""How the partitions of the source are divided among tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from connect.data import TopicPartition

__all__ = ["ASSIGNED", "BYTES", "IDS", "INDEX", "assigned", "shared", "written"]

ASSIGNED: Final = "task.assigned.partitions"
INDEX: Final = "task.index"
BYTES: Final = "task.bytes.per.second"
IDS: Final = "task.topic.ids"
"""Changes when a topic of the task is made anew at either end, so that the task is restarted and sees to it."""


def shared(
    partitions: Sequence[TopicPartition], most: int, before: Sequence[Sequence[TopicPartition]] = ()
) -> list[tuple[TopicPartition, ...]]:
    """The partitions of each task, of which there are at most ``most``.

    Tasks that ran ``before`` with as many keep what they have, so that what is new or gone restarts only those that it
    concerns. Otherwise the partitions are dealt in turn, as MirrorMaker 2 does.
    """
    tasks = min(most, len(partitions))
    if not before or len(before) != tasks:
        return [tuple(partitions[task::tasks]) for task in range(tasks)]
    present = set(partitions)
    kept = [[partition for partition in share if partition in present] for share in before]
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
