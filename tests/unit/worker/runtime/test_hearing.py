"""One thread that reads for all units of a process."""

from __future__ import annotations

import os
import threading
from contextvars import ContextVar

from worker.runtime.hearing import Hearing

DEADLINE = 10.0
WHO = ContextVar("WHO", default="nobody")


class Ear:
    """Hears single bytes until an ``e`` comes, for whom is set when it is added."""

    def __init__(self, hearing: Hearing) -> None:
        self.reader, self.writer = os.pipe()
        self.heard: list[tuple[str, bytes]] = []
        self.hears = threading.Semaphore(0)
        self.has_ended = threading.Event()
        hearing.add(self.reader, self._hear, self.has_ended.set)

    def _hear(self) -> bool:
        said = os.read(self.reader, 1)
        if said == b"!":
            raise ValueError("not understood")
        self.heard.append((WHO.get(), said))
        self.hears.release()
        return said != b"e"

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


def test_each_is_heard_as_who_asked_for_it() -> None:
    hearing = Hearing()
    hearing.start()
    WHO.set("first")
    first = Ear(hearing)
    WHO.set("second")
    second = Ear(hearing)
    os.write(second.writer, b"a")
    assert second.hears.acquire(timeout=DEADLINE)
    os.write(first.writer, b"be")
    assert first.has_ended.wait(DEADLINE)
    assert first.heard == [("first", b"b"), ("first", b"e")]
    assert second.heard == [("second", b"a")]
    assert not second.has_ended.is_set()
    first.close()
    second.close()


def test_one_that_is_not_understood_ends_alone() -> None:
    hearing = Hearing()
    hearing.start()
    broken, whole = Ear(hearing), Ear(hearing)
    os.write(broken.writer, b"!")
    assert broken.has_ended.wait(DEADLINE)
    os.write(whole.writer, b"a")
    assert whole.hears.acquire(timeout=DEADLINE)
    broken.close()
    whole.close()
