"""The sinks on a real server: what it holds then, what it refuses, and what happens when it loses something."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.cluster import RedisCluster

from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.testing import run_sink, run_source
from connect.testing.contexts import ErrantRecords
from connect.testing.samples import sink_records
from connect.testing.sink_run import SinkTaskRun, TopicLog
from connectors.redis import (
    RedisCacheSinkConnector,
    RedisSinkConfig,
    RedisSinkConnector,
    RedisSinkTask,
    RedisStreamSourceConnector,
)
from equipment.brokers.certificates import Authority
from equipment.ports import own_port
from equipment.servers.redis import PASSWORD, RedisServer, redis_cluster, redis_server, sentinel, valkey_program
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration

Sink = Callable[..., list[tuple[SinkRecord, Exception]]]


def records(values: Sequence[Any], *, keys: Sequence[Any] = (), topic: str = "orders") -> list[SinkRecord]:
    names = keys or [f"k{number}" for number in range(len(values))]
    return [each.replace(key=key) for each, key in zip(sink_records(values, topic=topic), names, strict=True)]


@pytest.fixture
def client(redis: RedisServer) -> Iterator[Redis]:
    with redis.client() as client:
        yield client


def run_of(redis: RedisServer, given: Sequence[SinkRecord], **props: str) -> SinkTaskRun:
    """Return a started task whose puts and commits a test decides on."""
    config = {"name": "redis", "redis.uri": redis.uri, "retry.backoff.ms": "10"}
    config |= {key.replace("_", "."): value for key, value in props.items()}
    log = TopicLog(given)
    run = SinkTaskRun(RedisSinkTask, config, log)
    run.start(log.partitions)
    return run


def test_hashes(sink: Sink, client: Redis) -> None:
    sink(
        records([{"a": 1, "b": 2}, {"b": None, "c": True}, {"d": 1}, None], keys=["x", "x", "y", "y"]),
        redis_type="HASH",
    )
    assert client.hgetall("orders:x") == {"a": "1", "c": "true"}
    assert not client.exists("orders:y")


def test_collections(sink: Sink, client: Redis) -> None:
    given = records([1.5, 2.5, None], keys=["a", "b", "a"])
    # Each connector has offsets of its own.
    sink(given, name="a", redis_type="SET", redis_key="set")
    sink(given, name="b", redis_type="ZSET", redis_key="zset")
    sink(given, name="c", redis_type="LIST", redis_key="list")
    sink(records([1, 2]), name="d", redis_command="LPUSH", redis_key="pushed")
    assert client.smembers("set") == {"b"}
    assert client.zrange("zset", 0, -1, withscores=True) == [("b", 2.5)]
    assert client.lrange("list", 0, -1) == ["b"]
    assert client.lrange("pushed", 0, -1) == ["k1", "k0"]


def test_streams_are_kept_short(sink: Sink, client: Redis) -> None:
    sink(records([{"n": number} for number in range(300)]), redis_stream_maxlen="100")
    assert 100 <= client.xlen("orders") < 300


def test_messages(sink: Sink, redis: RedisServer) -> None:
    with redis.client() as listening, listening.pubsub() as heard:
        heard.subscribe("orders")
        assert heard.get_message(timeout=120) is not None
        sink(records(["one", "two"]), redis_type="PUBSUB")
        assert [heard.get_message(timeout=120)["data"] for _ in range(2)] == ["one", "two"]
        assert not listening.keys("com.redis*")


def test_times_to_live(sink: Sink, client: Redis) -> None:
    sink(records(["v"]), redis_type="STRING", redis_key_ttl="100")
    sink(records([{"a": 1}], keys=["h"]), name="hashes", redis_type="HASH", redis_key_ttl="100")
    assert 0 < client.ttl("orders:k0") <= 100
    assert 0 < client.ttl("orders:h") <= 100


def test_what_redis_refuses_concerns_its_record_alone(sink: Sink, client: Redis) -> None:
    client.set("orders:k1", "no hash")
    given = records([{"a": 1}, {"a": 2}, "no fields", {"a": 4}])
    refused = sink(given, tolerate=True, redis_type="HASH")
    assert [each.offset for each, _ in refused] == [2, 1]
    assert (client.hget("orders:k0", "a"), client.hget("orders:k3", "a")) == ("1", "4")
    client.delete("orders:k0", "orders:k3", *client.keys("sluice*"))
    with pytest.raises(ConnectError):
        sink(given, redis_type="HASH")
    # Its neighbours are there all the same.
    assert (client.hget("orders:k0", "a"), client.hget("orders:k3", "a")) == ("1", "4")


@pytest.mark.parametrize("multiexec", ["true", "false"])
def test_a_collection_of_another_type_fails_the_task(multiexec: str, sink: Sink, client: Redis) -> None:
    client.set("orders", "no stream")
    with pytest.raises(ConnectError, match=r"WRONGTYPE|is a string"):
        sink(records([{"a": 1}]), tolerate=True, redis_multiexec=multiexec)
    stored = client.get("sluice.sink.offset.redis:orders.0")
    assert stored is None or json.loads(stored)["offset"] == 0


def test_bad_records_of_a_transaction_are_given_up_before_it(sink: Sink, client: Redis) -> None:
    ((refused, _),) = sink(records([{"a": 1}, "bad", {"a": 3}]), tolerate=True)
    assert refused.offset == 1
    assert [fields["a"] for _, fields in client.xrange("orders")] == ["1", "3"]
    assert json.loads(client.get("sluice.sink.offset.redis:orders.0")) == {
        "topic": "orders",
        "partition": 0,
        "offset": 3,
    }


def test_a_module_that_is_missing_is_told_at_validation(redis: RedisServer) -> None:
    for kind in ("JSON", "TIMESERIES"):
        values = RedisSinkConfig.validate({"redis.uri": redis.uri, "redis.type": kind})
        (problem,) = [error for value in values for error in value.errors if value.name == "redis.type"]
        assert "Choose another structure" in problem
    assert not any(value.errors for value in RedisSinkConfig.validate({"redis.uri": redis.uri}))


def test_a_server_that_is_not_there_is_told_at_validation() -> None:
    values = RedisSinkConfig.validate({"redis.uri": f"redis://127.0.0.1:{own_port()}"})
    assert [value.name for value in values if value.errors] == ["redis.uri"]


def test_the_offsets_of_java_are_continued(redis: RedisServer, client: Redis) -> None:
    client.set("com.redis.kafka.connect.sink.offset.orders.0", '{"topic":"orders","partition":0,"offset":2}')
    run = run_of(redis, records([{"a": number} for number in range(4)]))
    while run.put(10):
        pass
    run.stop()
    assert [fields["a"] for _, fields in client.xrange("orders")] == ["2", "3"]
    assert not client.exists("com.redis.kafka.connect.sink.offset.orders.0")


@pytest.mark.parametrize("kind", ["STREAM", "STRING"])
def test_a_redis_that_was_emptied_is_filled_again(kind: str, redis: RedisServer, client: Redis) -> None:
    given = records([{"a": number} for number in range(4)])
    run = run_of(redis, given, redis_type=kind)
    run.put(2)
    run.commit()
    client.flushall()
    run.put(1)
    run.commit()
    while run.put(10):
        run.commit()
    run.commit()
    run.stop()
    found = client.xlen("orders") if kind == "STREAM" else len(client.keys("orders:*"))
    assert found == 4


def test_a_redis_that_was_emptied_before_a_commit_is_filled_again(redis: RedisServer, client: Redis) -> None:
    run = run_of(redis, records([{"a": number} for number in range(4)]), redis_type="STRING")
    run.put(2)
    client.flushall()
    run.put(1)
    run.commit()
    while run.put(10):
        run.commit()
    run.stop()
    assert len(client.keys("orders:*")) == 4


@pytest.mark.parametrize("multiexec", ["true", "false"])
def test_a_redis_that_was_emptied_is_noticed_by_a_commit(multiexec: str, redis: RedisServer, client: Redis) -> None:
    given = records([{"a": number} for number in range(6)])
    run = run_of(redis, given, redis_type="STREAM", redis_multiexec=multiexec)
    run.put(2)
    run.commit()
    client.flushall()
    run.commit()
    while run.put(2):
        run.commit()
    run.stop()
    assert [fields["a"] for _, fields in client.xrange("orders")] == [str(number) for number in range(6)]


class Losses(ErrantRecords[SinkRecord]):
    """Has Redis lose something just after a batch was written, before the offset after it is stored."""

    def __init__(self, lose: Callable[[], None]) -> None:
        super().__init__()
        self._lose: list[Callable[[], None]] = [lose]

    def flush(self) -> None:
        """Lose it, the first time."""
        if self._lose:
            self._lose.pop()()


def test_a_redis_that_was_emptied_after_the_first_batch_is_filled_again(redis: RedisServer, client: Redis) -> None:
    run = run_of(redis, records([{"a": number} for number in range(4)]), redis_type="STRING")
    run.context.errant_record_reporter = Losses(client.flushall)
    while run.put(2):
        run.commit()
    run.stop()
    assert len(client.keys("orders:*")) == 4


def test_a_redis_that_comes_back_without_the_last_batch_gets_it_again(redis: RedisServer, client: Redis) -> None:
    """Its offset is the one that the task knows, so that only the broken connection tells of the loss."""
    run = run_of(redis, records([{"a": number} for number in range(6)]), redis_type="STRING")
    run.put(2)

    def restart_without_the_last_batch() -> None:
        client.delete("orders:k2", "orders:k3")
        client.client_kill_filter(_type="normal", skipme=True)

    run.context.errant_record_reporter = Losses(restart_without_the_last_batch)
    while run.put(2):
        run.commit()
    run.stop()
    assert len(client.keys("orders:*")) == 6


def test_an_idle_connection_that_the_server_has_closed_is_replaced(redis: RedisServer, client: Redis) -> None:
    given = records([{"a": number} for number in range(4)])
    for kind in ("STREAM", "STRING"):
        run = run_of(redis, given, name=kind, redis_type=kind, redis_key=kind)
        for _ in given:
            run.put(1, timeout=0)
            client.client_kill_filter(_type="normal", skipme=True)
            run.commit()
            client.client_kill_filter(_type="normal", skipme=True)
        run.stop()
    assert (client.xlen("STREAM"), len(client.keys("STRING:*"))) == (4, 4)


def test_what_a_killed_redis_had_not_saved_is_written_again() -> None:
    """Its offsets are those of the last commit then, of which alone the loss would not be seen."""
    with redis_server("--appendonly", "no") as server:
        run = run_of(server, records([{"a": number} for number in range(5)]), redis_type="STRING")
        run.put(2)
        run.commit()
        with server.client() as client:
            client.save()
        run.put(1)
        with server.down():
            pass
        wait_until("the next one is written", lambda: written(run, 1))
        run.commit()
        while run.put(10):
            run.commit()
        run.stop()
        with server.client() as client:
            assert len(client.keys("orders:*")) == 5


def written(run: SinkTaskRun, count: int) -> bool:
    """Whether the task takes records, in place of asking to be called again."""
    try:
        return bool(run.put(count))
    except RetriableError:
        return False


def test_another_task_that_writes_the_same_partition_doubles_nothing(redis: RedisServer, client: Redis) -> None:
    given = records([{"a": number} for number in range(6)])
    zombie, successor = run_of(redis, given), run_of(redis, given)
    zombie.put(2)
    successor.put(4)
    zombie.put(4)
    successor.put(2)
    assert [fields["a"] for _, fields in client.xrange("orders")] == ["0", "1", "2", "3", "4", "5"]
    zombie.stop()
    successor.stop()


def test_a_topic_that_was_created_anew_is_written_from_its_beginning(redis: RedisServer, client: Redis) -> None:
    key = "sluice.sink.offset.redis:orders.0"
    client.set(key, '{"topic":"orders","partition":0,"offset":2,"topic_id":"former"}')
    log = TopicLog(records([{"a": number} for number in range(4)]))
    run = SinkTaskRun(RedisSinkTask, {"name": "redis", "redis.uri": redis.uri}, log)
    run.context.ids = {"orders": "later"}
    run.start(log.partitions)
    run.put(10)
    run.stop()
    assert client.xlen("orders") == 4
    assert json.loads(client.get(key))["topic_id"] == "later"


def test_offsets_may_be_altered(redis: RedisServer, client: Redis) -> None:
    config = RedisSinkConfig.parse({"name": "redis", "redis.uri": redis.uri})
    partition = TopicPartition("orders", 0)
    assert RedisSinkConnector.alter_offsets(config, {partition: 7})
    assert json.loads(client.get("sluice.sink.offset.redis:orders.0"))["offset"] == 7
    RedisSinkConnector.alter_offsets(config, {partition: None})
    assert not client.keys("sluice*")


def test_a_full_server_is_tried_again(redis: RedisServer, client: Redis) -> None:
    given = records(["x" * 1000])
    run = run_of(redis, given, redis_type="STRING")
    client.config_set("maxmemory", "1")
    try:
        with pytest.raises(RetriableError, match="maxmemory"):
            run.task.put(SinkBatch.from_records(given)[0])
    finally:
        client.config_set("maxmemory", "0")
    run.put(1)
    run.stop()
    assert client.get("orders:k0") == "x" * 1000


@pytest.mark.parametrize("option", ["proto-max-bulk-len", "client-query-buffer-limit"])
@pytest.mark.parametrize(("kind", "multiexec"), [("STRING", "false"), ("STREAM", "true"), ("STREAM", "false")])
def test_what_the_server_never_takes_concerns_its_record_alone(option: str, kind: str, multiexec: str) -> None:
    large = "x" * (2 << 20)
    given = records([{"a": "0"}, {"a": large}, {"a": "2"}] if kind == "STREAM" else ["0", large, "2"])
    props = {"redis.type": kind, "redis.multiexec": multiexec}
    with redis_server(f"--{option}", "1mb") as server, server.client() as client:
        errant: ErrantRecords[SinkRecord] = ErrantRecords(tolerate=True)
        props |= {"redis.uri": server.uri}
        run_sink(RedisSinkConnector, {"name": "a", **props}, given, errant_records=errant)
        ((refused, error),) = errant.reported
        assert refused.original_offset == 1
        assert f"bytes, and the server takes 1048576 at most ({option})" in str(error)
        written = [fields["a"] for _, fields in client.xrange("orders")] if kind == "STREAM" else None
        assert (written or [client.get("orders:k0"), client.get("orders:k2")]) == ["0", "2"]
        with pytest.raises(ConnectError, match="offset 1 of orders-0 cannot be written") as failure:
            run_sink(RedisSinkConnector, {"name": "b", **props}, given)
        assert not isinstance(failure.value, RetriableError)


def test_a_server_that_does_not_tell_its_limits_is_written(redis: RedisServer, client: Redis, sink: Sink) -> None:
    client.execute_command("ACL SETUSER", "writer", "on", ">secret", "~*", "&*", "+@all", "-config")
    assert sink(records([{"a": 1}]), redis_username="writer", redis_password="secret") == []
    assert client.xlen("orders") == 1


@pytest.mark.parametrize("is_valkey", [False, True], ids=["redis", "valkey"])
def test_a_transaction_is_no_larger_than_the_buffer_of_the_server(is_valkey: bool) -> None:
    given = records([{"n": number, "a": "x" * 100_000} for number in range(20)])
    with redis_server("--client-query-buffer-limit", "1mb", is_valkey=is_valkey) as server, server.client() as client:
        run_sink(RedisSinkConnector, {"name": "redis", "redis.uri": server.uri, "redis.type": "STREAM"}, given)
        assert [fields["n"] for _, fields in client.xrange("orders")] == [str(number) for number in range(20)]


def test_replicas_that_are_missing_are_waited_for(redis: RedisServer, client: Redis) -> None:
    given = records([{"a": 1}])
    for multiexec in ("true", "false"):
        client.flushall()
        client.config_set("repl-diskless-sync-delay", "0")
        run = run_of(redis, given, redis_wait_replicas="1", redis_wait_timeout="20", redis_multiexec=multiexec)
        with redis_server("--replicaof", "127.0.0.1", str(redis.port)) as replica:
            with replica.client() as other:
                wait_until("the replica has all", lambda: other.info("replication")["master_link_status"] == "up", 120)
            replica.freeze()
            with pytest.raises(RetriableError, match="Only 0 of"):
                run.task.put(SinkBatch.from_records(given)[0])
            replica.thaw()
            run.put(1)
        run.stop()
        # At least once, each attempt adds an entry until the replica answers in time.
        entries = client.xlen("orders")
        assert entries == 1 if multiexec == "true" else entries >= 2


def test_passwords_and_databases(tmp_path: Path) -> None:
    with redis_server(password=PASSWORD) as server:
        props = {"redis.hosts": f"127.0.0.1:{server.port}", "redis.password": PASSWORD}
        run_sink(RedisCacheSinkConnector, props, records(["v"]))
        with server.client(db=1) as client:
            assert client.get("k0") == "v"
            assert client.keys("sluice.sink.offset.*:orders.0")
        with pytest.raises(ConnectError, match="the user or the password is wrong") as refused:
            run_sink(RedisCacheSinkConnector, {**props, "redis.password": "another"}, records(["v"]))
        assert "another" not in str(refused.value)


def test_tls(tmp_path: Path) -> None:
    authority = Authority()
    identity = authority.sign("127.0.0.1")
    files = {"ca": authority.pem, "key": identity.key_pem(), "cert": identity.certificate_pem}
    for name, text in files.items():
        (tmp_path / f"{name}.pem").write_text(text)
    port = own_port()
    options = ["--tls-port", str(port), "--tls-ca-cert-file", str(tmp_path / "ca.pem")]
    options += ["--tls-key-file", str(tmp_path / "key.pem"), "--tls-cert-file", str(tmp_path / "cert.pem")]
    with redis_server(*options, "--appendonly", "no") as server:
        ours = {
            "redis.cacert": tmp_path / "ca.pem",
            "redis.key.file": tmp_path / "key.pem",
            "redis.key.cert": tmp_path / "cert.pem",
        }
        given = {"redis.uri": f"rediss://127.0.0.1:{port}", **{key: str(path) for key, path in ours.items()}}
        run_sink(RedisSinkConnector, given, records([{"a": 1}]))
        (tmp_path / "own.pem").write_text(files["key"] + files["cert"])
        theirs = {
            "redis.hosts": f"127.0.0.1:{port}",
            "redis.ssl.enabled": "true",
            "redis.ssl.truststore.path": str(tmp_path / "ca.pem"),
            "redis.ssl.keystore.path": str(tmp_path / "own.pem"),
        }
        run_sink(RedisCacheSinkConnector, theirs, records(["v"]))
        with server.client() as plain, server.client(db=1) as first:
            assert (plain.xlen("orders"), first.get("k0")) == (1, "v")
        with pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            run_sink(RedisSinkConnector, {**given, "redis.cacert": ""}, records([{"a": 1}]))


def test_sentinels(redis: RedisServer, client: Redis) -> None:
    with sentinel(redis) as port:
        run_sink(
            RedisSinkConnector, {"redis.uri": f"redis-sentinel://127.0.0.1:{port}/0#mymaster"}, records([{"a": 1}])
        )
    assert client.xlen("orders") == 1


@pytest.mark.thorough
def test_a_cluster() -> None:
    with redis_cluster() as nodes:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes[:2])
        values = [f"v{number}" for number in range(200)]
        run_sink(RedisCacheSinkConnector, {"redis.hosts": hosts, "redis.client.mode": "Cluster"}, records(values))
        props = {"redis.uri": f"redis://{hosts}", "redis.cluster": "true"}
        entries = records([{"a": number} for number in range(20)], topic="entries")
        run_sink(RedisSinkConnector, props, entries, batch_size=3)
        run_sink(RedisSinkConnector, props, entries, batch_size=3)
        with RedisCluster(host="127.0.0.1", port=nodes[0].port, decode_responses=True, protocol=2) as client:
            assert [client.get(f"k{number}") for number in range(200)] == values
            assert [fields["a"] for _, fields in client.xrange("entries")] == [str(number) for number in range(20)]
        with pytest.raises(ConnectError, match=r"set redis\.cluster=true"):
            run_sink(RedisSinkConnector, {"redis.uri": nodes[0].uri, "redis.type": "STRING"}, records(values))


@pytest.mark.thorough
def test_valkey() -> None:
    try:
        valkey_program()
    except ConnectError as error:
        pytest.skip(f"no Valkey here: {error}")
    with redis_server(is_valkey=True) as server, server.client() as client:
        props = {"name": "valkey", "redis.uri": server.uri}
        entries = records([{"a": number} for number in range(20)], topic="entries")
        run_sink(RedisSinkConnector, props, entries, batch_size=3)
        run_sink(RedisSinkConnector, {**props, "name": "hashes", "redis.type": "HASH", "redis.key.ttl": "100"}, entries)
        assert (client.xlen("entries"), client.hget("entries:k7", "a")) == (20, "7")
        stream = {"redis.uri": server.uri, "redis.stream.name": "entries", "redis.stream.block": "10"}
        found = run_source(RedisStreamSourceConnector, stream)
        assert [record.value["body"]["a"] for record in found] == [str(number) for number in range(20)]
        assert client.info("server")["server_name"] == "valkey"


_PUBLIC: Sequence[tuple[Mapping[str, str], Any, str]] = [
    (
        {
            "connector.class": "com.redis.kafka.connect.RedisSinkConnector",
            "tasks.max": "1",
            "transforms": "",
            "redis.type": "HASH",
            "redis.key": "Trans",
            "redis.separator": ":",
        },
        {"a": 1},
        "Trans:k0",
    ),
    (
        {
            "connector.class": "com.redis.kafka.connect.RedisSinkConnector",
            "redis.keyspace": "driver",
            "redis.type": "HASH",
            "errors.tolerance": "all",
        },
        {"a": 1},
        "driver:k0",
    ),
    ({"connector.class": "com.redis.kafka.connect.RedisSinkConnector", "redis.command": "SET"}, "v", "orders:k0"),
    ({"connector.class": "com.redis.kafka.connect.RedisSinkConnector"}, {"a": 1}, "orders"),
]
"""Configurations found in public repositories, but for the address of the server."""


@pytest.mark.parametrize(("props", "value", "key"), _PUBLIC)
def test_public_configurations(
    props: Mapping[str, str], value: Any, key: str, redis: RedisServer, client: Redis
) -> None:
    run_sink(RedisSinkConnector, {**props, "redis.uri": redis.uri}, records([value]))
    assert client.exists(key)
