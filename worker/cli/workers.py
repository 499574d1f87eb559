"""``sluice workers``: lists and drains the workers of a cluster."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from worker.cli.groups import CommandGroup
from worker.cli.options import TROUBLED, client_of, refusals_shown, troubles_of, url_option
from worker.cli.output import Output, columns, output_option, print_document

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["workers"]

_STILL_BUSY: Final = 3
_POLL_SECONDS: Final = 0.5
_HEADER: Final = ("WORKER", "PART", "CONNECTORS", "TASKS", "FAILED")


@click.group(cls=CommandGroup)
def workers() -> None:
    """Show the workers of a cluster, and drain one before it is restarted."""


@workers.command("list")
@url_option
@output_option
def list_workers(url: str, output: Output) -> None:
    """List the known workers and the number of units on each. The leader knows all workers, and which are gone.

    Exit status: 0 the worker is a member of its cluster, 1 no worker answers, 3 it has lost its cluster.
    """
    client = client_of(url)
    with refusals_shown(client):
        cluster = client.get("/cluster")
    troubles = troubles_of(client)
    print_document(cluster, output, lambda: columns(_HEADER, [_row(worker, cluster) for worker in cluster["workers"]]))
    if troubles:
        sys.exit(TROUBLED)


@workers.command()
@click.argument("worker")
@click.option(
    "--timeout",
    type=click.FloatRange(0),
    default=300.0,
    show_default=True,
    help="Seconds to wait until it runs nothing any more; 0 does not wait.",
)
@url_option
def drain(worker: str, timeout: float, url: str) -> None:
    """Move the connectors and tasks of WORKER (host:port) to others, and give it no more until it is restarted.

    Exit status: 0 it runs nothing any more, 1 it cannot be done, 3 it still runs something.
    """
    client = client_of(url)
    with refusals_shown(client):
        client.put(_path(worker))
        left = _left(client, worker, timeout)
    if left and timeout:
        click.echo(
            f"{worker} still runs {', '.join(left)}. Its work moves only while another worker is there to take it, and "
            "a task only once it has stopped.",
            err=True,
        )
        sys.exit(_STILL_BUSY)
    click.echo(f"{worker} runs nothing any more." if not left else f"{worker} gives its work away.")


@workers.command()
@click.argument("worker")
@url_option
def undrain(worker: str, url: str) -> None:
    """Let a drained WORKER (host:port) take connectors and tasks again."""
    client = client_of(url)
    with refusals_shown(client):
        client.delete(_path(worker))
    click.echo(f"{worker} takes work again.")


def _path(worker: str) -> str:
    from rest.http.paths import escaped  # noqa: PLC0415 - only these commands need it

    return f"/cluster/workers/{escaped(worker)}/drain"


def _left(client: RestClient, worker: str, seconds: float) -> list[str]:
    """Return the units that a worker still runs after this many seconds, or as soon as there are none."""
    deadline = time.monotonic() + seconds
    while (left := _runs(client.get("/cluster"), worker)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return left


def _runs(cluster: dict[str, Any], worker: str) -> list[str]:
    found = [item for item in cluster["workers"] if item["worker_id"] == worker]
    connectors = [name for item in found for name in item["connectors"]]
    return connectors + [f"{task['connector']}-{task['task']}" for item in found for task in item["tasks"]]


def _row(worker: dict[str, Any], cluster: dict[str, Any]) -> tuple[object, ...]:
    drained = ", is drained" if worker["draining"] else ""
    part = _part(worker, cluster) + drained
    return worker["worker_id"], part, len(worker["connectors"]), len(worker["tasks"]), worker["failed"]


def _part(worker: dict[str, Any], cluster: dict[str, Any]) -> str:
    if cluster["mode"] == "standalone":
        return "standalone"
    if worker["leads"]:
        return "leads"
    # Only the leader knows all members.
    if cluster["complete"] and worker["url"] is None:
        return "gone"
    is_lost = bool(cluster.get("troubles")) and cluster["leader_url"] is None
    return "unknown" if is_lost else "follows"
