"""Rows that change while they are read, each time to a greater version."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Protocol

from equipment.servers.lease import Database

__all__ = ["RowChanges", "RowWriter", "SqlRowWriter"]


class RowWriter(Protocol):
    """Changes rows of a table, each by its key."""

    def put(self, key: int, version: int) -> None:
        """Write a row, whether there was one or not."""

    def delete(self, key: int) -> None:
        """Delete a row, if there is one."""

    def close(self) -> None:
        """End the connection."""


class SqlRowWriter:
    """Changes the rows of a table ``t (id, version)`` by statements."""

    def __init__(self, database: Database) -> None:
        self._connection = database.connect()
        self._cursor = self._connection.cursor()
        is_postgresql = database.product == "postgresql"
        otherwise = "ON CONFLICT (id) DO UPDATE SET" if is_postgresql else "ON DUPLICATE KEY UPDATE"
        self._put = f"INSERT INTO t VALUES (%s, %s) {otherwise} version = %s"

    def put(self, key: int, version: int) -> None:
        self._cursor.execute(self._put, (key, version, version))

    def delete(self, key: int) -> None:
        self._cursor.execute("DELETE FROM t WHERE id = %s", (key,))

    def close(self) -> None:
        self._connection.close()


class RowChanges:
    """Changes rows with keys below ``keys``, one in every ``pause`` seconds, until it is closed."""

    def __init__(self, writer: Callable[[], RowWriter], chance: random.Random, keys: int, pause: float) -> None:
        self._writer = writer
        self._chance = chance
        self._keys = keys
        self._pause = pause
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        version = 1
        with closing(self._writer()) as writer:
            while not self._end.wait(self._pause):
                version += 1
                key = self._chance.randrange(self._keys)
                if self._chance.random() < 0.2:
                    writer.delete(key)
                else:
                    writer.put(key, version)
