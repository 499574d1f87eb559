"""Tasks are killed at the points that matter, and their successors find each record once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from connect.internals.crash import CRASH_POINT_VARIABLE
from connect.testing import run_sink, run_source
from connect.testing.offsets import StoredOffsets
from connect.testing.samples import sink_records
from connectors.redis import RedisSinkConnector, RedisStreamSourceConnector
from equipment.proofs import thorough
from equipment.servers.redis import RedisServer

pytestmark = pytest.mark.integration

_SECONDS: Final = 180
_SINK: Final = """
import json, sys
from connect.testing import run_sink
from connect.testing.samples import sink_records
from connectors.redis import RedisSinkConnector
records = sink_records([{"n": number} for number in range(12)], topic="entries")
run_sink(RedisSinkConnector, json.loads(sys.argv[1]), records, batch_size=3)
"""
_EMPTIED: Final = """
import json, sys
from connect.testing.samples import sink_records
from connect.testing.sink_run import SinkTaskRun, TopicLog
from connectors.redis import RedisSinkTask
from redis import Redis
records = sink_records([{"n": number} for number in range(12)], topic="entries")
log = TopicLog(record.replace(key=str(record.original_offset)) for record in records)
props = json.loads(sys.argv[1])
run = SinkTaskRun(RedisSinkTask, props, log)
run.start(log.partitions)
run.put(3)
run.commit()
Redis.from_url(props["redis.uri"]).flushall()
while run.put(1):
    pass
"""
_SOURCE: Final = """
import json, sys
from connect.testing.source_run import running_source
from connect.testing.offsets import StoredOffsets
from connectors.redis import RedisStreamSourceConnector
offsets = StoredOffsets()
with running_source(RedisStreamSourceConnector, json.loads(sys.argv[1]), offsets) as (task,):
    stored = task.task.stored
    def told(pairs):
        # The runtime has stored an offset, and Kafka has the entries, before it says so.
        for partition, offset in pairs:
            print(json.dumps([partition, offset]), flush=True)
        stored(pairs)
    task.task.stored = told
    while len(task.records) < 12:
        for record in task.poll():
            print(json.dumps(record.value["body"]["n"]), flush=True)
"""


def killed(program: str, props: dict[str, str], point: str) -> list[str]:
    """Run a program until it is killed at a point, and return the lines that it has printed."""
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(props)],
        env={**os.environ, CRASH_POINT_VARIABLE: point, "PYTHONPATH": f"{root}:{root / 'tests'}"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "point",
    ["redis-sink-after-exec:2", *thorough("redis-sink-before-exec:2", "redis-sink-before-commit")],
)
def test_a_stream_has_each_record_once(point: str, redis: RedisServer) -> None:
    props = {"name": "entries", "redis.uri": redis.uri}
    killed(_SINK, props, point)
    records = sink_records([{"n": number} for number in range(12)], topic="entries")
    run_sink(RedisSinkConnector, props, records, batch_size=3)
    with redis.client() as client:
        assert Counter(fields["n"] for _, fields in client.xrange("entries")) == {str(n): 1 for n in range(12)}


@pytest.mark.thorough
def test_without_transactions_what_was_not_committed_is_doubled(redis: RedisServer) -> None:
    props = {"name": "entries", "redis.uri": redis.uri, "redis.multiexec": "false"}
    killed(_SINK, props, "redis-sink-after-pipeline:2")
    records = sink_records([{"n": number} for number in range(12)], topic="entries")
    run_sink(RedisSinkConnector, props, records, batch_size=3)
    with redis.client() as client:
        found = Counter(fields["n"] for _, fields in client.xrange("entries"))
    assert found == {str(number): 2 if 3 <= number < 6 else 1 for number in range(12)}


def test_a_kill_just_after_redis_was_emptied_hides_nothing(redis: RedisServer) -> None:
    """The offsets in Redis are not moved on before it is seen that what is before them is gone."""
    props = {"name": "entries", "redis.uri": redis.uri, "redis.type": "STRING"}
    killed(_EMPTIED, props, "redis-sink-after-offsets:2")
    records = sink_records([{"n": number} for number in range(12)], topic="entries")
    run_sink(RedisSinkConnector, props, [record.replace(key=str(record.original_offset)) for record in records])
    with redis.client() as client:
        assert len(client.keys("entries:*")) == 12


@pytest.mark.parametrize(
    "point", ["redis-source-before-ack:2", *thorough("redis-source-after-read:2", "redis-source-after-ack:2")]
)
def test_entries_are_published_once_and_acknowledged(point: str, redis: RedisServer) -> None:
    with redis.client() as client:
        for number in range(12):
            client.xadd("s", {"n": str(number)})
    props = {"redis.uri": redis.uri, "redis.stream.name": "s", "redis.stream.block": "10", "batch.size": "3"}
    lines = [json.loads(line) for line in killed(_SOURCE, props, point)]
    offsets = StoredOffsets()
    for partition, offset in (line for line in lines if isinstance(line, list)):
        offsets.put(partition, offset)
    with redis.client() as client:
        # What Kafka has is what was stored.
        ends = [line[1]["offset"] for line in lines if isinstance(line, list)]
        kept = [fields["n"] for key, fields in client.xrange("s") if ends and key <= ends[-1]]
        found = run_source(RedisStreamSourceConnector, props, offsets=offsets, timeout=_SECONDS)
        assert kept + sorted((record.value["body"]["n"] for record in found), key=int) == [str(n) for n in range(12)]
        assert client.xpending("s", "kafka-consumer-group")["pending"] == 0
