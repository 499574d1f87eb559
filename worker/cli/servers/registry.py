"""``sluice registry``: a schema registry on this machine, for trying things out and for tests."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from connect.errors import ConnectError
from worker.cli.groups import CommandGroup
from worker.cli.output import print_progress
from worker.embedded.registry.server import EmbeddedRegistry, RegistryInfo, RegistryServerConfig, Storage
from worker.embedded.registry.settings import DEFAULT_HEAP

__all__ = ["registry"]

NOT_RUNNING = 3
"""The exit status of ``status`` when no registry runs, by the convention of service scripts."""

_folder = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for its data and log. [default: registry below SLUICE_HOME]",
)


@click.group(cls=CommandGroup)
def registry() -> None:
    """Run a schema registry with Confluent's API on this machine."""


@registry.command()
@_folder
@click.option("--port", type=click.IntRange(0, 65535), help="Port for clients. [default: 8081, or any if taken]")
@click.option("--heap", default=DEFAULT_HEAP, show_default=True, help="The maximum heap, as in Java's -Xmx.")
@click.option(
    "--storage",
    type=click.Choice([storage.value for storage in Storage]),
    default=Storage.FILE.value,
    show_default=True,
    help="Whether schemas survive a restart.",
)
def start(folder: Path | None, port: int | None, heap: str, storage: str) -> None:
    """Start the registry if it is not running, and leave it running."""
    print_progress()
    try:
        config = RegistryServerConfig(port=port, heap=heap, storage=Storage(storage))
        info = EmbeddedRegistry(_in_folder(config, folder)).start()
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    click.echo(_describe(info))


@registry.command()
@_folder
@click.option("--timeout", default=30.0, show_default=True, help="Seconds before it is killed.")
def stop(folder: Path | None, timeout: float) -> None:
    """Stop the registry; its schemas are kept."""
    config = _in_folder(RegistryServerConfig(), folder)
    try:
        stopped = EmbeddedRegistry(config).stop(timeout)
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    click.echo("Stopped." if stopped else f"No registry is running in {config.folder}.")


@registry.command()
@_folder
def status(folder: Path | None) -> None:
    """Show whether the registry is running: exit status 0 if it is, 3 if not."""
    config = _in_folder(RegistryServerConfig(), folder)
    info = EmbeddedRegistry(config).status()
    if info is None:
        click.echo(f"No registry is running in {config.folder}.")
        sys.exit(NOT_RUNNING)
    click.echo(_describe(info))


def _in_folder(config: RegistryServerConfig, folder: Path | None) -> RegistryServerConfig:
    if folder is None:
        return config
    return RegistryServerConfig(folder, config.port, config.storage, config.heap)


def _describe(info: RegistryInfo) -> str:
    stays = "until `sluice registry stop`" if info.explicit else "until its last lease ends"
    return "\n".join(
        (
            f"Apicurio Registry {info.version} runs {stays}.",
            f"  schema.registry.url  {info.url}",
            f"  process              {info.pid}",
            f"  data                 {info.data if info.storage is Storage.FILE else 'in memory'}",
            *([f"  leases               {info.leases}"] if info.leases else ()),
        )
    )
