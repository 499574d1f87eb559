"""The connectors of Redis keep the contract."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest
from redis.exceptions import RedisError

from connect.data import SinkRecord, SourceRecord
from connect.source import ExactlyOnceSupport
from connect.testing import SinkConnectorTests, SourceConnectorTests
from connect.testing.samples import sink_records
from connectors.redis import (
    RedisCacheSinkConnector,
    RedisKeysSourceConnector,
    RedisSinkConnector,
    RedisStreamSourceConfig,
    RedisStreamSourceConnector,
)
from equipment.proofs import thorough_stories
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


@thorough_stories("test_nothing_is_lost_when_it_is_killed")
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


@pytest.mark.thorough
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


class _Feeder:
    """Adds the same entries to a stream whenever all were read: what is acknowledged is not handed out again."""

    def __init__(self, server: RedisServer, count: int) -> None:
        self._server = server
        self._count = count
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._thread.join(120)

    def _feed(self) -> None:
        with self._server.client() as client:
            while not self._end.wait(0.02):
                try:
                    (group,) = client.xinfo_groups("fed")
                    is_read = group["lag"] == 0 and group["pending"] == 0
                except (RedisError, ValueError):
                    is_read = not client.exists("fed")
                if is_read:
                    for number in range(self._count):
                        client.xadd("fed", {"number": str(number)})


class TestRedisStreamSource(SourceConnectorTests):
    """A consumer group, which does not hand out again what was acknowledged."""

    connector_class = RedisStreamSourceConnector
    record_count = 12
    resumes_exactly = False

    def test_says_whether_it_resumes_exactly(self, props: Mapping[str, str]) -> None:
        """It does with the group, which the kit cannot set back: kills show it."""
        for delivery in ("at-least-once", "at-most-once"):
            config = RedisStreamSourceConfig.parse({**props, "redis.stream.delivery": delivery})
            found = self.connector_class.exactly_once_support(config)
            wanted = ExactlyOnceSupport.SUPPORTED if delivery == "at-least-once" else ExactlyOnceSupport.UNSUPPORTED
            assert found is wanted

    def identity(self, record: SourceRecord) -> object:
        """The fields: the ids are new each time."""
        return record.value["body"]["number"]

    @pytest.fixture
    def props(self, redis: RedisServer) -> Iterator[Mapping[str, str]]:
        feeder = _Feeder(redis, 12)
        yield {
            "redis.uri": redis.uri,
            "redis.stream.name": "fed",
            "topic": "fed-${stream}",
            "batch.size": "5",
            "redis.stream.block": "20",
        }
        feeder.close()


class TestRedisKeysSource(SourceConnectorTests):
    """Keys of all types that a scan finds; there are no positions to resume at."""

    connector_class = RedisKeysSourceConnector
    record_count = 12
    resumes_exactly = False

    def identity(self, record: SourceRecord) -> object:
        """The value: the offset counts the records of a task."""
        return str(record.value)

    @pytest.fixture
    def props(self, redis: RedisServer) -> Mapping[str, str]:
        with redis.client() as client:
            client.config_set("notify-keyspace-events", "KEA")
            for number in range(8):
                client.set(f"string:{number}", f"value {number}")
            client.hset("hash", mapping={"a": "1"})
            client.rpush("list", "b", "a")
            client.sadd("set", "b", "a")
            client.zadd("zset", {"a": 1.5, "b": 1.5})
        return {"redis.uri": redis.uri, "batch.size": "5"}
