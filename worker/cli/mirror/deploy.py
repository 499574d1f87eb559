"""``sluice mirror deploy``: deploys a flow of a file to a running cluster of workers."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from connect.errors import ConnectError
from worker.cli.mirror.flow_file import FLOW_FILE, FlowFile
from worker.cli.options import client_of, refusals_shown, url_option
from worker.mirror.flow import FlowName, compiled, parts_of

if TYPE_CHECKING:
    from connectors.mirror.flows import Flow
    from rest.client import RestClient

__all__ = ["deploy"]

_CHANGES: Final = 3


@click.command()
@click.argument("file", type=FLOW_FILE)
@click.argument("flow", required=False)
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--delete", is_flag=True, help="Delete the connectors of the flow. Topics and offsets stay.")
@url_option
def deploy(file: Path, flow: str | None, dry_run: bool, delete: bool, url: str) -> None:
    """Deploy the three connectors of FLOW, such as 'A->B', to a cluster of workers at the target.

    They are named by the flow, as in A-B-MirrorSourceConnector, so that one cluster can run several flows, and are
    validated before the first is written. The workers resolve references in FILE. Without FLOW, the only enabled one is
    deployed.

    Exit status: 0 done, or nothing to do; 1 refused, 3 a dry run has found changes.
    """
    given = FlowFile.read(file)
    named = given.named(flow)
    client = client_of(url)
    with refusals_shown(client):
        existing: Mapping[str, Any] = client.get("/connectors?expand=info")
        configs = _compiled(given.written.flow(named.source, named.target), existing)
        stored = {name: existing[name]["info"]["config"] for name in configs if name in existing}
        changes = [name for name in configs if (name in stored if delete else stored.get(name) != configs[name])]
        if dry_run:
            for name in changes:
                click.echo(f"{'delete' if delete else 'update' if name in stored else 'create'} {name}")
            raise SystemExit(_CHANGES if changes else 0)
        if not delete:
            _check(client, {name: configs[name] for name in changes})
        for name in changes:
            if delete:
                client.delete(client.connector_path(name))
            else:
                client.put(client.connector_path(name, "config"), configs[name])
            click.echo(f"{'deleted' if delete else 'updated' if name in stored else 'created'} {name}")
    if not changes:
        click.echo("Nothing to do.")


def _compiled(flow: Flow, existing: Mapping[str, Any]) -> dict[str, dict[str, str | None]]:
    name = FlowName(flow.source, flow.target)
    config = next(iter(flow.connectors.values()))
    own = {key: value for key, value in config.items() if key not in ("name", "connector.class")}
    try:
        return compiled(name, parts_of(name, existing), own)
    except ConnectError as error:
        raise click.ClickException(f"{flow.name}: {error}") from error


def _check(client: RestClient, configs: Mapping[str, Mapping[str, str | None]]) -> None:
    from rest.client import RestError  # noqa: PLC0415 - only this command needs it
    from rest.http.paths import escaped  # noqa: PLC0415
    from worker.cli.mistakes import mistakes_of, mistakes_text  # noqa: PLC0415

    wrong = []
    for name, config in configs.items():
        try:
            infos = client.put(f"/connector-plugins/{escaped(str(config['connector.class']))}/config/validate", config)
        except RestError as error:
            if error.status != HTTPStatus.BAD_REQUEST:
                raise
            raise click.ClickException(f"{name}: {error}") from error
        if mistakes := mistakes_of(infos):
            wrong.append(f"{name}:\n{mistakes_text(mistakes)}")
    if wrong:
        raise click.ClickException("\n".join([*wrong, "Nothing was changed."]))
