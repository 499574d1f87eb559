"""The HTTP connectors on real workers: kills, dead letters, answers on topics, streams, addresses, stops."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
import requests
from confluent_kafka import Producer

from equipment.brokers.topics import create_topic, read_topic
from equipment.fakes.http_api import Answer, Asked, HttpApi, paged, serving_api
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]
SECRET = "hush-hush-hush"
JSON = {"value_converter": "JsonConverter", "value_converter_schemas_enable": "false"}


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with serving_api() as served:
        yield served


def values(bootstrap: str, topic: str) -> list[Any]:
    return [json.loads(message.value()) for message in read_topic(bootstrap, topic)]


def wait_for(bootstrap: str, topic: str, enough: Callable[[Sequence[Any]], bool]) -> list[Any]:
    def read() -> list[Any] | None:
        try:
            found = values(bootstrap, topic)
        except KeyError:
            return None
        return found if enough(found) else None

    return wait_until(f"{topic} has enough", read, 60) or []


def test_a_kill_between_pages_loses_nothing(api: HttpApi, standalone: MakeWorker, bootstrap: str, topic: str) -> None:
    items = [{"id": number} for number in range(60)]
    pages, may_go_on = paged(items, 5), threading.Event()

    def slow(asked: Asked) -> Answer:
        # The second half is not there before the worker was killed.
        if int(asked.parameter("cursor") or 0) >= 30 and not may_go_on.is_set():
            return Answer(503, "later", {"Retry-After": "0"})
        return pages(asked)

    api.route("/items", slow)
    create_topic(bootstrap, topic)
    worker = standalone(**JSON)
    props = {
        "connector.class": "HttpSource",
        "kafka.topic": topic,
        "http.request.url": f"{api.url}/items",
        "http.response.list.pointer": "/items",
        "http.paging": "next_link",
        "http.paging.next.pointer": "/next",
        "http.paging.end": "stop",
        "http.auth.type": "BEARER",
        "http.auth.token": SECRET,
        "retry.backoff.ms": "20",
    }
    worker.connector("pages", **props)
    worker.start()
    wait_for(bootstrap, topic, lambda found: len(found) == 30)

    def committed() -> bool:
        offsets = worker.get("connectors/pages/offsets").json().get("offsets", [])
        return any(each["offset"].get("page.place", "") == f"{api.url}/items?cursor=30" for each in offsets)

    wait_until("the place is committed", committed, 60)
    worker.kill()
    first_half = len(api.asked)
    may_go_on.set()
    worker.start()
    found = wait_for(bootstrap, topic, lambda found: len({item["id"] for item in found}) == 60)
    assert Counter(item["id"] for item in found) == Counter(range(60))
    # What was committed made the next request: no page before it was asked for again.
    assert {asked.parameter("cursor") for asked in api.asked[first_half:]}.isdisjoint({"", "5", "25"})
    assert SECRET not in worker.log()


def test_a_kill_in_mid_page_loses_nothing(api: HttpApi, standalone: MakeWorker, bootstrap: str, topic: str) -> None:
    """Child requests keep a page open for as long as the test wants."""
    api.route("/parents", Answer(200, [{"id": number} for number in range(8)]))
    may_go_on = threading.Event()

    def child(asked: Asked) -> Answer:
        number = int(asked.path.rpartition("/")[2])
        if number >= 5 and not may_go_on.wait(0.01):
            return Answer(429, "slowly", {"Retry-After": "0"})
        return Answer(200, [{"parent": number, "child": each} for each in range(2)])

    api.route("/children/", child)
    create_topic(bootstrap, topic)
    worker = standalone(**JSON)
    worker.connector(
        "children",
        **{
            "connector.class": "com.github.castorm.kafka.connect.http.HttpSourceConnector",
            "http.response.record.mapper": "JsonRecordMapper",
            "kafka.topic": topic,
            "http.request.url": f"{api.url}/parents",
            "http.child.url": f"{api.url}/children/${{parent.id}}",
            "http.paging.end": "stop",
            "retry.backoff.ms": "20",
        },
    )
    worker.start()
    wait_for(bootstrap, topic, lambda found: len(found) == 10)
    offsets = "connectors/children/offsets"
    wait_until("five are committed", lambda: '"page.index":5' in worker.get(offsets).text.replace(" ", ""), 60)
    worker.kill()
    may_go_on.set()
    worker.start()
    wanted = {(parent, child) for parent in range(8) for child in range(2)}
    found = wait_for(bootstrap, topic, lambda found: {(i["parent"], i["child"]) for i in found} == wanted)
    assert len(found) == len(wanted)
    assert len(api.asked_of("/children/0")) == 1


def test_events_go_on_after_the_last_one(api: HttpApi, standalone: MakeWorker, bootstrap: str, topic: str) -> None:
    def stream(asked: Asked) -> Answer:
        first = int(asked.headers.get("last-event-id", "0")) + 1

        def events() -> Iterator[bytes]:
            # Three to a connection, torn in the middle; then silence.
            for number in range(first, min(first + 3, 11)):
                yield f"id: {number}\nevent: tick\nda".encode()
                yield f'ta: {{"n":\ndata: {number}}}\n\n'.encode()
            if first > 8:
                api.closing.wait()

        return Answer(200, b"retry: 1\n: hello\n\n", {"Content-Type": "text/event-stream"}, events())

    api.route("/events", stream)
    create_topic(bootstrap, topic)
    worker = standalone(**JSON)
    worker.connector(
        "events",
        **{
            "connector.class": "HttpSource",
            "kafka.topic": topic,
            "http.request.url": f"{api.url}/events",
            "http.events": "true",
        },
    )
    worker.start()
    found = wait_for(bootstrap, topic, lambda found: len(found) >= 10)
    assert [item["n"] for item in found] == list(range(1, 11))
    assert read_topic(bootstrap, topic)[0].headers() == [("http.event", b"tick")]
    # The server says nothing, and the worker stops nevertheless.
    assert worker.terminate() == 0
    assert "did not stop within" not in worker.log()


def test_the_worker_s_rules_hold_whatever_a_connector_says(
    api: HttpApi, standalone: MakeWorker, bootstrap: str, topic: str
) -> None:
    api.route("/away", Answer(302, headers={"Location": "http://169.254.169.254/latest/meta-data/"}))
    api.route("/ok", Answer(200, {"fine": True}))
    create_topic(bootstrap, topic)
    worker = standalone(http_denied_hosts="localhost", **JSON).start()

    own = {"http.allowed.hosts": "169.254.169.254,localhost", "http.denied.hosts": ""}

    def put(name: str, url: str) -> requests.Response:
        config = {"connector.class": "HttpSource", "kafka.topic": topic, "http.request.url": url, **own}
        return requests.put(f"{worker.url()}connectors/{name}/config", json=config, timeout=90)

    assert put("away", f"{api.url}/away").status_code == 201
    trace = worker.wait_for_states("away", "RUNNING", "FAILED")["tasks"][0]["trace"]
    assert "Connecting to 169.254.169.254 is not allowed: it is an address where clouds serve" in trace
    assert worker.get("connectors/away/tasks").json()[0]["config"].keys().isdisjoint(own)
    refused = put("named", f"{api.url}/ok".replace("127.0.0.1", "localhost"))
    assert refused.status_code == 400
    expected = (
        "http.request.url: Connecting to localhost is not allowed: http.denied.hosts in the worker's file denies it."
    )
    assert expected in refused.json()["message"]


def produce_keyed(bootstrap: str, topic: str, records: Sequence[tuple[str, str]]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for key, value in records:
        producer.produce(topic, value.encode(), key=key.encode(), partition=0)
    assert producer.flush(30) == 0


def test_a_sink_keeps_order_reports_refusals_and_answers(
    api: HttpApi, standalone: MakeWorker, bootstrap: str, topic: str
) -> None:
    """Refused records are dead letters with status and body; answers are on a topic; a kill doubles, and loses none."""
    may_go_on, taken, lock = threading.Event(), list[tuple[str, int]](), threading.Lock()

    def take(asked: Asked) -> Answer:
        value = asked.json
        if value["n"] == 7:
            return Answer(422, f"7 is refused, you said {asked.headers['authorization']}")
        if value["n"] >= 20 and not may_go_on.is_set():
            return Answer(503, "later", {"Retry-After": "0"})
        with lock:
            taken.append((asked.path, value["n"]))
        return Answer(201, {"made": value["n"]})

    api.route("/in/", take)
    create_topic(bootstrap, topic)
    produce_keyed(bootstrap, topic, [(f"k/{n % 3}", json.dumps({"n": n})) for n in range(30)])
    worker = standalone(**JSON)
    worker.connector(
        "out",
        **{
            "connector.class": "io.aiven.kafka.connect.http.HttpSinkConnector",
            "topics": topic,
            "http.url": f"{api.url}/in/${{key}}",
            "http.authorization.type": "static",
            "http.headers.authorization": f"Token {SECRET}",
            "http.headers.additional": "Idempotency-Key: ${topic}-${partition}-${offset}",
            "max.retries": "-1",
            "retry.backoff.ms": "10",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{topic}.dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
            "reporter.result.topic.name": f"{topic}.${{connector}}",
        },
    )
    worker.start()
    wait_until("the first ones are taken", lambda: len({n for _, n in taken}) == 19, 60)
    worker.kill()
    may_go_on.set()
    worker.start()
    wait_until("all are taken", lambda: {n for _, n in taken} == set(range(30)) - {7}, 60)
    answers = wait_for(bootstrap, f"{topic}.out", lambda found: {each["offset"] for each in found} >= {0, 29})
    assert all(json.loads(each["body"]) == {"made": each["offset"]} for each in answers)
    assert {each["status"] for each in answers} == {201}
    assert {asked.path for asked in api.asked} == {f"/in/k%2F{n}" for n in range(3)}
    for key in range(3):
        # After the kill they may come again from the last commit on; each life of the task keeps the order.
        own = [n for path, n in taken if path == f"/in/k%2F{key}"]
        falls = sum(later < earlier for earlier, later in pairwise(own))
        assert falls <= 1
    letters = wait_until("7 is a dead letter", lambda: read_topic(bootstrap, f"{topic}.dlq"), 60)
    headers = dict(letters[0].headers())
    assert json.loads(letters[0].value()) == {"n": 7}
    message = headers["__connect.errors.exception.message"].decode()
    assert "HTTP status 422: 7 is refused, you said [hidden]" in message
    assert SECRET not in str(headers) + worker.log()
    offsets = {asked.headers["idempotency-key"] for asked in api.asked}
    assert offsets == {f"{topic}-0-{n}" for n in range(30)}


def test_a_hanging_request_does_not_keep_a_task(
    api: HttpApi, standalone: MakeWorker, bootstrap: str, topic: str
) -> None:
    begun = threading.Event()

    def silent(_: Asked) -> Answer:
        begun.set()
        api.closing.wait()
        return Answer(200)

    api.route("/in", silent)
    create_topic(bootstrap, topic)
    produce_keyed(bootstrap, topic, [("k", "{}")])
    worker = standalone(task_shutdown_graceful_timeout_ms="60000", **JSON)
    sink = {"connector.class": "HttpSink", "topics": topic, "http.api.url": f"{api.url}/in"}
    worker.connector("out", **sink, **{"http.request.timeout.ms": "600000"})
    worker.start()
    assert begun.wait(60)
    # Were the request waited for, this would take ten minutes.
    assert worker.terminate() == 0
    assert len(api.asked) == 1
