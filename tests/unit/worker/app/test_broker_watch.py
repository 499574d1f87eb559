"""What a standalone worker says while its brokers do not answer."""

from __future__ import annotations

import logging

import pytest

from worker.app.broker_watch import BrokerWatch
from worker.app.brokers import Absence

ABSENCE = Absence("b:1 refuses connections", "Start one.")


class Brokers:
    """Brokers that answer or not, as the test says."""

    def __init__(self) -> None:
        self.absence: Absence | None = None
        self.time = 1_764_300_000.0

    def watch(self) -> BrokerWatch:
        return BrokerWatch(lambda: self.absence, lambda: self.time)


def test_brokers_that_do_not_answer_are_a_trouble_since_the_first_miss(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    brokers = Brokers()
    watch = brokers.watch()
    assert watch.check()
    brokers.absence = ABSENCE
    assert not watch.check()
    assert watch.troubles() == [], "one lost packet is no trouble"
    brokers.time += 2
    watch.check()
    (trouble,) = watch.troubles()
    assert (trouble.since, trouble.works_on) == (1_764_300_000.0, True)
    assert "b:1 refuses connections" in trouble.message
    assert trouble.message.startswith("No broker of bootstrap.servers answers since 2025-11-28 03:20:00")
    watch.check()
    assert watch.troubles() == [trouble]
    brokers.absence = None
    assert watch.check()
    assert watch.troubles() == []
    assert [record.getMessage() for record in caplog.records] == [trouble.message, "The brokers answer again"]


def test_a_single_miss_is_forgotten() -> None:
    brokers = Brokers()
    watch = brokers.watch()
    for absence in (ABSENCE, None, ABSENCE):
        brokers.absence = absence
        watch.check()
    assert watch.troubles() == []
