"""The REST API answers the calls that were recorded of Kafka Connect 4.3.1 in standalone mode as that did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from rest_differences import BY_CALL
from rest_replay import JAVA, Answer, Call, Replay, calls, prepare

from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

CALLS: Final = calls("standalone.jsonl", differences=BY_CALL)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def answers(
    broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Replay, list[Answer]]]:
    """Our answers to all the calls, made one after the other as they were recorded.

    The broker is this worker's own: the names of topics are the recorded ones, and another process of the test run may
    make the same calls.
    """
    folder = tmp_path_factory.mktemp("rest")
    data = folder / "data"
    with EmbeddedBroker(BrokerConfig(folder=folder / "broker", port=0)).lease() as broker:
        prepare(broker.bootstrap_servers, data)
        worker = StandaloneWorker(
            folder / "worker",
            broker.bootstrap_servers,
            key_converter=f"{JAVA}connect.json.JsonConverter",
            value_converter=f"{JAVA}connect.json.JsonConverter",
            offset_flush_interval_ms="3000",
        ).start()
        try:
            wait_until("the worker answers", lambda: worker.get("health").status_code == 200, 60)
            replay = Replay(worker, data)
            yield replay, [replay.make(call) for call in CALLS]
        finally:
            worker.close()


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.number}-{call.name}")
def test_the_answer_is_as_recorded(call: Call, answers: tuple[Replay, list[Answer]]) -> None:
    replay, made = answers
    assert replay.told(call, made[call.number]) == replay.expected(call)


def test_every_difference_is_of_a_call() -> None:
    named = {call.name for call in CALLS} | {f"{call.number}-{call.name}" for call in CALLS}
    assert BY_CALL.keys() <= named
