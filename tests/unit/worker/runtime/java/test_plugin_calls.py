"""Which call of its plugin a Java unit is in: a JVM whose threads are where the test puts them, and a watch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from worker.messages import messages
from worker.runtime.java.calls import PluginCalls, place_of
from worker.runtime.watch import Limits, Watch
from worker.unit import Unit

RUNTIME = "org.apache.kafka.connect.runtime"
TASK = "task-thread-orders-0"
ORDERS = Unit("orders", 0)


def frame(where: str, line: int, *, loader: str | None = None, module: str | None = None) -> dict[str, Any]:
    """A frame as ``StackTraceElement`` shows it: of a plugin, unless a loader or module is named."""
    owner, _, method = where.rpartition(".")
    name = owner.rpartition(".")[2].partition("$")[0]
    return {
        "className": owner,
        "methodName": method,
        "fileName": f"{name}.java",
        "lineNumber": line,
        "nativeMethod": False,
        "classLoaderName": loader,
        "moduleName": module,
    }


SLEEP = frame("java.lang.Thread.sleep", 450, module="java.base")
RUN = frame(f"{RUNTIME}.AbstractWorkerSourceTask.poll", 477, loader="app")
IN_POLL = [SLEEP, frame("acme.Api.read", 20), frame("acme.OrdersTask.poll", 40), RUN]
IN_COMMIT = [frame("acme.OrdersTask.commit", 50), RUN]
BETWEEN = [SLEEP, RUN]


def thread(name: str, stack: Sequence[dict[str, Any]], owner: str | None = None) -> dict[str, Any]:
    """A thread as ``ThreadInfo`` shows it, which waits for a lock if that has an owner."""
    lock = None if owner is None else "java.lang.Object@6d06d69c"
    state = "TIMED_WAITING" if owner is None else "BLOCKED"
    return {"threadName": name, "threadState": state, "stackTrace": stack, "lockName": lock, "lockOwnerName": owner}


class World:
    """A JVM with a thread for one task, its watch, and a clock."""

    def __init__(self, warning: float = 60.0, timeout: float = 0.0, unit: Unit = ORDERS) -> None:
        self.now = 1000.0
        self.said: list[Any] = []
        self.probes = 0
        self.threads: dict[int, tuple[str, Sequence[dict[str, Any]]]] = {7: (TASK, BETWEEN)}
        limits = Limits(warning, timeout, 8.0)
        self.watch = Watch(self.said.append, str, lambda: self.said.append("ended"))
        self.watch.begin(limits)
        self.watch.close()
        self.said.clear()
        factory = SimpleNamespace(getThreadMXBean=lambda: self)
        java = SimpleNamespace(
            java=SimpleNamespace(lang=SimpleNamespace(management=SimpleNamespace(ManagementFactory=factory)))
        )
        jvm: Any = SimpleNamespace(java=java, to_python=lambda value: value, calls=nullcontext)
        self.calls = PluginCalls(jvm, unit, self.watch, limits, lambda: self.now)
        self.calls.probe = self.probe

    def probe(self) -> None:
        self.probes += 1

    def getAllThreadIds(self) -> list[int]:  # noqa: N802 - Java's name
        return list(self.threads)

    def getThreadInfo(self, wanted: int | list[int], depth: int) -> Any:  # noqa: N802
        if isinstance(wanted, list):
            return [self.getThreadInfo(each, depth) for each in wanted]
        if wanted not in self.threads:
            return None
        name, stack = self.threads[wanted]
        return {"threadId": wanted, **thread(name, stack[:depth])}

    def dumpAllThreads(self, _monitors: bool, _synchronizers: bool) -> list[Any]:  # noqa: N802
        return [self.getThreadInfo(each, 1000) for each in self.threads]

    def spend(self, seconds: float, stack: Sequence[dict[str, Any]], *, stops: bool = False) -> None:
        """Let time pass with the thread there; both look as often as they do."""
        self.threads[7] = (TASK, stack)
        until = self.now + seconds
        while self.now < until:
            self.now += 2.5
            if self.now >= self.calls.next_look(stops=stops):
                self.calls.look(stops=stops)
            self.watch.look(2.5)

    def hanging(self) -> list[messages.Hanging]:
        return [said for said in self.said if isinstance(said, messages.Hanging)]


def test_the_call_is_that_of_the_plugin_which_the_runtime_makes_and_the_line_is_the_innermost_of_the_plugin() -> None:
    place = place_of(thread(TASK, IN_POLL, "pool-2-thread-1"))
    assert place is not None
    assert (place.method, place.line) == ("poll", "Api.java:20")
    assert place.stack == (
        "Stack (most recent call first):\n"
        '"task-thread-orders-0" BLOCKED on java.lang.Object@6d06d69c owned by "pool-2-thread-1"\n'
        "\tat java.lang.Thread.sleep(Thread.java:450)\n"
        "\tat acme.Api.read(Api.java:20)\n"
        "\tat acme.OrdersTask.poll(OrdersTask.java:40)\n"
        f"\tat {RUNTIME}.AbstractWorkerSourceTask.poll(AbstractWorkerSourceTask.java:477)"
    )
    assert place_of(thread(TASK, BETWEEN)) is None


def test_a_call_that_does_not_return_after_half_of_the_limit_and_a_question_is_reported_in_time() -> None:
    world = World()
    world.spend(25.0, IN_POLL)
    assert world.probes == 0
    world.spend(30.0, IN_POLL)
    assert (world.probes, world.said) == (1, [])
    world.spend(20.0, IN_POLL)
    (hanging,) = world.hanging()
    assert (hanging.method, hanging.line) == ("poll", "Api.java:20")
    assert 60.0 <= hanging.seconds < 75.0
    assert world.probes == 1, "it is asked once"
    world.calls.returned()
    assert world.said[-1] == messages.HangOver("poll")


def test_calls_that_return_are_not_one_long_call() -> None:
    world = World()
    for _ in range(20):
        world.spend(40.0, IN_POLL)
        world.calls.returned()
    assert (world.probes, world.said) == (20, [])


def test_another_method_or_the_runtime_itself_is_another_call() -> None:
    world = World()
    for stack in (IN_POLL, IN_COMMIT, IN_POLL, BETWEEN) * 5:
        world.spend(25.0, stack)
    assert (world.probes, world.said) == (0, [])


def test_a_call_that_exceeds_the_timeout_ends_the_process() -> None:
    world = World(warning=0.0, timeout=60.0)
    world.spend(80.0, IN_POLL)
    failed = next(said for said in world.said if isinstance(said, messages.Failed))
    assert failed.trace.startswith("poll has not returned for ")
    assert "\tat acme.OrdersTask.poll(OrdersTask.java:40)" in failed.trace
    assert world.said[-1] == "ended"


def test_without_limits_nothing_is_looked_at_until_the_task_has_to_stop() -> None:
    world = World(warning=0.0)
    world.spend(500.0, IN_POLL)
    assert (world.probes, world.said) == (0, [])
    world.spend(5.0, IN_POLL, stops=True)
    assert world.probes == 0, "it has been asked to stop"
    assert world.watch.enter(None) is not None, "the watch knows what to say halfway"


def test_the_plugin_may_hang_in_a_thread_in_which_this_process_has_called_the_runtime() -> None:
    world = World(unit=Unit("orders"))
    runtime = frame(f"{RUNTIME}.Worker.connectorTaskConfigs", 401, loader="app")
    world.threads[9] = (
        "Thread-3",
        [frame("acme.Orders.taskConfigs", 9), runtime, frame("py4j.GatewayConnection.run", 238, loader="app")],
    )
    with world.calls.calling():
        world.spend(100.0, BETWEEN)
        assert [hanging.method for hanging in world.hanging()] == ["taskConfigs"]
        assert world.probes == 0
    assert world.said[-1] == messages.HangOver("taskConfigs")
