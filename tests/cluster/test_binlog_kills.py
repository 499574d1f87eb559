"""Random transactions on MySQL and MariaDB while workers, tasks, the database and the broker are killed.

As for PostgreSQL: of two connectors, the one with exactly-once support has each committed change once and in order, the
other has each at least once. The writer knows what was committed, whatever the kills leave unanswered.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest
import requests
from confluent_kafka import Consumer, KafkaException, TopicPartition

from equipment.binlog_capture import binlog_props
from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import create_topic, read_topic
from equipment.servers.killable import KillableServer, killable_server
from equipment.servers.lease import Database, new_database
from equipment.servers.products import MARIADB, MYSQL, Product
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker

KILLS: Final = int(os.environ.get("SLUICE_CDC_KILLS", "0"))
"""How many kills there are: each victim once, then any. Without the variable, only the first two, and the broker is the
run's."""
VICTIMS: Final = ("database", "worker", "task", "broker")
FEW: Final = 2
PATIENCE: Final = 120.0
KEYS: Final = 40
DISTRIBUTED: Final = 0.3
"""The share of distributed (XA) transactions."""
DURABLE: Final = ("--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--lower-case-table-names=0")
PRODUCTS: Final[dict[str, Product]] = {"mysql": MYSQL, "mariadb": MARIADB}
CLASSES: Final = {
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
}
_PAUSE: Final = 0.02
pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(600 + 60 * KILLS)]

Change = tuple[str, int | None]
"""An operation, and the number of the change; a deletion has the number that its row had."""

TABLES: Final = (
    "CREATE TABLE items (id int PRIMARY KEY, number int NOT NULL, big mediumtext)",
    "CREATE TABLE copied (id int PRIMARY KEY, number int NOT NULL)",
    "CREATE TABLE told (id int PRIMARY KEY)",
)


