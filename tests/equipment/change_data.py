"""Databases whose changes are captured: their slots are dropped with them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from equipment.servers.lease import Database, Server, new_database
from worker.embedded.ports import HOST

__all__ = ["capture_props", "captured_database", "drop_slots"]

_DROP = """
SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = %s AND active_pid IS NOT NULL
"""
_GONE = """
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s AND NOT active
"""
_SECONDS = 20.0


@contextmanager
def captured_database(server: Server) -> Iterator[Database]:
    """Create a database, and drop it with all its slots at the end: the server has few places for slots."""
    with new_database(server) as database:
        try:
            yield database
        finally:
            drop_slots(database)


def drop_slots(database: Database) -> None:
    """Drop the slots of a database, and end the connections that use them."""
    deadline = time.monotonic() + _SECONDS
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        while True:
            cursor.execute(_DROP, (database.name,))
            cursor.execute(_GONE, (database.name,))
            cursor.execute("SELECT count(*) FROM pg_replication_slots WHERE database = %s", (database.name,))
            if cursor.fetchone()[0] == 0:
                return
            assert time.monotonic() < deadline, "slots that cannot be dropped"


def capture_props(database: Database, **more: Any) -> dict[str, str]:
    """Return the configuration of a connector for a database; names of keys have underscores for dots."""
    props = {
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": database.user,
        "database.password": database.password,
        "database.dbname": database.name,
        "topic.prefix": "srv",
        "slot.name": f"slot_{database.name}",
        "publication.autocreate.mode": "filtered",
        "slot.retry.delay.ms": "200",
        "slot.max.retries": "100",
        "status.update.interval.ms": "200",
    }
    return props | {key.replace("_", "."): str(value) for key, value in more.items()}
