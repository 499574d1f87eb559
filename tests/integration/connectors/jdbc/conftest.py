"""What the tests of the JDBC connectors have in common."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from equipment.proofs import thorough
from equipment.stores.jdbc_target import Target


@pytest.fixture(params=["sqlite", "postgresql", "mariadb", *thorough("mysql")])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    """Each kind of database in turn."""
    if request.param != "sqlite":
        database = request.getfixturevalue(request.param)
        return Target(request.param, database.props, database.rows, database.execute)
    file = tmp_path / "target.db"

    def rows(query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute(query).fetchall()

    def execute(*statements: str) -> None:
        with closing(sqlite3.connect(file)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    return Target("sqlite", {"connection.url": f"jdbc:sqlite:{file}"}, rows, execute)
