"""The REST API answers the recorded calls as Kafka Connect 4.3.1 did, if the file connectors run in a JVM, too."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from rest_differences import JAVA_BY_CALL, JAVA_STANDALONE_BY_CALL
from rest_replay import JAVA, Replay, calls, distributed_worker, prepare

from equipment.waiting import wait_until
from equipment.workers.java_plugins import file_plugin
from equipment.workers.standalone import StandaloneWorker
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

CALLS: Final = calls("distributed.jsonl", "distributed-more.jsonl", differences=JAVA_BY_CALL)
STANDALONE: Final = calls("standalone.jsonl", differences=JAVA_STANDALONE_BY_CALL)
PATIENCE: Final = 60.0
OPTIONS: Final = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"

pytestmark = [pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(590)]


def test_the_answers_are_as_recorded(broker_jars: tuple[Path, ...], tmp_path: Path, subtests: pytest.Subtests) -> None:
    data = tmp_path / "data"
    plugins = str(file_plugin(tmp_path / "plugins"))
    with distributed_worker(tmp_path, data, plugin_path=plugins, java_plugins_jvm_options=OPTIONS) as worker:
        Replay(worker, data, engine="java", patience=PATIENCE).check(CALLS, subtests)


def test_the_answers_of_a_standalone_worker_are_as_recorded(
    broker_jars: tuple[Path, ...], tmp_path: Path, subtests: pytest.Subtests
) -> None:
    data = tmp_path / "data"
    with EmbeddedBroker(BrokerConfig(folder=tmp_path / "broker", port=0)).lease() as broker:
        prepare(broker.bootstrap_servers, data)
        worker = StandaloneWorker(
            tmp_path / "worker",
            broker.bootstrap_servers,
            key_converter=f"{JAVA}connect.json.JsonConverter",
            value_converter=f"{JAVA}connect.json.JsonConverter",
            offset_flush_interval_ms="10000",
            plugin_path=str(file_plugin(tmp_path / "plugins")),
            java_plugins_jvm_options=OPTIONS,
        ).start()
        try:
            wait_until("the worker answers", lambda: worker.get("health").status_code == 200, 60)
            Replay(worker, data, engine="java", patience=PATIENCE).check(STANDALONE, subtests)
        finally:
            worker.close()


def test_every_difference_is_of_a_call() -> None:
    named = {call.name for call in CALLS} | {f"{call.number}-{call.name}" for call in CALLS}
    assert JAVA_BY_CALL.keys() <= named
