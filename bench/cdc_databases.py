"""The databases that ``bench/cdc.py`` measures: how rows of ten columns are written, and how they are captured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg

from equipment.change_data import capture_props, captured_database
from equipment.servers.lease import Database, leased_server, new_database
from equipment.servers.mongodb import MongoServer, database_name, mongodb_server
from equipment.servers.products import MARIADB, MYSQL, POSTGRESQL
from worker.embedded.ports import HOST

__all__ = ["DATABASES", "Source", "server_of"]

DATABASES: Final = ("postgresql", "mysql", "mariadb", "mongodb")
_PRODUCTS: Final = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MARIADB}
_POSTGRES_TABLE: Final = """
CREATE TABLE sales (id bigint PRIMARY KEY, region int, customer text, note text, amount numeric(12,2), sold timestamptz,
shipped timestamp, paid boolean, weight float8, sent float8)
"""
_POSTGRES_INSERT: Final = """
INSERT INTO sales SELECT n, n % 50, 'customer ' || n % 1000, md5(n::text), (n / 7.0)::numeric(12, 2), now(), now(),
n % 2 = 0, n * 0.1, extract(epoch FROM clock_timestamp()) FROM generate_series({first}, {last}) n
"""
_POSTGRES_ONE_BY_ONE: Final = """
DO $$ BEGIN FOR number IN {first}..{last} LOOP
    {insert};
    COMMIT;
