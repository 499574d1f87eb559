"""The consumers of a group: which name a task takes, and whose entries it reads in their place. Pure.

Entries belong to the name that read them. Two tasks that read under one name, as a killed worker's last breath and its
successor might, could not tell whose entries are in Kafka. So a task takes a name that nobody has used for a while: the
configured one or, if that is in use or has entries, the same with a number. The ids that a name is given only grow, so
that the last one that Kafka has, which is the source offset of that name, tells all of its entries apart.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, TypeAlias

from connect.data import Offset

__all__ = ["Consumer", "ConsumerState", "StreamId", "free_name", "is_of", "left_behind", "parsed_id"]

StreamId: TypeAlias = tuple[int, int]

FIRST: Final = "0-0"
SILENT_MS: Final = 5_000
"""After how long a consumer of this task's, which asks for entries at least once a second, counts as gone."""


def parsed_id(text: str | bytes) -> StreamId:
    """Return the parts of an id, by which ids are ordered."""
    shown = text.decode() if isinstance(text, bytes) else text
    milliseconds, _, sequence = shown.partition("-")
    return int(milliseconds), int(sequence or 0)


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """What the server tells of a consumer."""

    name: str
    pending: int
    idle_ms: int


@dataclass(slots=True)
class Consumer:
    """What a task knows of a consumer that it reads as."""

    partition: Offset
    published: StreamId | None = None
    """The newest id whose offset is stored."""
    unacknowledged: deque[bytes] = field(default_factory=deque)
    """What was handed to the runtime and is not stored yet."""
    pending_after: str | None = None
    """After which of the pending entries to read on; ``None`` when there are no more."""

    def stored(self, end: StreamId) -> list[bytes]:
        """Return the entries up to one whose offset is stored now."""
        self.published = end if self.published is None else max(end, self.published)
        safe = []
        while self.unacknowledged and parsed_id(self.unacknowledged[0]) <= end:
            safe.append(self.unacknowledged.popleft())
        return safe


def is_of(base: str, name: str) -> bool:
    """Return whether a name is that of a task, with or without a number."""
    return name == base or re.fullmatch(re.escape(base) + r":[0-9]+", name) is not None


def free_name(base: str, states: Collection[ConsumerState], unused_ms: int) -> str:
    """Return the first name of a task that nobody uses: unknown to the server, or without entries and long silent."""
    used = {state.name for state in states if state.pending or state.idle_ms < unused_ms}
    return next(name for name in (base if not number else f"{base}:{number}" for number in count()) if name not in used)


def left_behind(
    states: Sequence[ConsumerState], name: str, bases: Sequence[str], task: int, foreign_ms: int
) -> list[ConsumerState]:
    """Return the consumers in whose place a task reads: its own former ones, and for the first task those of nobody."""
    found = []
    for state in states:
        if state.name == name or not state.pending:
            continue
        if is_of(bases[task], state.name):
            limit = SILENT_MS
        elif task == 0 and not any(is_of(base, state.name) for base in bases):
            limit = foreign_ms
        else:
            continue
        if state.idle_ms >= limit:
            found.append(state)
    return found
