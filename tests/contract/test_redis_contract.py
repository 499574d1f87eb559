"""The connectors of Redis keep the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest

from connect.data import SinkRecord
from connect.testing import SinkConnectorTests
from connect.testing.samples import sink_records
from connectors.redis import RedisCacheSinkConnector, RedisSinkConnector
from equipment.servers.redis import RedisServer


class _SinkTests(SinkConnectorTests):
    """Records with keys, on a server that can be taken away."""

    @pytest.fixture
    def records(self) -> Sequence[SinkRecord]:
        given = sink_records([f"record {number}" for number in range(12)], partitions=2)
        return [record.replace(key=f"key {place}") for place, record in enumerate(given)]

    @pytest.fixture
    def outage(self, redis: RedisServer) -> AbstractContextManager[object]:
        return redis.down()


class TestRedisSink(_SinkTests):
    """Strings, at least once."""

    connector_class = RedisSinkConnector

    @pytest.fixture
    def props(self, redis: RedisServer) -> Mapping[str, str]:
        return {"name": "strings", "redis.uri": redis.uri, "redis.type": "STRING", "retry.backoff.ms": "10"}

    @pytest.fixture
    def written(self, redis: RedisServer) -> Callable[[], Iterable[Any]]:
        def read() -> list[Any]:
            with redis.client() as client:
                return [client.get(key) for key in client.scan_iter("*:key *")]

        return read


class TestRedisCacheSink(_SinkTests):
    """Strings under the keys of jcustenborder's connector."""

    connector_class = RedisCacheSinkConnector

    @pytest.fixture
    def props(self, redis: RedisServer) -> Mapping[str, str]:
        hosts = f"127.0.0.1:{redis.port}"
        return {"name": "cache", "redis.hosts": hosts, "redis.connection.retry.delay.ms": "100"}

    @pytest.fixture
    def written(self, redis: RedisServer) -> Callable[[], Iterable[Any]]:
        def read() -> list[Any]:
            with redis.client(db=1) as client:
                return [client.get(key) for key in client.scan_iter("key *")]

        return read


class TestRedisStreamSink(_SinkTests):
    """A stream, exactly once."""

    connector_class = RedisSinkConnector
    exactly_once = True

    @pytest.fixture
    def props(self, redis: RedisServer) -> Mapping[str, str]:
        return {"name": "entries", "redis.uri": redis.uri, "redis.key": "entries", "retry.backoff.ms": "10"}

    @pytest.fixture
    def records(self) -> Sequence[SinkRecord]:
        return sink_records([{"number": number} for number in range(12)], partitions=2)

    def expected(self, record: SinkRecord) -> Any:
        return str(record.value["number"])

    @pytest.fixture
    def written(self, redis: RedisServer) -> Callable[[], Iterable[Any]]:
        def read() -> list[Any]:
            with redis.client() as client:
                return [fields["number"] for _, fields in client.xrange("entries")]

        return read
