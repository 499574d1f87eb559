"""Fixtures of the tests of the Redis connectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from connect.data import SinkRecord
from connect.testing import run_sink
from connect.testing.contexts import ErrantRecords
from connectors.redis import RedisSinkConnector
from equipment.servers.redis import RedisServer

Refused = list[tuple[SinkRecord, Exception]]


@pytest.fixture
def sink(redis: RedisServer) -> Callable[..., Refused]:
    """Runs the sink over records and returns those that it gave up."""

    def run(records: Sequence[SinkRecord], *, tolerate: bool = False, **props: str) -> Refused:
        errant: ErrantRecords[SinkRecord] = ErrantRecords(tolerate=tolerate)
        given = {"name": "redis", "redis.uri": redis.uri, **{k.replace("_", "."): v for k, v in props.items()}}
        run_sink(RedisSinkConnector, given, records, errant_records=errant)
        return errant.reported

    return run
