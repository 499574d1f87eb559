"""The CPU time of a unit is that of its threads, ended ones included. Threads of its clients may wake together."""

from __future__ import annotations

import ctypes
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from worker.runtime.usage import ThreadTimes, starting_patient_threads

_WORK = 0.02
_PR_GET_TIMERSLACK = 30


def work() -> None:
    until = time.thread_time() + _WORK
    while time.thread_time() < until:
        pass


class Worker:
    """A thread that works when it is told to, until it is released."""

    def __init__(self) -> None:
        self.worked = threading.Event()
        self.released = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        self.worked.wait()

    def _run(self) -> None:
        work()
        self.worked.set()
        self.released.wait()

    def end(self) -> None:
        self.released.set()
        self.thread.join()


def test_threads_are_added_and_stay_in_the_sum_when_they_have_ended() -> None:
    one, other, stranger = Worker(), Worker(), Worker()
    threads = [one.thread, other.thread, threading.current_thread()]
    spent = ThreadTimes(lambda: threads)
    begun = spent() - time.thread_time()
    assert begun >= 1.5 * _WORK
    one.end()
    threads.remove(one.thread)
    assert spent() - time.thread_time() >= 1.5 * _WORK
    before = spent()
    work()
    assert spent() - before >= _WORK
    other.end()
    stranger.end()
    assert spent() >= before + _WORK, "a thread that has ended may still be named"


def _slack() -> int:
    """Return how many nanoseconds late the waits of this thread may end."""
    return int(ctypes.CDLL(None).prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0))


def test_waits_of_threads_that_are_started_meanwhile_may_end_late_and_no_others() -> None:
    before = _slack()
    with starting_patient_threads(0.2), ThreadPoolExecutor(1) as patient:
        assert patient.submit(_slack).result() == 200_000_000
    with ThreadPoolExecutor(1) as later:
        assert (_slack(), later.submit(_slack).result()) == (before, before)
