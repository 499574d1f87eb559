"""The options of the commands that ask a worker's REST API, and how they tell what it refuses."""

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
    """``--url``, which ``SLUICE_URL`` may give, too."""
    return click.option(
        "--url",
        envvar="SLUICE_URL",
        default=_DEFAULT_URL,
        show_default=True,
        help="Address of a worker's REST API. [env: SLUICE_URL; user and password: SLUICE_USER, SLUICE_PASSWORD or "
        "~/.netrc]",
    )(command)


def client_of(url: str) -> RestClient:
    """A client of the worker at ``url``, with the user and password of the environment if there are any."""
    from rest.client import RestClient  # noqa: PLC0415 - only these commands need it

    user = os.environ.get("SLUICE_USER")
    return RestClient(url, (user, os.environ.get("SLUICE_PASSWORD", "")) if user else None)


@contextmanager
def refusals_shown(client: RestClient, connector: str) -> Iterator[None]:
    """Tell what the worker refuses as a command does, and what to type if the connector has to be stopped first."""
    from rest.client import RestError  # noqa: PLC0415

    try:
        yield
    except RestError as error:
        text = str(error)
        if error.status == 400 and _NOT_STOPPED in text:
            stop = client.stop_command(connector)
            text += f"\nStop it, do this, and start it again:\n  {stop}\n  ...\n  {stop.removesuffix('stop')}resume"
        raise click.ClickException(text) from error


def columns(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as a table of text; what is ``None`` is a dash."""
    texts = [list(header), *([("-" if cell is None else str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in texts) for index in range(len(header))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in texts)
    return "\n".join(line.rstrip() for line in lines)
