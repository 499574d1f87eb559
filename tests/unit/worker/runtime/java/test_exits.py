"""Who has ended a JVM, by the stacks of its threads while it exits."""

from __future__ import annotations

from typing import Any

from worker.runtime.java.jvm import ExitWitness


def frame(owner: str, method: str, line: int, *, loader: str | None = None, module: str | None = None) -> Any:
    """A frame as ``StackTraceElement`` shows it."""
    names = {"className": owner, "methodName": method, "classLoaderName": loader, "moduleName": module}
    return {**names, "fileName": f"{owner.rpartition('.')[2]}.java", "lineNumber": line}


EXIT = [
    frame("java.lang.Shutdown", "exit", 178, module="java.base"),
    frame("java.lang.Runtime", "exit", 114, module="java.base"),
    frame("java.lang.System", "exit", 1752, module="java.base"),
]
POLL = [
    frame("acme.Api", "close", 20),
    frame("acme.OrdersTask", "poll", 40),
    frame("org.apache.kafka.connect.runtime.AbstractWorkerSourceTask", "poll", 477, loader="app"),
]
OWN = [frame("py4j.GatewayServer", "run", 660, loader="app")]


def asked_by(*stacks: list[Any]) -> str | None:
    witness = ExitWitness(lambda: [{"stackTrace": stack} for stack in stacks])
    witness.run()
    return witness.asked_by


def test_the_line_is_the_innermost_of_the_plugin_in_the_thread_that_waits_for_the_exit() -> None:
    assert asked_by(POLL, [*EXIT, *POLL], []) == "acme.Api.close(Api.java:20)"


def test_nobody_has_asked_for_an_exit_by_a_signal_or_by_what_is_no_plugin() -> None:
    assert asked_by(POLL, OWN) is None
    assert asked_by(POLL, [*EXIT, *OWN]) is None
