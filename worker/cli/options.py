"""What commands share: options, the client of a worker's REST API, and the display of its errors."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

import click

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["TROUBLED", "begin_option", "client_of", "refusals_shown", "troubles_of", "url_option"]

F = TypeVar("F", bound=Callable[..., object])

_DEFAULT_URL: Final = "http://localhost:8083"
_NOT_STOPPED: Final = "STOPPED"

TROUBLED: Final = 3
"""The exit status of commands that show states if their worker cannot do its work, or something has failed."""


def url_option(command: F) -> F:
    """Add the option ``--url``, which can also be set with ``SLUICE_URL``."""
    return click.option(
        "--url",
        envvar="SLUICE_URL",
        default=_DEFAULT_URL,
        show_default=True,
        help="Address of a worker's REST API. [env: SLUICE_URL; user and password: SLUICE_USER and SLUICE_PASSWORD, or "
        "~/.netrc; API token: SLUICE_TOKEN]",
    )(command)


def begin_option(command: F) -> F:
    """Add the option ``--from`` of previews, passed to the command as ``begin``."""
    return click.option(
        "--from",
        "begin",
        type=click.Choice(["stored", "beginning"]),
        default="stored",
        show_default=True,
        help="Where to start: after the stored offsets, or where a connector without offsets starts.",
    )(command)


def client_of(url: str) -> RestClient:
    """Create a client of the worker at ``url``, with the token, or user and password, from the environment."""
    from rest.client import RestClient  # noqa: PLC0415 - only these commands need it

    user = os.environ.get("SLUICE_USER")
    auth = (user, os.environ.get("SLUICE_PASSWORD", "")) if user else None
    return RestClient(_with_scheme(url), auth, os.environ.get("SLUICE_TOKEN") or None)


def _with_scheme(url: str) -> str:
    """Return the address of a worker, of which ``host:port`` is enough."""
    return url if "://" in url else f"http://{url}"


@contextmanager
def refusals_shown(client: RestClient, connector: str | None = None) -> Iterator[None]:
    """Show a worker's refusal as the command's error.

    If ``connector`` has to be stopped first, the commands for that are shown too.
    """
    from rest.client import RestError  # noqa: PLC0415

    try:
        yield
    except RestError as error:
        text = str(error)
        if connector is not None and error.status == HTTPStatus.BAD_REQUEST and _NOT_STOPPED in text:
            stop, resume = (_command(client, change, connector) for change in ("stop", "resume"))
            text += f"\nStop the connector, repeat this command, and resume the connector:\n  {stop}\n  ...\n  {resume}"
        raise click.ClickException(text) from error


def troubles_of(client: RestClient) -> list[str]:
    """Ask a worker what keeps it from its work, and show that as errors: its cluster is lost, brokers do not answer."""
    from rest.client import RestError  # noqa: PLC0415

    try:
        troubles = client.troubles()
    except RestError:
        return []  # this user may not ask; what the worker shows otherwise stands
    for trouble in troubles:
        click.echo(trouble, err=True)
    return troubles


def _command(client: RestClient, change: str, connector: str) -> str:
    there = [] if client.url == _DEFAULT_URL else ["--url", client.url]
    return shlex.join(["sluice", "connectors", change, connector, *there])
