"""A gap is marked once, and records after it arrive once, whatever is killed while the mark is in an open transaction.

Crash points: the mark and the throttled records after it share a transaction that was not committed when the task or
its worker was killed. The successor fences it, finds the gap again from the stored offset, and marks it again.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from confluent_kafka import TopicPartition

from equipment.brokers.topics import admin_client, create_topic, produce, read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from worker.embedded.broker.server import BrokerInfo

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(600)]

SECONDS: Final = 90.0
BEFORE: Final = [b"0", b"1"]
AFTER: Final = [b"%03d" % number * 300 for number in range(10)]
RATE: Final = "3000"
"""Bytes a second: several polls read what comes after the gap."""


def _config(source: str, target: str, topic: str, boundary: str) -> dict[str, str]:
    return {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": topic,
        "target.cluster.alias": f"{topic}-target",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "topics": topic,
        # The clusters have those of other tests.
        "heartbeats.replication.enabled": "false",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "source.consumer.max.poll.records": "2",
        "mirror.gap.policy": "mark",
        "mirror.bytes.per.second": RATE,
        "transaction.boundary": boundary,
        # Longer than the test: only a stop commits.
        "transaction.boundary.interval.ms": "600000",
        "producer.override.transaction.timeout.ms": "600000",
        "restart.policy": "on-failure",
        "restart.backoff.ms": "100",
    }


def _put(worker: DistributedWorker, config: dict[str, str]) -> None:
    requests.put(f"{worker.url()}connectors/mirror/config", json=config, timeout=60).raise_for_status()


def _boundary(worker: DistributedWorker) -> str:
    (task,) = worker.get("connectors/mirror/tasks").json()
    return str(task["config"]["transaction.boundary"])


def _values(messages: list[Any]) -> list[bytes]:
    return [message.value() for message in messages]


@pytest.mark.thorough
@pytest.mark.parametrize("victims", [["task"], ["worker", "task"]], ids=" and ".join)
def test_a_gap_is_marked_once_whatever_is_killed_before_the_commit(
    tmp_path: Path, bootstrap: str, second_broker: BrokerInfo, topic: str, victims: list[str]
) -> None:
    source, target = second_broker.bootstrap_servers, bootstrap
    remote, gaps = f"{topic}.{topic}", f"mm2-gaps.{topic}.internal"
    create_topic(source, topic)
    produce(source, topic, BEFORE)
    worker = DistributedWorker(
        tmp_path / topic,
        target,
        exactly_once_source_support="enabled",
        task_isolation="process",
        # Its work is not taken from it while the machine stalls, and it has it back at once when it is killed.
        group_instance_id="gaps",
        session_timeout_ms="120000",
    )

    def topics() -> Any:
        return admin_client(target).list_topics(timeout=30).topics

    def written(name: str, isolation: str = "read_committed") -> list[Any]:
        return read_topic(target, name, isolation=isolation) if name in topics() else []

    try:
        worker.start()
        _put(worker, _config(source, target, topic, "poll"))
        wait_until("the first records arrive", lambda: _values(written(remote)) == BEFORE, SECONDS)
        _put(worker, _config(source, target, topic, "interval"))
        # After a restart, a task begins with the configuration that was published last.
        wait_until("its task is to commit at a stop", lambda: _boundary(worker) == "interval", SECONDS)
        assert worker.terminate() == 0, worker.log()
        produce(source, topic, [b"gone", *AFTER])
        admin, place = admin_client(source), TopicPartition(topic, 0, 3)
        admin.delete_records([place])[place].result(30)

        worker.start()
        seen = len(BEFORE)
        for number, victim in enumerate(victims, start=1):
            wait_until(
                f"mark {number} and a record after it are in an open transaction",
                lambda number=number, seen=seen: (
                    len(written(gaps, "read_uncommitted")) == number and len(written(remote, "read_uncommitted")) > seen
                ),
                SECONDS,
            )
            assert (written(gaps), _values(written(remote))) == ([], BEFORE)
            seen = len(written(remote, "read_uncommitted"))
            if victim == "task":
                task = worker.task_pid("mirror")
                os.kill(task, signal.SIGKILL)
                wait_until("it is gone", lambda task=task: not Path(f"/proc/{task}").exists())
            else:
                worker.kill()
                worker.start()

        _put(worker, _config(source, target, topic, "poll"))
        wait_until("all records arrive", lambda: len(written(remote)) >= len(BEFORE + AFTER), SECONDS)
        assert worker.terminate() == 0, worker.log()
    finally:
        worker.close()
    assert _values(written(remote)) == BEFORE + AFTER
    marks = [json.loads(mark.value()) for mark in written(gaps)]
    assert [(mark["reason"], mark["first"], mark["last"], mark["next"]) for mark in marks] == [("expired", 2, 2, 3)]
