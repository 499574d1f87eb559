"""Dead letter queues of a real worker: listed, shown and replayed, over the REST API and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner, Result

from connect.internals.crash import CRASH_POINT_VARIABLE
from equipment.brokers.topics import create_topic, ordered_producer, read_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import PATIENT, StandaloneWorker
from worker.cli.main import main

pytestmark = pytest.mark.integration

GOOD, BAD = [b"1", b"2"], [b"bad 1", b"bad 2", b"bad \xff"]


class Pipeline:
    """A sink that reads JSON, with a queue for what is none, and the records of both in its topic."""

    def __init__(self, worker: StandaloneWorker, bootstrap: str, topic: str, out: Path) -> None:
        self.worker = worker
        self.bootstrap = bootstrap
        self.name = self.topic = topic
        self.queue = f"{topic}-dlq"
        self.out = out
        self.config = {
            "connector.class": "FileStreamSink",
            "file": str(out),
            "topics": topic,
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "false",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": self.queue,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response:
        return requests.request(method, f"{self.worker.url()}connectors/{self.name}{path}", json=body, timeout=90)

    def configure(self, **changed: str) -> None:
        self.config |= {key.replace("_", "."): value for key, value in changed.items()}
        answer = self.ask("PUT", "/config", self.config)
        assert answer.ok, answer.text

    def produce(self, values: list[bytes]) -> None:
        producer = ordered_producer(self.bootstrap)
        for value in values:
            headers: list[tuple[str, str | bytes | None]] = [("mine", value)]
            producer.produce(self.topic, value, b"key", partition=1, headers=headers, timestamp=1_700_000_000_000)
        assert producer.flush(30) == 0

    def stop(self) -> None:
        assert self.ask("PUT", "/stop").status_code == 204
        # As with Kafka Connect there is no status (404) before its first state is written.
        self.worker.wait_for_states(self.name, "STOPPED")

    def dead_letters(self, query: str = "") -> list[dict[str, Any]]:
        answer = self.ask("GET", f"/dlq{query}")
        assert answer.ok, answer.text
        return list(answer.json()["records"])

    def replay(self, to: str, selection: Any = "all", *, dry_run: bool = False) -> dict[str, Any]:
        answer = self.ask("POST", "/dlq/replay", {"to": to, "selection": selection, "dry_run": dry_run})
        assert answer.ok, answer.text
        return dict(answer.json())

    def sluice(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, [*arguments, "--url", self.worker.url()])

    def offsets(self) -> list[dict[str, int]]:
        """The offsets of the sink, by partition; one from which nothing was read has none."""
        answer = self.ask("GET", "/offsets")
        assert answer.ok, answer.text
        return [item["offset"] for item in answer.json()["offsets"]]

    def lines(self) -> list[str]:
        return self.out.read_text().splitlines()


@pytest.fixture(scope="module")
def worker(shared_standalone: Callable[..., StandaloneWorker]) -> StandaloneWorker:
    """A worker for the pipelines of all tests that do not restart it."""
    return shared_standalone(**PATIENT)


@pytest.fixture
def pipeline(worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path) -> Iterator[Pipeline]:
    """A pipeline that has written two good records, with three bad ones in its queue."""
    made = running_pipeline(worker, bootstrap, topic, tmp_path / "out.txt")
    yield made
    made.ask("DELETE", "")


@pytest.fixture
def own_pipeline(standalone: Callable[..., StandaloneWorker], bootstrap: str, topic: str, tmp_path: Path) -> Pipeline:
    """Such a pipeline in a worker of its own, to be restarted."""
    return running_pipeline(standalone(**PATIENT).start(), bootstrap, topic, tmp_path / "out.txt")


def running_pipeline(worker: StandaloneWorker, bootstrap: str, topic: str, out: Path) -> Pipeline:
    create_topic(bootstrap, topic, partitions=2, **{"retention.ms": "-1"})
    create_topic(bootstrap, f"{topic}-dlq", **{"retention.ms": "-1"})
    made = Pipeline(worker, bootstrap, topic, out)
    made.produce([*GOOD, *BAD])
    made.configure()
    wait_until("the queue has the bad records", lambda: len(made.dead_letters()) == 3)
    wait_until("the sink has the good ones", lambda: made.lines() == ["1", "2"])
    # What is not committed is delivered again, and would be written once the converter takes it.
    wait_until("they are done with", lambda: made.offsets() == [{"kafka_offset": 5}])
    return made


def places(items: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(item["partition"], item["offset"]) for item in items]


def test_the_list_tells_what_went_wrong(pipeline: Pipeline) -> None:
    first, _, third = pipeline.dead_letters()
    assert (first["key"], first["value"], first["timestamp"]) == ({"text": "key"}, {"text": "bad 1"}, 1_700_000_000_000)
    assert first["headers"] == [{"key": "mine", "value": {"text": "bad 1"}}]
    assert third["value"] == {"base64": "YmFkIP8="}
    error = first["error"]
    assert (error["topic"], error["partition"], error["offset"], error["stage"]) == (
        pipeline.topic,
        1,
        2,
        "VALUE_CONVERTER",
    )
    assert "Traceback" in error["stacktrace"]
    page = pipeline.ask("GET", "/dlq?limit=2").json()
    assert (places(page["records"]), page["next"], page["topic"]) == ([(0, 0), (0, 1)], "0:1", pipeline.queue)
    rest = pipeline.ask("GET", f"/dlq?limit=2&after={page['next']}").json()
    assert (places(rest["records"]), rest["next"]) == ([(0, 2)], None)
    listed = pipeline.sluice("dlq", "list", pipeline.name).output.splitlines()
    assert [line.split()[:3] for line in listed[1:]] == [
        [f"0:{number}", "no", f"{pipeline.topic}:1:{number + 2}"] for number in range(3)
    ]
    shown = pipeline.sluice("dlq", "show", pipeline.name, "0:1")
    assert "value      bad 2" in shown.output
    assert "Traceback" in shown.output
    assert "no record 0:9" in pipeline.sluice("dlq", "show", pipeline.name, "0:9").output


def test_a_forged_record_goes_nowhere(pipeline: Pipeline) -> None:
    """Who may write to the queue alone is not to write to other topics by the worker's rights."""
    other = f"{pipeline.topic}-other"
    create_topic(pipeline.bootstrap, other)
    context = {"topic": other, "connector.name": pipeline.name, "partition": "0", "offset": "0"}
    forged: list[tuple[str, str | bytes | None]] = [
        (f"__connect.errors.{name}", value) for name, value in context.items()
    ]
    producer = ordered_producer(pipeline.bootstrap)
    producer.produce(pipeline.queue, b"forged", headers=forged)
    producer.produce(pipeline.queue, b"of nobody")
    assert producer.flush(30) == 0
    assert places(pipeline.dead_letters()) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    tried = pipeline.replay("topic", dry_run=True)["failed"]
    told = pipeline.replay("topic")
    assert places(told["replayed"]) == [(0, 0), (0, 1), (0, 2)]
    assert places(told["failed"]) == [(0, 3)]
    assert f"comes from topic {other}, which connector {pipeline.name} does not read" in told["failed"][0]["error"]
    assert [failed for failed in tried if failed["offset"] == 3] == told["failed"]
    assert read_topic(pipeline.bootstrap, other) == []


