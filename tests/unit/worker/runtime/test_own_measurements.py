"""What a plugin measures of itself goes to the worker when it has changed."""

from __future__ import annotations

import logging

import pytest

from connect.measurement import Measurement
from worker.runtime.metrics import OwnMeasurements


def _lag(topic: str, value: float) -> Measurement:
    return Measurement("lag", value, "Records behind.", (("topic", topic),))


def test_only_what_has_changed_is_told() -> None:
    own = OwnMeasurements()
    own.take([_lag("a", 1), _lag("b", 2)])
    assert own.changes() == [
        ("lag", ["topic", "a"], "Records behind.", 1.0),
        ("lag", ["topic", "b"], "Records behind.", 2.0),
    ]
    assert own.changes() == []
    own.take([_lag("b", 3)])
    assert own.changes() == [("lag", ["topic", "b"], "Records behind.", 3.0), ("lag", ["topic", "a"], "", None)]


@pytest.mark.parametrize(
    "bad",
    [
        Measurement("Lag", 1, "x"),
        Measurement("lag-x", 1, "x"),
        Measurement("lag", 1, "x", (("task", "7"),)),
        Measurement("lag", 1, "x", (("a", "1"), ("a", "2"))),
        Measurement("lag", 1, "two\nlines"),
    ],
)
def test_what_cannot_be_shown_is_left_out_and_warned_of_once(
    bad: Measurement, caplog: pytest.LogCaptureFixture
) -> None:
    own = OwnMeasurements()
    with caplog.at_level(logging.WARNING):
        own.take([bad, _lag("a", 1), bad])
    assert [name for name, *_ in own.changes()] == ["lag"]
    assert len(caplog.records) == 1


def test_a_task_has_so_many_and_no_more() -> None:
    own = OwnMeasurements()
    own.take(_lag(str(number), 1) for number in range(5100))
    assert len(own.changes()) == 5000
