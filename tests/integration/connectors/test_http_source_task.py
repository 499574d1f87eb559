"""The task of the HTTP source against servers that are silent, that tell secrets, and that end streams."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from connect.errors import ConnectError, RetriableError
from connect.testing import SourceTaskTestContext, StoredOffsets, run_source
from connectors.http import HttpSourceConfig, HttpSourceConnector, HttpSourceTask
from equipment.fakes.http_api import Answer, Asked, HttpApi, serving_api
from equipment.waiting import wait_until

SECRET = "hush-hush-hush"


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with serving_api() as served:
        yield served


@pytest.fixture
def tasks(api: HttpApi) -> Iterator[Callable[..., HttpSourceTask]]:
    made: list[HttpSourceTask] = []

    def make(path: str, **props: str) -> HttpSourceTask:
        given = {key.replace("_", "."): value for key, value in props.items()}
        config = HttpSourceConfig.parse({"kafka.topic": "t", "http.request.url": f"{api.url}{path}", **given})
        made.append(HttpSourceTask(config, SourceTaskTestContext(StoredOffsets())))
        made[-1].start()
        return made[-1]

    yield make
    for task in made:
        task.stop()


def poll_until(task: HttpSourceTask, done: Callable[[list[Any]], bool]) -> list[Any]:
    values: list[Any] = []

    def polled() -> bool:
        try:
            values.extend(record.value for record in task.poll())
        except RetriableError:
            return False
        return done(values)

    wait_until("enough is polled", polled, 60)
    return values


class JavaOffsets(StoredOffsets):
    """Offsets of a Java cluster, whose connector has a source partition without a name."""

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        own = {"id": "40", "key": "k", "timestamp": "2024-01-01T00:00:00Z"}
        return super().offset(partition) if partition else own


def test_the_offset_of_the_java_connector_is_continued(api: HttpApi) -> None:
    api.route("/items", lambda asked: Answer(200, [{"id": int(asked.parameter("after", "0")) + 1}]))
    props = {
        "kafka.topic": "t",
        "http.request.url": f"{api.url}/items",
        "http.request.params": "after=${offset.id}",
        "http.offset.initial": "id=5",
        "http.response.record.offset.pointer": "id=/id",
    }
    java = JavaOffsets()
    for offsets, first in ((java, 41), (StoredOffsets(), 6)):
        record = run_source(HttpSourceConnector, props, offsets=offsets, until=bool)[0]
        assert record.value == {"id": first}
        assert record.source_offset["id"] == first
        assert api.url.rpartition("/")[2] in record.source_partition["url"]
    record = run_source(HttpSourceConnector, props, offsets=java, until=bool)[0]
    assert record.value == {"id": 42}


def test_a_poll_ends_while_the_server_is_silent(api: HttpApi, tasks: Callable[..., HttpSourceTask]) -> None:
    begun, may_answer = threading.Event(), threading.Event()

    def silent(_: Asked) -> Answer:
        begun.set()
        may_answer.wait(60)
        return Answer(200, [1])

    api.route("/silent", silent)
    task = tasks("/silent", http_client_read_timeout_millis="600000")
    assert list(task.poll()) == []
    assert begun.wait(60)
    task.context.stop()
    assert list(task.poll()) == []
    # As after a pause: the answer that comes meanwhile is not lost, nor asked for twice.
    task.context = SourceTaskTestContext(StoredOffsets())
    may_answer.set()
    assert poll_until(task, bool) == [1]
    assert len(api.asked) == 1


def test_what_a_server_repeats_of_the_credentials_is_hidden(api: HttpApi, tasks: Callable[..., HttpSourceTask]) -> None:
    api.route("/told", lambda asked: Answer(400, f"you said {asked.headers['x-api-key']}"))
    api.route("/busy", lambda asked: Answer(503, f"you said {asked.headers['x-api-key']}"))
    key = {"http_auth_type": "API_KEY", "http_auth_api_key": SECRET}
    with pytest.raises(ConnectError, match=r"HTTP status 400: you said \[hidden\]"):
        poll_until(tasks("/told", **key), bool)
    task = tasks("/busy", **key)
    failures = []
    while not failures:
        try:
            task.poll()
        except RetriableError as error:
            failures.append(str(error))
    assert "HTTP status 503: you said [hidden]" in failures[0]


def test_a_stream_may_be_none_and_may_be_over(api: HttpApi, tasks: Callable[..., HttpSourceTask]) -> None:
    api.route("/page", Answer(200, "<html>", {"Content-Type": "text/html"}))
    with pytest.raises(ConnectError, match=r"is not an event stream: its Content-Type is text/html"):
        poll_until(tasks("/page", http_events="true"), bool)
    kind = {"Content-Type": "text/event-stream; charset=utf-8"}
    answers = iter([Answer(500), Answer(200, "retry: 1\n\nid: 1\ndata: one\n\ndata: half", kind), Answer(204)])
    api.route("/stream", lambda _: next(answers))
    task = tasks("/stream", http_events="true", http_response_type="text", retry_backoff_ms="1")
    assert poll_until(task, lambda _: task.drained()) == ["one"]
    assert api.asked[-1].headers["last-event-id"] == "1"
    large = tasks("/large", http_events="true", http_event_max_bytes="1000")
    api.route("/large", Answer(200, "data: " + "x" * 2000, kind))
    with pytest.raises(ConnectError, match=r"more than 1000 bytes"):
        poll_until(large, bool)
