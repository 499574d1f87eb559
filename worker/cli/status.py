"""``sluice status``: a worker or cluster at a glance."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from worker.cli.loads import load_lines
from worker.cli.options import TROUBLED, client_of, refusals_shown, troubles_of, url_option
from worker.cli.output import Long, Output, columns, output_option, print_document, state
from worker.cli.status_summary import (
    Failure,
    failures,
    lag_text,
    notices,
    summed,
    unknown_since,
    unknown_work,
    work_text,
)
from worker.metrics.work import Work, work_of

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["status"]

SOMETHING_FAILED: Final = TROUBLED
_VERSION: Final = "sluice-"
_TASKS: Final = ("TASK", "STATE", "LAG", "RECORDS/S", "WORKER")
_RATES: Final = ("sink-record-send-rate", "source-record-write-rate")


@click.command()
@click.argument("name", required=False)
@url_option
@output_option
def status(name: str | None, url: str, output: Output) -> None:
    """Show a cluster: its workers, the numbers of connectors and tasks, the causes of failures, and what waits, hangs
    or skips records.

    With NAME, show that connector: its tasks, their lag and throughput, and the loads of a bulk sink.

    Exit status: 0 nothing has failed, 1 no worker answers, 3 a connector or task has failed, or the worker has
    lost its cluster or its brokers.
    """
    client = client_of(url)
    if name is None:
        _show_cluster(client, output)
    else:
        _show_connector(client, name, output)


def _show_connector(client: RestClient, name: str, output: Output) -> None:
    with refusals_shown(client, name):
        shown = client.get(client.connector_path(name, "status"))
        loads = client.get(client.connector_path(name, "loads"))
    troubles = troubles_of(client)
    failed = failures(shown)
    print_document({"status": shown, "loads": loads}, output, lambda: _connector_report(shown, loads, failed))
    if failed or troubles:
        sys.exit(SOMETHING_FAILED)


def _connector_report(shown: dict[str, Any], loads: dict[str, Any], failed: list[Failure]) -> str:
    connector = shown["connector"]
    lines = [f"{shown['name']}, a {shown['type']}: {state(connector['state'])} on {connector['worker_id'] or '-'}"]
    if shown["tasks"]:
        lines += ["", columns(_TASKS, [_task_row(task) for task in shown["tasks"]])]
    if (work := work_of([task.get("metrics", {}) for task in shown["tasks"]])) is not None:
        lines += ["", f"Progress    {work_text(work)}"]
    lines += load_lines(loads["tasks"])
    for sentence in (*unknown_since(shown), *unknown_work(shown), *notices(shown)):
        lines += ["", _sentence(sentence)]
    for failure in failed:
        where = "The connector" if failure.task is None else f"Task {failure.task}"
        lines += ["", f"{where} failed: {failure.whole}"]
    if failed:
        lines += ["", f"The whole trace: sluice connectors show {shown['name']}"]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _task_row(task: dict[str, Any]) -> tuple[object, ...]:
    values = task.get("metrics", {})
    rate = next((values[key] for key in _RATES if key in values), None)
    return (
        task["id"],
        state(task["state"]),
        lag_text(task),
        None if rate is None else f"{rate:,.0f}",
        task["worker_id"] or None,
    )


def _show_cluster(client: RestClient, output: Output) -> None:
    with refusals_shown(client):
        worker = client.get("/")
        if "commit" not in worker:
            raise click.ClickException(f"What answers at {client.url} is not a Sluice or Kafka Connect worker.")
        views = client.get("/connectors", expand="status")
    troubles = troubles_of(client)
    statuses = [view["status"] for _, view in sorted(views.items()) if "status" in view]
    failed = [failure for each in statuses for failure in failures(each)]
    document = {
        "url": client.url,
        "version": worker["commit"].removeprefix(_VERSION),
        "kafka_cluster_id": worker["kafka_cluster_id"],
        "workers": _workers(statuses),
        "connectors": dict(Counter(each["connector"]["state"] for each in statuses)),
        "tasks": dict(Counter(task["state"] for each in statuses for task in each["tasks"])),
        "progress": [
            {"connector": each["name"], "done": work.done, "total": work.total, "unit": work.unit}
            for each, work in _under_way(statuses)
        ],
        "failed": [_shown(failure) for failure in failed],
        "notices": [{"connector": each["name"], "what": what} for each in statuses for what in notices(each)],
        "troubles": troubles,
    }
    print_document(document, output, lambda: _report(document, statuses, failed))
    if failed or troubles:
        sys.exit(SOMETHING_FAILED)


def _workers(statuses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what each worker runs. A worker without units appears in no status, so it is missing here."""
    found = sorted({part["worker_id"] for each in statuses for part in _parts(each) if part["worker_id"]})
    return [
        {
            "worker_id": worker_id,
            "connectors": sum(each["connector"]["worker_id"] == worker_id for each in statuses),
            "tasks": sum(task["worker_id"] == worker_id for each in statuses for task in each["tasks"]),
        }
        for worker_id in found
    ]


def _under_way(statuses: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Work]]:
    """Return the connectors that have a known amount of work left."""
    found = ((each, work_of([task.get("metrics", {}) for task in each["tasks"]])) for each in statuses)
    return [(each, work) for each, work in found if work is not None]


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
    if document["progress"]:
        works = [(each["name"], work_text(work)) for each, work in _under_way(statuses)]
        lines += ["", columns(("UNDER WAY", "PROGRESS"), works)]
    if document["workers"]:
        rows = [tuple(worker.values()) for worker in document["workers"]]
        lines += ["", columns(("WORKER", "CONNECTORS", "TASKS"), rows)]
    if failed:
        failed_rows = [(failure.connector, failure.task, failure.worker_id, failure.whole) for failure in failed]
        lines += ["", columns(("FAILED", "TASK", "WORKER", "CAUSE"), failed_rows, long=Long.WRAPPED)]
        lines += ["", f"The whole trace: sluice connectors show {failed[0].connector}"]
    if document["notices"]:
        rows = [tuple(notice.values()) for notice in document["notices"]]
        lines += ["", columns(("ATTENTION", "WHAT"), rows, long=Long.WRAPPED)]
    return "\n".join(lines)
