"""``sluice registry``: a schema registry on this machine, for trying things out and for tests."""

from __future__ import annotations

from pathlib import Path

import click

from worker.cli.groups import CommandGroup
from worker.cli.servers.lifecycle import add_stop_and_status, folder_option, started
from worker.embedded.registry.server import EmbeddedRegistry, RegistryInfo, RegistryServerConfig, Storage
from worker.embedded.registry.settings import DEFAULT_HEAP

__all__ = ["registry"]


@click.group(cls=CommandGroup)
def registry() -> None:
    """Run a schema registry with Confluent's API on this machine."""


@registry.command()
@folder_option("registry")
@click.option("--port", type=click.IntRange(0, 65535), help="Port for clients. [default: 8081, or any if taken]")
@click.option("--heap", default=DEFAULT_HEAP, show_default=True, help="The maximum heap, as in Java's -Xmx.")
@click.option(
    "--storage",
    type=click.Choice([storage.value for storage in Storage]),
    default=Storage.FILE.value,
    show_default=True,
    help="Whether schemas survive a restart.",
)
def start(folder: Path, port: int | None, heap: str, storage: str) -> None:
    """Start the registry if it is not running, and leave it running."""
    info = started(lambda: EmbeddedRegistry(RegistryServerConfig(folder, port, Storage(storage), heap)).start())
    click.echo(_describe(info))


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


add_stop_and_status(
    registry, "registry", "schemas are", lambda folder: EmbeddedRegistry(RegistryServerConfig(folder)), _describe
)
