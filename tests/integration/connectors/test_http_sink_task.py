"""The task of the HTTP sink against servers that refuse, are slow and come back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from connect.data import SinkBatch, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.testing import ErrantRecords, SinkTaskTestContext
from connect.testing.samples import sink_records
from connectors.http import HttpSinkConfig, HttpSinkTask
from equipment.fakes.http_api import Answer, Asked, HttpApi, serving_api
from equipment.waiting import wait_until


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with serving_api() as served:
        yield served


@pytest.fixture
def tasks(api: HttpApi) -> Iterator[Any]:
    made: list[HttpSinkTask] = []

    def make(reporter: ErrantRecords[Any] | None = None, **props: str) -> HttpSinkTask:
        given = {key.replace("_", "."): value for key, value in props.items()}
        config = HttpSinkConfig.parse({"name": "c", "http.url": f"{api.url}/in", "retry.backoff.ms": "1", **given})
        context = SinkTaskTestContext([TopicPartition("topic", 0)], errant_record_reporter=reporter)
        made.append(HttpSinkTask(config, context))
        made[-1].start()
        return made[-1]

    yield make
    for task in made:
        task.stop()


def batch(*values: Any, keys: Any = ()) -> SinkBatch:
    records = sink_records(list(values))
    if keys:
        records = [record.replace(key=key) for record, key in zip(records, keys, strict=True)]
    return SinkBatch.from_records(records)[0]


def put(task: HttpSinkTask, records: SinkBatch) -> None:
    """Put as the runtime does, again and again."""

    def done() -> bool:
        try:
            task.put(records)
        except RetriableError:
            return False
        return True

    wait_until("the batch is put", done, 60)


def bodies(api: HttpApi) -> list[str]:
    return [asked.body.decode() for asked in api.asked]


def test_keys_are_sent_side_by_side_and_each_in_order(api: HttpApi, tasks: Any) -> None:
    gate = threading.Barrier(3)

    def meet(_: Asked) -> Answer:
        # Answers only when there are three at once.
        gate.wait(60)
        return Answer(200)

    api.route("/in", meet)
    task = tasks(http_max_in_flight="3")
    put(task, batch("a1", "b1", "c1", "a2", "b2", "c2", keys="abcabc"))
    sent = bodies(api)
    assert sorted(sent[:3]) == ["a1", "b1", "c1"]
    assert sorted(sent[3:]) == ["a2", "b2", "c2"]


def test_what_was_sent_is_not_sent_again_after_a_failure(api: HttpApi, tasks: Any) -> None:
    failures = {"2": 2, "4": 1}

    def sometimes(asked: Asked) -> Answer:
        value = asked.body.decode()
        if failures.get(value):
            failures[value] -= 1
            return Answer(503, "later")
        return Answer(200)

    api.route("/in", sometimes)
    put(tasks(max_retries="5"), batch("1", "2", "3", "4", keys="abcd"))
    assert sorted(bodies(api)) == ["1", "2", "2", "2", "3", "4", "4"]
    assert [body for body in bodies(api) if body == "2"] == ["2"] * 3


def test_one_key_waits_for_its_record_that_is_tried_again(api: HttpApi, tasks: Any) -> None:
    answers = iter([503, 503])
    api.route("/in", lambda _: Answer(next(answers, 200)))
    put(tasks(max_retries="5"), batch("1", "2", "3", keys="aaa"))
    assert bodies(api) == ["1", "1", "1", "2", "3"]


@pytest.mark.parametrize("batching", ["false", "true"])
def test_refused_records_are_reported_with_status_and_body(api: HttpApi, tasks: Any, batching: str) -> None:
    api.route("/in", lambda asked: Answer(400, f"not {'x' * 5000} hush-hush") if b"bad" in asked.body else Answer(200))
    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    task = tasks(reporter, batching_enabled=batching, reporter_error_topic_name="${connector}-errors")
    put(task, batch("good", "bad", "fine", keys="abc"))
    refused = ["bad"] if batching == "false" else ["good", "bad", "fine"]
    assert [record.value for record, _ in reporter.reported] == refused
    text = str(reporter.reported[0][1])
    assert f"POST {api.url}/in was answered with HTTP status 400: not xxx" in text
    assert len(text) < 1000
    told = [(topic, key, json.loads(value)) for topic, key, value in task.context.published]
    assert [(topic, key) for topic, key, _ in told] == [
        ("c-errors", key) for key in ([b"b"] if batching == "false" else [b"a", b"b", b"c"])
    ]
    assert told[0][2]["status"] == 400
    assert told[0][2]["body"].startswith("not xxx")


def test_without_a_reporter_a_refusal_fails_the_task(api: HttpApi, tasks: Any) -> None:
    api.route("/in", Answer(301, headers={"Location": "/other"}))
    with pytest.raises(ConnectError, match=r"offset 0 of .*HTTP status 301.*correct http\.url"):
        tasks().put(batch("a"))
    api.route("/in", Answer(500, "broken"))
    with pytest.raises(ConnectError, match=r"HTTP status 500: broken \(tried 1 times; see max\.retries\)"):
        tasks(max_retries="0").put(batch("a"))
    put(tasks(behavior_on_error="log", max_retries="0"), batch("a"))


def test_a_server_that_is_away_may_be_waited_for(api: HttpApi, tasks: Any) -> None:
    answers = iter([500] * 4)
    api.route("/in", lambda _: Answer(next(answers, 200)))
    put(tasks(max_retries="0", kafka_retry_backoff_ms="1"), batch("a"))
    assert bodies(api) == ["a"] * 5


def test_a_pause_interrupts_and_doubles_nothing(api: HttpApi, tasks: Any) -> None:
    begun, may_answer = threading.Event(), threading.Event()

    def slow(_: Asked) -> Answer:
        begun.set()
        may_answer.wait(60)
        return Answer(200)

    api.route("/in", slow)
    task = tasks(http_max_in_flight="2")
    records = batch("a", "b", "c", keys="abc")
    pausing = threading.Thread(target=lambda: (begun.wait(60), task.context.stop()))
    pausing.start()
    with pytest.raises(RetriableError, match="to stop or to pause"):
        task.put(records)
    pausing.join()
    # It goes on: those under way are answered, the third is sent.
    may_answer.set()
    task.context = SinkTaskTestContext([TopicPartition("topic", 0)])
    put(task, records)
    assert sorted(bodies(api)) == ["a", "b", "c"]


def test_a_stop_interrupts_records_that_flow(api: HttpApi, tasks: Any) -> None:
    task = tasks()

    def stop_soon(_: Asked) -> Answer:
        if len(api.asked) == 10:
            task.context.stop()
        return Answer(200)

    api.route("/in", stop_soon)
    with pytest.raises(RetriableError, match="to stop or to pause"):
        task.put(batch(*map(str, range(20_000))))
    assert len(api.asked) < 20_000


def test_secrets_are_hidden_in_what_a_server_says(api: HttpApi, tasks: Any) -> None:
    api.route("/in", lambda asked: Answer(403, f"no: {asked.headers['authorization']}"))
    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    secret = {"http_auth_type": "BASIC", "http_auth_user": "me", "http_auth_password": "hush-hush"}
    task = tasks(reporter, reporter_error_topic_name="e", **secret)
    put(task, batch("a"))
    assert "no: Basic [hidden]" in str(reporter.reported[0][1])
    assert b"no: Basic [hidden]" in (task.context.published[0][2] or b"")
