"""``sluice token``: API tokens, with which programs sign in to the REST API."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from connect.errors import ConnectError
from worker.cli.groups import CommandGroup
from worker.cli.output import Output, columns, output_option, print_document
from worker.formatting import utc_text
from worker.security.api_tokens import ApiToken, TokenFile

__all__ = ["token"]

F = TypeVar("F", bound=Callable[..., object])
_DURATION: Final = re.compile(r"(\d{1,6})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _file_option(command: F) -> F:
    return click.option(
        "--file",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="SLUICE_TOKENS_FILE",
        required=True,
        help="The file of rest.authentication.tokens.file. [env: SLUICE_TOKENS_FILE]",
    )(command)


@click.group(cls=CommandGroup)
def token() -> None:
    """Create and revoke API tokens, with which programs sign in.

    Workers read the tokens' hashes from a file, so run this as the user of the worker.
    """


@token.command()
@click.argument("name")
@_file_option
@click.option("--group", "groups", multiple=True, help="A group of the principal. [repeatable]")
@click.option("--expires", metavar="TIME", help="How long it is valid, such as 90d or 12h. [default: forever]")
def create(name: str, file: Path, groups: tuple[str, ...], expires: str | None) -> None:
    """Create a token for the principal NAME and print it. It cannot be shown again."""
    try:
        click.echo(TokenFile(file).create(name, groups, _seconds(expires)))
    except ConnectError as error:
        raise click.ClickException(str(error)) from error


@token.command(name="list")
@_file_option
@output_option
def list_tokens(file: Path, output: Output) -> None:
    """List the tokens."""
    try:
        tokens = TokenFile(file).tokens()
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    print_document([_document(found) for found in tokens], output, lambda: _table(tokens))


@token.command()
@click.argument("id")
@_file_option
def revoke(id: str, file: Path) -> None:  # noqa: A002 - the name of the argument
    """Revoke the token with the given ID. Workers notice it at once."""
    try:
        TokenFile(file).revoke(id)
    except ConnectError as error:
        raise click.ClickException(str(error)) from error


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter("Write a number and s, m, h or d, such as 90d.", param_hint="--expires")
    return float(int(match[1]) * _SECONDS[match[2]])


def _document(found: ApiToken) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in asdict(found).items() if key != "hash"
    }


def _table(tokens: list[ApiToken]) -> str:
    rows = [(it.id, it.name, ", ".join(it.groups) or None, utc_text(it.created), _end(it)) for it in tokens]
    return columns(("ID", "NAME", "GROUPS", "CREATED", "EXPIRES"), rows)


def _end(found: ApiToken) -> str | None:
    if found.expires is None:
        return None
    return utc_text(found.expires) + (" (expired)" if found.expires <= time.time() else "")
