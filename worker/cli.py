"""The commands ``sluice`` and ``connect-standalone``.

Imports are made by the commands that need them: the fork server of a worker loads this module too.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from worker.kafka.commands import broker
from worker.plugin_commands import plugins
from worker.registry.commands import registry

__all__ = ["connect_standalone", "main"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sluice")
def main() -> None:
    """Kafka Connect for people who live in Python and Spark."""


@main.command()
@click.argument("worker_properties", type=_FILE)
@click.argument("connectors", type=_FILE, nargs=-1)
def standalone(worker_properties: Path, connectors: tuple[Path, ...]) -> None:
    """Run connectors in one worker, from properties files.

    WORKER_PROPERTIES configures the worker, each of CONNECTORS one connector (properties or JSON). The worker runs
    until SIGINT or SIGTERM, or, if every connector has run.until=drained, until all are drained.

    Exit status: 0 stopped or drained, 2 the worker could not start, 3 a connector could not be created or failed.
    """
    from worker.app import run_standalone  # noqa: PLC0415 - see above
    from worker.log import configure_logging  # noqa: PLC0415

    configure_logging()
    sys.exit(run_standalone(worker_properties, connectors))


main.add_command(broker)
main.add_command(plugins)
main.add_command(registry)


def connect_standalone() -> None:
    """``sluice standalone`` under the name that users of Kafka type."""
    standalone(prog_name="connect-standalone")
