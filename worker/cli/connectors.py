"""The commands ``sluice connectors``: list, show, create, pause, resume, stop, restart and delete connectors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from worker.cli.options import TROUBLED, begin_option, client_of, refusals_shown, troubles_of, url_option
from worker.cli.output import Output, columns, output_option, print_document, state
from worker.cli.status_summary import Failure, failures, hanging, losses, notices, summed, waiting

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["connectors"]

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_NAMES: Final = click.argument("names", metavar="NAME...", nargs=-1, required=True)


@click.group()
def connectors() -> None:
    """Show and change the connectors of a worker or cluster."""


@connectors.command("list")
@url_option
@output_option
def list_connectors(url: str, output: Output) -> None:
    """List the connectors with their states, and the causes of failures, of waiting and of skipped records.

    Exit status: 0, 1 no worker answers, 3 the worker has lost its cluster or its brokers.
    """
    client = client_of(url)
    with refusals_shown(client):
        views = client.get("/connectors", expand="status")
    troubles = troubles_of(client)
    statuses = [view["status"] for _, view in sorted(views.items()) if "status" in view]
    print_document(statuses, output, lambda: _table(statuses))
    if troubles:
        sys.exit(TROUBLED)


@connectors.command()
@click.argument("name")
@url_option
@output_option
def show(name: str, url: str, output: Output) -> None:
    """Show the connector NAME: its state, its tasks and its configuration."""
    client = client_of(url)
    with refusals_shown(client, name):
        info = client.get(client.connector_path(name))
        status = client.get(client.connector_path(name, "status"))
    print_document({"status": status, "config": info["config"]}, output, lambda: _detailed(status, info["config"]))


@connectors.command()
@click.argument("files", metavar="FILE...", type=_FILE, nargs=-1, required=True)
@url_option
def create(files: tuple[Path, ...], url: str) -> None:
    """Create a connector from each FILE, properties or JSON, as for `sluice standalone`."""
    from connect.errors import ConnectError  # noqa: PLC0415 - these take a while to import
    from worker.config.connector_files import read_connector  # noqa: PLC0415

    client = client_of(url)
    try:
        given = [read_connector(file) for file in files]
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    for connector in given:
        body: dict[str, Any] = {"name": connector.name, "config": dict(connector.config)}
        if connector.target is not None:
            body["initial_state"] = {"STARTED": "RUNNING"}.get(connector.target.value, connector.target.value)
        with refusals_shown(client):
            client.post("/connectors", body)
        for warning in _warnings(client, connector.config):
            click.echo(warning, err=True)
        click.echo(f"Created {connector.name}. Its state: sluice connectors show {connector.name}")


@connectors.command()
@_NAMES
@url_option
def pause(names: tuple[str, ...], url: str) -> None:
    """Pause each connector NAME; it keeps its tasks and partitions."""
    _change(names, url, "pause", "Paused")


@connectors.command()
@_NAMES
@url_option
def resume(names: tuple[str, ...], url: str) -> None:
    """Resume each connector NAME, after pause or stop."""
    _change(names, url, "resume", "Resumed")


@connectors.command()
@_NAMES
@url_option
def stop(names: tuple[str, ...], url: str) -> None:
    """Stop each connector NAME; none of its tasks runs, and its offsets can be changed."""
    _change(names, url, "stop", "Stopped")


@connectors.command()
@_NAMES
@click.option("--failed", is_flag=True, help="Only the failed connector or tasks.")
@click.option("--task", type=click.IntRange(0), help="Only this task.")
@url_option
def restart(names: tuple[str, ...], failed: bool, task: int | None, url: str) -> None:
    """Restart each connector NAME with its tasks. This loads changed plugin code."""
    if failed and task is not None:
        raise click.UsageError("Use either --failed or --task.")
    client = client_of(url)
    for name in names:
        with refusals_shown(client, name):
            if task is not None:
                client.post(client.connector_path(name, "tasks", str(task), "restart"))
                done = f"Restarted task {task} of {name}."
            else:
                only = str(failed).lower()
                shown = client.post(client.connector_path(name, "restart"), includeTasks="true", onlyFailed=only)
                done = (shown or {}).get("message") or f"Restarted {name}."
        click.echo(done)


@connectors.command()
@_NAMES
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@url_option
def delete(names: tuple[str, ...], yes: bool, url: str) -> None:
    """Delete each connector NAME. Its offsets stay, for a new connector of the same name."""
    if not yes:
        click.confirm(f"Delete {', '.join(names)}?", abort=True)
    client = client_of(url)
    for name in names:
        with refusals_shown(client, name):
            client.delete(client.connector_path(name))
        click.echo(f"Deleted {name}.")


@connectors.command()
@click.argument("name")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many records to show.")
@begin_option
@click.option("--timeout", type=click.IntRange(1, 20), default=10, show_default=True, help="Seconds to wait for them.")
@url_option
@output_option
def preview(name: str, limit: int, begin: str, timeout: int, url: str, output: Output) -> None:
    """Show what the connector NAME would do with its next records, before and after each transformation.

    Nothing is changed, and the connector keeps running. For a connector in a file, use `sluice run --preview`, whose
    help explains the output.

    Exit status: 0 shown, 1 the worker refuses, or a record or the connector would fail.
    """
    from worker.cli.preview_text import has_failed, preview_text  # noqa: PLC0415 - it is only for this command

    client = client_of(url)
    with refusals_shown(client, name):
        path = client.connector_path(name, f"preview?from={begin}")
        document = client.post(path, limit=limit, seconds=timeout)
    print_document(document, output, lambda: preview_text(document))
    if has_failed(document):
        raise SystemExit(1)


@connectors.command()
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Follow the log until Ctrl-C.")
@click.option(
    "--lines", default=100, show_default=True, type=click.IntRange(0, 10_000), help="Number of lines to start with."
)
@url_option
def logs(name: str, follow: bool, lines: int, url: str) -> None:
    """Show the last log lines of the connector NAME and its tasks, from all workers.

    Each worker keeps some 256 KB for each connector since its start. Workers are contacted at the addresses they
    advertise to each other.
    """
    from worker.cli.logs import ConnectorLogs  # noqa: PLC0415 - it imports the client

    client = client_of(url)
    with refusals_shown(client, name):
        ConnectorLogs(client, name).print(lines, follow=follow)


def _warnings(client: RestClient, config: Mapping[str, str | None]) -> list[str]:
    """Return what is suspicious about the configuration of a connector that was created."""
    from rest.client import RestError  # noqa: PLC0415 - it imports the client
    from rest.http.paths import escaped  # noqa: PLC0415
    from worker.cli.mistakes import warnings_of  # noqa: PLC0415

    path = f"/connector-plugins/{escaped(config.get('connector.class') or '')}/config/validate"
    try:
        return warnings_of(client.put(path, config))
    except RestError:
        return []  # it is created all the same


def _change(names: Iterable[str], url: str, change: str, done: str) -> None:
    client = client_of(url)
    for name in names:
        with refusals_shown(client, name):
            client.put(client.connector_path(name, change))
        click.echo(f"{done} {name}.")


def _table(statuses: list[dict[str, Any]]) -> str:
    if not statuses:
        return "There are no connectors. Create one: sluice connectors create FILE"
    rows = [_row(status) for status in statuses]
    return columns(("NAME", "TYPE", "STATE", "TASKS", "WORKER", "CAUSE"), rows, cut=True)


def _row(status: dict[str, Any]) -> tuple[object, ...]:
    connector, tasks = status["connector"], status["tasks"]
    failed = failures(status)
    cause = _failure_line(failed[0]) if failed else next(iter(notices(status)), None)
    return (
        status["name"],
        status["type"],
        state(connector["state"]),
        summed(task["state"] for task in tasks),
        connector["worker_id"] or None,
        cause,
    )


def _failure_line(failure: Failure) -> str:
    return failure.cause if failure.task is None else f"task {failure.task}: {failure.cause}"


def _detailed(status: dict[str, Any], config: dict[str, str]) -> str:
    connector = status["connector"]
    lines = [f"{status['name']}, a {status['type']}: {state(connector['state'])} on {connector['worker_id'] or '-'}"]
    if status["tasks"]:
        rows = [(task["id"], state(task["state"]), task["worker_id"] or None) for task in status["tasks"]]
        lines += ["", columns(("TASK", "STATE", "WORKER"), rows)]
    lines += ["", columns(("KEY", "VALUE"), sorted(config.items()))]
    for failure in failures(status):
        where = "The connector" if failure.task is None else f"Task {failure.task}"
        lines += ["", f"{where} failed: {failure.cause}", failure.trace.rstrip()]
    for sentence, trace in hanging(status):
        lines += ["", sentence, trace.rstrip()]
    lost = losses(status)
    for what in (*waiting(status), *([] if lost is None else [lost])):
        lines += ["", what]
    return "\n".join(lines)
