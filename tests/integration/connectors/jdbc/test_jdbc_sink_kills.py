"""A worker that writes to a database exactly once is killed; no row is lost or doubled."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from connect.internals.crash import CRASH_POINT_VARIABLE
from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.proofs import EVERY_KILL
from equipment.servers.lease import Database
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

pytestmark = pytest.mark.timeout(600)

ROWS = 4000
SHARES = (1, 2) if EVERY_KILL else (1,)
"""How many fourths of the rows are written at each kill of a worker."""
_SCHEMA = {
    "type": "struct",
    "fields": [{"field": "id", "type": "int64"}, {"field": "name", "type": "string", "optional": True}],
}


def values(first: int, stop: int) -> list[bytes]:
    return [
        json.dumps({"schema": _SCHEMA, "payload": {"id": n, "name": None if n % 1000 == 7 else f"row {n}"}}).encode()
        for n in range(first, stop)
    ]


def worker_for(
    standalone: Callable[..., StandaloneWorker], database: Database, topic: str, **props: str
) -> StandaloneWorker:
    worker = standalone(value_converter="JsonConverter")
    given = {
        "connector.class": "JdbcSink",
        "topics": topic,
        "table.name.format": "rows",
        "delivery": "exactly-once",
        "batch.size": "100",
        "consumer.override.max.poll.records": "50",
        "run.until": "drained",
        **database.props,
        **props,
    }
    worker.connector("sink", **given)
    return worker


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """A topic of two partitions with the rows."""
    create_topic(bootstrap, topic, partitions=2)
    for partition in range(2):
        half = ROWS // 2
        produce(bootstrap, topic, values(partition * half, (partition + 1) * half), partition)
    return topic


@pytest.mark.thorough
@pytest.mark.parametrize("product", ["postgresql", "mariadb"])
def test_each_row_is_there_once_though_workers_are_killed(
    standalone: Callable[..., StandaloneWorker], request: pytest.FixtureRequest, filled: str, product: str
) -> None:
    database: Database = request.getfixturevalue(product)
    database.execute("CREATE TABLE rows (id BIGINT, name VARCHAR(20))".replace("rows", _quoted(database)))
    count = f"SELECT count(*) FROM {_quoted(database)}"
    worker = worker_for(standalone, database, filled)
    for share in SHARES:
        worker.start()
        wait_until("some rows are written", lambda: database.rows(count)[0][0] >= share * ROWS // 4, 60)  # noqa: B023
        worker.kill()
    assert worker.run(seconds=120) == 0, worker.log()
    found = database.rows(f"SELECT id FROM {_quoted(database)} ORDER BY id")
    assert found == [(n,) for n in range(ROWS)]
    offsets = "SELECT connector, topic, kafka_partition, next_offset FROM sluice_offsets ORDER BY kafka_partition"
    assert database.rows(offsets) == [("sink", filled, partition, ROWS // 2) for partition in range(2)]


def test_each_row_is_there_once_though_tasks_are_killed_beside_their_commits(
    standalone: Callable[..., StandaloneWorker], postgresql: Database, bootstrap: str, filled: str
) -> None:
    postgresql.execute("CREATE TABLE rows (id BIGINT, name VARCHAR(20) NOT NULL)")
    dead = f"{filled}-dead"
    tolerant = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    worker = worker_for(standalone, postgresql, filled, **tolerant)
    written = 0
    for point in ("before", "after"):
        status = worker.run({CRASH_POINT_VARIABLE: f"jdbc-sink-{point}-commit:5"}, seconds=120)
        assert status != 0, "the task was to be killed, and the worker to end because of it"
        before, written = written, postgresql.rows("SELECT count(*) FROM rows")[0][0]
        assert before < written < ROWS
    assert worker.run(seconds=120) == 0, worker.log()
    good = [n for n in range(ROWS) if n % 1000 != 7]
    assert postgresql.rows("SELECT id FROM rows ORDER BY id") == [(n,) for n in good]
    reported = {json.loads(message.value())["payload"]["id"] for message in read_topic(bootstrap, dead)}
    assert reported == {7, 1007, 2007, 3007}


def _quoted(database: Database) -> str:
    return '"rows"' if database.product == "postgresql" else "`rows`"
