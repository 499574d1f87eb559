"""What the commands of all embedded servers share: the option for the folder, ``stop`` and ``status``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from worker.cli.output import print_progress
from worker.embedded.server import EmbeddedServer

__all__ = ["NOT_RUNNING", "add_stop_and_status", "folder_option", "started"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

NOT_RUNNING: Final = 3
"""The exit status of ``status`` when no such server runs, by the convention of service scripts."""


def folder_option(kind: str) -> Callable[[F], F]:
    """Return the option for the folder of a server of this kind."""
    return click.option(
        "--folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=lambda: sluice_home() / kind,
        help=f"Folder for its data and log. [default: {kind} below SLUICE_HOME]",
    )


def started(start: Callable[[], T]) -> T:
    """Return what a start returns, and print its progress."""
    print_progress()
    return _or_refused(start)


def add_stop_and_status(
    group: click.Group,
    kind: str,
    kept: str,
    server: Callable[[Path], EmbeddedServer[Any, T]],
    shown: Callable[[T], str],
) -> None:
    """Add both commands for the ``server`` of a folder, which is of this kind; ``kept`` is what outlives a stop."""

    @group.command(help=f"Stop the {kind}; its {kept} kept.")
    @folder_option(kind)
    @click.option("--timeout", default=30.0, show_default=True, help="Seconds before it is killed.")
    def stop(folder: Path, timeout: float) -> None:
        stopped = _or_refused(lambda: server(folder).stop(timeout))
        click.echo("Stopped." if stopped else f"No {kind} is running in {folder}.")

    @group.command(help=f"Show whether the {kind} is running: exit status 0 if it is, {NOT_RUNNING} if not.")
    @folder_option(kind)
    def status(folder: Path) -> None:
        info = server(folder).status()
        if info is None:
            click.echo(f"No {kind} is running in {folder}.")
            sys.exit(NOT_RUNNING)
        click.echo(shown(info))


def _or_refused(act: Callable[[], T]) -> T:
    try:
        return act()
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
