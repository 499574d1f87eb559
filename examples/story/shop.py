"""The shop: three tables in MariaDB, and customers who never rest."""

from __future__ import annotations

import random
import threading
from contextlib import closing, suppress
from typing import Any

import pymysql

from equipment.servers.killable import KillableServer

__all__ = ["TABLES", "Shop"]

TABLES = ("customers", "orders", "items")
_CREATE = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.customers (id int PRIMARY KEY, name varchar(40) NOT NULL, city varchar(40))",
    "CREATE TABLE shop.orders (id int PRIMARY KEY, customer int NOT NULL, state varchar(12) NOT NULL, at datetime(3))",
    "CREATE TABLE shop.items (id int PRIMARY KEY, orders int, name varchar(40), price decimal(8,2) NOT NULL)",
)
_ROWS = 500
_KEYS = 1500
_CITIES = ("Berlin", "Lagos", "Lima", "Osaka", "Zürich")


class Shop:
    """Rows that change at random until it closes, through outages of the database."""

    def __init__(self, server: KillableServer, seed: int) -> None:
        self._server = server.server
        self._chance = random.Random(seed)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._trade, name="shop")
        self._has_note = False
        self.transactions = 0

    def open(self) -> None:
        """Create the tables, fill them, and begin to trade."""
        with closing(self._server.connect()) as connection, connection.cursor() as cursor:
            for statement in _CREATE:
                cursor.execute(statement)
            for key in range(_ROWS):
                for table in TABLES:
                    self._put(cursor, table, key)
            connection.commit()
        self._thread.start()

    def add_column(self) -> None:
        """Give the orders a note, which later orders have."""
        with closing(self._server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("ALTER TABLE shop.orders ADD COLUMN note varchar(60)")
        self._has_note = True

    def close(self) -> None:
        """Trade no more."""
        self._closed.set()
        self._thread.join()

    def rows(self, table: str) -> dict[int, dict[str, Any]]:
        """The rows of a table by their keys."""
        with closing(self._server.connect()) as connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(f"SELECT * FROM shop.{table}")
            return {row["id"]: row for row in cursor.fetchall()}

    def _trade(self) -> None:
        while not self._closed.wait(0.02):
            # What has been committed is asked of the database in the end.
            with suppress(pymysql.MySQLError, OSError):
                self._transact()
                self.transactions += 1

    def _transact(self) -> None:
        with closing(self._server.connect("shop")) as connection, connection.cursor() as cursor:
            cursor.execute("BEGIN")
            for _ in range(self._chance.randrange(1, 6)):
                self._change(cursor, self._chance.choice(TABLES), self._chance.randrange(_KEYS))
            cursor.execute("ROLLBACK" if self._chance.random() < 0.1 else "COMMIT")

    def _change(self, cursor: Any, table: str, key: int) -> None:
        match self._chance.randrange(6):
            case 0:
                cursor.execute(f"DELETE FROM shop.{table} WHERE id = %s", (key,))
            case 1:
                other = self._chance.randrange(_KEYS)
                cursor.execute(f"UPDATE IGNORE shop.{table} SET id = %s WHERE id = %s", (other, key))
            case _:
                self._put(cursor, table, key)

    def _put(self, cursor: Any, table: str, key: int) -> None:
        number = self._chance.randrange(1_000_000)
        match table:
            case "customers":
                row = {"id": key, "name": f"Customer {number}", "city": self._chance.choice(_CITIES)}
            case "orders":
                at = f"2026-11-{1 + number % 28:02d} 12:{number % 60:02d}:00.{number % 1000:03d}"
                row = {"id": key, "customer": number % _ROWS, "state": self._chance.choice(("new", "paid", "sent"))}
                row |= {"at": at} | ({"note": f"note {number}"} if self._has_note else {})
            case _:
                row = {"id": key, "orders": number % _ROWS, "name": f"Thing {number}", "price": number / 100}
        columns, places = ", ".join(row), ", ".join(["%s"] * len(row))
        cursor.execute(f"REPLACE INTO shop.{table} ({columns}) VALUES ({places})", tuple(row.values()))
