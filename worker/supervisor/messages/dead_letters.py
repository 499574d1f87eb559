"""Messages about dead letter queues: inquiries of a worker to a child process, and the answers.

They are part of :mod:`worker.supervisor.messages.messages`, which encodes and decodes all messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = [
    "DeadLetterRead",
    "DeadLetterRepaired",
    "DeadLetterSelection",
    "DeadLettersListed",
    "DeadLettersReplayed",
    "ListDeadLetters",
    "ReadDeadLetter",
    "RepairDeadLetter",
    "ReplayDeadLetters",
]

DeadLetterSelection: TypeAlias = list[tuple[int, int, int]]
"""Records of a dead letter queue: a partition of it, the first offset, and the offset after the last."""


@dataclass(frozen=True, slots=True)
class ListDeadLetters:
    """Tell what is in a connector's dead letter queue, ``limit`` records after a partition and offset at most.

    The answer is :class:`DeadLettersListed`.
    """

    config: dict[str, str]
    worker: dict[str, str]
    after: tuple[int, int] | None
    limit: int


@dataclass(frozen=True, slots=True)
class ReplayDeadLetters:
    """Deliver records of a sink connector's dead letter queue again; the answer is :class:`DeadLettersReplayed`.

    ``to`` is ``topic`` or ``task``. Without a ``selection`` all that were not replayed yet are meant, up to ``until``
    (the end of each partition of the queue) or the ends there are now. At most ``limit`` are done at once.
    """

    config: dict[str, str]
    worker: dict[str, str]
    to: str
    selection: DeadLetterSelection | None
    until: dict[str, int] | None
    limit: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ReadDeadLetter:
    """Tell one record of a connector's dead letter queue in the forms in which it can be edited.

    The answer is :class:`DeadLetterRead`.
    """

    config: dict[str, str]
    worker: dict[str, str]
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class RepairDeadLetter:
    """Deliver one record of a sink connector's dead letter queue with other parts; ``dry_run`` only shows its way.

    The answer is :class:`DeadLetterRepaired`. ``edit`` has the parts that are to be others, and ``to`` is as in
    :class:`ReplayDeadLetters`.
    """

    config: dict[str, str]
    worker: dict[str, str]
    to: str
    partition: int
    offset: int
    edit: dict[str, Any]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class DeadLettersListed:
    """The outcome of :class:`ListDeadLetters`: the queue's topic, its records, and the last of them if there are more.

    ``replayed`` is the offset in each partition up to which all were replayed.
    """

    topic: str
    records: list[dict[str, Any]]
    next: tuple[int, int] | None
    replayed: dict[str, int]


@dataclass(frozen=True, slots=True)
class DeadLettersReplayed:
    """The outcome of :class:`ReplayDeadLetters`: the queue's topic, the records delivered, and those that failed again.

    ``rest`` is the selection that remains; without a selection, ``until`` is where the queue ends for this replay and
    ``more`` whether it is not there yet.
    """

    topic: str
    delivered: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    rest: DeadLetterSelection
    until: dict[str, int]
    more: bool


@dataclass(frozen=True, slots=True)
class DeadLetterRead:
    """The outcome of :class:`ReadDeadLetter`: the queue's topic, and the record; ``None`` if it is not there."""

    topic: str
    record: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class DeadLetterRepaired:
    """The outcome of :class:`RepairDeadLetter`: where the record goes, what was changed, its way, and why it failed.

    ``found`` is false if it is not in the queue.
    """

    topic: str
    found: bool
    destination: str | None
    changes: list[dict[str, Any]]
    trace: dict[str, Any] | None
    error: str | None