def test_the_state_of_kafka_is_no_queue(pipeline: Pipeline) -> None:
    answer = pipeline.ask(
        "PUT", "/config", {**pipeline.config, "errors.deadletterqueue.topic.name": "__consumer_offsets"}
    )
    assert answer.status_code == 400
    assert "errors.deadletterqueue.topic.name: It is not for connectors" in answer.json()["message"]


def test_records_are_replayed_into_their_topic(pipeline: Pipeline) -> None:
    # A task that runs has its converter until the connector has said otherwise.
    pipeline.stop()
    pipeline.configure(value_converter="StringConverter")
    assert pipeline.ask("PUT", "/resume").ok
    pipeline.worker.wait_for_states(pipeline.name, "RUNNING", "RUNNING")
    done = pipeline.replay("topic", [{"partition": 0, "from": 0, "to": 1}])
    assert (places(done["replayed"]), done["failed"], done["next"]) == ([(0, 0), (0, 1)], [], None)
    wait_until("they are written", lambda: pipeline.lines() == ["1", "2", "bad 1", "bad 2"])
    again = read_topic(pipeline.bootstrap, pipeline.topic)[5:]
    assert [(item.partition(), item.key(), item.value()) for item in again] == [
        (1, b"key", b"bad 1"),
        (1, b"key", b"bad 2"),
    ]
    mark = f"{pipeline.queue}:0:0".encode()
    assert again[0].headers() == [("mine", b"bad 1"), ("__connect.dlq.replayed", mark)]
    assert again[0].timestamp()[1] == 1_700_000_000_000
    everything = pipeline.sluice("dlq", "replay", pipeline.name, "--to", "topic", "--all", "--yes")
    assert everything.output == "3 replayed, 0 failed.\n", "what was chosen by hand does not count as all"
    chosen = ("--record", "0:0", "--record", "00:1", "--record", "0:50", "--record", "0:50-60", "--dry-run")
    nowhere = pipeline.sluice("dlq", "replay", pipeline.name, "--to", "topic", *chosen)
    assert nowhere.exit_code == 1
    assert f"0:50 is not in the dead letter queue of connector {pipeline.name}" in nowhere.output
    assert nowhere.output.count("is not in the dead letter queue") == 1
    assert pipeline.replay("topic")["replayed"] == [], "what was replayed is not replayed again by mistake"
    queue = pipeline.ask("GET", "/dlq").json()
    assert (queue["replayed"], queue["total"], queue["remaining"]) == ({"0": 3}, 3, 0)


