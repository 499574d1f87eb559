"""What a worker asks a child process of dead letter queues, and what it is answered.

They are part of :mod:`worker.supervisor.messages.messages`, where they are told from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["ErrantReplayed", "ErrantSelection", "ErrantsListed", "ListErrants", "ReplayErrants"]

ErrantSelection: TypeAlias = list[tuple[int, int, int]]
"""Records of a dead letter queue: a partition of it, the first offset, and the offset after the last."""


@dataclass(frozen=True, slots=True)
class ListErrants:
    """Tell what is in a connector's dead letter queue, ``limit`` records after a partition and offset at most.

    The answer is :class:`ErrantsListed`.
    """

    config: dict[str, str]
    worker: dict[str, str]
    after: tuple[int, int] | None
    limit: int


@dataclass(frozen=True, slots=True)
class ReplayErrants:
    """Deliver records of a sink connector's dead letter queue again; the answer is :class:`ErrantReplayed`.

    ``to`` is ``topic`` or ``task``. Without a ``selection`` all that were not replayed yet are meant, up to ``until``
    (the end of each partition of the queue) or the ends there are now. At most ``limit`` are done at once.
    """

    config: dict[str, str]
    worker: dict[str, str]
    to: str
    selection: ErrantSelection | None
    until: dict[str, int] | None
    limit: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ErrantsListed:
    """The outcome of :class:`ListErrants`: the queue's topic, its records, and the last of them if there are more.

    ``replayed`` is the offset in each partition up to which all were replayed.
    """

    topic: str
    records: list[dict[str, Any]]
    next: tuple[int, int] | None
    replayed: dict[str, int]


@dataclass(frozen=True, slots=True)
class ErrantReplayed:
    """The outcome of :class:`ReplayErrants`: the queue's topic, which were delivered, and which failed again and why.

    ``rest`` is the selection that remains; without a selection, ``until`` is where the queue ends for this replay and
    ``more`` whether it is not there yet.
    """

    topic: str
    delivered: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    rest: ErrantSelection
    until: dict[str, int]
    more: bool
