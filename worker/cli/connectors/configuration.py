"""Commands that change the configuration of a connector: set, edit, history and restore; and those for its topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from worker.cli.connectors.outcome import told_outcomes, wait_options
from worker.cli.connectors.refused_configs import mistakes_told, told_warnings
from worker.cli.options import client_of, name_argument, refusals_shown, url_option
from worker.cli.output import Long, Output, columns, output_option, print_document

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["edit", "edited_changes", "history", "parsed_changes", "restore", "set_keys", "topics"]

_SHOWN: Final = 3


def parsed_changes(given: Iterable[str], unset: Iterable[str]) -> dict[str, str | None]:
    """Return the keys to change with their values; ``None`` removes one."""
    changes: dict[str, str | None] = dict.fromkeys(unset)
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{text} is not KEY=VALUE. To remove a key, use --unset {text.strip() or 'KEY'}.")
        changes[key.strip()] = value
    if not changes:
        raise click.UsageError("Give KEY=VALUE, or --unset KEY.")
    return changes


def edited_changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """Return what an edit has changed."""
    changed: dict[str, str | None] = {key: value for key, value in after.items() if before.get(key) != value}
    return changed | {key: None for key in before if key not in after}


@click.command("set")
@name_argument
@click.argument("changes", metavar="KEY=VALUE...", nargs=-1)
@click.option("--unset", multiple=True, metavar="KEY", help="Remove this key.")
@wait_options
@url_option
def set_keys(name: str, changes: tuple[str, ...], unset: tuple[str, ...], wait: bool, timeout: float, url: str) -> None:
    """Change some keys of the connector NAME; the others stay as they are. It restarts with the new configuration.

    \b
    Examples:
      sluice connectors set orders batch.size=500
      sluice connectors set orders tasks.max=4 --unset transforms --wait
    """
    _changed(client_of(url), name, parsed_changes(changes, unset), wait=wait, timeout=timeout)


@click.command()
@name_argument
@wait_options
@url_option
def edit(name: str, wait: bool, timeout: float, url: str) -> None:
    """Edit the configuration of the connector NAME as properties, in the editor of $EDITOR.

    Only what you change is sent, so values that are hidden from you stay as they are unless you replace them.
    """
    from connect.config.properties import parse_properties  # noqa: PLC0415 - only this command needs it

    client = client_of(url)
    with refusals_shown(client, name):
        before = dict(client.get(client.connector_path(name, "config")))
    text = "".join(f"{key}={_written(value)}\n" for key, value in sorted(before.items()) if key != "name")
    heading = f"# {name}. Save and close to apply; change nothing to leave it as it is.\n"
    edited = click.edit(heading + text, extension=".properties")
    if edited is None:
        click.echo("Nothing was changed.")
        return
    changes = edited_changes({key: value for key, value in before.items() if key != "name"}, parse_properties(edited))
    if not changes:
        click.echo("Nothing was changed.")
        return
    _changed(client, name, changes, wait=wait, timeout=timeout)


def _written(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    # A blank in front of a value would be taken for a part of the equals sign.
    return f"\\{text}" if text[:1] in (" ", "\t") else text


def _changed(client: RestClient, name: str, changes: Mapping[str, str | None], *, wait: bool, timeout: float) -> None:
    from worker.cli.connectors.outcome import starts_of  # noqa: PLC0415 - as above

    before = {name: starts_of(client, name)} if wait else {}
    with refusals_shown(client, name), mistakes_told(client, changes, name):
        present = client.get(client.connector_path(name, "config"))
        client.patch(client.connector_path(name, "config"), changes)
        # As the worker shows it: a secret is hidden from those who may not see it.
        shown = client.get(client.connector_path(name, "config"))
    rows = [(key, present.get(key), shown.get(key)) for key in changes]
    click.echo(columns(("KEY", "BEFORE", "AFTER"), rows))
    told_warnings(client, changes, name)
    if wait:
        is_as_it_was = shown == present and all(shown.get(key) == value for key, value in changes.items())
        raise SystemExit(told_outcomes(client, [name], timeout, {} if is_as_it_was else before))


@click.command()
@name_argument
@url_option
@output_option
def history(name: str, url: str, output: Output) -> None:
    """Show the versions of the configuration of the connector NAME: when, by whom, and what was changed.

    A deleted connector has a history, too: `sluice connectors restore` brings it back.
    """
    client = client_of(url)
    with refusals_shown(client, name):
        found = client.get(client.connector_path(name, "config", "history"))
    rows = [_version_row(version) for version in found["versions"]]
    print_document(found, output, lambda: columns(("VERSION", "AT", "BY", "CHANGES"), rows, long=Long.CUT))


def _version_row(version: Mapping[str, Any]) -> tuple[object, ...]:
    if version["config"] is None:
        changes = "deleted"
    else:
        told = [f"{each['key']}: {each['before']} -> {each['after']}" for each in version["changes"]]
        more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        changes = ", ".join(told[:_SHOWN]) + more
    return version["version"], version["at"], version["author"], changes or None


@click.command()
@name_argument
@click.argument("version", type=click.IntRange(1))
@wait_options
@url_option
def restore(name: str, version: int, wait: bool, timeout: float, url: str) -> None:
    """Bring back a VERSION of the configuration of the connector NAME, including its secrets.

    A deleted connector is created again, with the offsets it had.

    \b
    Example:
      sluice connectors history orders
      sluice connectors restore orders 3
    """
    from connect.config.password import HIDDEN  # noqa: PLC0415 - as above
    from worker.cli.connectors.outcome import starts_of  # noqa: PLC0415

    client = client_of(url)
    before, present = (starts_of(client, name), _shown_config(client, name)) if wait else ({}, {})
    with refusals_shown(client, name):
        client.post(client.connector_path(name, "config", "history", str(version), "restore"))
    click.echo(f"{name} has the configuration of version {version}.")
    if wait:
        # A secret may have changed behind what hides it.
        is_seen = not any(HIDDEN in value for value in present.values())
        is_as_it_was = is_seen and present == _shown_config(client, name)
        raise SystemExit(told_outcomes(client, [name], timeout, {} if is_as_it_was else {name: before}))


def _shown_config(client: RestClient, name: str) -> dict[str, str]:
    """Return a configuration as the worker shows it; empty if there is none."""
    from rest.client import RestError  # noqa: PLC0415 - as above

    try:
        return dict(client.get(client.connector_path(name, "config")))
    except RestError:
        return {}


@click.command()
@name_argument
@click.option("--reset", is_flag=True, help="Forget them, so that only those used from now on are listed.")
@url_option
def topics(name: str, reset: bool, url: str) -> None:
    """List the topics that the connector NAME has used since they were reset."""
    client = client_of(url)
    with refusals_shown(client, name):
        if reset:
            client.put(client.connector_path(name, "topics", "reset"))
            click.echo(f"The topics of {name} are forgotten.")
            return
        found = client.get(client.connector_path(name, "topics"))
    click.echo("\n".join(found[name]["topics"]) or f"{name} has used no topic yet.")