def test_a_record_is_edited_tried_and_delivered(pipeline: Pipeline) -> None:
    shown = pipeline.ask("GET", "/dlq/0:2").json()
    why = shown["forms"]["value"]["no_json"]
    assert shown["forms"]["value"] == {"text": None, "base64": "YmFkIP8=", "json": None, "no_json": why}
    assert shown["forms"]["headers"] == [{"key": "mine", "value": {"base64": "YmFkIP8="}}]
    assert pipeline.ask("GET", "/dlq/0:9").status_code == 404
    assert pipeline.ask("GET", "/dlq/x").status_code == 404
    edit = {"to": "topic", "value": {"text": "3"}, "headers": [{"key": "by", "value": {"text": "me"}}]}
    tried = pipeline.ask("POST", "/dlq/0:2/repair", {**edit, "dry_run": True}).json()
    assert (places(tried["replayed"]), tried["failed"]) == ([(0, 2)], [])
    assert [change["key"] for change in tried["changes"]] == ["value", "headers.mine", "headers.by"]
    assert [step["step"] for step in tried["record"]["steps"]] == ["consumed", "converted", "put"]
    assert pipeline.lines() == ["1", "2"], "a dry run delivers nothing"
    still_bad = pipeline.ask("POST", "/dlq/0:2/repair", {"to": "topic", "value": {"text": "{"}}).json()
    assert (still_bad["replayed"], still_bad["failed"][0]["error"].partition(":")[0]) == ([], "VALUE_CONVERTER")
    assert pipeline.ask("POST", "/dlq/0:2/repair", edit).ok
    wait_until("it is written", lambda: pipeline.lines() == ["1", "2", "3"])
    delivered = read_topic(pipeline.bootstrap, pipeline.topic)[5]
    mark = f"{pipeline.queue}:0:2".encode()
    assert (delivered.partition(), delivered.key(), delivered.value()) == (1, b"key", b"3")
    assert delivered.headers() == [("by", b"me"), ("__connect.dlq.replayed", mark)]
    arguments = ("dlq", "edit", pipeline.name, "0:0", "--to", "topic", "--header", "mine=4", "--yes")
    fails = pipeline.sluice(*arguments, "--value", "worse")
    assert (fails.exit_code, "It would fail again: VALUE_CONVERTER" in fails.output) == (1, True)
    looked = pipeline.sluice(*arguments, "--value", "4", "--dry-run")
    assert 'value: "bad 1" -> "4"\nheaders.mine: "bad 1" -> "4"\n' in looked.output
    assert looked.output.endswith(f"It would be delivered to {pipeline.topic}.\n")
    assert pipeline.sluice(*arguments, "--value", "4").output.endswith(f"Delivered to {pipeline.topic}.\n")
    wait_until("it is written", lambda: pipeline.lines() == ["1", "2", "3", "4"])
    pipeline.stop()
    alone = pipeline.ask("POST", "/dlq/0:1/repair", {"to": "task", "value": {"base64": "NQ=="}}).json()
    assert (places(alone["replayed"]), pipeline.lines()) == ([(0, 1)], ["1", "2", "3", "4", "5"])
    assert len(pipeline.dead_letters()) == 3, "the queue stays as it is"


