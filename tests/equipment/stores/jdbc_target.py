"""Databases that a JDBC sink of a test writes to, its records, and the ways to write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from connect.data import Schema, SinkBatch, SinkRecord
from connect.testing import run_sink
from connect.testing.contexts import ErrantRecords, SinkTaskTestContext
from connectors.jdbc import JdbcSinkConfig, JdbcSinkConnector, JdbcSinkTask

__all__ = ["KEY", "MODES", "ORDER", "UPSERT", "Target", "gone", "order", "put", "records", "running", "write"]

KEY = Schema.struct({"id": Schema.int64()})
ORDER = Schema.struct({"name": Schema.string(optional=True), "amount": Schema.int32(optional=True)})
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_key", "auto_create": "true"}
MODES = pytest.mark.parametrize("mode", ["insert", "upsert"])
"""The modes in which rows are written."""


@dataclass(frozen=True)
class Target:
    """A database to write to, of any kind."""

    product: str
    props: Mapping[str, str]
    rows: Callable[[str], list[tuple[Any, ...]]]
    execute: Callable[..., None]

    def quote(self, name: str) -> str:
        mark = "`" if self.product in ("mysql", "mariadb") else '"'
        return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def records(*pairs: tuple[Any, Any], schema: Schema = ORDER, key: Schema | None = KEY) -> list[SinkRecord]:
    """Records of keys and values, with offsets from 0; those without a value are tombstones."""
    return [
        SinkRecord(
            "orders",
            value,
            None if value is None else schema,
            key_value,
            key if key_value is not None else None,
            0,
            offset=offset,
            original_topic="orders",
            original_partition=0,
            original_offset=offset,
        )
        for offset, (key_value, value) in enumerate(pairs)
    ]


def order(number: int, name: str | None, amount: int | None = 1) -> tuple[Any, Any]:
    return {"id": number}, {"name": name, "amount": amount}


def gone(number: int) -> tuple[Any, Any]:
    return {"id": number}, None


def write(
    target: Target, items: Iterable[SinkRecord], errant: ErrantRecords[SinkRecord] | None = None, **props: str
) -> None:
    given = {"name": "sink", **target.props, **{key.replace("_", "."): value for key, value in props.items()}}
    run_sink(JdbcSinkConnector, given, list(items), errant_records=errant)


@contextmanager
def running(target: Target, errant: ErrantRecords[SinkRecord] | None = None, **props: str) -> Iterator[JdbcSinkTask]:
    given = {"name": "sink", **target.props, **{key.replace("_", "."): value for key, value in props.items()}}
    task = JdbcSinkTask(JdbcSinkConfig.parse(given), SinkTaskTestContext(errant_record_reporter=errant))
    task.start()
    try:
        yield task
    finally:
        task.stop()


def put(task: JdbcSinkTask, items: list[SinkRecord]) -> None:
    for batch in SinkBatch.from_records(items):
        task.put(batch)
    task.flush({})
