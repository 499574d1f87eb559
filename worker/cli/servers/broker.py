"""``sluice broker``: a Kafka broker on this machine, for trying things out and for tests."""

from __future__ import annotations

from pathlib import Path

import click

from worker.cli.groups import CommandGroup
from worker.cli.servers.lifecycle import add_stop_and_status, folder_option, started
from worker.embedded.broker.server import BrokerConfig, BrokerInfo, EmbeddedBroker
from worker.embedded.broker.settings import DEFAULT_HEAP

__all__ = ["broker"]


@click.group(cls=CommandGroup)
def broker() -> None:
    """Run a single-node Apache Kafka broker on this machine."""


@broker.command()
@folder_option("broker")
@click.option("--port", type=click.IntRange(0, 65535), help="Port for clients. [default: 9092, or any if taken]")
@click.option("--heap", default=DEFAULT_HEAP, show_default=True, help="The maximum heap, as in Java's -Xmx.")
@click.option("properties", "--property", multiple=True, metavar="KEY=VALUE", help="A server property.")
def start(folder: Path, port: int | None, heap: str, properties: tuple[str, ...]) -> None:
    """Start the broker if it is not running, and leave it running."""
    extra = dict(_property(text) for text in properties)
    click.echo(_describe(started(lambda: EmbeddedBroker(BrokerConfig(folder, port, heap, extra)).start())))


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


add_stop_and_status(broker, "broker", "data is", lambda folder: EmbeddedBroker(BrokerConfig(folder)), _describe)
