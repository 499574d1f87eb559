"""Restarting by policy: a function of what happened before."""

from __future__ import annotations

import pytest

from worker.herder.connectors.automatic_restarts import RestartPolicy

CONFIG = {
    "name": "c",
    "restart.policy": "on-failure",
    "restart.backoff.ms": "1000",
    "restart.backoff.max.ms": "5000",
    "restart.limit": "4",
    "restart.window.ms": "60000",
}


def test_without_a_policy_nothing_is_restarted() -> None:
    assert RestartPolicy.of({"name": "c"}).delay((), 0.0) is None
    assert RestartPolicy.of(CONFIG | {"restart.policy": "none"}).delay((), 0.0) is None


def test_each_wait_is_twice_as_long_up_to_the_longest() -> None:
    policy = RestartPolicy.of(CONFIG)
    waits = [policy.delay((100.0,) * count, 100.0) for count in range(5)]
    assert waits == [1.0, 2.0, 4.0, 5.0, None]


def test_a_policy_that_cannot_be_read_is_none(caplog: pytest.LogCaptureFixture) -> None:
    assert RestartPolicy.of(CONFIG | {"restart.limit": "${env:LIMIT}"}) == RestartPolicy()
    assert "because its restart.policy is invalid: Invalid value ${env:LIMIT}" in caplog.text


def test_what_is_restarted_without_end_waits_the_longest_wait() -> None:
    policy = RestartPolicy.of(CONFIG | {"restart.limit": "2147483647"})
    assert policy.delay((100.0,) * 5_000, 100.0) == 5.0
    assert RestartPolicy.of(CONFIG | {"restart.backoff.ms": "0"}).delay((100.0,) * 3, 100.0) == 0.0


def test_restarts_count_for_the_length_of_the_window() -> None:
    policy = RestartPolicy.of(CONFIG)
    restarts = (0.0, 10.0, 20.0, 30.0)
    assert policy.delay(restarts, 59.0) is None
    assert policy.delay(restarts, 61.0) == 5.0
    assert policy.recent(restarts, 85.0) == (30.0,)
    assert policy.delay(restarts, 200.0) == 1.0
