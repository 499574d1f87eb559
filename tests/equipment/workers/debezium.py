"""Debezium's connectors on Apache Kafka Connect's worker, with pinned jars."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from equipment.workers.java_connect import JavaConnectJars, resolve_java_connect

__all__ = ["resolve_debezium"]

_LOCKS: Final = {"postgresql": Path(__file__).with_name("debezium_postgres.jars")}


def resolve_debezium(database: str) -> JavaConnectJars:
    """Return Java and the jars, downloaded if missing; a ``ConnectError`` says why that failed."""
    plugin = resolve_jars(read_lock(_LOCKS[database]), home=sluice_home())
    return replace(resolve_java_connect(), plugin=tuple(plugin))
