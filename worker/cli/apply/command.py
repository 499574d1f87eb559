"""``sluice apply``: changes the connectors of a cluster to match the files in a folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from worker.cli.connectors.outcome import starts_of, told_outcomes, wait_options
from worker.cli.options import client_of, refusals_shown, url_option
from worker.cli.output import Output, counted, output_option, print_document

if TYPE_CHECKING:
    from rest.client import RestClient
    from worker.cli.apply.plan import Existing, Planned

__all__ = ["apply"]

_CHANGES: Final = 3
"""The exit status of a dry run that finds changes to make."""

_REFUSED: Final = 1
_REBALANCED_SECONDS: Final = 60.0
_AGAIN_SECONDS: Final = 1.0
_STATE_CHANGES: Final = {"RUNNING": "resume", "PAUSED": "pause", "STOPPED": "stop"}


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--prune", is_flag=True, help="Delete the connectors of the cluster that no file describes.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@wait_options
@output_option
@url_option
def apply(folder: Path, prune: bool, dry_run: bool, wait: bool, timeout: float, output: Output, url: str) -> None:
    """Change the connectors of a cluster to match the files in FOLDER, and show the changes.

    A file (.properties, .json, .yaml) holds the configuration of a connector or, in JSON and YAML, its name, config and
    state: running, paused or stopped. Without a state, the connector keeps its current one. All new and changed
    configurations are validated before the first is written.

    \b
    Examples:
      sluice apply connectors --dry-run
      sluice apply connectors --prune --wait

    Exit status: 0 done, or nothing to do; 1 refused, 2 wrong usage, 3 a dry run has found changes, or with --wait a
    changed connector has failed, 4 one does not run in time.
    """
    from connect.errors import ConnectError  # noqa: PLC0415 - only this command needs it
    from worker.cli.apply.folder import read_folder  # noqa: PLC0415
    from worker.cli.apply.plan import plan, plan_text  # noqa: PLC0415

    try:
        desired = read_folder(folder)
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    if prune and not desired:
        raise click.ClickException(
            f"{folder} describes no connector, so --prune would delete all of them. Delete them by name, with `sluice "
            "connectors delete`."
        )
    client = client_of(url)
    with refusals_shown(client):
        planned = plan(desired, _existing(client), prune=prune)
        secret_keys = _validated(client, planned)
    documents = [item.document(secret_keys.get(item.name, ())) for item in planned]
    print_document(documents, output, lambda: plan_text(planned, secret_keys))
    changing = [item for item in planned if item.changes_something]
    if dry_run:
        raise SystemExit(_CHANGES if changing else 0)
    before = {item.name: starts_of(client, item.name) for item in changing} if wait else {}
    refused = {item.name: why for item in counted(changing, "Changing") if (why := _refusal(client, item))}
    if refused:
        click.echo("\n".join(refused.values()), err=True)
        raise click.ClickException(f"{len(refused)} of {len(changing)} changes were refused: {', '.join(refused)}")
    if output is Output.TABLE and changing:
        click.echo(f"{len(changing)} {'connector' if len(changing) == 1 else 'connectors'} changed.")
    if wait:
        kept = [item.name for item in changing if item.desired is not None]
        raise SystemExit(told_outcomes(client, kept, timeout, before))


def _existing(client: RestClient) -> dict[str, Existing]:
    from worker.cli.apply.plan import Existing  # noqa: PLC0415 - see above

    found: Mapping[str, Any] = client.get("/connectors?expand=info&expand=status")
    return {
        name: Existing(name, views["info"]["config"], (views.get("status") or {}).get("connector", {}).get("state"))
        for name, views in found.items()
        if "info" in views
    }


def _validated(client: RestClient, planned: Sequence[Planned]) -> dict[str, set[str]]:
    """Validate the configurations to write and return their secret keys; any mistake ends the command."""
    from worker.cli.apply.plan import Action  # noqa: PLC0415 - see above
    from worker.cli.mistakes import Mistake, mistakes_of, mistakes_text, warnings_of  # noqa: PLC0415

    secret_keys: dict[str, set[str]] = {}
    wrong: list[str] = []
    warnings: list[str] = []
    for item in counted([each for each in planned if each.action is not Action.NONE], "Validating"):
        if item.desired is None:
            continue
        try:
            infos = _infos(client, item.desired.config)
        except click.ClickException as error:
            mistakes = [Mistake(("connector.class",), error.message)]
        else:
            mistakes = mistakes_of(infos)
            secret_keys[item.name] = _passwords(infos)
            warnings += [f"{item.desired.file} ({item.name}): {warning}" for warning in warnings_of(infos)]
        if mistakes:
            wrong.append(f"{item.desired.file} ({item.name}):\n{mistakes_text(mistakes)}")
    for warning in warnings:
        click.echo(warning, err=True)
    if wrong:
        count = f"{len(wrong)} {'file has' if len(wrong) == 1 else 'files have'} mistakes; nothing was changed."
        click.echo("\n".join([*wrong, f"Error: {count}"]), err=True)
        raise SystemExit(_REFUSED)
    return secret_keys


def _infos(client: RestClient, config: Mapping[str, str]) -> dict[str, Any]:
    from rest.client import RestError  # noqa: PLC0415 - see above
    from rest.http.paths import escaped  # noqa: PLC0415

    name = config.get("connector.class", "").strip()
    if not name:
        raise click.ClickException('Missing required configuration "connector.class" which has no default value.')
    try:
        infos: dict[str, Any] = client.put(f"/connector-plugins/{escaped(name)}/config/validate", config)
    except RestError as error:
        if error.status == HTTPStatus.BAD_REQUEST:
            raise click.ClickException(str(error)) from error
        raise
    return infos


def _passwords(infos: Mapping[str, Any]) -> set[str]:
    definitions = (config["definition"] for config in infos["configs"])
    return {definition["name"] for definition in definitions if definition and definition["type"] == "PASSWORD"}


def _refusal(client: RestClient, item: Planned) -> str | None:
    """Carry out the plan for one connector; return why it was refused, if it was."""
    from rest.client import RestError  # noqa: PLC0415 - see above

    try:
        for step in _steps(client, item):
            _once_balanced(step)
    except RestError as error:
        return f"{item.action.value if item.changes else 'state'} {item.name} was refused: {error}"
    return None


def _steps(client: RestClient, item: Planned) -> list[Callable[[], object]]:
    from worker.cli.apply.plan import Action  # noqa: PLC0415 - see above

    path = client.connector_path
    if item.action is Action.DELETE:
        return [lambda: client.delete(path(item.name))]
    assert item.desired is not None
    config = dict(item.desired.config)
    if item.action is Action.CREATE:
        state = {"initial_state": item.state_after} if item.state_after else {}
        return [lambda: client.post("/connectors", {"name": item.name, "config": config, **state})]
    steps: list[Callable[[], object]] = []
    if item.action is Action.UPDATE:
        steps.append(lambda: client.put(path(item.name, "config"), config))
    if item.state_after is not None:
        change = _STATE_CHANGES[item.state_after]
        steps.append(lambda: client.put(path(item.name, change)))
    # A connector that should be paused or stopped is first, so that its new configuration does not run.
    return steps if item.state_after == "RUNNING" else steps[::-1]


def _once_balanced(step: Callable[[], object]) -> None:
    """Run a step, and retry it during a rebalance (409), for up to a minute."""
    from rest.client import RestError  # noqa: PLC0415 - see above

    deadline = time.monotonic() + _REBALANCED_SECONDS
    while True:
        try:
            step()
        except RestError as error:
            passes = error.status == HTTPStatus.CONFLICT and "already exists" not in str(error)
            if not passes or time.monotonic() >= deadline:
                raise
            time.sleep(_AGAIN_SECONDS)
        else:
            return
