"""How the groups of the source are divided among tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote, unquote

__all__ = ["ASSIGNED", "INDEX", "assigned", "shared", "written"]

ASSIGNED: Final = "task.assigned.groups"
INDEX: Final = "task.index"
_SPECIAL: Final = re.compile(r"[%,\s]")
"""What would not survive in a list."""


def shared(groups: Sequence[str], most: int, before: Sequence[Sequence[str]] = ()) -> list[tuple[str, ...]]:
    """The groups of each task, of which there are at most ``most``.

    Tasks that ran ``before`` with as many keep what they have, so that a group that is new or gone concerns one task
    alone. Otherwise each task gets groups that follow each other, as by MirrorMaker 2.
    """
    tasks = min(most, len(groups))
    if tasks == 0:
        return []
    if len(before) != tasks:
        return _in_a_row(groups, tasks)
    present = set(groups)
    kept = [[group for group in share if group in present] for share in before]
    known = {group for share in kept for group in share}
    for group in groups:
        if group not in known:
            min(kept, key=len).append(group)
    return [tuple(share) for share in kept] if all(kept) else _in_a_row(groups, tasks)


def written(share: Iterable[str]) -> str:
    """The share of a task as its configuration has it; commas and spaces in names are escaped."""
    return ",".join(_SPECIAL.sub(lambda found: quote(found[0], safe=""), group) for group in share)


def assigned(items: Iterable[str]) -> tuple[str, ...]:
    """The share that a task's configuration says."""
    return tuple(unquote(item) for item in items)


def _in_a_row(groups: Sequence[str], tasks: int) -> list[tuple[str, ...]]:
    size, longer = divmod(len(groups), tasks)
    ends = [size * task + min(task, longer) for task in range(tasks + 1)]
    return [tuple(groups[ends[task] : ends[task + 1]]) for task in range(tasks)]
