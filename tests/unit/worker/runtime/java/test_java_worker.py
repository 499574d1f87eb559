"""What is asked of a ``Worker`` of Java that runs a unit: one with a store of statuses as Java's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from worker.runtime.java.connect_runtime import JavaWorker, java_error


class Found(list[SimpleNamespace]):
    """A collection of Java."""

    def size(self) -> int:
        return len(self)


class Statuses:
    """A ``MemoryStatusBackingStore``, and the tasks that note in it which topics they use."""

    def __init__(self) -> None:
        self._topics: dict[str, set[str]] = {}

    def use(self, connector: str, topic: str) -> None:
        self._topics.setdefault(connector, set()).add(topic)

    def getAllTopics(self, connector: str) -> Found:  # noqa: N802 - Java's name
        topics = sorted(self._topics.get(connector, ()), reverse=True)
        return Found(SimpleNamespace(topic=lambda topic=topic: topic) for topic in topics)

    def deleteTopic(self, connector: str, topic: str) -> None:  # noqa: N802
        self._topics[connector].remove(topic)


def java_worker(statuses: Statuses) -> JavaWorker:
    kafka = SimpleNamespace(connect=SimpleNamespace(runtime=SimpleNamespace()))
    jvm = SimpleNamespace(java=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(kafka=kafka))))
    return JavaWorker(cast(Any, jvm), None, SimpleNamespace(statusBackingStore=lambda: statuses))


def test_a_topic_is_told_when_it_is_used_and_not_again_while_the_task_rests() -> None:
    statuses = Statuses()
    worker = java_worker(statuses)
    assert worker.topics("orders") == []
    statuses.use("orders", "b")
    statuses.use("orders", "a")
    assert worker.topics("orders") == ["a", "b"]
    assert worker.topics("orders") == [], "a user may have removed them from the active topics"
    statuses.use("orders", "b")
    assert worker.topics("orders") == ["b"]


class Thrown:
    """A ``Throwable`` with a message, and perhaps a cause."""

    def __init__(self, message: str, cause: Thrown | None = None) -> None:
        self._message = message
        self._cause = cause

    def getClass(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(getName=lambda: "ConnectException", getSimpleName=lambda: "ConnectException")

    def getMessage(self) -> str:  # noqa: N802
        return self._message

    def getCause(self) -> Thrown | None:  # noqa: N802
        return self._cause


@pytest.mark.parametrize(
    ("thrown", "told"),
    [
        (Thrown("It failed.", Thrown("no such host")), "It failed: no such host"),
        (Thrown("It failed: no such host", Thrown("no such host")), "It failed: no such host"),
        (
            Thrown(
                "Failed to find any class that implements Connector and which name matches acme.Orders, "
                "available connectors are: PluginDesc{klass=class acme.Others}"
            ),
            "Failed to find any class that implements Connector and which name matches acme.Orders: it could not be "
            "loaded or made. The worker's log says why, at 'Failed to discover'",
        ),
    ],
)
def test_an_error_of_java_says_the_causes_and_where_to_look(thrown: Thrown, told: str) -> None:
    jvm = SimpleNamespace(trace=lambda _: "the trace")
    error = java_error(cast(Any, jvm), thrown)
    assert (str(error), error.trace) == (told, "the trace")
