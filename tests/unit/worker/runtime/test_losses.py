"""How the records that a task leaves out are made visible."""

from __future__ import annotations

import pytest

from connect.internals.chain.tolerance import ErrorCounts
from worker.messages.messages import Skipped
from worker.runtime.losses import Losses


class Losing:
    """A task that leaves out records."""

    def __init__(self, queue: str | None) -> None:
        self.now = 0.0
        self.counts = ErrorCounts()
        self.told: list[Skipped] = []
        self.losses = Losses(
            self.told.append, self.counts, lambda text: text.replace("zq", "[hidden]"), queue, self.clock
        )

    def clock(self) -> float:
        return self.now

    def skips(self, count: int, reason: str = "it is no zq") -> None:
        """Leave out records."""
        self.counts.total_records_skipped += count
        self.counts.last_error_timestamp = 1_790_000_000_000
        self.counts.last_reason = reason


@pytest.mark.parametrize(("queue", "dead_letters"), [("dlq", 134), (None, 0)])
def test_the_status_is_told_at_once_and_then_every_five_seconds(queue: str | None, dead_letters: int) -> None:
    task = Losing(queue)
    task.losses.look()
    assert task.told == []
    task.skips(1)
    task.losses.look()
    task.skips(133)
    task.now = 4.9
    task.losses.look()
    assert [note.records for note in task.told] == [1]
    task.now = 5.0
    task.losses.look()
    task.losses.look()
    assert [note.records for note in task.told] == [1, 134]
    note = task.told[-1]
    assert (note.dead_letters, note.last, note.reason) == (dead_letters, 1_790_000_000.0, "it is no [hidden]")


@pytest.mark.parametrize(
    ("queue", "rest"),
    [
        ("dlq", ", {} of them to the dead letter queue dlq. The last one: it is no [hidden]"),
        (None, ", without a dead letter queue that keeps them. The last one: it is no [hidden]"),
    ],
)
def test_the_log_has_a_line_a_minute_and_one_at_the_end(
    queue: str | None, rest: str, caplog: pytest.LogCaptureFixture
) -> None:
    task = Losing(queue)
    for second in range(150):
        task.now = float(second)
        task.skips(1)
        task.losses.look()
    task.losses.look(ends=True)
    task.losses.look(ends=True)
    lines = [record.getMessage() for record in caplog.records]
    counts = ["1 record skipped", "61 records skipped", "121 records skipped", "150 records skipped"]
    assert [line.partition(" since ")[0] for line in lines] == counts
    assert all(line.endswith(rest.format(line.split()[0])) for line in lines)
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_a_record_of_unknown_reason_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    task = Losing("dlq")
    task.skips(2, "")
    task.losses.look(ends=True)
    assert caplog.records[0].getMessage().endswith(", 2 of them to the dead letter queue dlq.")
    assert task.told[0].reason == ""
