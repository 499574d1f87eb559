"""Makes the records that a task leaves out visible: one line a minute in its log, and a note for its status."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from connect.internals.chain.tolerance import ErrorCounts
from worker.formatting import counted, utc_text
from worker.messages.messages import Skipped

__all__ = ["Losses"]

logger = logging.getLogger(__name__)
_LINE_SECONDS: Final = 60.0
_NOTE_SECONDS: Final = 5.0
_MOST_CHARACTERS: Final = 300


class Losses:
    """Watches the counts of a task's errors. Used by the task's thread, or by another while that one waits.

    ``hide`` removes secrets from a text; ``queue`` is the topic of the dead letter queue, if there is one.
    """

    def __init__(
        self,
        send: Callable[[Skipped], None],
        counts: ErrorCounts,
        hide: Callable[[str], str],
        queue: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._counts = counts
        self._hide = hide
        self._queue = queue
        self._clock = clock
        self._since = time.time()
        self._noted = 0
        self._logged = 0
        self._note_due = self._line_due = clock()

    def look(self, *, ends: bool = False) -> None:
        """Note and log what was left out since the last time, each if it is due; at the end of the task at once."""
        skipped, now = self._counts.total_records_skipped, self._clock()
        if skipped > self._noted and (ends or now >= self._note_due):
            self._noted, self._note_due = skipped, now + _NOTE_SECONDS
            self._send(self._note())
        if skipped > self._logged and (ends or now >= self._line_due):
            self._logged, self._line_due = skipped, now + _LINE_SECONDS
            logger.warning("%s", self._line())

    def _note(self) -> Skipped:
        counts = self._counts
        last = counts.last_error_timestamp / 1000
        return Skipped(counts.total_records_skipped, self._dead_letters(), self._since, last, self._reason())

    def _dead_letters(self) -> int:
        """With a queue, each record that is left out was reported to it, now or by an earlier attempt of its load."""
        counts = self._counts
        refused = counts.deadletterqueue_produce_failures
        return max(0, counts.total_records_skipped - refused) if self._queue else 0

    def _reason(self) -> str:
        return self._hide(" ".join(self._counts.last_reason.split()))[:_MOST_CHARACTERS]

    def _line(self) -> str:
        skipped = self._counts.total_records_skipped
        line = f"{counted(skipped, 'record')} skipped since {utc_text(self._since)}"
        if (dead := self._dead_letters()) and self._queue:
            line += f", {dead:,} of them to the dead letter queue {self._queue}"
        elif not self._queue:
            line += ", without a dead letter queue that keeps them"
        reason = self._reason()
        return f"{line}. The last one: {reason}" if reason else f"{line}."
