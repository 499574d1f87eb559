"""How partitions and groups of the source are divided among tasks, and how task configs write these shares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar
from urllib.parse import quote, unquote

from connect.data import TopicPartition

__all__ = [
    "ASSIGNED_GROUPS",
    "ASSIGNED_PARTITIONS",
    "BYTES",
    "GROWING_PARTITIONS",
    "IDS",
    "INDEX",
    "assigned_groups",
    "assigned_partitions",
    "group_shares",
    "partition_shares",
    "written_groups",
    "written_partitions",
]

T = TypeVar("T")

INDEX: Final = "task.index"
ASSIGNED_GROUPS: Final = "task.assigned.groups"
ASSIGNED_PARTITIONS: Final = "task.assigned.partitions"
BYTES: Final = "task.bytes.per.second"
IDS: Final = "task.topic.ids"
"""Lists a hash of each topic's ids at both ends, so that a recreated topic restarts its task."""
GROWING_PARTITIONS: Final = f"{ASSIGNED_PARTITIONS},{IDS}"
"""The keys whose lists may gain items while a task runs."""

_SPECIAL: Final = re.compile(r"[%,\s]")
"""Characters that would not survive in a list."""


def partition_shares(
    partitions: Sequence[TopicPartition], most: int, before: Sequence[Sequence[TopicPartition]] = ()
) -> list[tuple[TopicPartition, ...]]:
    """Divide partitions among at most ``most`` tasks.

    Tasks that ran ``before`` keep what they have, and additional tasks get what is new, so that only a task that loses
    a partition restarts. If fewer tasks are needed than before, the partitions are dealt in turn, as by MirrorMaker 2.
    """
    tasks = min(most, len(partitions))
    kept = _kept(partitions, tasks, before) if 0 < len(before) <= tasks else None
    return kept or [tuple(partitions[task::tasks]) for task in range(tasks)]


def group_shares(groups: Sequence[str], most: int, before: Sequence[Sequence[str]] = ()) -> list[tuple[str, ...]]:
    """Divide groups among at most ``most`` tasks.

    If as many tasks ran ``before``, they keep what they have, so that a new or a deleted group affects one task only.
    Otherwise each task gets consecutive groups, as by MirrorMaker 2.
    """
    tasks = min(most, len(groups))
    kept = _kept(groups, tasks, before) if 0 < len(before) == tasks else None
    return kept or _consecutive(groups, tasks)


def written_partitions(share: Iterable[TopicPartition]) -> str:
    """Return the share of a task as its config has it."""
    return ",".join(f"{partition.topic}-{partition.partition}" for partition in share)


def assigned_partitions(items: Iterable[str]) -> tuple[TopicPartition, ...]:
    """Return the share that a task config lists. Topics may contain dashes."""
    split = (item.rpartition("-") for item in items)
    return tuple(TopicPartition(topic, int(number)) for topic, _, number in split)


def written_groups(share: Iterable[str]) -> str:
    """Return the share of a task as its config has it, with commas and spaces in names escaped."""
    return ",".join(_SPECIAL.sub(lambda found: quote(found[0], safe=""), group) for group in share)


def assigned_groups(items: Iterable[str]) -> tuple[str, ...]:
    """Return the share that a task config lists."""
    return tuple(unquote(item) for item in items)


def _kept(items: Sequence[T], tasks: int, before: Sequence[Sequence[T]]) -> list[tuple[T, ...]] | None:
    """Return the former shares with what is new, or ``None`` if that would leave a task without work."""
    present = set(items)
    kept = [[item for item in share if item in present] for share in before]
    kept += [[] for _ in range(tasks - len(before))]
    known = {item for share in kept for item in share}
    for item in items:
        if item not in known:
            min(kept, key=len).append(item)
    return [tuple(share) for share in kept] if all(kept) else None


def _consecutive(groups: Sequence[str], tasks: int) -> list[tuple[str, ...]]:
    if not tasks:
        return []
    size, longer = divmod(len(groups), tasks)
    ends = [size * task + min(task, longer) for task in range(tasks + 1)]
    return [tuple(groups[ends[task] : ends[task + 1]]) for task in range(tasks)]
