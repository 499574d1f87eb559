"""Databases whose log is read."""

from __future__ import annotations

import pytest

from equipment.servers.lease import Database


@pytest.fixture(params=["mysql", "mariadb"])
def db(request: pytest.FixtureRequest) -> Database:
    """An empty database of either server."""
    found: Database = request.getfixturevalue(request.param)
    return found
