"""When offsets are committed, and what is waited for at the end."""

from __future__ import annotations

import pytest

from connect.internals.delivery.submissions import Submission, SubmittedRecords
from worker.messages import messages
from worker.runtime.offsets.offsets import OffsetCommitter, Written
from worker.runtime.timings import Timings


class Writer:
    """Answers each write when it is waited for, or as soon as it has begun."""

    def __init__(self, *, at_once: bool) -> None:
        self.written: list[messages.OffsetPairs] = []
        self._at_once = at_once
        self._outcome: Written | None = None

    def begin(self, pairs: messages.OffsetPairs) -> None:
        self.written.append(pairs)
        self._outcome = Written() if self._at_once else None

    def outcome(self) -> Written | None:
        outcome, self._outcome = self._outcome, None
        return outcome

    def wait(self, seconds: float) -> None:
        assert not self._at_once, f"all is known, and it would wait {seconds} s for more"
        self._outcome = Written()


@pytest.mark.parametrize("at_once", [True, False], ids=["answered", "to be answered"])
def test_at_the_end_an_outcome_is_waited_for_only_if_it_is_not_there_yet(at_once: bool) -> None:
    writer, submitted = Writer(at_once=at_once), SubmittedRecords()
    committer = OffsetCommitter(
        writer, submitted, lambda: None, lambda _: None, Timings(0.0), interval=0.0, timeout=60.0
    )
    submitted.submit(b"p", Submission({"file": "f"}, {"line": 1}, 0))
    committer.advance()
    submitted.submit(b"p", Submission({"file": "f"}, {"line": 2}, 0))
    assert committer.finish()
    assert writer.written == [[({"file": "f"}, {"line": 1})], [({"file": "f"}, {"line": 2})]]