REPLAY_ALL = ("--to", "task", "--all")


def test_a_dry_run_tries_what_the_replay_would_do(pipeline: Pipeline) -> None:
    """It runs the converters and transformations, and says of each record what the replay itself says."""
    for dry_run in (True, False):
        running = pipeline.ask("POST", "/dlq/replay", {"to": "task", "selection": "all", "dry_run": dry_run})
        assert (running.status_code, "only while the connector is STOPPED" in running.text) == (400, True)
        edit = {"to": "task", "value": {"text": "4"}, "dry_run": dry_run}
        assert pipeline.ask("POST", "/dlq/0:0/repair", edit).status_code == 400
    pipeline.stop()
    for to in ("topic", "task"):
        tried = pipeline.replay(to, dry_run=True)
        assert (tried["replayed"], places(tried["failed"])) == ([], [(0, 0), (0, 1), (0, 2)])
    chosen = [{"partition": 0, "from": 0, "to": 2}]
    assert pipeline.replay("task", chosen, dry_run=True)["failed"] == pipeline.replay("task", chosen)["failed"]
    told = pipeline.sluice("dlq", "replay", pipeline.name, *REPLAY_ALL, "--dry-run")
    assert (told.exit_code, told.output.splitlines()[-1]) == (1, "0 would be replayed, 3 would fail again.")
    assert "0:1 would fail again: VALUE_CONVERTER: " in told.output
    pipeline.configure(value_converter="StringConverter")
    assert places(pipeline.replay("task", dry_run=True)["replayed"]) == [(0, 0), (0, 1), (0, 2)]
    told = pipeline.sluice("dlq", "replay", pipeline.name, *REPLAY_ALL, "--dry-run")
    assert (told.exit_code, told.output.splitlines()[-1]) == (0, "3 would be replayed, 0 would fail again.")
    insert = {
        "transforms_t_type": "InsertField$Value",
        "transforms_t_static_field": "f",
        "transforms_t_static_value": "x",
    }
    pipeline.configure(transforms="t", **insert)
    fails = pipeline.replay("task", dry_run=True)["failed"]
    assert [failed["error"].partition(":")[0] for failed in fails] == ["TRANSFORMATION"] * 3
    assert fails == pipeline.replay("task", chosen)["failed"]
    pipeline.configure(transforms_t_type="Filter")
    assert len(pipeline.replay("task", dry_run=True)["replayed"]) == 3, "what is dropped does not fail"
    assert pipeline.lines() == ["1", "2"]