class Writer:
    """Writes random transactions until it is closed, and knows the changes that were committed, by table and key."""

    def __init__(self, database: Database, chance: random.Random) -> None:
        self._database = database
        self._chance = chance
        self._end = threading.Event()
        self._numbers = count(1)
        self._copied = count(1)
        self.committed: dict[tuple[str, int], list[Change]] = defaultdict(list)
        self.rows: dict[int, int] = {}
        self.transactions = 0
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    def close(self) -> None:
        """Write no more."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        for number in count():
            if self._end.wait(_PAUSE):
                return
            self._transact(number)

    def _transact(self, number: int) -> None:
        """Run a transaction; after an error, look whether it was committed."""
        changes: list[tuple[str, int, Change]] = []
        rows = dict(self.rows)
        is_rolled_back = self._chance.random() < 0.15
        xid = f"'{number}'" if self._chance.random() < DISTRIBUTED else None
        try:
            with closing(self._database.connect()) as connection, connection.cursor() as cursor:
                cursor.execute("BEGIN" if xid is None else f"XA START {xid}")
                cursor.execute("INSERT INTO told VALUES (%s)", (number,))
                for _ in range(self._chance.randrange(1, 6)):
                    self._change(cursor, rows, changes)
                self._end_of(cursor, xid, is_rolled_back=is_rolled_back)
        except (pymysql.MySQLError, OSError):
            if xid is not None:
                wait_until("nothing is left prepared", lambda: self._is_rolled_back(xid), PATIENCE)
            if is_rolled_back or wait_until("the database is back", lambda: self._was_told(number), PATIENCE) == "no":
                return
        if not is_rolled_back:
            self._keep(changes, rows)

    def _end_of(self, cursor: Any, xid: str | None, *, is_rolled_back: bool) -> None:
        """End a transaction; one that is distributed may stay prepared for a while, or is committed at once."""
        end = "ROLLBACK" if is_rolled_back else "COMMIT"
        if xid is None:
            cursor.execute(end)
            return
        cursor.execute(f"XA END {xid}")
        if self._chance.random() < 0.2:
            cursor.execute(f"XA {end} {xid}" + ("" if is_rolled_back else " ONE PHASE"))
            return
        cursor.execute(f"XA PREPARE {xid}")
        self._end.wait(self._chance.choice((0, 0, 0.3)))
        cursor.execute(f"XA {end} {xid}")

    def _is_rolled_back(self, xid: str) -> bool:
        """Roll back a transaction that a kill has left prepared; return whether there is none."""
        try:
            if not self._database.rows("XA RECOVER"):
                return True
            self._database.execute(f"XA ROLLBACK {xid}")
        except (pymysql.MySQLError, OSError):
            pass
        return False

    def _keep(self, changes: list[tuple[str, int, Change]], rows: dict[int, int]) -> None:
        for table, key, change in changes:
            self.committed[table, key].append(change)
        self.rows = rows
        self.transactions += 1

    def _was_told(self, number: int) -> str | None:
        try:
            return "yes" if self._database.rows(f"SELECT 1 FROM told WHERE id = {number}") else "no"
        except (pymysql.MySQLError, OSError):
            return None

    def _change(self, cursor: Any, rows: dict[int, int], changes: list[tuple[str, int, Change]]) -> None:
        kind = self._chance.choice(
            ("insert", "insert", "update", "update", "delete", "key", "copy", "many", "undone", "again")
        )
        free = [key for key in range(KEYS) if key not in rows]
        taken = sorted(rows)
        if kind == "insert" and free:
            self._insert(cursor, self._chance.choice(free), rows, changes)
        elif kind == "update" and taken:
            key, number = self._chance.choice(taken), next(self._numbers)
            cursor.execute("UPDATE items SET number = %s WHERE id = %s", (number, key))
            rows[key] = number
            changes.append(("items", key, ("u", number)))
        elif kind == "delete" and taken:
            self._delete(cursor, self._chance.choice(taken), rows, changes)
        elif kind == "again" and taken:
            key = self._chance.choice(taken)
            self._delete(cursor, key, rows, changes)
            self._insert(cursor, key, rows, changes)
        elif kind == "key" and taken and free:
            key, new, number = self._chance.choice(taken), self._chance.choice(free), next(self._numbers)
            cursor.execute("UPDATE items SET id = %s, number = %s WHERE id = %s", (new, number, key))
            changes += [("items", key, ("d", rows.pop(key))), ("items", new, ("c", number))]
            rows[new] = number
        elif kind == "copy":
            self._copy(cursor, changes)
        elif kind == "many" and taken:
            self._update_many(cursor, rows, changes)
        elif kind == "undone":
            cursor.execute("SAVEPOINT s")
            cursor.execute("UPDATE items SET number = -1")
            cursor.execute("ROLLBACK TO s")

    def _insert(self, cursor: Any, key: int, rows: dict[int, int], changes: list[tuple[str, int, Change]]) -> None:
        number = next(self._numbers)
        big = self._chance.randbytes(8000).hex() if self._chance.random() < 0.2 else "small"
        cursor.execute("INSERT INTO items VALUES (%s, %s, %s)", (key, number, big))
        rows[key] = number
        changes.append(("items", key, ("c", number)))

    @staticmethod
    def _delete(cursor: Any, key: int, rows: dict[int, int], changes: list[tuple[str, int, Change]]) -> None:
        cursor.execute("DELETE FROM items WHERE id = %s", (key,))
        changes.append(("items", key, ("d", rows.pop(key))))

    def _copy(self, cursor: Any, changes: list[tuple[str, int, Change]]) -> None:
        """Insert a hundred rows at once, which are one event, so that a batch ends within it."""
        keys = [next(self._copied) for _ in range(100)]
        cursor.execute("INSERT INTO copied VALUES " + ", ".join(f"({key}, {key})" for key in keys))
        changes += [("copied", key, ("c", key)) for key in keys]

    def _update_many(self, cursor: Any, rows: dict[int, int], changes: list[tuple[str, int, Change]]) -> None:
        number = next(self._numbers)
        for _ in range(KEYS):
            next(self._numbers)
        cursor.execute("UPDATE items SET number = id + %s", (number,))
        for key in rows:
            rows[key] = key + number
            changes.append(("items", key, ("u", key + number)))


class Flow:
    """The database, a worker for each of the two connectors, and the broker, if it may be killed."""

    def __init__(
        self, product: str, server: KillableServer, database: Database, bootstrap: str, broker: ProxiedBroker | None
    ) -> None:
        self.product, self.server, self.database = product, server, database
        self.bootstrap, self.broker = bootstrap, broker
        self.workers: dict[str, DistributedWorker] = {}
        self._ends = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends", "log_level": 0})

    def topic(self, alias: str, table: str) -> str:
        return f"{self.database.name}-{alias}.{self.database.name}.{table}"

    def start(self, alias: str, folder: Path, **props: str) -> None:
        """Start a worker and its connector."""
        worker = self.workers[alias] = DistributedWorker(folder, self.bootstrap, **props)
        for table in ("items", "copied", "told"):
            create_topic(self.bootstrap, self.topic(alias, table))
        worker.start()
        config = binlog_props(self.database) | {
            "connector.class": CLASSES[self.product],
            "topic.prefix": f"{self.database.name}-{alias}",
            "key.converter": "JsonConverter",
            "value.converter": "JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "max.batch.size": "30",
            "restart.policy": "on-failure",
            "restart.backoff.ms": "100",
            "restart.backoff.max.ms": "1000",
            "restart.limit": "1000",
        }
        if alias == "exact":
            config["exactly.once.support"] = "required"
        requests.put(f"{worker.url()}connectors/capture/config", json=config, timeout=60).raise_for_status()

    def kill(self, victim: str) -> None:
        """Kill the victim, and start again what does not by itself."""
        match victim:
            case "worker":
                for worker in self.workers.values():
                    worker.kill()
                    worker.start()
            case "task":
                for worker in self.workers.values():
                    with suppress(ProcessLookupError):
                        os.kill(worker.task_pid("capture"), signal.SIGKILL)
            case "broker":
                assert self.broker is not None
                self.broker.kill()
                self.broker.start()
            case _:
                self.server.kill()
                self.server.start()

    def wait_for_more(self, records: int) -> None:
        """Wait until each connector has written so many more records."""
        before = {alias: self._end(alias) for alias in self.workers}
        for alias, end in before.items():
            wait_until(f"{alias} goes on", lambda end=end, alias=alias: self._end(alias) >= end + records, PATIENCE)

    def _end(self, alias: str) -> int:
        try:
            return int(self._ends.get_watermark_offsets(TopicPartition(self.topic(alias, "items"), 0), timeout=10)[1])
        except KafkaException:
            return 0

    def changes(self, alias: str) -> dict[tuple[str, int], list[Change]]:
        """The changes on the topics of a connector, by table and key."""
        found: dict[tuple[str, int], list[Change]] = defaultdict(list)
        for table in ("items", "copied"):
            for message in read_topic(self.bootstrap, self.topic(alias, table)):
                key = json.loads(message.key())["id"]
                if message.value() is None:
                    continue
                value = json.loads(message.value())
                row = value["after"] or value["before"]
                found[table, key].append((value["op"], row["number"]))
        return found

    def told(self, alias: str) -> int:
        """How many transactions a connector has told of, once or more often."""
        return len({message.key() for message in read_topic(self.bootstrap, self.topic(alias, "told"))})

    def close(self) -> None:
        self._ends.close()


@pytest.fixture
def flow(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Flow]:
    """Both connectors, streaming."""
    product: str = request.param
    broker: ProxiedBroker | None = request.getfixturevalue("mortal") if KILLS else None
    bootstrap = request.getfixturevalue("bootstrap") if broker is None else broker.bootstrap
    with ExitStack() as stack:
        server = stack.enter_context(killable_server(PRODUCTS[product], *DURABLE))
        # The database goes with its server, so it is not dropped.
        database = new_database(server.server).__enter__()
        database.execute(*TABLES)
        made = Flow(product, server, database, bootstrap, broker)
        stack.callback(made.close)
        for alias, props in {"exact": {"exactly_once_source_support": "enabled"}, "least": {}}.items():
            made.start(alias, tmp_path / alias, **props)
            stack.callback(made.workers[alias].close)
        for worker in made.workers.values():
            worker.wait_for_states("capture", "RUNNING", "RUNNING")
        database.execute("INSERT INTO told VALUES (-1)")
        for alias in made.workers:
            wait_until(f"{alias} streams", lambda alias=alias: made.told(alias) == 1, PATIENCE)
        yield made


@pytest.mark.thorough
@pytest.mark.parametrize("flow", ["mysql", "mariadb"], indirect=True)
def test_kills_lose_nothing_and_double_nothing(flow: Flow) -> None:
    seed = int(os.environ.get("SLUICE_CDC_SEED", random.randrange(1 << 32)))
    print(f"SLUICE_CDC_SEED={seed}")
    chance = random.Random(seed)
    writer = Writer(flow.database, random.Random(seed + 1))
    try:
        for number in range(KILLS or FEW):
            flow.wait_for_more(chance.randrange(20, 300))
            victim = VICTIMS[number] if number < len(VICTIMS) else chance.choice(VICTIMS)
            print(f"{number + 1}: {victim}", flush=True)
            flow.kill(victim)
        flow.wait_for_more(100)
    finally:
        writer.close()
    told = flow.database.rows("SELECT count(*) FROM told")[0][0]
    for alias in flow.workers:
        wait_until(f"{alias} has all", lambda alias=alias: flow.told(alias) == told, PATIENCE)
    exact, least = flow.changes("exact"), flow.changes("least")
    assert exact == writer.committed
    # What comes again is followed by the rest, and each change comes for the first time in its order.
    assert {key: list(dict.fromkeys(changes)) for key, changes in least.items()} == writer.committed
    total = sum(map(len, writer.committed.values()))
    doubled = sum(map(len, least.values())) - total
    print(f"{writer.transactions} transactions, {total} changes; at least once has {doubled} of them twice", flush=True)
