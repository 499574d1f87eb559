"""Configurations: those of both Java connectors, URIs, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connect.config import Config
from connect.config.errors import keys_of
from connect.data import TopicPartition
from connect.errors import ConfigError, ConnectError
from connectors.redis import (
    RedisCacheSinkConfig,
    RedisKeysSourceConfig,
    RedisSinkConfig,
    RedisStreamSourceConfig,
)
from connectors.redis.offsets import OffsetKeys
from connectors.redis.server import Layout, Server, UnusableUriError, server_of


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("redis://h", Server((("h", 6379),))),
        ("redis://:s%40@h:1/2", Server((("h", 1),), database=2, password="s@")),
        ("redis://s@h", Server((("h", 6379),), password="s")),
        (
            "rediss://u:p@h?timeout=5s",
            Server((("h", 6379),), username="u", password="p", uses_tls=True, timeout_seconds=5.0),
        ),
        ("redis://[::1]:7?database=3&clientName=c", Server((("::1", 7),), database=3, client_name="c")),
        ("redis-socket:///run/redis.sock", Server((), socket="/run/redis.sock")),
        (
            "redis-sentinel://p@a,b:5/1#m",
            Server((("a", 26379), ("b", 5)), Layout.SENTINEL, "m", database=1, password="p"),
        ),
    ],
)
def test_uris(uri: str, expected: Server) -> None:
    assert server_of(uri) == expected


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "h:6379",
        "http://h",
        "redis://",
        "redis://h/x",
        "redis-sentinel://h",
        "redis://h:x",
        "redis://h?speed=1",
        "redis://h?timeout=x",
    ],
)
def test_what_is_no_uri(uri: str) -> None:
    with pytest.raises(UnusableUriError):
        server_of(uri)


def test_keys_override_the_uri() -> None:
    config = RedisSinkConfig.parse(
        {
            "redis.uri": "redis://a:b@h",
            "redis.username": "u",
            "redis.password": "p",
            "redis.tls": "true",
            "redis.insecure": "true",
        }
    )
    server = config.server
    assert (server.username, server.password, server.uses_tls, server.verifies) == ("u", "p", True, False)
    assert "b@h" not in repr(config)


@pytest.mark.parametrize(
    ("props", "structure"),
    [
        ({}, "XADD"),
        ({"redis.type": "hash"}, "HSET"),
        ({"redis.type": "LIST", "redis.command": "LPUSH"}, "LPUSH"),
        ({"redis.type": "JSON", "redis.command": "JSONSET"}, "JSONSET"),
        ({"redis.command": "SET"}, "SET"),
        ({"redis.type": "SET"}, "SADD"),
        ({"redis.type": "LIST"}, "RPUSH"),
        ({"redis.type": "LIST", "redis.push.direction": "LEFT"}, "LPUSH"),
    ],
)
def test_structures(props: Mapping[str, str], structure: str) -> None:
    assert RedisSinkConfig.parse(props).structure == structure


@pytest.mark.parametrize(
    ("given", "is_exact"),
    [
        ({}, True),
        ({"redis.multiexec": "false"}, False),
        ({"redis.type": "SET"}, False),
        ({"redis.type": "SET", "redis.multiexec": "true"}, True),
    ],
)
def test_transactions(given: Mapping[str, str], is_exact: bool) -> None:
    assert RedisSinkConfig.parse(given).writing.is_exact is is_exact


@pytest.mark.parametrize(
    ("config", "props", "key"),
    [
        (RedisSinkConfig, {"redis.type": "TABLE"}, "redis.type"),
        (RedisSinkConfig, {"redis.type": "JSON", "redis.command": "HSET"}, "redis.type"),
        (RedisSinkConfig, {"redis.key": "a", "redis.keyspace": "b"}, "redis.keyspace"),
        (RedisSinkConfig, {"redis.key": ""}, "redis.key"),
        (RedisSinkConfig, {"redis.push.direction": "LEFT"}, "redis.push.direction"),
        (RedisSinkConfig, {"redis.command": "LPUSH", "redis.push.direction": "RIGHT"}, "redis.push.direction"),
        (RedisSinkConfig, {"redis.json.path": "x"}, "redis.json.path"),
        (RedisSinkConfig, {"redis.type": "HASH", "redis.multiexec": "true"}, "redis.multiexec"),
        (RedisSinkConfig, {"redis.type": "HASH", "redis.stream.maxlen": "5"}, "redis.stream.maxlen"),
        (RedisSinkConfig, {"redis.charset": "klingon"}, "redis.charset"),
        (RedisSinkConfig, {"redis.uri": "host:6379"}, "redis.uri"),
        (RedisSinkConfig, {"redis.uri": "redis://h/1", "redis.cluster": "true"}, "redis.uri"),
        (RedisSinkConfig, {"redis.wait.replicas": "1", "redis.cluster": "true"}, "redis.wait.replicas"),
        (RedisSinkConfig, {"redis.key.file": "/k"}, "redis.key.file"),
        (RedisSinkConfig, {"redis.cacert": "/there/is/none"}, "redis.cacert"),
        (RedisSinkConfig, {"redis.uri": "redis://evil", "http.denied.hosts": "evil"}, "redis.uri"),
        (RedisCacheSinkConfig, {"redis.hosts": "h:x"}, "redis.hosts"),
        (RedisCacheSinkConfig, {"redis.data.type": "Streams"}, "redis.data.type"),
        (RedisCacheSinkConfig, {"redis.datatype": "streams"}, "redis.datatype"),
        (RedisCacheSinkConfig, {"redis.ssl.truststore.path": "/no"}, "redis.ssl.truststore.path"),
        (RedisStreamSourceConfig, {}, "redis.stream.name"),
        (RedisStreamSourceConfig, {"redis.stream.name": "s", "redis.stream.offset": "x"}, "redis.stream.offset"),
        (
            RedisStreamSourceConfig,
            {"redis.stream.name": "s", "tasks.max": "2", "redis.stream.consumer.name": "c"},
            "redis.stream.consumer.name",
        ),
        (RedisKeysSourceConfig, {"redis.cluster": "true"}, "redis.cluster"),
        (RedisKeysSourceConfig, {"mode": "SNAPSHOT"}, "mode"),
    ],
)
def test_what_is_refused(config: type[Config], props: Mapping[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config.parse(props)
    assert key in keys_of(refused.value)


def test_keys_without_effect_are_told() -> None:
    config = RedisCacheSinkConfig.parse(
        {"redis.connection.attempts": "9", "redis.ssl.provider": "OPENSSL", "redis.hosts": "a,b"}
    )
    assert len(list(config.warnings())) == 3


def test_a_cluster_has_no_numbered_databases() -> None:
    config = RedisCacheSinkConfig.parse({"redis.client.mode": "Cluster", "redis.hosts": "a,b:7"})
    assert (config.server.layout, config.server.database, config.server.hosts) == (
        Layout.CLUSTER,
        0,
        (("a", 6379), ("b", 7)),
    )


@pytest.mark.parametrize(("collection", "tag"), [(b"orders", b"{orders}"), (b"a{b}c", b"{b}"), (b"a{b", b"{a{b}")])
def test_offsets_lie_in_the_slot_of_the_collection(collection: bytes, tag: bytes) -> None:
    from redis.crc import key_slot  # noqa: PLC0415

    key = OffsetKeys("c", "p.", lambda _: collection).key(TopicPartition("orders", 3))
    assert key == b"sluice.sink.offset.c:orders.3." + tag
    assert key_slot(key) == key_slot(collection)


def test_a_collection_whose_slot_has_no_other_key_is_refused() -> None:
    with pytest.raises(ConnectError, match=r"choose another redis\.key"):
        OffsetKeys("c", "p.", lambda _: b"a}b").key(TopicPartition("orders", 3))


@pytest.mark.parametrize(
    ("config", "props"),
    [
        (RedisSinkConfig, {"redis.uri": "redis://redis:6379", "redis.type": "JSON", "redis.command": "JSONSET"}),
        (RedisSinkConfig, {"redis.uri": "redis://redis:6379", "redis.key": "${topic}", "redis.command": "JSONSET"}),
        (
            RedisSinkConfig,
            {
                "redis.cluster": "false",
                "redis.host": "redis",
                "redis.password": "*****",
                "redis.command": "JSONSET",
                "redis.server.mode": "Standalone",
                "redis.database": "0",
                "redis.timeout": "60",
            },
        ),
        (RedisSinkConfig, {"redis.uri": "redis://redis:6379", "redis.type": "JSON", "redis.keyspace": "diament"}),
        (RedisCacheSinkConfig, {"redis.hosts": "redis:6379", "tasks.max": "1", "topics": "users"}),
        (RedisCacheSinkConfig, {"redis.hosts": "redis-master:6379", "redis.type": "kv", "redis.database": "0"}),
        (RedisCacheSinkConfig, {"redis.hosts": "redis-uri:6379", "redis.cluster.enabled": "false"}),
        (RedisCacheSinkConfig, {}),
        (
            RedisStreamSourceConfig,
            {"redis.uri": "redis://redis:6379", "redis.stream.name": "mystream", "topic": "mystream"},
        ),
        (
            RedisKeysSourceConfig,
            {"redis.uri": "redis://redis:6379", "redis.keys.pattern": "mykey:*", "topic": "mykeys"},
        ),
    ],
)
def test_configurations_of_public_repositories(config: type[Config], props: Mapping[str, str]) -> None:
    assert config.parse(props).originals == props
