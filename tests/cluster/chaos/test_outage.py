"""A cluster all of whose workers are killed, in the middle of a commit of a task or of the broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect.internals.crash import CRASH_POINT_VARIABLE
from equipment.brokers.forgotten_marker import forget_last_marker
from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(240)]

LONG_MS = "600000"
"""Kafka aborts what is left open only after the test has given up."""


@pytest.mark.thorough
def test_a_cluster_comes_back_although_a_transaction_was_left_open(
    cluster: Callable[..., Cluster], bootstrap: str, topic: str, tmp_path: Path
) -> None:
    only = cluster(1, exactly_once_source_support="enabled")
    worker = only.workers[0]
    create_topic(bootstrap, f"{topic}-0")
    (tmp_path / "in-0").write_text("one\ntwo\n")
    worker.start({CRASH_POINT_VARIABLE: "after-offsets"})
    only.start().create(
        "files", "Files", file=str(tmp_path / "in"), topic=topic, producer_override_transaction_timeout_ms=LONG_MS
    )
    wait_until("the task is killed", lambda: "without having said why" in worker.log())
    worker.kill()
    only.start().wait_until_all_run()
    wait_until("all is there", lambda: len(read_topic(bootstrap, f"{topic}-0")) == 2)


def test_a_cluster_comes_back_although_the_broker_forgot_to_end_transactions(
    mortal: ProxiedBroker, tmp_path: Path
) -> None:
    """Kafka has decided them, and so ends them no more: what is behind them could not be read for ever."""
    only = Cluster(
        tmp_path / "exact", mortal.bootstrap, 1, exactly_once_source_support="enabled", offset_storage_partitions="1"
    )
    create_topic(mortal.bootstrap, "lines-0")
    lines = tmp_path / "in-0"
    lines.write_text("one\ntwo\n")

    def arrived() -> list[str]:
        return [message.value().decode() for message in read_topic(mortal.bootstrap, "lines-0")]

    try:
        only.start().create("files", "Files", file=str(tmp_path / "in"), topic="lines")
        wait_until("two lines are there", lambda: arrived() == ["one", "two"])
        only.workers[0].kill()
        mortal.kill()
        for topic in ("exact-config", "exact-offset"):
            forget_last_marker(mortal.log_of(topic))
        mortal.start()
        only.start().wait_until_all_run()
        with lines.open("a") as stream:
            stream.write("three\n")
        wait_until("the third is there, and none twice", lambda: arrived() == ["one", "two", "three"])
    finally:
        only.close()
