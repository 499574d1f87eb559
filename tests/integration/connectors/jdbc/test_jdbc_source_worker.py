"""The JDBC source in a real worker: killed in the midst of reading, and taken over from Java."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import requests

from equipment.brokers.topics import create_topic, ordered_producer, read_so_far, read_topic
from equipment.proofs import thorough
from equipment.servers.lease import Database
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import StandaloneWorker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

MakeWorker = Callable[..., StandaloneWorker]
JSON = {"value_converter": "JsonConverter", "value_converter_schemas_enable": "false"}
JAVA_CLASS = "io.confluent.connect.jdbc.JdbcSourceConnector"


def source_props(database: Database, topic: str, **options: str) -> dict[str, str]:
    connection = {name.replace(".", "_"): value for name, value in database.props.items()}
    return {
        "connector_class": JAVA_CLASS,
        "topic_prefix": f"{topic}-",
        "poll_interval_ms": "50",
        "batch_max_rows": "200",
        **connection,
        **JSON,
        **options,
    }


def written(bootstrap: str, topic: str) -> int:
    """How many records are on the topic of the orders."""
    return len(read_so_far(bootstrap, f"{topic}-orders"))


def read_ids(bootstrap: str, topic: str) -> list[int]:
    return [json.loads(message.value())["id"] for message in read_topic(bootstrap, f"{topic}-orders")]


class Writers:
    """Writes rows, in transactions that end in another order than they began, until it is stopped."""

    def __init__(self, database: Database, count: int = 3) -> None:
        self._database = database
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _write(self, number: int) -> None:
        with closing(self._database.connect()) as connection:
            connection.autocommit = False
            while not self._stopped.wait(0.2):
                connection.execute("INSERT INTO orders SELECT FROM generate_series(1, 5)")
                connection.execute("SELECT pg_sleep(%s)", [0.01 * number])
                connection.commit()


def _has(bootstrap: str, topic: str, count: int) -> bool:
    return written(bootstrap, topic) >= count


@pytest.mark.parametrize("mode", [*thorough("incrementing"), "timestamp"])
def test_no_row_is_lost_when_the_worker_is_killed(
    standalone: MakeWorker, postgresql: Database, topic: str, bootstrap: str, mode: str
) -> None:
    postgresql.execute("CREATE TABLE orders (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
    create_topic(bootstrap, f"{topic}-orders")
    # Until its partition has a leader, what is on a topic so far cannot be asked.
    assert read_topic(bootstrap, f"{topic}-orders") == []
    worker = standalone()
    worker.connector("source", **source_props(postgresql, topic, mode=mode, timestamp_column_name="at"))
    with Writers(postgresql):
        for _ in range(2):
            enough = written(bootstrap, topic) + 100
            worker.start()
            wait_until("rows arrive", partial(_has, bootstrap, topic, enough), 90)
            worker.kill()
    worker.start()
    expected = [number for (number,) in postgresql.rows("SELECT id FROM orders ORDER BY id")]
    wait_until("all may have arrived", partial(_has, bootstrap, topic, len(expected)), 90)
    wait_until("all has arrived", lambda: set(read_ids(bootstrap, topic)) >= set(expected), 90)
    assert sorted(set(read_ids(bootstrap, topic))) == expected
    assert worker.terminate() == 0
    assert postgresql.password not in worker.log()


def test_a_drained_run_reads_every_table_once_and_goes_on(
    standalone: MakeWorker, postgresql: Database, topic: str, bootstrap: str
) -> None:
    """Rows that were committed are not read again: with a number that is exact."""
    postgresql.execute(
        "CREATE TABLE orders (id bigserial PRIMARY KEY)", "INSERT INTO orders SELECT FROM generate_series(1, 1000)"
    )
    create_topic(bootstrap, f"{topic}-orders")
    worker = standalone()
    worker.connector("source", **source_props(postgresql, topic, mode="incrementing", run_until="drained"))
    assert worker.run() == 0
    assert read_ids(bootstrap, topic) == list(range(1, 1001))
    postgresql.execute("INSERT INTO orders DEFAULT VALUES")
    assert worker.run() == 0
    assert read_ids(bootstrap, topic) == list(range(1, 1002))


def test_a_connector_of_java_is_taken_over_with_its_offsets(
    tmp_path: Path, postgresql: Database, topic: str, bootstrap: str
) -> None:
    """The offsets topic as Java's worker and its JDBC source have left it."""
    postgresql.execute(
        "CREATE TABLE orders (id bigserial PRIMARY KEY, at timestamp NOT NULL)",
        "INSERT INTO orders (at) SELECT timestamp '2024-01-01' + n * interval '1 second' FROM generate_series(1, 9) n",
    )
    offsets = f"{topic}-offsets"
    create_topic(bootstrap, offsets, **{"cleanup.policy": "compact"})
    create_topic(bootstrap, f"{topic}-orders")
    producer = ordered_producer(bootstrap)
    producer.produce(
        offsets,
        key=b'["taken",{"protocol":"1","table":"public.orders"}]',
        value=b'{"timestamp_nanos":0,"incrementing":4,"timestamp":1704067204000}',
    )
    assert producer.flush(30) == 0
    worker = DistributedWorker(
        tmp_path / f"w-{topic[-12:]}", bootstrap, offset_storage_topic=offsets, offset_storage_partitions="1"
    )
    props = source_props(postgresql, topic, mode="timestamp+incrementing", timestamp_column_name="at")
    try:
        worker.start()
        config = {name.replace("_", "."): value for name, value in props.items()}
        wait_until("the worker is up", lambda: worker.get("/").ok, 60)
        answer = requests.put(worker.url() + "connectors/taken/config", json=config, timeout=90)
        assert answer.status_code == 201, answer.text
        wait_until("the rest is read", lambda: len(read_ids(bootstrap, topic)) >= 5, 60)
        assert read_ids(bootstrap, topic) == [5, 6, 7, 8, 9]
        written = wait_until(
            "the offset is kept",
            lambda: [message for message in read_topic(bootstrap, offsets) if b'"incrementing":9' in message.value()],
            60,
        )
        assert written[-1].key() == b'["taken",{"protocol":"1","table":"public.orders"}]'
        assert json.loads(written[-1].value()) == {"incrementing": 9, "timestamp": 1704067209000, "timestamp_nanos": 0}
        (task,) = worker.get("connectors/taken/tasks").json()
        assert task["config"]["task.class"] == "io.confluent.connect.jdbc.source.JdbcSourceTask", "for a way back"
    finally:
        worker.close()


