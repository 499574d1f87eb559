"""Signals that end a worker while it starts."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from worker.app.stop_signals import StoppedError, StopSignals


@pytest.fixture
def stop() -> Iterator[StopSignals]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    # These tests may themselves run below nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield StopSignals(7)
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_ends_the_start_without_an_error(stop: StopSignals) -> None:
    with stop:
        signal.raise_signal(signal.SIGTERM)
    assert stop.status.result(0) == 7


def test_a_signal_in_a_c_function_that_makes_a_system_error_of_it_does_so_too(stop: StopSignals) -> None:
    with stop:
        try:
            signal.raise_signal(signal.SIGTERM)
        except StoppedError as error:
            raise SystemError("a function returned a result with an exception set") from error
    assert stop.status.result(0) == 7


def test_a_system_error_without_a_signal_is_a_defect(stop: StopSignals) -> None:
    with pytest.raises(SystemError, match="of its own"), stop:
        raise SystemError("of its own")
    assert not stop.status.done()


def test_a_worker_that_is_up_is_not_interrupted(stop: StopSignals) -> None:
    with stop:
        stop.started()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert stop.status.result(0) == 7


def test_a_terminal_that_is_closed_ends_a_worker_too(stop: StopSignals) -> None:
    with stop:
        stop.started()
        signal.raise_signal(signal.SIGHUP)
    assert stop.status.result(0) == 7


def test_a_worker_below_nohup_stays(stop: StopSignals) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    below = StopSignals(8)
    below.started()
    signal.raise_signal(signal.SIGHUP)
    assert not below.status.done()
    assert not stop.status.done()
