"""Connectors that read the log of MySQL or MariaDB, each with a number of its own."""

from __future__ import annotations

import itertools
import os
from typing import Any, Final

from connect.source import SourceConnector
from connectors.cdc.mysql import MariaDbConnector, MySqlConnector
from equipment.servers.lease import Database
from worker.embedded.ports import HOST

__all__ = ["binlog_connector", "binlog_props"]

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
