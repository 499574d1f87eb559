"""The REST API answers the calls that were recorded of Kafka Connect 4.3.1 in standalone mode as that did."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from rest_differences import BY_CALL
from rest_replay import JAVA, Replay, calls, prepare

from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

CALLS: Final = calls("standalone.jsonl", differences=BY_CALL)

pytestmark = pytest.mark.integration


def test_the_answers_are_as_recorded(broker_jars: tuple[Path, ...], tmp_path: Path, subtests: pytest.Subtests) -> None:
    """All the calls, made one after the other as they were recorded.

    The broker is this worker's own: the names of topics are the recorded ones, which others use as well.
    """
    data = tmp_path / "data"
    with EmbeddedBroker(BrokerConfig(folder=tmp_path / "broker", port=0)).lease() as broker:
        prepare(broker.bootstrap_servers, data)
        worker = StandaloneWorker(
            tmp_path / "worker",
            broker.bootstrap_servers,
            key_converter=f"{JAVA}connect.json.JsonConverter",
            value_converter=f"{JAVA}connect.json.JsonConverter",
            offset_flush_interval_ms="3000",
        ).start()
        try:
            wait_until("the worker answers", lambda: worker.get("health").status_code == 200, 60)
            Replay(worker, data).check(CALLS, subtests)
        finally:
            worker.close()


def test_every_difference_is_of_a_call() -> None:
    named = {call.name for call in CALLS} | {f"{call.number}-{call.name}" for call in CALLS}
    assert BY_CALL.keys() <= named
