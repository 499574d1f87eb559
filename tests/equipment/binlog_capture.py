"""Connectors that read the log of MySQL or MariaDB, each with a number of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from connect.data import SourceRecord
from connect.source import SourceConnector
from connect.testing import StoredOffsets, run_source
from connectors.cdc.mysql import MariaDbConnector, MySqlConnector
from equipment.servers.killable import killable_server
from equipment.servers.lease import Database, new_database
from equipment.servers.products import MARIADB, MYSQL, Product
from worker.embedded.ports import HOST

__all__ = [
    "ORDERS",
    "PARTITION",
    "binlog_connector",
    "binlog_props",
    "own_server",
    "read",
    "replicate",
    "rows",
    "run",
    "streaming",
    "until_settled",
]

PARTITION: Final = {"server": "srv"}
ORDERS: Final = "CREATE TABLE orders (id int PRIMARY KEY, name varchar(50))"
_PRODUCTS: Final[dict[str, Product]] = {"mysql": MYSQL, "mariadb": MARIADB}
_NUMBERS: Final = itertools.count(1)


def binlog_connector(database: Database) -> type[SourceConnector[Any]]:
    """Return the connector of a database's product."""
    return MariaDbConnector if database.product == "mariadb" else MySqlConnector


def binlog_props(database: Database, **more: Any) -> dict[str, str]:
    """Return the configuration of a connector for a database; names of keys have underscores for dots."""
    props = {
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": database.user,
        "database.password": database.password,
        "database.server.id": str(os.getpid() * 100 + next(_NUMBERS) % 100),
        "database.include.list": database.name,
        "topic.prefix": "srv",
        "include.schema.changes": "false",
        "offset.activity.monitor.interval.ms": "1000",
    }
    return props | {key.replace("_", "."): str(value) for key, value in more.items()}


@contextmanager
def own_server(product: str, *options: str) -> Iterator[Database]:
    """A database of a server that a test may change."""
    with killable_server(_PRODUCTS[product], *options) as server:
        yield new_database(server.server).__enter__()


def replicate(source: Database, copy: Database) -> Database:
    """Make the server of a copy a replica of another of MySQL; return the database there."""
    run(
        copy,
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{HOST}', SOURCE_PORT={source.port}, SOURCE_USER='sluice', "
        f"SOURCE_PASSWORD='{source.password}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
        "RESET BINARY LOGS AND GTIDS",
        "START REPLICA",
    )
    return Database(copy.server, source.name)


def run(database: Database, *statements: str) -> None:
    """Run statements on one connection."""
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)


def read(
    database: Database,
    offsets: StoredOffsets,
    until: Callable[[list[SourceRecord]], bool] = bool,
    **props: Any,
) -> list[SourceRecord]:
    """Return what a connector reads until a condition holds."""
    wanted = binlog_props(database, **props)
    return run_source(binlog_connector(database), wanted, offsets=offsets, until=until, timeout=60)


def streaming(database: Database, **props: Any) -> StoredOffsets:
    """Return the offsets of a connector that has read all there is."""
    offsets = StoredOffsets()
    read(database, offsets, until_settled(database, offsets), **props)
    return offsets


def until_settled(database: Database, offsets: StoredOffsets) -> Callable[[list[SourceRecord]], bool]:
    """Return a condition: the offsets have reached what is the end of the log now, which others go on writing to."""
    statement = "SHOW MASTER STATUS" if database.product == "mariadb" else "SHOW BINARY LOG STATUS"
    end = tuple(database.rows(statement)[0][:2])

    def is_settled(records: list[SourceRecord]) -> bool:
        offset = offsets.offset(PARTITION)
        is_read = offset is not None and not any("snapshot" in key for key in offset)
        return offset is not None and is_read and (offset["file"], offset["pos"]) >= end

    return is_settled


def rows(records: list[SourceRecord]) -> list[tuple[str, Any]]:
    """Return operation and key of each change of a row."""
    return [
        (record.value["op"], (record.value["after"] or record.value["before"])["id"])
        for record in records
        if record.value is not None and "op" in record.value
    ]
