"""How a task shows what it waits for, and how long it does."""

from __future__ import annotations

import pytest

from connect.errors import ConnectError
from worker.config.connector import ConnectorConfig
from worker.messages.messages import Waiting
from worker.runtime.waits import Waits

MISSING = "Folder /zq does not exist."


class Waiter:
    """A task that waits."""

    def __init__(self, **keys: str) -> None:
        self.now = 0.0
        self.told: list[str | None] = []
        given = {"name": "c", "connector.class": "x", **{key.replace("_", "."): value for key, value in keys.items()}}
        config = ConnectorConfig.parse(given)
        self.waits = Waits(self.take, lambda text: text.replace("zq", "[hidden]"), config, self.clock)

    def take(self, note: Waiting) -> None:
        self.told.append(note.reason)

    def clock(self) -> float:
        return self.now


def test_the_status_is_told_of_each_reason_once(caplog: pytest.LogCaptureFixture) -> None:
    task = Waiter()
    for _ in range(3):
        task.waits.on(MISSING)
    task.waits.on("Another.")
    task.waits.over()
    task.waits.over()
    assert task.told == ["Folder /[hidden] does not exist.", "Another.", None]


def test_the_log_repeats_it_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    task = Waiter()
    for second in range(130):
        task.now = float(second)
        task.waits.on(MISSING)
    assert [record.getMessage() for record in caplog.records] == [
        "Folder /[hidden] does not exist.",
        "Still waiting, for 60 s now. Folder /[hidden] does not exist.",
        "Still waiting, for 120 s now. Folder /[hidden] does not exist.",
    ]


@pytest.mark.parametrize(("keys", "limit"), [({}, 10.0), ({"run_until_missing_timeout_ms": "2500"}, 2.5)])
def test_a_connector_that_should_end_fails_when_it_has_waited_for_too_long(keys: dict[str, str], limit: float) -> None:
    task = Waiter(run_until="drained", **keys)
    task.waits.on(MISSING)
    task.now = limit - 0.1
    task.waits.on(MISSING)
    task.now = limit
    with pytest.raises(ConnectError) as failed:
        task.waits.on(MISSING)
    assert str(failed.value) == (
        f"Folder /zq does not exist. It still does not exist after {limit:g} s, so the connector, which has "
        "run.until=drained, cannot end; run.until.missing.timeout.ms is how long it waits."
    )


@pytest.mark.parametrize(
    "keys", [{"run_until": "stopped"}, {"run_until": "drained", "run_until_missing_timeout_ms": "-1"}]
)
def test_others_wait_for_ever(keys: dict[str, str]) -> None:
    task = Waiter(**keys)
    task.waits.on(MISSING)
    task.now = 1e6
    task.waits.on(MISSING)


def test_the_time_counts_from_when_the_task_should_end() -> None:
    """A sink waits for the sources of its worker before it is told to drain."""
    task = Waiter(run_until="drained")
    task.waits.on(MISSING, ends=False)
    task.now = 100.0
    task.waits.on(MISSING, ends=False)
    task.waits.on(MISSING)
    task.now = 109.0
    task.waits.on(MISSING)
    task.now = 110.0
    with pytest.raises(ConnectError):
        task.waits.on(MISSING)
