"""The sources on a real server: entries of streams and who acknowledges them, and keys of every type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from redis import Redis

from connect.data import SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.testing import run_source as run_source_within
from connect.testing.offsets import StoredOffsets
from connect.testing.source_run import running_source
from connectors.redis import (
    RedisKeysSourceConfig,
    RedisKeysSourceConnector,
    RedisStreamSourceConnector,
)
from equipment.brokers.proxy import Proxy
from equipment.ports import own_port
from equipment.servers.redis import RedisServer
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration

GROUP = "kafka-consumer-group"
PATIENCE = 120.0
run_source = partial(run_source_within, timeout=PATIENCE)


@pytest.fixture
def client(redis: RedisServer) -> Iterator[Redis]:
    with redis.client() as client:
        client.config_set("notify-keyspace-events", "KEA")
        yield client


def stream_props(redis: RedisServer, **more: str) -> dict[str, str]:
    given = {"name": "stream", "redis.uri": redis.uri, "redis.stream.name": "s", "redis.stream.block": "10"}
    return given | {key.replace("_", "."): value for key, value in more.items()}


def bodies(found: list[SourceRecord]) -> list[str]:
    return [record.value["body"]["n"] for record in found]


def polled(task: Any) -> list[SourceRecord]:
    """Poll until there are records: what is pending is asked for first."""
    found: list[SourceRecord] = []
    wait_until("there are records", lambda: found.extend(task.poll() or []) or found, PATIENCE)
    return found


def read(count: int) -> Callable[[Any], bool]:
    return lambda records: len(records) >= count


def test_the_record_of_an_entry(redis: RedisServer, client: Redis) -> None:
    key = client.xadd("s", {"n": "1", "text": "ü"})
    props = stream_props(redis, topic="redis_${stream}")
    (record,) = run_source(RedisStreamSourceConnector, props, until=read(1))
    assert (record.topic, record.key) == ("redis_s", key)
    assert record.value == {"id": key, "body": {"n": "1", "text": "ü"}, "stream": "s"}
    assert record.source_partition == {"stream": "s", "group": GROUP, "consumer": "consumer-0"}
    assert record.source_offset == {"offset": key}


def test_entries_are_acknowledged_once_they_are_stored(redis: RedisServer, client: Redis) -> None:
    client.xadd("s", {"n": "1"})
    with running_source(RedisStreamSourceConnector, stream_props(redis), StoredOffsets()) as (task,):
        records = polled(task.task)
        assert client.xpending("s", GROUP)["pending"] == 1
        task.task.stored([(records[0].source_partition, records[0].source_offset)])
        assert client.xpending("s", GROUP)["pending"] == 0


def test_what_a_killed_task_has_read_is_read_by_its_successor(redis: RedisServer, client: Redis) -> None:
    for number in range(4):
        client.xadd("s", {"n": str(number)})
    client.xgroup_create("s", GROUP, "0")
    # A task that was killed after it had published two of four entries, of which one is acknowledged.
    ((_, entries),) = client.xreadgroup(GROUP, "consumer-0", {"s": ">"}, count=3)
    client.xack("s", GROUP, entries[0][0])
    offsets = StoredOffsets()
    offsets.put({"stream": "s", "group": GROUP, "consumer": "consumer-0"}, {"offset": entries[1][0]})
    found = run_source(RedisStreamSourceConnector, stream_props(redis), offsets=offsets, until=read(2))
    assert sorted(bodies(found)) == ["2", "3"]
    assert {record.source_partition["consumer"] for record in found} == {"consumer-0", "consumer-0:1"}
    assert client.xpending("s", GROUP)["pending"] == 0


def test_what_nobody_else_reads_is_left_to_the_first_task(redis: RedisServer, client: Redis) -> None:
    client.xadd("s", {"n": "1"})
    client.xgroup_create("s", GROUP, "0")
    client.xreadgroup(GROUP, "consumer-7", {"s": ">"})
    props = stream_props(redis, redis_stream_claim_idle_ms="1000")
    (record,) = run_source(RedisStreamSourceConnector, props, until=read(1), max_tasks=2)
    assert record.source_partition["consumer"] == "consumer-7"


def test_at_most_once_nothing_is_pending(redis: RedisServer, client: Redis) -> None:
    client.xadd("s", {"n": "1"})
    props = stream_props(redis, redis_stream_delivery="at-most-once")
    assert bodies(run_source(RedisStreamSourceConnector, props, until=read(1))) == ["1"]
    assert client.xpending("s", GROUP)["pending"] == 0


def test_a_stream_is_drained_once_former_consumers_are_as_well(redis: RedisServer, client: Redis) -> None:
    for number in range(4):
        client.xadd("s", {"n": str(number)})
    client.xgroup_create("s", GROUP, "0")
    client.xreadgroup(GROUP, "consumer-0", {"s": ">"}, count=2)
    found = run_source(RedisStreamSourceConnector, stream_props(redis))
    assert sorted(bodies(found)) == ["0", "1", "2", "3"]


def test_several_tasks_share_a_stream(redis: RedisServer, client: Redis) -> None:
    for number in range(40):
        client.xadd("s", {"n": str(number)})
    props = stream_props(redis, batch_size="3")
    found = run_source(RedisStreamSourceConnector, props, until=read(40), max_tasks=2)
    assert sorted(map(int, bodies(found))) == list(range(40))
    assert {record.source_partition["consumer"] for record in found} == {"consumer-0", "consumer-1"}
    assert client.xinfo_consumers("s", GROUP) == []


def test_entries_that_were_deleted_or_are_no_texts_hold_up_nothing(redis: RedisServer, client: Redis) -> None:
    client.xgroup_create("s", GROUP, "0", mkstream=True)
    gone = client.xadd("s", {"n": "1"})
    client.xreadgroup(GROUP, "consumer-9", {"s": ">"})
    client.xdel("s", gone)
    client.xadd("s", {"n": b"\xff"})
    client.xadd("s", {"n": "3"})
    props = stream_props(redis, redis_stream_claim_idle_ms="1000")

    def is_acknowledged(_: Any) -> bool:
        return client.xpending("s", GROUP)["pending"] == 0 and client.xinfo_groups("s")[0]["lag"] in (0, None)

    found = run_source(RedisStreamSourceConnector, props, until=is_acknowledged, tolerate_errors=True)
    assert bodies(found) == ["3"]


def test_a_group_that_is_gone_is_created_where_all_have_read(redis: RedisServer, client: Redis) -> None:
    offsets = StoredOffsets()
    client.xadd("s", {"n": "1"})
    assert bodies(run_source(RedisStreamSourceConnector, stream_props(redis), offsets=offsets, until=read(1))) == ["1"]
    client.xgroup_destroy("s", GROUP)
    client.xadd("s", {"n": "2"})
    assert bodies(run_source(RedisStreamSourceConnector, stream_props(redis), offsets=offsets, until=read(1))) == ["2"]


def test_a_stream_that_is_deleted_meanwhile_is_read_when_it_is_there_again(redis: RedisServer, client: Redis) -> None:
    with running_source(RedisStreamSourceConnector, stream_props(redis), StoredOffsets()) as (task,):
        client.xadd("s", {"n": "1"})
        wait_until("the entry is there", task.poll, PATIENCE)
        client.delete("s")
        with pytest.raises(RetriableError, match="gone"):
            task.task.poll()
        client.xadd("s", {"n": "2"})
        assert bodies(polled(task.task)) == ["2"]


def test_a_server_that_does_not_answer_is_asked_again(redis: RedisServer, client: Redis) -> None:
    client.xadd("s", {"n": "1"})
    with running_source(RedisStreamSourceConnector, stream_props(redis), StoredOffsets()) as (task,):
        with redis.down(), pytest.raises(RetriableError):
            task.task.poll()
        assert bodies(polled(task.task)) == ["1"]


def test_keys_of_every_type(redis: RedisServer, client: Redis) -> None:
    client.set("string", "v", ex=100)
    client.hset("hash", mapping={"a": "1"})
    client.rpush("list", "b", "a")
    client.sadd("set", "b", "a")
    client.zadd("zset", {"a": 1.5, "b": 1.5})
    client.xadd("stream", {"a": "1"})
    found = run_source(RedisKeysSourceConnector, {"redis.uri": redis.uri}, until=read(6))
    values = {record.key: record.value for record in found}
    own = {key: value[key] for key, value in values.items() if key in value}
    assert own == {
        "string": "v",
        "hash": {"a": "1"},
        "list": ["b", "a"],
        "set": ["a", "b"],
        "zset": {"a": 1.5, "b": 1.5},
    }
    assert 0 < values["string"]["ttl"] <= 100_000
    assert (values["hash"]["ttl"], values["stream"]["type"]) == (-1, "stream")


@pytest.mark.parametrize("mode", ["LIVE", "LIVEONLY"])
def test_changes_of_keys(mode: str, redis: RedisServer, client: Redis) -> None:
    client.set("k:before", "1")
    props = {"redis.uri": redis.uri, "redis.keys.pattern": "k:*", "mode": mode, "topic": "keys"}
    with running_source(RedisKeysSourceConnector, props, StoredOffsets()) as (task,):
        found: list[SourceRecord] = []

        def has(*keys: str) -> bool:
            found.extend(task.poll())
            return set(keys) <= {record.key for record in found}

        if mode == "LIVE":
            wait_until("the key is there", lambda: has("k:before"), PATIENCE)
        else:
            task.poll()
        client.set("k:after", "2")
        client.set("other", "3")
        wait_until("the change is there", lambda: has("k:after"), PATIENCE)
        client.delete("k:after")
        wait_until(
            "the deletion is there",
            lambda: (task.poll() and False) or any(_is_gone(each) for each in found + task.records),
        )
        assert {record.key for record in found} == ({"k:before", "k:after"} if mode == "LIVE" else {"k:after"})


def _is_gone(record: SourceRecord) -> bool:
    return bool(record.value["type"] == "none" and record.value["ttl"] == -2)


def test_a_connection_that_broke_is_followed_by_a_scan(redis: RedisServer, client: Redis) -> None:
    with running_source(RedisKeysSourceConnector, {"redis.uri": redis.uri}, StoredOffsets()) as (task,):
        task.poll()
        client.set("k", "1")
        wait_until("the key is there", lambda: "k" in {record.key for record in task.poll()}, PATIENCE)
        with redis.down(), pytest.raises(RetriableError):
            task.task.poll()
        client.config_set("notify-keyspace-events", "KEA")
        wait_until("it is there again", lambda: "k" in {record.key for record in task.poll()}, PATIENCE)
        gaps = {measured.name: measured.value for measured in task.task.measurements()}["redis_key_gaps_total"]
        assert gaps == 1


def test_a_connection_that_the_network_has_lost_is_noticed(redis: RedisServer, client: Redis) -> None:
    port = own_port()
    with closing(Proxy({port: redis.port})) as network:
        props = {"redis.uri": f"redis://127.0.0.1:{port}", "redis.timeout": "1"}
        with running_source(RedisKeysSourceConnector, props, StoredOffsets()) as (task,):
            task.poll()
            network.stall(port)
            client.set("k", "1")
            wait_until("it is noticed", lambda: _is_waiting(task.task), PATIENCE)
            network.heal(port)
            wait_until("all keys are read", lambda: "k" in {record.key for record in task.poll()}, PATIENCE)


def _is_waiting(task: Any) -> bool:
    try:
        task.poll()
    except RetriableError:
        return True
    return False


def test_a_server_that_does_not_tell_of_changes_is_refused(redis: RedisServer, client: Redis) -> None:
    client.config_set("notify-keyspace-events", "")
    props: Mapping[str, str] = {"redis.uri": redis.uri}
    values = RedisKeysSourceConfig.validate(props)
    (problem,) = [error for value in values for error in value.errors]
    assert "CONFIG SET notify-keyspace-events KEA" in problem
    with pytest.raises(ConnectError, match="notify-keyspace-events"):
        run_source(RedisKeysSourceConnector, props, until=read(1))