def test_the_worker_says_which_drivers_and_options_there_are(standalone: MakeWorker, topic: str) -> None:
    """What a connector's configuration says of that counts for nothing."""
    worker = standalone(jdbc_allowed_drivers="postgresql,sqlite").start()
    config = {
        "name": "x",
        "connector.class": JAVA_CLASS,
        "mode": "bulk",
        "topic.prefix": topic,
        "jdbc.allowed.drivers": "mysql",
        "jdbc.allowed.options": "service",
    }

    def errors_for(url: str) -> list[str]:
        path = "connector-plugins/JdbcSource/config/validate"
        answer = requests.put(worker.url() + path, json={**config, "connection.url": url}, timeout=90)
        assert answer.ok, answer.text
        assert "s3cret" not in answer.text
        found = {each["value"]["name"]: each["value"]["errors"] for each in answer.json()["configs"]}
        return list(found["connection.url"])

    (refused,) = errors_for("jdbc:mysql://u:s3cret@h/d")
    assert "the driver mysql+pymysql is not allowed on this worker; use one of postgresql, sqlite" in refused
    (refused,) = errors_for("jdbc:postgresql://u:s3cret@h/d?service=x")
    assert "the option service of postgresql+psycopg is not allowed" in refused
    assert errors_for("jdbc:postgresql://u:s3cret@h/d?sslmode=require") == []
