"""A cluster all of whose workers are killed, one of its tasks in the middle of a commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect.testing.crash import CRASH_POINT_VARIABLE
from equipment.cluster import Cluster
from equipment.topics import create_topic, read_topic
from equipment.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(240)]

LONG_MS = "600000"
"""Kafka aborts what is left open only after the test has given up."""


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
