"""The queries of two public dashboards find their series in the scrape of a running worker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from equipment.scrapes import Scrape
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import PATIENT

pytestmark = pytest.mark.cluster

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributedWorker]:
    """A worker of a cluster with a source, a sink that follows it, and a sink that has failed."""
    folder = tmp_path_factory.mktemp("dashboards")
    worker = DistributedWorker(folder, bootstrap, **PATIENT, **LONG_SESSIONS).start()
    try:
        (folder / "in.txt").write_text("1\n2\nthree\n")
        topic = folder.name
        statistics = {"statistics.interval.ms": "200"}
        _create(worker, "source", {
            "connector.class": "FileStreamSource", "file": str(folder / "in.txt"), "topic": topic,
            **{f"producer.override.{key}": value for key, value in statistics.items()},
        })  # fmt: skip
        _create(worker, "sink", {
            "connector.class": "FileStreamSink", "file": str(folder / "out.txt"), "topics": topic,
            **{f"consumer.override.{key}": value for key, value in statistics.items()},
        })  # fmt: skip
        _create(worker, "failed", {
            "connector.class": "FileStreamSink", "file": str(folder / "no.txt"), "topics": topic,
            "value.converter": "JsonConverter",
        })  # fmt: skip
        worker.wait_for_states("source", "RUNNING", "RUNNING")
        worker.wait_for_states("sink", "RUNNING", "RUNNING")
        worker.wait_for_states("failed", "RUNNING", "FAILED")
        yield worker
    finally:
        worker.close()


def _create(worker: DistributedWorker, name: str, config: dict[str, str]) -> None:
    made = requests.post(f"{worker.url()}connectors", json={"name": name, "config": config}, timeout=60)
    assert made.status_code == 201, made.text


def scrape(worker: DistributedWorker, dialect: str) -> Scrape:
    answer = worker.get(f"metrics?format={dialect}")
    assert answer.status_code == 200, answer.text
    return Scrape(answer.text)


@pytest.mark.parametrize("dialect", ["strimzi", "confluent"])
def test_every_query_finds_its_series(worker: DistributedWorker, dialect: str) -> None:
    lines = (DATA / f"{dialect}.txt").read_text().splitlines()
    selectors = [line for line in lines if line and not line.startswith("#")]

    def missing() -> list[str]:
        # Means are of the last thirty seconds: something has to move.
        with (worker.folder / "in.txt").open("a") as file:
            file.write("more\n")
        found = scrape(worker, dialect)
        return [selector for selector in selectors if not found.answers(selector)]

    try:
        wait_until("each selector finds a series", lambda: not missing(), 60)
    except AssertionError as error:
        raise AssertionError(f"{error}: none for {', '.join(missing())}") from None


def test_the_numbers_are_those_of_the_records(worker: DistributedWorker) -> None:
    lines = len((worker.folder / "in.txt").read_text().splitlines())

    def counted() -> bool:
        found = scrape(worker, "strimzi")
        return (
            found.named("kafka_connect_source_task_source_record_write_total", connector="source") == [lines]
            and found.named("kafka_connect_sink_task_sink_record_send_total", connector="sink") == [lines]
            and found.named("sluice_sink_record_lag", connector="sink") == [0]
            and found.named("sluice_record_latency_seconds_count", connector="source") != []
            and found.named("sluice_record_latency_seconds_count", connector="sink") != []
            and found.named("kafka_connect_sink_task_offset_commit_completion_total", connector="sink") != []
            and found.named("kafka_consumer_fetch_manager_records_lag", clientid="connector-consumer-sink-0") != []
        )

    wait_until("everything is counted", counted, 60)
    found = scrape(worker, "strimzi")
    assert found.labels("kafka_connect_connector_status") == [
        {"connector": name, "status": "running"} for name in ("failed", "sink", "source")
    ]
    assert found.named("kafka_connect_task_error_total_record_errors", connector="failed") == [1]
    assert found.named("kafka_connect_task_error_last_error_timestamp", connector="failed")[0] <= time.time() * 1000
    assert found.named("sluice_process_cpu_seconds_total", connector="sink", task="0")[0] > 0
    assert found.named("sluice_failures_total", connector="failed", task="0") == [1]
