"""``sluice broker``: a Kafka broker on this machine, for trying things out and for tests."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from connect.errors import ConnectError
from worker.cli.groups import CommandGroup
from worker.cli.output import print_progress
from worker.embedded.broker.server import BrokerConfig, BrokerInfo, EmbeddedBroker
from worker.embedded.broker.settings import DEFAULT_HEAP

__all__ = ["broker"]

NOT_RUNNING = 3
"""The exit status of ``status`` when no broker runs, by the convention of service scripts."""

_folder = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for its data and log. [default: broker below SLUICE_HOME]",
)


@click.group(cls=CommandGroup)
def broker() -> None:
    """Run a single-node Apache Kafka broker on this machine."""


@broker.command()
@_folder
@click.option("--port", type=click.IntRange(0, 65535), help="Port for clients. [default: 9092, or any if taken]")
@click.option("--heap", default=DEFAULT_HEAP, show_default=True, help="The maximum heap, as in Java's -Xmx.")
@click.option("properties", "--property", multiple=True, metavar="KEY=VALUE", help="A server property.")
def start(folder: Path | None, port: int | None, heap: str, properties: tuple[str, ...]) -> None:
    """Start the broker if it is not running, and leave it running."""
    extra = dict(_property(text) for text in properties)
    print_progress()
    try:
        info = EmbeddedBroker(_config(folder, port, heap, extra)).start()
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    click.echo(_describe(info))


@broker.command()
@_folder
@click.option("--timeout", default=30.0, show_default=True, help="Seconds before it is killed.")
def stop(folder: Path | None, timeout: float) -> None:
    """Stop the broker; its data is kept."""
    config = _config(folder)
    try:
        stopped = EmbeddedBroker(config).stop(timeout)
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    click.echo("Stopped." if stopped else f"No broker is running in {config.folder}.")


@broker.command()
@_folder
def status(folder: Path | None) -> None:
    """Show whether the broker is running: exit status 0 if it is, 3 if not."""
    config = _config(folder)
    info = EmbeddedBroker(config).status()
    if info is None:
        click.echo(f"No broker is running in {config.folder}.")
        sys.exit(NOT_RUNNING)
    click.echo(_describe(info))


def _config(
    folder: Path | None,
    port: int | None = None,
    heap: str = DEFAULT_HEAP,
    properties: dict[str, str] | None = None,
) -> BrokerConfig:
    config = BrokerConfig(port=port, heap=heap, properties=properties or {})
    return config if folder is None else BrokerConfig(folder, port, heap, config.properties)


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.BadParameter(f"'{text}' is not KEY=VALUE", param_hint="--property")
    return key.strip(), value


def _describe(info: BrokerInfo) -> str:
    stays = "until `sluice broker stop`" if info.explicit else "until its last lease ends"
    return "\n".join(
        (
            f"Apache Kafka {info.version} runs {stays}.",
            f"  bootstrap.servers  {info.bootstrap_servers}",
            f"  process            {info.pid}",
            f"  data               {info.data}",
            *([f"  leases             {info.leases}"] if info.leases else ()),
        )
    )
