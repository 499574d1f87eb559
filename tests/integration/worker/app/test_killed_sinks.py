"""Sinks after a kill: their records flow again at once, although the group still has the consumer that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from equipment.brokers.topics import create_topic, produce
from equipment.proofs import thorough
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]

LONG_SESSION = {"consumer_session_timeout_ms": "300000", "consumer_heartbeat_interval_ms": "3000"}
"""Longer than any test waits: whoever waits for the session of a killed member fails."""

ZOMBIE = """
import sys
from confluent_kafka import Consumer, KafkaException, TopicPartition

bootstrap, group, client, topic = sys.argv[1:]
settings = {"group.id": group, "client.id": client, "session.timeout.ms": 300000, "enable.auto.commit": False}
consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
consumer.subscribe([topic], on_revoke=lambda *_: None, on_lost=lambda *_: None)
while not consumer.assignment():
    consumer.poll(0.1)
print("joined", flush=True)
sys.stdin.readline()
try:
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    print("committed", flush=True)
except KafkaException as error:
    print(error.args[0].name(), flush=True)
"""


def texts(out: Path) -> list[str]:
    return out.read_text().split() if out.exists() else []


@pytest.mark.parametrize("isolation", ["shared", *thorough("process")])
def test_records_flow_at_once_after_a_kill(
    standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str, isolation: str
) -> None:
    """kill -9 of the worker of a sink with two tasks: neither waits for a member that was killed."""
    create_topic(bootstrap, topic, 2)
    out = tmp_path / "out"
    worker = standalone(task_isolation=isolation, **LONG_SESSION)
    sink = {"connector_class": "FileStreamSink", "file": str(out), "topics": topic, "tasks_max": "2"}
    worker.connector(topic, **sink)
    worker.start()
    for partition in (0, 1):
        produce(bootstrap, topic, [b"before%d" % partition], partition)
    wait_until("records arrive", lambda: set(texts(out)) == {"before0", "before1"}, 120)
    worker.kill()
    for partition in (0, 1):
        produce(bootstrap, topic, [b"after%d" % partition], partition)
    started = time.monotonic()
    worker.start()
    wait_until("records arrive again", lambda: {"after0", "after1"} <= set(texts(out)), 120)
    print(f"records flow {time.monotonic() - started:.1f} s after the restart")
    assert set(texts(out)) == {"before0", "before1", "after0", "after1"}
    assert worker.terminate() == 0


def test_a_zombie_commits_no_more(standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str) -> None:
    """A former consumer of the task that was frozen, and continues when its successor has its partition."""
    create_topic(bootstrap, topic)
    out = tmp_path / "out"
    script = [sys.executable, "-c", ZOMBIE, bootstrap, f"connect-{topic}", f"connector-consumer-{topic}-0", topic]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as zombie:
        assert zombie.stdin is not None
        assert zombie.stdout is not None
        try:
            assert zombie.stdout.readline() == "joined\n"
            os.kill(zombie.pid, signal.SIGSTOP)
            worker = standalone(**LONG_SESSION)
            worker.connector(topic, connector_class="FileStreamSink", file=str(out), topics=topic)
            worker.start()
            produce(bootstrap, topic, [b"one", b"two"])
            wait_until("records arrive", lambda: texts(out) == ["one", "two"], 120)
            os.kill(zombie.pid, signal.SIGCONT)
            zombie.stdin.write("\n")
            zombie.stdin.flush()
            refused = zombie.stdout.readline().strip()
        finally:
            zombie.kill()
    assert refused == "UNKNOWN_MEMBER_ID"
    assert worker.terminate() == 0


def test_consumers_of_others_stay_in_the_group(
    standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str
) -> None:
    """With a ``client.id`` of the user's, nobody can tell whose a member is: the task waits for it."""
    create_topic(bootstrap, topic)
    group, own = f"connect-{topic}", f"own-{topic}"
    script = [sys.executable, "-c", ZOMBIE, bootstrap, group, own, topic]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        try:
            assert other.stdout.readline() == "joined\n"
            worker = standalone(connector_client_config_override_policy="All")
            sink = {"connector_class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": topic}
            worker.connector(topic, **sink, **{"consumer.override.client.id": own})
            worker.start().wait_for_states(topic, "RUNNING", "RUNNING")
            produce(bootstrap, topic, [b"one", b"two"])
            other.stdin.write("\n")
            other.stdin.flush()
            assert other.stdout.readline() == "committed\n"
        finally:
            other.kill()
    assert worker.terminate() == 0
