"""A real worker's sink, and a topic that is deleted and created again while it runs, pauses and is stopped."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import requests

from equipment.brokers.topics import committed, create_topic, make_at_once, produce
from equipment.proofs import thorough
from equipment.waiting import wait_until
from equipment.workers.standalone import PATIENT, StandaloneWorker

pytestmark = pytest.mark.integration

CONSUMER = {
    # Else it may create the topic first.
    "consumer.override.allow.auto.create.topics": "false",
    # The group waits no longer for a consumer that was killed.
    "consumer.override.session.timeout.ms": "6000",
}


def lines(name: str, count: int) -> list[str]:
    return [f"{name} {number}" for number in range(count)]


def change(worker: StandaloneWorker, name: str, state: str) -> None:
    answer = requests.put(f"{worker.url()}connectors/{name}/{state}", timeout=60)
    assert answer.ok, answer.text


def test_every_record_of_each_topic_of_a_name_is_written(
    standalone: Callable[..., StandaloneWorker], bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    file = tmp_path / "out.txt"
    worker = standalone(**PATIENT)
    keys = CONSUMER
    worker.connector(topic, **{"connector.class": "FileStreamSink", "topics": topic, "file": str(file), **keys})
    worker.start()

    def fill(name: str, count: int) -> None:
        produce(bootstrap, topic, [line.encode() for line in lines(name, count)])

    def arrive(name: str, count: int) -> None:
        """All records of the topic of this name are there, in order; some may come again."""
        wanted = lines(name, count)

        def written() -> list[str]:
            found = [line for line in file.read_text().splitlines() if line.startswith(name)] if file.exists() else []
            return found[-count:]

        wait_until(f"the {name} topic is written", lambda: written() == wanted)
        wait_until(f"the {name} topic is committed", lambda: committed(bootstrap, f"connect-{topic}", topic) == [count])

    fill("first", 10)
    arrive("first", 10)

    make_at_once(bootstrap, topic)
    fill("second", 15)
    arrive("second", 15)
    assert f"Topic {topic} was deleted and created again" in worker.log()

    change(worker, topic, "pause")
    worker.wait_for_states(topic, "PAUSED", "PAUSED")
    make_at_once(bootstrap, topic)
    fill("third", 20)
    change(worker, topic, "resume")
    arrive("third", 20)

    change(worker, topic, "stop")
    worker.wait_for_states(topic, "STOPPED")
    make_at_once(bootstrap, topic)
    fill("fourth", 25)
    change(worker, topic, "resume")
    arrive("fourth", 25)

    worker.kill()
    make_at_once(bootstrap, topic)
    fill("fifth", 30)
    worker.start()
    wait_until("some of the fifth topic is written", lambda: "fifth 0" in file.read_text())
    worker.kill()
    worker.start()
    arrive("fifth", 30)


@pytest.mark.parametrize("meanwhile", [*thorough("runs", "is stopped"), "is killed"])
def test_a_sink_that_writes_exactly_once_begins_the_new_topic_anew(
    standalone: Callable[..., StandaloneWorker], bootstrap: str, topic: str, tmp_path: Path, meanwhile: str
) -> None:
    create_topic(bootstrap, topic)
    file = tmp_path / "words.db"
    worker = standalone(**PATIENT, value_converter="JsonConverter")
    worker.connector(
        topic,
        **{
            "connector.class": "JdbcSink",
            "connection.url": f"jdbc:sqlite:{file}",
            "topics": topic,
            "table.name.format": "words",
            "auto.create": "true",
            "delivery": "exactly-once",
            **CONSUMER,
        },
    )
    worker.start()

    def fill(name: str, count: int) -> None:
        schema = {"type": "struct", "fields": [{"field": "word", "type": "string"}]}
        rows = [{"schema": schema, "payload": {"word": line}} for line in lines(name, count)]
        produce(bootstrap, topic, [json.dumps(row).encode() for row in rows])

    def words() -> list[str]:
        with closing(sqlite3.connect(file)) as connection:
            try:
                return [word for (word,) in connection.execute("SELECT word FROM words")]
            except sqlite3.OperationalError:
                return []

    fill("first", 10)
    wait_until("the first topic is written", lambda: words() == lines("first", 10))
    if meanwhile == "is stopped":
        change(worker, topic, "stop")
        worker.wait_for_states(topic, "STOPPED")
    elif meanwhile == "is killed":
        worker.kill()
    make_at_once(bootstrap, topic)
    fill("second", 15)
    if meanwhile == "is stopped":
        change(worker, topic, "resume")
    elif meanwhile == "is killed":
        worker.start()
        # Before or after the group's offset: that of the database counts.
        wait_until("the second topic is written", lambda: len(words()) > 10)
        worker.kill()
        worker.start()
        wait_until("the worker is up again", lambda: worker.log().count("The worker is up") == 3)
    wait_until("the new topic is committed", lambda: committed(bootstrap, f"connect-{topic}", topic) == [15])
    assert words() == lines("first", 10) + lines("second", 15)
    assert "are those of the former topic and are deleted" in worker.log()
    worker.wait_for_states(topic, "RUNNING", "RUNNING")
