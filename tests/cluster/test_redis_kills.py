"""From streams of Redis by topics to Redis, exactly once: workers, tasks and servers are killed meanwhile."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final
from uuid import uuid4

import pytest
from redis.exceptions import RedisError

from equipment.brokers.topics import create_topic
from equipment.servers.redis import RedisServer, redis_server
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster

# The contract, and the crash points of tests/integration, are in `make test`.
pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(1800)]

KILLS: Final = int(os.environ.get("SLUICE_REDIS_KILLS", "0")) or 3
VICTIMS: Final = ("worker", "stream server", "source", "sink", "target server", "strings")
PATIENCE: Final = 180.0
_JSON: Final = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
_TASKS: Final = 2


class Writer:
    """Adds numbered entries to a stream, through outages of the server; each number until it is acknowledged."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.count = 0

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _write(self) -> None:
        with self._server.client() as client:
            while not self._end.wait(0.005):
                try:
                    client.xadd("orders", {"number": str(self.count)})
                except RedisError:
                    # Whether it was added is seen in the stream, which is what counts in the end.
                    continue
                self.count += 1


class Pipeline:
    """A source of a stream, a sink that adds each entry to a stream, and one that sets a string for each."""

    def __init__(self, cluster: Cluster, origin: RedisServer, target: RedisServer, topic: str) -> None:
        self.cluster, self.origin, self.target, self.topic = cluster, origin, target, topic
        self.names = {kind: f"{kind}-{uuid4().hex[:8]}" for kind in ("source", "sink", "strings")}

    def start(self) -> None:
        self.cluster.create(
            self.names["source"],
            "com.redis.kafka.connect.RedisStreamSourceConnector",
            _TASKS,
            **_JSON,
            **{
                "redis.uri": self.origin.uri,
                "redis.stream.name": "orders",
                "batch.size": "20",
                "topic": self.topic,
            },
        )
        read = {
            "topics": self.topic,
            "redis.uri": self.target.uri,
            "consumer.override.isolation.level": "read_committed",
        }
        read |= {"consumer.override.max.poll.records": "20", "retry.backoff.ms": "200", **_JSON}
        sink = "com.redis.kafka.connect.RedisSinkConnector"
        self.cluster.create(self.names["sink"], sink, 1, **read, **{"redis.type": "STREAM", "redis.key": "copies"})
        self.cluster.create(
            self.names["strings"], sink, _TASKS, **read, **{"redis.type": "STRING", "redis.key": "string"}
        )

    def kill(self, victim: str) -> None:
        (worker,) = self.cluster.workers
        match victim:
            case "worker":
                worker.kill()
                self.cluster.start()
            case "stream server":
                with self.origin.down():
                    pass
            case "target server":
                with self.target.down():
                    pass
            case _:
                name = self.names[victim]
                os.kill(worker.task_pid(name), signal.SIGKILL)
                wait_until(f"the task of {name} has failed", lambda: "FAILED" in self._states(name), PATIENCE)
                for task, state in enumerate(self._states(name)):
                    if state == "FAILED":
                        self.cluster.ask("POST", f"connectors/{name}/tasks/{task}/restart")

    def _states(self, name: str) -> list[str]:
        return [str(task["state"]) for task in self.cluster.ask("GET", f"connectors/{name}/status")["tasks"]]

    def copied(self) -> int:
        try:
            with self.target.client() as client:
                return int(client.xlen("copies"))
        except RedisError:
            return 0

    def wait_for_more(self) -> None:
        """Wait until something arrives at the end."""
        before = self.copied()
        wait_until("entries arrive", lambda: self.copied() > before, PATIENCE)

    def check(self) -> None:
        """See that each entry of the stream is once in the other, and that there is a string of each."""
        with self.origin.client() as origin, self.target.client() as target:
            ids = [key for key, _ in origin.xrange("orders")]
            wait_until(f"all {len(ids)} entries are there", lambda: target.xlen("copies") >= len(ids), PATIENCE)
            copies = Counter(fields["id"] for _, fields in target.xrange("copies"))
            lost, doubled = set(ids) - copies.keys(), [key for key, times in copies.items() if times > 1]
            print(f"{len(ids)} entries, {len(lost)} lost, {len(doubled)} doubled")
            assert copies == Counter(ids)
            wait_until(
                "all strings are there", lambda: sum(1 for _ in target.scan_iter("string:*")) == len(ids), PATIENCE
            )
            # What is acknowledged is not read again.
            wait_until(
                "all is acknowledged",
                lambda: origin.xpending("orders", "kafka-consumer-group")["pending"] == 0,
                PATIENCE,
            )


@pytest.fixture(params=["durable", "forgetful"])
def pipeline(
    cluster: Callable[..., Cluster],
    own_redis: RedisServer,
    topic: str,
    bootstrap: str,
    request: pytest.FixtureRequest,
) -> Iterator[Pipeline]:
    workers = cluster(1, exactly_once_source_support="enabled").start()
    create_topic(bootstrap, topic, partitions=2)
    # A server that keeps nothing is empty when it comes back, and is filled again.
    with redis_server(*(("--appendonly", "no") if request.param == "forgetful" else ())) as target:
        made = Pipeline(workers, own_redis, target, topic)
        made.start()
        yield made


def test_each_entry_arrives_once_though_all_are_killed(pipeline: Pipeline) -> None:
    seed = int(os.environ.get("SLUICE_REDIS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"SLUICE_REDIS_SEED={seed}")
    chosen = random.Random(seed)
    writer = Writer(pipeline.origin)
    writer.start()
    pipeline.wait_for_more()
    victims = [*VICTIMS, *(chosen.choice(VICTIMS) for _ in range(KILLS))][:KILLS]
    for number, victim in enumerate(victims, 1):
        threading.Event().wait(chosen.random())
        pipeline.kill(victim)
        pipeline.wait_for_more()
        print(f"kill {number}: {victim}, {writer.count} entries, {pipeline.copied()} copied")
    writer.end()
    pipeline.check()
