"""What may take long is done for no more than a fiftieth of the time."""

from __future__ import annotations

import itertools

import pytest

from connect.kits.cdc.heartbeats import Seldom


class Clock:
    """A clock that only what is done moves on."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


def test_what_took_long_waits_for_longer() -> None:
    clock, done = Clock(), list[float]()
    seldom = Seldom(clock)

    def work() -> None:
        done.append(clock.now)
        clock.spend(0.5)

    for _ in range(1000):
        seldom.run(work)
        clock.spend(0.1)

    assert done[0] == 100.0
    assert 5 <= len(done) <= 7
    spans = [after - before for before, after in itertools.pairwise(done)]
    assert min(spans) >= 50 * 0.5 - 0.001


def test_what_fails_waits_too() -> None:
    clock = Clock()
    seldom = Seldom(clock)

    def fail() -> None:
        clock.spend(1.0)
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        seldom.run(fail)
    seldom.run(fail)
    clock.spend(49.5)
    with pytest.raises(ValueError, match="no answer"):
        seldom.run(fail)
