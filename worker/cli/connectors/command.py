"""The commands ``sluice connectors``: list, show, create, pause, resume, stop, restart and delete connectors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import click

from worker.cli.connectors.configuration import edit, history, restore, set_keys, topics
from worker.cli.connectors.outcome import starts_of, told_outcomes, wait_options
from worker.cli.connectors.refused_configs import mistakes_told, told_warnings
from worker.cli.groups import CommandGroup
from worker.cli.options import (
    TROUBLED,
    begin_option,
    client_of,
    for_each,
    name_argument,
    names_argument,
    refusals_shown,
    troubles_of,
    url_option,
)
from worker.cli.output import Long, Output, columns, output_option, print_document, state
from worker.cli.status_summary import Failure, failures, hanging, losses, notices, summed, waiting

__all__ = ["connectors"]

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Connectors(CommandGroup):
    headings: ClassVar = {
        "Look": ("list", "show", "logs", "preview", "topics", "history"),
        "Change": ("create", "set", "edit", "restore", "delete"),
        "Run": ("pause", "resume", "stop", "restart"),
    }


@click.group(cls=_Connectors)
def connectors() -> None:
    """Show and change the connectors of a worker or cluster.

    \b
    Examples:
      sluice connectors create orders.json --wait
      sluice connectors set orders tasks.max=4
      sluice connectors restart orders invoices --failed
    """


for _command in (set_keys, edit, history, restore, topics):
    connectors.add_command(_command)


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
@name_argument
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
@wait_options
@url_option
def create(files: tuple[Path, ...], wait: bool, timeout: float, url: str) -> None:
    """Create a connector from each FILE, properties or JSON, as for `sluice standalone`.

    Exit status: 0 created, 1 one was refused; with --wait also 3 one has failed, 4 one does not run in time.
    """
    from connect.errors import ConnectError  # noqa: PLC0415 - these take a while to import
    from worker.config.connector_files import read_connector  # noqa: PLC0415

    client = client_of(url)
    names: dict[str, str] = {}

    def make(file: str) -> str:
        try:
            connector = read_connector(Path(file))
        except ConnectError as error:
            raise click.ClickException(str(error)) from error
        names[file] = name = connector.name
        body: dict[str, Any] = {"name": name, "config": dict(connector.config)}
        if connector.target is not None:
            body["initial_state"] = {"STARTED": "RUNNING"}.get(connector.target.value, connector.target.value)
        with refusals_shown(client), mistakes_told(client, connector.config):
            client.post("/connectors", body)
        told_warnings(client, connector.config)
        return f"Created {name}." if wait else f"Created {name}. Its state: sluice connectors show {name}"

    def outcomes(done: list[str]) -> int:
        return told_outcomes(client, [names[file] for file in done], timeout) if wait else 0

    for_each(map(str, files), make, outcomes)


@connectors.command()
@names_argument
@url_option
def pause(names: tuple[str, ...], url: str) -> None:
    """Pause each connector NAME; it keeps its tasks and partitions."""
    _change(names, url, "pause", "Paused")


@connectors.command()
@names_argument
@url_option
def resume(names: tuple[str, ...], url: str) -> None:
    """Resume each connector NAME, after pause or stop."""
    _change(names, url, "resume", "Resumed")


@connectors.command()
@names_argument
@url_option
def stop(names: tuple[str, ...], url: str) -> None:
    """Stop each connector NAME; none of its tasks runs, and its offsets can be changed."""
    _change(names, url, "stop", "Stopped")


@connectors.command()
@names_argument
@click.option("--failed", is_flag=True, help="Only the failed connector or tasks.")
@click.option("--task", type=click.IntRange(0), help="Only this task.")
@wait_options
@url_option
def restart(names: tuple[str, ...], failed: bool, task: int | None, wait: bool, timeout: float, url: str) -> None:
    """Restart each connector NAME with its tasks. This loads changed plugin code.

    Exit status: 0 restarted, 1 one was refused; with --wait also 3 one has failed, 4 one does not run in time.
    """
    if failed and task is not None:
        raise click.UsageError("Use either --failed or --task.")
    client = client_of(url)
    before = {name: _restarted(starts_of(client, name), task, failed=failed) for name in names} if wait else {}

    def again(name: str) -> str:
        with refusals_shown(client, name):
            if task is not None:
                client.post(client.connector_path(name, "tasks", str(task), "restart"))
                return f"Restarted task {task} of {name}."
            only = str(failed).lower()
            shown = client.post(client.connector_path(name, "restart"), includeTasks="true", onlyFailed=only)
            return (shown or {}).get("message") or f"Restarted {name}."

    for_each(names, again, lambda done: told_outcomes(client, done, timeout, before) if wait else 0)


def _restarted(starts: Mapping[str, str], task: int | None, *, failed: bool) -> Mapping[str, str]:
    """Return the starts of those parts that have to start again; of failed ones it is seen by their states."""
    if failed:
        return {}
    return starts if task is None else {part: at for part, at in starts.items() if part == str(task)}


@connectors.command()
@names_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@url_option
def delete(names: tuple[str, ...], yes: bool, url: str) -> None:
    """Delete each connector NAME. Its offsets stay, for a new connector of the same name."""
    if not yes:
        click.confirm(f"Delete {', '.join(names)}?", abort=True)
    client = client_of(url)

    def forget(name: str) -> str:
        with refusals_shown(client, name):
            client.delete(client.connector_path(name))
        return f"Deleted {name}."

    for_each(names, forget)


@connectors.command()
@name_argument
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
@name_argument
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
    from worker.cli.connectors.logs import ConnectorLogs  # noqa: PLC0415 - it imports the client

    client = client_of(url)
    with refusals_shown(client, name):
        ConnectorLogs(client, name).print(lines, follow=follow)


def _change(names: Iterable[str], url: str, change: str, done: str) -> None:
    client = client_of(url)

    def act(name: str) -> str:
        with refusals_shown(client, name):
            client.put(client.connector_path(name, change))
        return f"{done} {name}."

    for_each(names, act)


def _table(statuses: list[dict[str, Any]]) -> str:
    if not statuses:
        return "There are no connectors. Create one: sluice connectors create FILE"
    rows = [_row(status) for status in statuses]
    return columns(("NAME", "TYPE", "STATE", "TASKS", "WORKER", "CAUSE"), rows, long=Long.CUT)


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
