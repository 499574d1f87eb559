"""The JDBC source keeps the contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from connect.testing import SourceConnectorTests
from connectors.jdbc import JdbcSourceConnector
from equipment.servers.lease import Database

_POLLING: Mapping[str, str] = {
    "topic.prefix": "db-",
    "poll.interval.ms": "1",
    "batch.max.rows": "3",
    "key.columns": "auto",
}


def _fill(file: Path) -> None:
    """Two tables, one of them with rows that share their times."""
    with closing(sqlite3.connect(file)) as database:
        database.executescript(
            """
            CREATE TABLE accounts (id INTEGER PRIMARY KEY, name VARCHAR(20), balance DECIMAL(10,2),
                changed TIMESTAMP NOT NULL);
            CREATE TABLE visits (id INTEGER PRIMARY KEY, page TEXT, changed TIMESTAMP NOT NULL);
            """
        )
        accounts = [(f"n{n}", n / 4, f"2024-01-01 00:00:0{n // 3}") for n in range(8)]
        database.executemany("INSERT INTO accounts (name, balance, changed) VALUES (?, ?, ?)", accounts)
        visits = [
            (None, "2024-01-01 00:00:00.123456"),
            ("/", "2024-01-01 00:00:00.1235"),
            ("/a", "2024-01-01 00:00:01"),
        ]
        database.executemany("INSERT INTO visits (page, changed) VALUES (?, ?)", visits)
        database.commit()


class TestJdbcSourceIncrementing(SourceConnectorTests):
    """By a number."""

    connector_class = JdbcSourceConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        _fill(tmp_path / "a.db")
        return {**_POLLING, "connection.url": f"jdbc:sqlite:{tmp_path / 'a.db'}", "mode": "incrementing"}


class TestJdbcSourceTimestampIncrementing(SourceConnectorTests):
    """By a time and a number."""

    connector_class = JdbcSourceConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        _fill(tmp_path / "a.db")
        return {
            **_POLLING,
            "connection.url": f"sqlite:///{tmp_path / 'a.db'}",
            "mode": "timestamp+incrementing",
            "timestamp.column.name": "changed",
        }


class TestJdbcSourceTimestamp(SourceConnectorTests):
    """By a time, which rows may share."""

    connector_class = JdbcSourceConnector
    resumes_exactly = False

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        _fill(tmp_path / "a.db")
        return {
            **_POLLING,
            "connection.url": f"jdbc:sqlite:{tmp_path / 'a.db'}",
            "mode": "timestamp",
            "timestamp.columns.mapping": ".*:[changed]",
        }


class TestJdbcSourceQuery(SourceConnectorTests):
    """By a query."""

    connector_class = JdbcSourceConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        _fill(tmp_path / "a.db")
        return {
            **_POLLING,
            "connection.url": f"jdbc:sqlite:{tmp_path / 'a.db'}",
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "query": "SELECT * FROM (SELECT id, name || '%' AS name FROM accounts WHERE name LIKE 'n%') AS rows",
            "topic.prefix": "people",
            "key.columns": "id",
        }


@pytest.mark.integration
class TestJdbcSourcePostgresql(SourceConnectorTests):
    """By a time and a number, from PostgreSQL."""

    connector_class = JdbcSourceConnector

    @pytest.fixture
    def props(self, postgresql: Database) -> Mapping[str, str]:
        postgresql.execute(
            "CREATE TABLE accounts (id bigserial PRIMARY KEY, name text, balance numeric(10, 2), tags text[],"
            " changed timestamptz NOT NULL)",
            "INSERT INTO accounts (name, balance, tags, changed) SELECT 'n' || n, n / 4.0, ARRAY['a', NULL],"
            " timestamptz '2024-01-01' + n / 3 * interval '1 second' FROM generate_series(1, 9) n",
            "CREATE TABLE visits (id serial PRIMARY KEY, page uuid DEFAULT gen_random_uuid(),"
            " changed timestamp NOT NULL)",
            "INSERT INTO visits (changed) VALUES ('2024-01-01 00:00:00.123456'), ('2024-01-01 00:00:00.1235')",
        )
        return {
            **_POLLING,
            **postgresql.props,
            "mode": "timestamp+incrementing",
            "timestamp.column.name": "changed",
        }
