"""``sluice status``: a worker or cluster at a glance."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import click

from worker.cli.options import client_of, refusals_shown, url_option
from worker.cli.output import Output, columns, output_option, print_document
from worker.cli.states import Failure, failures, summed

__all__ = ["status"]

SOMETHING_FAILED: Final = 3
_VERSION: Final = "sluice-"


@click.command()
@url_option
@output_option
def status(url: str, output: Output) -> None:
    """Show a cluster: its workers, how many connectors and tasks there are, and why what failed did so.

    Exit status: 0 nothing has failed, 1 no worker answers, 3 a connector or task has failed.
    """
    client = client_of(url)
    with refusals_shown(client):
        worker = client.get("/")
        views = client.get("/connectors", expand="status")
    statuses = [view["status"] for _, view in sorted(views.items()) if "status" in view]
    failed = [failure for each in statuses for failure in failures(each)]
    document = {
        "url": client.url,
        "version": worker["commit"].removeprefix(_VERSION),
        "kafka_cluster_id": worker["kafka_cluster_id"],
        "workers": _workers(statuses),
        "connectors": dict(Counter(each["connector"]["state"] for each in statuses)),
        "tasks": dict(Counter(task["state"] for each in statuses for task in each["tasks"])),
        "failed": [_shown(failure) for failure in failed],
    }
    print_document(document, output, lambda: _report(document, statuses, failed))
    if failed:
        sys.exit(SOMETHING_FAILED)


def _workers(statuses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each worker runs. One that runs nothing is in no status, so that nobody knows it by these."""
    found = sorted({part["worker_id"] for each in statuses for part in _parts(each) if part["worker_id"]})
    return [
        {
            "worker_id": worker_id,
            "connectors": sum(each["connector"]["worker_id"] == worker_id for each in statuses),
            "tasks": sum(task["worker_id"] == worker_id for each in statuses for task in each["tasks"]),
        }
        for worker_id in found
    ]


def _parts(each: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield each["connector"]
    yield from each["tasks"]


def _shown(failure: Failure) -> dict[str, Any]:
    return {
        "connector": failure.connector,
        "task": failure.task,
        "worker_id": failure.worker_id,
        "cause": failure.cause,
    }


def _report(document: dict[str, Any], statuses: list[dict[str, Any]], failed: list[Failure]) -> str:
    tasks = [task["state"] for each in statuses for task in each["tasks"]]
    lines = [
        f"Sluice {document['version']} at {document['url']}, Kafka cluster {document['kafka_cluster_id']}",
        f"Connectors  {summed(each['connector']['state'] for each in statuses)}",
        f"Tasks       {summed(tasks)}",
    ]
    if document["workers"]:
        rows = [tuple(worker.values()) for worker in document["workers"]]
        lines += ["", columns(("WORKER", "CONNECTORS", "TASKS"), rows)]
    if failed:
        failed_rows = [(failure.connector, failure.task, failure.worker_id, failure.cause) for failure in failed]
        lines += ["", columns(("FAILED", "TASK", "WORKER", "CAUSE"), failed_rows, cut=True)]
        lines += ["", f"The whole trace: sluice connectors show {failed[0].connector}"]
    return "\n".join(lines)
