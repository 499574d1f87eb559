"""Source offsets in a task's process: read before it starts, then committed to the worker or the connector's topic."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from connect.data import Offset
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.tolerance import StopRequested
from connect.internals.delivery.submissions import Submission, SubmittedRecords
from worker.messages import messages
from worker.runtime.control import Control
from worker.runtime.metrics import Timings

__all__ = [
    "OffsetCommitter",
    "OffsetWriter",
    "WorkerOffsetCopy",
    "WorkerOffsetReader",
    "WorkerOffsetWriter",
    "Written",
    "offset_pairs",
]

logger = logging.getLogger(__name__)
_PATIENCE_SECONDS: Final = 30.0
_UNDER_WAY_SECONDS: Final = 0.1


class WorkerOffsetReader:
    """Reads source offsets of this process's connector from the worker.

    It logs a wait every ``patience`` seconds.
    """

    def __init__(self, control: Control, patience: float = _PATIENCE_SECONDS) -> None:
        self._control = control
        self._patience = patience

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """Return the stored offset of each source partition; ``None`` where there is none.

        Waits as long as it takes, like Java: a worker that starts a thousand tasks at once is slow. Raises
        :class:`StopRequested` if the task has to stop meanwhile.
        """
        request = self._control.request()
        self._control.send(messages.ReadOffsets(request, [dict(partition) for partition in partitions]))
        while not isinstance(answer := self._control.await_reply(request, self._patience), messages.OffsetsRead):
            if self._control.stopping:
                raise StopRequested
            logger.warning("Still waiting for the source offsets: the worker is busy, or cannot read them.")
        if answer.error is not None:
            raise ConnectError(f"The source offsets cannot be read: {answer.error}")
        return answer.offsets

    def offset(self, partition: Offset) -> Offset | None:
        """Return the stored offset of one source partition."""
        return self.offsets([partition])[0]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of writing offsets; ``error`` says why they are not stored."""

    error: str | None = None


class OffsetWriter(Protocol):
    """Stores offsets, one write at a time. Used by the task's thread alone."""

    def begin(self, pairs: messages.OffsetPairs) -> None:
        """Begin to write, without blocking for long."""

    def outcome(self) -> Written | None:
        """Return the outcome of the write; ``None`` until it is known."""

    def wait(self, seconds: float) -> None:
        """Wait for the outcome, for this many seconds, or until something else happens."""


class WorkerOffsetWriter:
    """Lets the worker store the offsets."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._request = -1

    def begin(self, pairs: messages.OffsetPairs) -> None:
        """Send the offsets to the worker."""
        self._request = self._control.request()
        self._control.send(messages.CommitOffsets(self._request, pairs))

    def outcome(self) -> Written | None:
        """Return the worker's answer."""
        answer = self._control.reply(self._request)
        return Written(answer.error) if isinstance(answer, messages.OffsetsCommitted) else None

    def wait(self, seconds: float) -> None:
        """Wait for a command of the worker."""
        self._control.wait_for_command(seconds)


class WorkerOffsetCopy:
    """The worker's copy of the offsets that a connector keeps in its own topic.

    It is for a connector that is later configured without that topic. It is never ahead of the topic, and may be
    behind, since its outcome is not waited for.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._writer = WorkerOffsetWriter(control)

    def keep(self, pairs: messages.OffsetPairs) -> None:
        """Let the worker store these offsets too."""
        before = self._writer.outcome()
        if before is not None and before.error is not None:
            logger.warning("The worker could not copy the offsets of the connector's own topic: %s", before.error)
        self._writer.begin(pairs)


def offset_pairs(submissions: Iterable[Submission]) -> messages.OffsetPairs:
    """Return the offsets of these submissions, in the form of messages."""
    return [(dict(submission.partition), dict(submission.offset)) for submission in submissions]


class OffsetCommitter:
    """Commits the offsets of acknowledged records, every ``interval`` seconds and at the end.

    Each commit first makes reports durable and then calls the task, as in Java even without offsets, since all records
    may have been left out. One commit runs at a time. The offsets of one that fails, or takes longer than ``timeout``
    seconds, are included in the next. Crash point: after a kill between Kafka's acknowledgement and the commit, the
    records are read and sent again (invariant I3).
    """

    def __init__(
        self,
        writer: OffsetWriter,
        submitted: SubmittedRecords,
        before_commit: Callable[[], None],
        on_commit: Callable[[messages.OffsetPairs], None],
        timings: Timings,
        *,
        interval: float,
        timeout: float,
    ) -> None:
        self._writer = writer
        self._submitted = submitted
        self._before_commit = before_commit
        self._on_commit = on_commit
        self._timings = timings
        self._interval = interval
        self._timeout = timeout
        self._due = time.monotonic() + interval
        self._waiting: dict[bytes, Submission] = {}
        self._under_way = False
        self._reported = True
        self._begun = 0.0
        self._deadline = 0.0

    def advance(self) -> None:
        """Begin a commit if one is due, and check the one under way; never blocks."""
        if self._under_way:
            self._hear()
        elif time.monotonic() >= self._due:
            self._begin()

    @property
    def next_look(self) -> float:
        """When to call :meth:`advance`, by :func:`time.monotonic`, since not every store reports when it has them."""
        return time.monotonic() + _UNDER_WAY_SECONDS if self._under_way else self._due

    def finish(self) -> bool:
        """Commit everything that can be committed, and wait. Return whether that succeeded."""
        deadline = time.monotonic() + self._timeout
        while self._under_way or self._begin():
            # The outcome may be there already: it has come together with the command to stop.
            if not self._hear():
                return False
            if self._under_way:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._writer.wait(left)
        return self._reported and not self._waiting

    def _begin(self) -> bool:
        self._due = time.monotonic() + self._interval
        self._waiting |= self._submitted.committable()
        self._reported = False
        try:
            self._before_commit()
        except RetriableError as error:
            self._put_off(str(error))
            return False
        self._reported = True
        if not self._waiting:
            self._tell_committed([])
            return False
        self._under_way = True
        self._begun = time.monotonic()
        self._deadline = self._begun + self._timeout
        self._writer.begin(offset_pairs(self._waiting.values()))
        return True

    def _hear(self) -> bool:
        """Check the outcome; ``False`` if the commit has failed."""
        if not self._under_way:
            return True
        outcome = self._writer.outcome()
        if outcome is not None:
            self._under_way = False
            if outcome.error is not None:
                return self._put_off(outcome.error)
            stored, self._waiting = offset_pairs(self._waiting.values()), {}
            self._timings.committed(time.monotonic() - self._begun)
            self._tell_committed(stored)
        elif time.monotonic() >= self._deadline:
            self._under_way = False
            return self._put_off(f"nothing was heard of them within {self._timeout:g} s")
        return True

    def _put_off(self, reason: str) -> bool:
        self._timings.not_committed()
        logger.warning("Offsets were not committed; the next commit will include them: %s", reason)
        return False

    def _tell_committed(self, stored: messages.OffsetPairs) -> None:
        try:
            self._on_commit(stored)
        except Exception:
            # The commit has already happened, so nothing is wrong with the records.
            logger.exception("The task's commit failed")
