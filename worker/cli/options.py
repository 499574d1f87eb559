"""The parts that commands share which talk to a worker's REST API: options, the client, errors and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import click

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["client_of", "columns", "refusals_shown", "url_option"]

F = TypeVar("F", bound=Callable[..., object])

_DEFAULT_URL: Final = "http://localhost:8083"
_NOT_STOPPED: Final = "STOPPED"


def url_option(command: F) -> F:
    """Add the option ``--url``, which ``SLUICE_URL`` may set, too."""
    return click.option(
        "--url",
        envvar="SLUICE_URL",
        default=_DEFAULT_URL,
        show_default=True,
        help="Address of a worker's REST API. [env: SLUICE_URL; user and password: SLUICE_USER and SLUICE_PASSWORD, or "
        "~/.netrc]",
    )(command)


def client_of(url: str) -> RestClient:
    """A client of the worker at ``url``, with the user and password of the environment, if set."""
    from rest.client import RestClient  # noqa: PLC0415 - only these commands need it

    user = os.environ.get("SLUICE_USER")
    return RestClient(url, (user, os.environ.get("SLUICE_PASSWORD", "")) if user else None)


@contextmanager
def refusals_shown(client: RestClient, connector: str) -> Iterator[None]:
    """Show a refusal of the worker as the command's error, with the commands to type if it must be stopped first."""
    from rest.client import RestError  # noqa: PLC0415

    try:
        yield
    except RestError as error:
        text = str(error)
        if error.status == 400 and _NOT_STOPPED in text:
            stop = client.stop_command(connector)
            resume = f"{stop.removesuffix('stop')}resume"
            text += f"\nStop the connector, repeat this command, and resume the connector:\n  {stop}\n  ...\n  {resume}"
        raise click.ClickException(text) from error


def columns(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as a table of text, with a dash for ``None``."""
    texts = [list(header), *([("-" if cell is None else str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in texts) for index in range(len(header))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in texts)
    return "\n".join(line.rstrip() for line in lines)
