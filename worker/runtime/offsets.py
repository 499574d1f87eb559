"""Source offsets as a task process has them: read from the worker before the task starts, committed to
it afterwards.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from connect.data import Offset
from connect.errors import ConnectError, RetriableError
from worker.runtime.control import Control
from worker.runtime.submitted import Submission, SubmittedRecords
from worker.supervisor import messages

__all__ = ["OffsetCommitter", "WorkerOffsetReader"]

logger = logging.getLogger(__name__)
_READ_TIMEOUT: Final = 30.0


class WorkerOffsetReader:
    """Reads source offsets from the worker, for the connector that this process belongs to."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """The offset kept of each source partition, ``None`` where there is none."""
        request = self._control.request()
        self._control.send(messages.ReadOffsets(request, [dict(partition) for partition in partitions]))
        answer = self._control.await_reply(request, _READ_TIMEOUT)
        if not isinstance(answer, messages.OffsetsRead):
            raise ConnectError(f"The worker did not answer within {_READ_TIMEOUT:.0f} s where the source offsets are.")
        if answer.error is not None:
            raise ConnectError(f"The source offsets cannot be read: {answer.error}")
        return answer.offsets

    def offset(self, partition: Offset) -> Offset | None:
        """The offset kept of one source partition."""
        return self.offsets([partition])[0]


class OffsetCommitter:
    """Commits the offsets of acknowledged records, every ``interval`` seconds and at the end.

    One commit is under way at a time. One that fails, or takes longer than ``timeout`` seconds, is made again with
    the next: its offsets are kept. Crash point: between Kafka's acknowledgement and the commit a kill has the records
    read and sent again (invariant I3).
    """

    def __init__(
        self,
        control: Control,
        submitted: SubmittedRecords,
        before_commit: Callable[[], None],
        on_commit: Callable[[], None],
        *,
        interval: float,
        timeout: float,
    ) -> None:
        self._control = control
        self._submitted = submitted
        self._before_commit = before_commit
        self._on_commit = on_commit
        self._interval = interval
        self._timeout = timeout
        self._due = time.monotonic() + interval
        self._waiting: dict[bytes, Submission] = {}
        self._request: int | None = None
        self._deadline = 0.0

    def advance(self) -> None:
        """Begin a commit if one is due and see to the one under way; never blocks."""
        if self._request is not None:
            self._hear()
        elif time.monotonic() >= self._due:
            self._begin()

    def finish(self) -> bool:
        """Commit all that is committable and wait for it, once; whether that came about."""
        deadline = time.monotonic() + self._timeout
        while self._request is not None or self._begin():
            if time.monotonic() >= deadline:
                return False
            self._control.wait_for_command(deadline - time.monotonic())
            if not self._hear():
                return False
        return not self._waiting

    def _begin(self) -> bool:
        self._due = time.monotonic() + self._interval
        self._waiting |= self._submitted.committable()
        if not self._waiting:
            return False
        try:
            self._before_commit()
        except RetriableError as error:
            self._put_off(str(error))
            return False
        self._request = self._control.request()
        self._deadline = time.monotonic() + self._timeout
        pairs: messages.OffsetPairs = [(dict(item.partition), dict(item.offset)) for item in self._waiting.values()]
        self._control.send(messages.CommitOffsets(self._request, pairs))
        return True

    def _hear(self) -> bool:
        """Look for the answer; ``False`` if the commit has failed."""
        if self._request is None:
            return True
        answer = self._control.reply(self._request)
        if isinstance(answer, messages.OffsetsCommitted):
            self._request = None
            if answer.error is not None:
                return self._put_off(answer.error)
            self._waiting = {}
            self._tell_committed()
        elif time.monotonic() >= self._deadline:
            self._request = None
            return self._put_off(f"the worker did not answer within {self._timeout:g} s")
        return True

    def _put_off(self, reason: str) -> bool:
        logger.warning("Offsets were not committed and will be with the next: %s", reason)
        return False

    def _tell_committed(self) -> None:
        try:
            self._on_commit()
        except Exception:
            # What the task is told of has happened, so nothing is wrong with its records.
            logger.exception("The task's commit failed")
