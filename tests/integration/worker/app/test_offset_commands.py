"""Resets, lag, export and import, over the REST API and the command line of a real worker."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, TopicPartition

from equipment.brokers.topics import committed, create_topic, ordered_producer
from equipment.waiting import wait_until
from equipment.workers.standalone import PATIENT, StandaloneWorker
from worker.cli.main import main

pytestmark = pytest.mark.integration

OLD = 1_600_000_000_000


def sluice(worker: StandaloneWorker, *arguments: str) -> Result:
    """A command of this command line, asked of this worker."""
    return CliRunner().invoke(main, [*arguments, "--url", worker.url()])


def ask(worker: StandaloneWorker, method: str, path: str, body: Any = None) -> requests.Response:
    return requests.request(method, f"{worker.url()}connectors/{path}", json=body, timeout=60)


def kept(worker: StandaloneWorker, name: str) -> list[dict[str, Any]]:
    return list(ask(worker, "GET", f"{name}/offsets").json().get("offsets", ()))


def stop(worker: StandaloneWorker, name: str) -> None:
    assert ask(worker, "PUT", f"{name}/stop").status_code == 204
    wait_until(f"{name} is stopped", lambda: worker.status(name)["connector"]["state"] == "STOPPED")


@pytest.fixture(scope="module")
def worker(shared_standalone: Callable[..., StandaloneWorker]) -> StandaloneWorker:
    """A worker for all tests of this file; each has connectors of its own."""
    return shared_standalone(**PATIENT)


@pytest.fixture
def sink(worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path) -> Iterator[StandaloneWorker]:
    """A stopped sink, called as its topic, that has written 10 records of partition 0 and 4 of partition 1.

    The records of partition 0 are a second apart, from ``OLD`` on; those of partition 1 are of now.
    """
    create_topic(bootstrap, topic, partitions=2, **{"retention.ms": "-1"})
    producer = ordered_producer(bootstrap)
    for number in range(10):
        producer.produce(topic, str(number).encode(), partition=0, timestamp=OLD + 1000 * number)
    for number in range(4):
        producer.produce(topic, str(number).encode(), partition=1)
    assert producer.flush(30) == 0
    config = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out.txt"), "topics": topic}
    assert ask(worker, "PUT", f"{topic}/config", config).status_code == 201
    done = [{"kafka_offset": 10}, {"kafka_offset": 4}]
    wait_until("all is committed", lambda: [item["offset"] for item in kept(worker, topic)] == done)
    stop(worker, topic)
    yield worker
    ask(worker, "DELETE", topic)


def changes(before: list[int | None], after: list[int], topic: str) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "partition": partition, "before": was, "after": will}
        for partition, (was, will) in enumerate(zip(before, after, strict=True))
    ]


def test_the_seven_resets(sink: StandaloneWorker, topic: str, bootstrap: str) -> None:
    group = f"connect-{topic}"
    stands: list[int | None] = [10, 4]
    recent = {"by_duration": "PT1H"}
    for body, after in (
        ({"to": "earliest"}, [0, 0]),
        ({"to": "latest"}, [10, 4]),
        ({"to_offset": 6}, [6, 4]),
        ({"to": "current"}, [6, 4]),
        ({"shift_by": -5}, [1, 0]),
        ({"shift_by": 2}, [3, 2]),
        ({"to_datetime": "2020-09-13T12:26:45Z"}, [5, 0]),
        ({"to": "earliest"}, [0, 0]),
        (recent, [10, 0]),
    ):
        dry = ask(sink, "POST", f"{topic}/offsets/reset?dry_run=true", body)
        assert dry.json() == changes(stands, after, topic), body
        assert committed(bootstrap, group, topic, 2) == stands, "a dry run changes nothing"
        done = ask(sink, "POST", f"{topic}/offsets/reset", body)
        assert (done.status_code, done.json()) == (200, dry.json())
        assert committed(bootstrap, group, topic, 2) == after
        stands = list(after)


def test_some_partitions_are_reset_and_others_stay(sink: StandaloneWorker, topic: str, bootstrap: str) -> None:
    done = ask(sink, "POST", f"{topic}/offsets/reset", {"to": "earliest", "topics": {topic: [1]}})
    assert done.json() == [{"topic": topic, "partition": 1, "before": 4, "after": 0}]
    assert committed(bootstrap, f"connect-{topic}", topic, 2) == [10, 0]


def test_some_offsets_are_forgotten_while_others_are_never_away(
    sink: StandaloneWorker, topic: str, bootstrap: str
) -> None:
    """A kill at any moment leaves a group with the offsets that it is to keep: nobody ever sees it without."""
    seen: set[tuple[int, ...]] = set()
    done = threading.Event()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"connect-{topic}"})

    def look() -> None:
        while not done.is_set():
            asked = [TopicPartition(topic, partition) for partition in range(2)]
            seen.add(tuple(item.offset for item in consumer.committed(asked, timeout=30)))

    looking = threading.Thread(target=look)
    looking.start()
    wait_until("somebody looks", lambda: seen)
    body = {"offsets": [{"partition": {"kafka_topic": topic, "kafka_partition": 1}, "offset": None}]}
    answer = ask(sink, "PATCH", f"{topic}/offsets", body)
    wait_until("it is seen", lambda: (10, -1001) in seen)
    done.set()
    looking.join()
    consumer.close()
    assert answer.status_code == 200, answer.text
    assert seen == {(10, 4), (10, -1001)}
    assert [item["partition"]["kafka_partition"] for item in kept(sink, topic)] == [0]


def test_nothing_is_forgotten_while_somebody_consumes(sink: StandaloneWorker, topic: str, bootstrap: str) -> None:
    body = {"offsets": [{"partition": {"kafka_topic": topic, "kafka_partition": 1}, "offset": None}]}
    other = Consumer({"bootstrap.servers": bootstrap, "group.id": f"connect-{topic}"})
    other.subscribe([topic])
    wait_until("it is a member", lambda: other.poll(0.1) is None and bool(other.assignment()))
    answer = ask(sink, "PATCH", f"{topic}/offsets", body)
    other.close()
    assert answer.status_code == 500
    assert "others consume with this group" in answer.json()["message"]
    assert committed(bootstrap, f"connect-{topic}", topic, 2) == [10, 4]


def test_what_cannot_be_reset_is_refused_with_the_reason(sink: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    def refused(name: str, body: Any, query: str = "") -> str:
        answer = ask(sink, "POST", f"{name}/offsets/reset{query}", body)
        assert answer.status_code == 400, answer.text
        return str(answer.json()["message"])

    assert "the connector does not consume topic other; it consumes" in refused(
        topic, {"to": "latest", "topics": ["other"]}
    )
    assert "has no partition 2" in refused(topic, {"to": "latest", "topics": {topic: [0, 2]}})
    assert "by_duration 'soon'" in refused(topic, {"by_duration": "soon"}, "?dry_run=true")
    assert 'Unrecognized field "at"' in refused(topic, {"at": 1})
    source = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": topic}
    ask(sink, "PUT", "source/config", source)
    assert "PATCH /connectors/source/offsets" in refused("source", {"to": "earliest"})
    assert ask(sink, "PUT", f"{topic}/resume").status_code == 202
    assert "must be in the STOPPED state" in refused(topic, {"to": "earliest"})
    dry = ask(sink, "POST", f"{topic}/offsets/reset?dry_run=true", {"to": "earliest"})
    assert dry.json() == changes([10, 4], [0, 0], topic), "a dry run is for every state"
    assert ask(sink, "POST", "nobody/offsets/reset", {"to": "earliest"}).status_code == 404


def test_a_reset_on_the_command_line(sink: StandaloneWorker, topic: str, bootstrap: str, tmp_path: Path) -> None:
    group = f"connect-{topic}"
    dry = sluice(sink, "offsets", "reset", topic, "--shift-by", "-1", "--dry-run")
    assert [line.split()[1:] for line in dry.output.splitlines()[1:]] == [["0", "10", "9"], ["1", "4", "3"]]
    asked = CliRunner().invoke(main, ["offsets", "reset", topic, "--to", "earliest", "--url", sink.url()], input="n\n")
    assert asked.exit_code == 1
    assert committed(bootstrap, group, topic, 2) == [10, 4]
    done = sluice(sink, "offsets", "reset", topic, "--to", "earliest", "--topic", f"{topic}:0", "--yes")
    assert done.exit_code == 0, done.output
    assert committed(bootstrap, group, topic, 2) == [0, 4]
    shown = sluice(sink, "offsets", "show", topic).output.splitlines()
    assert [line.split()[1:] for line in shown[1:3]] == [["0", "0", "10", "10"], ["1", "4", "4", "0"]]
    assert ask(sink, "PUT", f"{topic}/resume").status_code == 202
    wait_until("the ten are written again", lambda: len((tmp_path / "out.txt").read_text().splitlines()) == 24)
    running = sluice(sink, "offsets", "reset", topic, "--to", "latest", "--yes")
    assert running.exit_code == 1
    assert f"sluice connectors stop {topic} --url {sink.url().rstrip('/')}" in running.output
    assert sluice(sink, "offsets", "reset", topic, "--to", "latest", "--to-offset", "1").exit_code == 2
    nobody = CliRunner().invoke(main, ["offsets", "show", topic, "--url", "http://127.0.0.1:1"])
    assert nobody.exit_code == 1
    assert "No worker answers at http://127.0.0.1:1" in nobody.output
    bare = CliRunner().invoke(main, ["offsets", "show", topic, "--url", "127.0.0.1:1"])
    assert "with --url or SLUICE_URL, for example http://localhost:8083." in bare.output


def test_the_offsets_of_a_sink_are_exported_and_imported(
    sink: StandaloneWorker, topic: str, bootstrap: str, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.json"
    assert sluice(sink, "offsets", "export", topic, "--file", str(file)).exit_code == 0
    ask(sink, "POST", f"{topic}/offsets/reset", {"to": "earliest"})
    done = sluice(sink, "offsets", "import", topic, str(file), "--yes")
    assert "have been altered successfully" in done.output
    assert committed(bootstrap, f"connect-{topic}", topic, 2) == [10, 4]


def test_the_offsets_of_a_source_are_exported_and_imported(
    worker: StandaloneWorker, topic: str, tmp_path: Path
) -> None:
    lines, source = tmp_path / "in.txt", f"source-{topic}"
    lines.write_text("a\nb\nc\n")
    config = {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic}
    assert ask(worker, "PUT", f"{source}/config", config).status_code == 201
    there = {"offsets": [{"partition": {"filename": str(lines)}, "offset": {"position": 6}}]}
    wait_until("all is committed", lambda: ask(worker, "GET", f"{source}/offsets").json() == there)
    exported = sluice(worker, "offsets", "export", source)
    assert json.loads(exported.output) == there
    file = tmp_path / "offsets.json"
    file.write_text(exported.output)
    refused = sluice(worker, "offsets", "import", source, str(file), "--yes")
    assert refused.exit_code == 1
    assert f"/connectors/{source}/stop" in refused.output
    stop(worker, source)
    assert ask(worker, "DELETE", f"{source}/offsets").status_code == 200
    assert ask(worker, "GET", f"{source}/offsets").json() == {"offsets": []}
    assert sluice(worker, "offsets", "import", source, str(file), "--yes").exit_code == 0
    assert ask(worker, "GET", f"{source}/offsets").json() == there
    assert '{"position": 6}' in sluice(worker, "offsets", "show", source).output


def test_lag_and_rates_are_shown(sink: StandaloneWorker, topic: str, bootstrap: str) -> None:
    ask(sink, "POST", f"{topic}/offsets/reset", {"to": "earliest", "topics": {topic: [0]}})
    lag = ask(sink, "GET", f"{topic}/lag").json()
    assert (lag["type"], lag["lag"], lag["tasks"]) == ("sink", 10, [])
    assert lag["partitions"][0] == {"topic": topic, "partition": 0, "offset": 0, "end_offset": 10, "lag": 10}
    ask(sink, "DELETE", f"{topic}/offsets")
    assert ask(sink, "GET", f"{topic}/lag").json()["lag"] == 14, "without an offset it begins at the beginning"
    ask(sink, "PUT", f"{topic}/resume")
    wait_until("it has caught up", lambda: ask(sink, "GET", f"{topic}/lag").json()["lag"] == 0)

    def task() -> Any:
        tasks = ask(sink, "GET", f"{topic}/lag").json()["tasks"]
        return tasks[0] if tasks and tasks[0]["records_per_second"] else None

    assert wait_until("the task tells its rate", task).keys() == {"id", "lag", "records_per_second"}
    metrics = sink.status(topic)["tasks"][0]["metrics"]
    assert metrics["sink-record-send-rate"] > 0
    assert metrics["sink-record-lag"] == 0


def test_a_source_tells_what_remains(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    lines, source = tmp_path / "in.txt", f"source-{topic}"
    lines.write_text("a\nb\nhalf a l")
    config = {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic}
    assert ask(worker, "PUT", f"{source}/config", config).status_code == 201

    def remaining() -> Any:
        return ask(worker, "GET", f"{source}/lag").json()["remaining"]

    assert wait_until("it is known what remains", lambda: remaining() == {"bytes": 8})
    assert "8 bytes" in sluice(worker, "offsets", "show", source).output
    assert worker.status(source)["tasks"][0]["metrics"]["source-record-write-rate"] >= 0