def test_records_are_replayed_through_the_task_alone(pipeline: Pipeline) -> None:
    refused = pipeline.ask("POST", "/dlq/replay", {"to": "task", "selection": "all"})
    assert refused.status_code == 400
    assert "while the connector is STOPPED" in refused.json()["message"]
    told = pipeline.sluice("dlq", "replay", pipeline.name, "--to", "task", "--all", "--yes")
    assert f"connectors/{pipeline.name}/stop" in told.output
    pipeline.stop()
    pipeline.configure(value_converter="StringConverter")
    done = pipeline.sluice("dlq", "replay", pipeline.name, "--to", "task", "--all", "--yes")
    assert done.output == "3 replayed, 0 failed.\n"
    assert pipeline.lines() == ["1", "2", "bad 1", "bad 2", "bad \ufffd"]
    assert len(read_topic(pipeline.bootstrap, pipeline.topic)) == 5, "the topic is as it was"
    assert pipeline.replay("task")["replayed"] == []
    assert pipeline.replay("task", [{"partition": 0, "offset": 0}])["failed"] == [], "what is chosen is replayed again"
    assert pipeline.lines()[-1] == "bad 1"


def test_a_replay_that_is_killed_is_done_again(own_pipeline: Pipeline) -> None:
    pipeline = own_pipeline

    def restart(crash: str | None) -> None:
        pipeline.worker.terminate()
        starts = pipeline.worker.log().count("REST API is at")
        pipeline.worker.start({CRASH_POINT_VARIABLE: crash} if crash else None)
        wait_until("the worker is up", lambda: pipeline.worker.log().count("REST API is at") > starts)
        pipeline.configure(value_converter="StringConverter")
        pipeline.stop()

    restart("before-replay-position")
    killed = pipeline.ask("POST", "/dlq/replay", {"to": "task", "selection": "all"})
    assert killed.status_code == 500
    assert "ended without an answer" in killed.json()["message"]
    restart(None)
    bad = ["bad 1", "bad 2", "bad \ufffd"]
    assert pipeline.lines() == ["1", "2", *bad]
    assert places(pipeline.replay("task")["replayed"]) == [(0, 0), (0, 1), (0, 2)]
    assert pipeline.lines() == ["1", "2", *bad, *bad], "they are doubled, and none is lost"
    assert pipeline.replay("task")["replayed"] == []


def test_what_fails_again_is_told_and_kept(pipeline: Pipeline) -> None:
    pipeline.stop()
    chosen = pipeline.replay("task", [{"partition": 0, "offset": 1}])
    assert places(chosen["failed"]) == [(0, 1)]
    assert chosen["failed"][0]["error"].startswith("VALUE_CONVERTER: ")
    assert len(pipeline.dead_letters()) == 3, "it is where it was"
    done = pipeline.sluice("dlq", "replay", pipeline.name, "--to", "task", "--all", "--yes")
    assert done.exit_code == 1
    assert "0 replayed, 3 failed." in done.output
    assert "0:2 failed: VALUE_CONVERTER" in done.stderr
    anew = pipeline.dead_letters("?after=0:2")
    assert [item["error"]["offset"] for item in anew] == [2, 3, 4], "they are at the end of the queue"
    assert anew[0]["headers"][-1] == {"key": "__connect.dlq.replayed", "value": {"text": f"{pipeline.queue}:0:0"}}
    pipeline.configure(value_converter="StringConverter")
    assert places(pipeline.replay("task")["replayed"]) == [(0, 3), (0, 4), (0, 5)]
    assert len(pipeline.lines()) == 5


def test_without_a_queue_the_key_to_set_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    del pipeline.config["errors.deadletterqueue.topic.name"]
    pipeline.configure()
    for answer in (
        pipeline.ask("GET", "/dlq"),
        pipeline.ask("POST", "/dlq/replay", {"to": "topic", "selection": "all"}),
    ):
        assert answer.status_code == 400
        assert "set errors.deadletterqueue.topic.name in its configuration" in answer.json()["message"]
    pipeline.configure(errors_deadletterqueue_topic_name=f"{pipeline.queue}-none", errors_tolerance="none")
    pipeline.name = "source"
    pipeline.config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": pipeline.topic}
    pipeline.configure(errors_deadletterqueue_topic_name=pipeline.queue)
    assert pipeline.dead_letters() == [], "a queue may be shared: these are the sink's"
    refused = pipeline.ask("POST", "/dlq/replay", {"to": "topic", "selection": "all"})
    assert refused.status_code == 400
    assert "is a source" in refused.json()["message"]
