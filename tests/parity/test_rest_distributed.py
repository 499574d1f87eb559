"""The REST API answers the calls that were recorded of Kafka Connect 4.3.1 in distributed mode as that did."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
import requests
from rest_differences import BY_CALL, DISTRIBUTED_BY_CALL
from rest_replay import Replay, calls, distributed_worker

CALLS: Final = calls("distributed.jsonl", "distributed-more.jsonl", differences=DISTRIBUTED_BY_CALL)

pytestmark = pytest.mark.integration


@pytest.mark.thorough
def test_the_answers_are_as_recorded(broker_jars: tuple[Path, ...], tmp_path: Path, subtests: pytest.Subtests) -> None:
    """All the calls, made one after the other as they were recorded, and then those that were made at once."""
    data = tmp_path / "data"
    with distributed_worker(tmp_path, data) as worker:
        Replay(worker, data).check(CALLS, subtests)
        with subtests.test("connectors are created at once"):
            assert created_at_once(worker.url()) == [201] * 8, "as recorded: none is refused for another"


def created_at_once(url: str) -> list[int]:
    """The statuses that answer the creation of 8 connectors at the same time."""

    def create(number: int) -> int:
        config = {"connector.class": "FileStreamSource", "file": "/nowhere", "topic": "truth-p"}
        body = {"name": f"par{number}", "config": config}
        return requests.post(f"{url}connectors", json=body, timeout=60).status_code

    with ThreadPoolExecutor(8) as clients:
        return list(clients.map(create, range(8)))


def test_every_difference_is_of_a_call() -> None:
    named = {call.name for call in CALLS} | {f"{call.number}-{call.name}" for call in CALLS}
    assert DISTRIBUTED_BY_CALL.keys() <= named


def test_distributed_mode_has_fewer_differences() -> None:
    in_both = {call.name for call in calls("standalone.jsonl", differences={})}
    assert DISTRIBUTED_BY_CALL.keys() & in_both < BY_CALL.keys(), (
        "the one herder answers as that of distributed mode does"
    )
