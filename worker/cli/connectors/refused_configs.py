"""Says why a worker refuses a configuration, as ``sluice validate`` does: each mistake once, with its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["mistakes_told", "told_warnings"]

_INVALID: Final = "Connector configuration is invalid"


@contextmanager
def mistakes_told(client: RestClient, config: Mapping[str, str | None], connector: str | None = None) -> Iterator[None]:
    """Show the mistakes of ``config`` with their remedies as the command's error if the worker refuses it.

    If ``connector`` is given, ``config`` is a change of its configuration. Other refusals pass.
    """
    from rest.client import RestError  # noqa: PLC0415 - only these commands need it
    from worker.cli.mistakes import refusal_text  # noqa: PLC0415

    try:
        yield
    except RestError as error:
        if error.status != HTTPStatus.BAD_REQUEST or not str(error).startswith(_INVALID):
            raise
        infos = _validation(client, config, connector)
        if not infos.get("error_count"):
            raise
        warnings = [warning["message"] for warning in infos.get("warnings", ())]
        raise click.ClickException(refusal_text(connector or config.get("name"), infos, warnings)) from error


def told_warnings(client: RestClient, config: Mapping[str, str | None], connector: str | None = None) -> None:
    """Show what is suspicious about a configuration that was written; of a change, about its own keys."""
    for warning in _validation(client, config, connector).get("warnings", ()):
        if connector is None or warning["key"] in config:
            click.echo(f"Warning: {warning['message']}", err=True)


def _validation(client: RestClient, config: Mapping[str, str | None], connector: str | None) -> dict[str, Any]:
    """Return the result of the validation; empty if there is none."""
    from rest.client import RestError  # noqa: PLC0415 - see above
    from rest.http.paths import escaped  # noqa: PLC0415

    of_connector = {} if connector is None else {"connector": connector}
    try:
        present = {} if connector is None else client.get(client.connector_path(connector, "config"))
        name = config.get("connector.class") or present.get("connector.class") or ""
        path = f"/connector-plugins/{escaped(name.strip())}/config/validate"
        infos: dict[str, Any] = client.put(path, config, **of_connector)
    except RestError:
        return {}
    return infos
