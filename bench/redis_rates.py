"""Measures how fast the Redis connectors move records, compared with the bare client on the same server.

``python bench/redis_rates.py [RECORDS]``: records of six fields on a topic become strings, hashes and entries of a
stream (at least once, and exactly once), and the entries of a stream are published. The ceilings are redis-py's:
pipelines of as many commands whose arguments are in memory, and reads of a consumer group that are acknowledged. The
server forgets its data with its process: its disk is not what is measured. CPU seconds are those of the worker,
including its start, whose cost is that of a run with few records.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from standalone import Bench, Measured, show, show_title

_ROOT = Path(__file__).parent.parent
# The benchmark modules have the names of packages, and would be found first.
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from own_broker import own_broker
from redis import Redis

from equipment.servers.redis import RedisServer, redis_server
from worker.embedded.broker.server import BrokerConfig

_BATCH = 500
_TOPIC = "orders"
_FEW = 100
_FEW_TOPIC = "few-orders"
_STRINGS = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
_JSON = {
    "key.converter": "StringConverter",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
}
_Command = tuple[str | int, ...]


def main() -> None:
    """Measure and print."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(own_broker(BrokerConfig(folder=folder / "broker", port=0)))
        server = stack.enter_context(redis_server("--appendonly", "no"))
        client = stack.enter_context(server.client())
        _fill(broker.bootstrap_servers, records)
        bench = Bench(folder, broker.bootstrap_servers, records)
        _measure_sink(bench, server, client)
        _measure_source(bench, server, client)


def _measure_sink(bench: Bench, server: RedisServer, client: Redis) -> None:
    show_title("topic to Redis")
    sink = {"connector.class": "RedisSink", "topics": _TOPIC, "redis.uri": server.uri}
    start = bench.sluice("RedisSink, few", {**sink, "topics": _FEW_TOPIC, "redis.type": "STRING"}, _STRINGS, _FEW)
    kinds: tuple[tuple[str, Callable[[int], _Command], dict[str, str], dict[str, str]], ...] = (
        ("SET", lambda number: ("SET", f"c:{number}", json.dumps(_order(number))), {"redis.type": "STRING"}, _STRINGS),
        ("HSET", lambda number: ("HSET", f"c:{number}", *_fields(number)), {"redis.type": "HASH"}, _JSON),
        ("XADD", lambda number: ("XADD", "c", "*", *_fields(number)), {"redis.multiexec": "false"}, _JSON),
        ("XADD, exactly once", lambda number: ("XADD", "c", "*", *_fields(number)), {}, _JSON),
    )
    for name, command, props, converters in kinds:
        client.flushall()
        ceiling = _written(bench.records, client, f"redis-py: {name}", command)
        show(ceiling, ceiling)
        client.flushall()
        show(bench.sluice(f"RedisSink, {name}", {**sink, **props}, converters), ceiling, start)
        found = client.xlen(_TOPIC) if name.startswith("XADD") else client.dbsize()
        assert found >= bench.records, f"{found} of {bench.records}"


def _measure_source(bench: Bench, server: RedisServer, client: Redis) -> None:
    show_title("Redis to topic")
    client.flushall()
    for stream, count in (("few", _FEW), ("entries", bench.records)):
        for batch in _batches(count):
            with client.pipeline(transaction=False) as pipe:
                for number in batch:
                    pipe.execute_command("XADD", stream, "*", *_fields(number))
                pipe.execute()
    source = {"connector.class": "RedisStreamSource", "redis.uri": server.uri}
    start = bench.sluice("RedisStreamSource, few", {**source, "redis.stream.name": "few"}, _JSON, _FEW)
    ceiling = _timed("redis-py: XREADGROUP, XACK", bench.records, lambda: _read(client))
    show(ceiling, ceiling)
    show(bench.sluice("RedisStreamSource", {**source, "redis.stream.name": "entries"}, _JSON), ceiling, start)


def _order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": f"customer {number % 1000}",
        "note": f"the note of order {number} is some fifty characters long",
        "amount": number / 7,
        "paid": number % 2 == 0,
        "items": number % 10,
    }


def _fields(number: int) -> list[str]:
    return [str(part) for item in _order(number).items() for part in item]


def _fill(bootstrap: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(records):
        value = json.dumps(_order(number)).encode()
        for topic in (_TOPIC, _FEW_TOPIC) if number < _FEW else (_TOPIC,):
            producer.produce(topic, value, key=str(number))
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def _batches(records: int) -> Iterator[range]:
    for first in range(0, records, _BATCH):
        yield range(first, min(first + _BATCH, records))


def _written(records: int, client: Redis, name: str, command: Callable[[int], _Command]) -> Measured:
    """Return the time that pipelines take, without the time for making their commands."""
    seconds = cpu = 0.0
    for batch in _batches(records):
        commands = [command(number) for number in batch]
        started, cpu_started = time.perf_counter(), time.process_time()
        with client.pipeline(transaction=False) as pipe:
            for each in commands:
                pipe.execute_command(*each)
            pipe.execute()
        seconds += time.perf_counter() - started
        cpu += time.process_time() - cpu_started
    return Measured(name, records, seconds, cpu)


def _timed(name: str, records: int, run: Callable[[], int]) -> Measured:
    started, cpu_started = time.perf_counter(), time.process_time()
    assert run() == records
    return Measured(name, records, time.perf_counter() - started, time.process_time() - cpu_started)


def _read(client: Redis) -> int:
    client.xgroup_create("entries", "bare", "0")
    count = 0
    while answer := client.xreadgroup("bare", "one", {"entries": ">"}, count=_BATCH):
        ((_, entries),) = answer
        client.xack("entries", "bare", *(key for key, _ in entries))
        count += len(entries)
    return count


if __name__ == "__main__":
    main()
