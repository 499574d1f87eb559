"""The watch over a plugin's calls, looked at as often as the test wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from worker.messages import messages
from worker.runtime.watch import Limits, Lookout, Watch

DEADLINE = 10.0


class World:
    """A watch, and what it says."""

    def __init__(self, warning: float = 60.0, timeout: float = 0.0) -> None:
        self.said: list[Any] = []
        self.ended = threading.Event()
        self.watch = Watch(self.said.append, lambda text: text.replace("s3cret", "[hidden]"), self.ended.set)
        self.watch.begin(Limits(warning, timeout, 0.0))
        # From now on only the test looks.
        self.watch.close()
        self.said.clear()

    def look(self, seconds: float) -> None:
        """Let so much time pass; a look sees a call the first time, and then for how long."""
        self.watch.look(0.0)
        self.watch.look(seconds)

    def hanging(self) -> list[messages.Hanging]:
        return [said for said in self.said if isinstance(said, messages.Hanging)]


@pytest.fixture
def world() -> Iterator[World]:
    return World()


def test_a_call_is_reported_once_it_lasts_too_long_and_again_each_time_it_has_lasted_twice_as_long(
    world: World,
) -> None:
    def put() -> None:
        s3cret = "s3cret"
        world.look(59.0)
        assert world.said == [], s3cret
        for _ in range(5):
            world.watch.look(60.0)

    with world.watch.call("put"):
        put()
    assert [round(hanging.seconds) for hanging in world.hanging()] == [119, 239]
    first = world.hanging()[0]
    assert first.method == "put"
    assert first.line.startswith("test_watch.py:")
    assert "in put\n    world.watch.look(60.0)" in first.trace
    assert "test_a_call_is_reported_once" not in first.trace, "the frames of the runtime are left out"
    assert world.said[-1] == messages.HangOver("put")


def test_many_short_calls_are_not_one_long_call(world: World) -> None:
    for _ in range(100):
        with world.watch.call("put"):
            world.watch.look(50.0)
    assert world.said == []


def test_what_has_returned_after_a_long_time_may_take_as_long_again(world: World) -> None:
    """A source that blocks in poll is shown once, and does not come and go in the status for ever."""
    for _ in range(4):
        with world.watch.call("poll"):
            world.look(90.0)
        world.watch.look(0.0)
    assert [type(said) for said in world.said] == [messages.Hanging, messages.HangOver]
    with world.watch.call("put"):
        world.look(90.0)
    assert len(world.hanging()) == 2, "that was learnt of poll alone"
    with world.watch.call("poll"):
        world.look(181.0)
    assert len(world.hanging()) == 3


def test_waiting_in_the_runtime_is_not_hanging(world: World) -> None:
    with world.watch.call("poll"):
        for _ in range(3):
            with world.watch.waiting():
                world.look(50.0)
            world.look(50.0)
    assert world.said == []
    with world.watch.call("poll"):
        with world.watch.waiting():
            world.look(500.0)
        world.look(60.0)
    assert len(world.hanging()) == 1


def test_another_thread_of_the_plugin_that_waits_does_not_hide_a_hanging_call(world: World) -> None:
    def wait() -> None:
        with world.watch.waiting():
            world.look(60.0)

    with world.watch.call("poll"):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert len(world.hanging()) == 1


def test_what_is_slow_by_its_nature_has_more_patience(world: World) -> None:
    with world.watch.call("load", 10):
        world.look(599.0)
        assert world.said == []
        world.watch.look(1.0)
    assert len(world.hanging()) == 1


def test_a_call_that_lasts_too_long_ends_the_process_and_nothing_is_done_after_it() -> None:
    world, went_on = World(timeout=300.0), threading.Event()
    begun, may_return = threading.Event(), threading.Event()

    def put() -> None:
        # One line, so that the trace names it wherever the thread is by then.
        _ = begun.set(), may_return.wait(DEADLINE)

    def task() -> None:
        with world.watch.call("put"):
            put()
        went_on.set()

    thread = threading.Thread(target=task, daemon=True)
    thread.start()
    assert begun.wait(DEADLINE)
    world.look(300.0)
    assert world.ended.is_set()
    (failed,) = [said for said in world.said if isinstance(said, messages.Failed)]
    assert failed.trace.startswith("put has not returned for 300 s: test_watch.py:")
    assert "may_return.wait(DEADLINE)" in failed.trace
    # The call returns at this very moment: the process ends, and the task does not go on before that.
    may_return.set()
    thread.join(0.2)
    assert thread.is_alive()
    assert not went_on.is_set()


def test_a_call_that_has_returned_ends_nothing() -> None:
    world = World(timeout=300.0)
    with world.watch.call("put"):
        world.look(299.0)
    with world.watch.call("put"):
        world.look(299.0)
    assert not world.ended.is_set()


def test_an_error_leaves_the_call(world: World) -> None:
    with pytest.raises(ValueError, match="odd"), world.watch.call("put"):
        raise ValueError("odd")
    world.look(1000.0)
    assert world.said == []


def test_without_limits_nothing_is_said() -> None:
    world = World(0.0, 0.0)
    with world.watch.call("put"):
        world.look(1e9)
    assert world.said == []


def test_one_thread_looks_for_all_watches_of_a_process() -> None:
    lookout, told, goes_on = Lookout(), threading.Semaphore(0), threading.Event()
    lookout.start()
    said: list[tuple[str, Any]] = []

    def watch_of(name: str) -> Watch:
        def say(report: Any) -> None:
            said.append((name, report))
            told.release()

        watch = Watch(say, str, lambda: None, lookout=lookout)
        watch.begin(Limits(0.05, 0.0, 0.0))
        assert told.acquire(timeout=DEADLINE), "the limits"
        return watch

    def hang(watch: Watch) -> None:
        with watch.call("put"):
            goes_on.wait(DEADLINE)

    watches = [watch_of("first"), watch_of("second")]
    watch_of("closed").close()
    callers = [threading.Thread(target=hang, args=(watch,)) for watch in watches]
    for caller in callers:
        caller.start()
    while {name for name, report in said if isinstance(report, messages.Hanging)} != {"first", "second"}:
        assert told.acquire(timeout=DEADLINE)
    goes_on.set()
    for caller in callers:
        caller.join(DEADLINE)
    for watch in watches:
        watch.close()
