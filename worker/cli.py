"""The commands ``sluice``, ``connect-standalone`` and ``connect-distributed``.

Imports are made by the commands that need them: the fork server of a worker loads this module too.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from worker.dlq_commands import dlq
from worker.kafka.commands import broker
from worker.offset_commands import offsets
from worker.plugin_commands import plugins
from worker.registry.commands import registry

__all__ = ["connect_distributed", "connect_standalone", "main"]

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


@main.command()
@click.argument("worker_properties", type=_FILE)
def distributed(worker_properties: Path) -> None:
    """Be a worker of a cluster, from a properties file.

    WORKER_PROPERTIES configures the worker; connectors are deployed over the REST API of any worker of the cluster.
    The worker runs until SIGINT or SIGTERM.

    Exit status: 0 stopped, 1 the worker failed or its cluster refuses it, 2 the worker could not start.
    """
    from worker.app import run_distributed  # noqa: PLC0415 - see above
    from worker.log import configure_logging  # noqa: PLC0415

    configure_logging()
    sys.exit(run_distributed(worker_properties))


main.add_command(broker)
main.add_command(dlq)
main.add_command(offsets)
main.add_command(plugins)
main.add_command(registry)


def connect_standalone() -> None:
    """``sluice standalone`` under the name that users of Kafka type."""
    standalone(prog_name="connect-standalone")


def connect_distributed() -> None:
    """``sluice distributed`` under the name that users of Kafka type."""
    distributed(prog_name="connect-distributed")
