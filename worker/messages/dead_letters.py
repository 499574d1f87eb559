"""Messages about dead letter queues: inquiries of a worker to a child process, and the answers.

They are part of :mod:`worker.messages.messages`, which encodes and decodes all messages.
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
"""Records of a dead letter queue: its partition, the first offset, and the offset after the last."""


@dataclass(frozen=True, slots=True)
class ListDeadLetters:
    """List a connector's dead letter queue: at most ``limit`` records after a partition and offset.

    The answer is :class:`DeadLettersListed`.
    """

    config: dict[str, str]
    worker: dict[str, str]
    after: tuple[int, int] | None
    limit: int


@dataclass(frozen=True, slots=True)
class ReplayDeadLetters:
    """Deliver records of a sink connector's dead letter queue again; the answer is :class:`DeadLettersReplayed`.

    ``to`` is ``topic`` or ``task``. Without a ``selection``, it means all that were not replayed yet, up to ``until``
    (the end of each partition of the queue) or the current ends. At most ``limit`` are replayed at once.
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
    """Read one record of a connector's dead letter queue in the forms in which it can be edited.

    The answer is :class:`DeadLetterRead`.
    """

    config: dict[str, str]
    worker: dict[str, str]
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class RepairDeadLetter:
    """Deliver one record of a sink connector's dead letter queue, edited; ``dry_run`` only traces it.

    The answer is :class:`DeadLetterRepaired`. ``edit`` has the changed parts, and ``to`` is as in
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
    """The answer to :class:`ListDeadLetters`: the queue's topic, its records, and where to go on if there are more.

    ``replayed`` is the offset in each partition up to which all were replayed. ``total`` is the number of records in
    the topic, whichever connector wrote them, and ``remaining`` that of those beyond ``replayed``.
    """

    topic: str
    records: list[dict[str, Any]]
    next: tuple[int, int] | None
    replayed: dict[str, int]
    total: int
    remaining: int


@dataclass(frozen=True, slots=True)
class DeadLettersReplayed:
    """The answer to :class:`ReplayDeadLetters`: the queue's topic, the delivered records, and those that failed again.

    ``rest`` is the selection that remains. Without a selection, ``until`` is the end of the queue for this replay, and
    ``more`` says whether it has not reached that yet.
    """

    topic: str
    delivered: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    rest: DeadLetterSelection
    until: dict[str, int]
    more: bool


@dataclass(frozen=True, slots=True)
class DeadLetterRead:
    """The answer to :class:`ReadDeadLetter`: the queue's topic and the record; ``None`` if there is none."""

    topic: str
    record: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class DeadLetterRepaired:
    """The answer to :class:`RepairDeadLetter`: the record's destination, changes, trace, and error if it failed.

    ``found`` is false if it is not in the queue.
    """

    topic: str
    found: bool
    destination: str | None
    changes: list[dict[str, Any]]
    trace: dict[str, Any] | None
    error: str | None
