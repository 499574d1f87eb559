"""The REST API answers the calls that were recorded of Kafka Connect 4.3.1 in distributed mode as that did."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
import requests
from rest_differences import BY_CALL, DISTRIBUTED_BY_CALL
from rest_replay import JAVA, Answer, Call, Replay, calls, prepare

from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

CALLS: Final = calls("distributed.jsonl", "distributed-more.jsonl", differences=DISTRIBUTED_BY_CALL)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def answers(
    broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Replay, list[Answer]]]:
    """Our answers to all the calls, made one after the other as they were recorded.

    The broker is this worker's own: names of topics and connectors are the recorded ones, which others use as well.
    """
    folder = tmp_path_factory.mktemp("rest-distributed")
    data = folder / "data"
    with EmbeddedBroker(BrokerConfig(folder=folder / "broker", port=0)).lease() as broker:
        prepare(broker.bootstrap_servers, data)
        worker = DistributedWorker(
            folder / "worker",
            broker.bootstrap_servers,
            key_converter=f"{JAVA}connect.json.JsonConverter",
            value_converter=f"{JAVA}connect.json.JsonConverter",
            offset_flush_interval_ms="500",
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


def test_connectors_are_created_at_once(answers: tuple[Replay, list[Answer]]) -> None:
    url = answers[0].url

    def create(number: int) -> int:
        config = {"connector.class": "FileStreamSource", "file": "/nowhere", "topic": "truth-p"}
        body = {"name": f"par{number}", "config": config}
        return requests.post(f"{url}connectors", json=body, timeout=60).status_code

    with ThreadPoolExecutor(8) as clients:
        assert list(clients.map(create, range(8))) == [201] * 8, "as recorded: none is refused for another"


def test_every_difference_is_of_a_call() -> None:
    named = {call.name for call in CALLS} | {f"{call.number}-{call.name}" for call in CALLS}
    assert DISTRIBUTED_BY_CALL.keys() <= named


def test_distributed_mode_has_fewer_differences() -> None:
    in_both = {call.name for call in calls("standalone.jsonl", differences={})}
    assert DISTRIBUTED_BY_CALL.keys() & in_both < BY_CALL.keys(), (
        "the one herder answers as that of distributed mode does"
    )