END LOOP; END $$
"""
_MYSQL_TABLE: Final = """
CREATE TABLE sales (id bigint PRIMARY KEY, region int, customer varchar(50), note varchar(50), amount decimal(12,2),
sold timestamp(6), shipped datetime(6), paid boolean, weight double, sent double)
"""
_MYSQL_ROW: Final = (
    "({n}, {n} % 50, CONCAT('customer ', {n} % 1000), LPAD(HEX({n} * 7919), 32, '0'), "
    "ROUND({n} / 7, 2), NOW(6), NOW(6), "
    "{n} % 2 = 0, {n} * 0.1, UNIX_TIMESTAMP(SYSDATE(6)))"
)
_ROWS_OF_A_STATEMENT: Final = 1000
_DOCUMENTS_OF_A_TRANSACTION: Final = 5000


class Source(Protocol):
    """An empty table (or collection) of a database, and the configuration of a connector that captures it."""

    topic: str
    config: dict[str, str]

    def insert(self, first: int, last: int) -> None:
        """Write rows in one transaction."""

    def insert_one_by_one(self, first: int, last: int) -> None:
        """Write rows in a transaction each."""

    def inserting(self) -> Any:
        """Return a context that gives a function which writes one row."""

    def sent(self, after: Any) -> float:
        """Return when a row was written, of what its event has."""


class _Relational:
    def __init__(self, database: Database) -> None:
        self._database = database

    def sent(self, after: Any) -> float:
        return float(after["sent"])


class _PostgreSQL(_Relational):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.topic = f"{database.name}.public.sales"
        self.config = capture_props(database) | {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "topic.prefix": database.name,
            "status.update.interval.ms": "10000",
        }
        database.execute(_POSTGRES_TABLE)

    def insert(self, first: int, last: int) -> None:
        self._database.execute(_POSTGRES_INSERT.format(first=first, last=last))

    def insert_one_by_one(self, first: int, last: int) -> None:
        insert = _POSTGRES_INSERT.format(first="number", last="number")
        self._database.execute(_POSTGRES_ONE_BY_ONE.format(first=first, last=last, insert=insert))

    @contextmanager
    def inserting(self) -> Iterator[Any]:
        with self._connection() as connection:
            connection.execute("SET synchronous_commit = on")
            yield lambda number: connection.execute(_POSTGRES_INSERT.format(first=number, last=number))

    def _connection(self) -> psycopg.Connection[Any]:
        made: psycopg.Connection[Any] = self._database.connect()
        return made


class _MySQL(_Relational):
    def __init__(self, database: Database, bootstrap: str) -> None:
        super().__init__(database)
        self.topic = f"{database.name}.{database.name}.sales"
        name = "MariaDb" if database.product == "mariadb" else "MySql"
        self.config = {
            "connector.class": f"io.debezium.connector.{name.lower()}.{name}Connector",
            "database.hostname": HOST,
            "database.port": str(database.port),
            "database.user": database.user,
            "database.password": database.password,
            "database.server.id": "4711",
            "database.include.list": database.name,
            "topic.prefix": database.name,
            "include.schema.changes": "false",
            "schema.history.internal.kafka.bootstrap.servers": bootstrap,
            "schema.history.internal.kafka.topic": f"{database.name}-history",
            "database.ssl.mode": "disabled",
            **({"database.allowPublicKeyRetrieval": "true"} if name == "MySql" else {}),
        }
        database.execute(_MYSQL_TABLE)

    def insert(self, first: int, last: int) -> None:
        with closing(self._database.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("BEGIN")
            for start in range(first, last + 1, _ROWS_OF_A_STATEMENT):
                cursor.execute(_values(range(start, min(last + 1, start + _ROWS_OF_A_STATEMENT))))
            cursor.execute("COMMIT")

    def insert_one_by_one(self, first: int, last: int) -> None:
        with self.inserting() as write:
            for number in range(first, last + 1):
                write(number)

    @contextmanager
    def inserting(self) -> Iterator[Any]:
        with closing(self._database.connect()) as connection, connection.cursor() as cursor:
            yield lambda number: cursor.execute(_values([number]))


def _values(numbers: Sequence[int]) -> str:
    return "INSERT INTO sales VALUES " + ", ".join(_MYSQL_ROW.format(n=number) for number in numbers)


class _MongoDB:
    def __init__(self, server: MongoServer, name: str) -> None:
        self._server, self._name = server, name
        self.topic = f"{name}.{name}.sales"
        self.config = {
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "mongodb.connection.string": server.uri,
            "topic.prefix": name,
            "database.include.list": name,
            "capture.mode": "change_streams_update_full",
        }

    def insert(self, first: int, last: int) -> None:
        """Write documents in few transactions: the server holds each of them in its cache."""
        with self._server.client() as client, client.start_session() as session:
            for start in range(first, last + 1, _DOCUMENTS_OF_A_TRANSACTION):
                numbers = range(start, min(last + 1, start + _DOCUMENTS_OF_A_TRANSACTION))
                with session.start_transaction():
                    client[self._name]["sales"].insert_many(map(_document, numbers), session=session)

    def insert_one_by_one(self, first: int, last: int) -> None:
        with self.inserting() as write:
            for number in range(first, last + 1):
                write(number)

    @contextmanager
    def inserting(self) -> Iterator[Any]:
        with self._server.client() as client:
            sales = client[self._name]["sales"]
            yield lambda number: sales.insert_one(_document(number))

    def sent(self, after: Any) -> float:
        import json  # noqa: PLC0415 - events of other databases are no text

        return float(json.loads(after)["sent"])


def _document(number: int) -> dict[str, Any]:
    now = time.time()
    return {
        "_id": number,
        "region": number % 50,
        "customer": f"customer {number % 1000}",
        "note": f"{number * 7919:032x}",
        "amount": number / 7,
        "sold": int(now * 1000),
        "shipped": int(now * 1000),
        "paid": number % 2 == 0,
        "weight": number * 0.1,
        "sent": now,
    }


@contextmanager
def server_of(product: str, folder: Path, bootstrap: str) -> Iterator[Any]:
    """Run a server, and give a function that opens a :class:`Source` in a database of its own."""
    if product == "mongodb":
        with mongodb_server() as mongodb:

            @contextmanager
            def collection() -> Iterator[Source]:
                yield _MongoDB(mongodb, database_name())

            yield collection
        return
    with leased_server(_PRODUCTS[product], folder / "servers") as server:

        @contextmanager
        def table() -> Iterator[Source]:
            if product == "postgresql":
                with captured_database(server) as database:
                    yield _PostgreSQL(database)
            else:
                with new_database(server) as database:
                    yield _MySQL(database, bootstrap)

        yield table
