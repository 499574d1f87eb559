"""What commands share: options, the client of a worker's REST API, and the display of its errors."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

import click

from worker.cli.contexts import url_in_use

if TYPE_CHECKING:
    from rest.client import RestClient, RestError

__all__ = [
    "TROUBLED",
    "begin_option",
    "client_of",
    "for_each",
    "name_argument",
    "names_argument",
    "refusals_shown",
    "troubles_of",
    "url_option",
]

F = TypeVar("F", bound=Callable[..., object])

_DEFAULT_URL: Final = "http://localhost:8083"
_REFUSED: Final = 1
_NOT_STOPPED: Final = "STOPPED"
_ALREADY_THERE: Final = re.compile("Connector (.+) already exists", re.DOTALL)
_REBALANCING: Final = "rebalance"

TROUBLED: Final = 3
"""The exit status of commands that show states if their worker cannot do its work, or something has failed."""


def url_option(command: F) -> F:
    """Add the option ``--url``, which can also be set with ``SLUICE_URL``."""
    return click.option(
        "--url",
        envvar="SLUICE_URL",
        default=url_in_use,
        show_default="that of `sluice context use`, or http://localhost:8083",
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
        text = _in_our_words(client, error, connector)
        if connector is not None and error.status == HTTPStatus.BAD_REQUEST and _NOT_STOPPED in text:
            stop, resume = (_command(client, change, connector) for change in ("stop", "resume"))
            text += f"\nStop the connector, repeat this command, and resume the connector:\n  {stop}\n  ...\n  {resume}"
        raise click.ClickException(text) from error


def _in_our_words(client: RestClient, error: RestError, connector: str | None) -> str:
    """Return why a worker has refused something, in the words of the command line."""
    if connector is not None and error.status == HTTPStatus.NOT_FOUND:
        known = _names(client)
        if connector not in known:
            close = get_close_matches(connector, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "`sluice connectors list` lists those there are."
            return f"There is no connector {connector}; {hint}"
    if error.status == HTTPStatus.CONFLICT and _REBALANCING in str(error).lower():
        return "The workers are just dividing their work anew, so nothing was changed. Repeat the command in a moment."
    if error.status == HTTPStatus.CONFLICT and (there := _ALREADY_THERE.fullmatch(str(error))):
        name = shlex.quote(there[1])
        return (
            f"{error}. Change it with `sluice connectors edit {name}`, or set keys of it with `sluice connectors set`."
        )
    return str(error)


def _names(client: RestClient) -> list[str]:
    from rest.client import RestError  # noqa: PLC0415

    try:
        return list(client.get("/connectors"))
    except RestError:
        return []


def name_argument(command: F) -> F:
    """Add the argument NAME of a connector, which a shell completes from the cluster."""
    return click.argument("name", shell_complete=_completed)(command)


def names_argument(command: F) -> F:
    """Add the argument NAME... of several connectors."""
    return click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_completed)(command)


def _completed(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    url = context.params.get("url") or os.environ.get("SLUICE_URL") or url_in_use()
    taken = context.params.get("names") or ()
    return [name for name in _names(client_of(url)) if name.startswith(begun) and name not in taken]


def for_each(names: Iterable[str], act: Callable[[str], str], wait: Callable[[list[str]], int] = lambda _: 0) -> None:
    """Act on each connector, and print the outcome; then ``wait`` for those where it was done.

    What one refuses is shown, the others are still done, and the command ends with status 1. Otherwise it ends with
    what ``wait`` returns.
    """
    given, done = list(names), []
    for name in given:
        try:
            click.echo(act(name))
            done.append(name)
        except click.ClickException as error:
            error.show()
    status = wait(done)
    if len(done) < len(given):
        raise SystemExit(_REFUSED)
    if status:
        raise SystemExit(status)


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
