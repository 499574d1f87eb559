"""The CPU time of a unit is that of its threads, those that have ended too, and nobody else's."""

from __future__ import annotations

import threading
import time

from worker.runtime.usage import ThreadTimes

_WORK = 0.02


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
