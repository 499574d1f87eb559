"""``sluice mirror``: runs the mirrors of a MirrorMaker file, and has commands to inspect and operate them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from connect.internals.garbage_collection import importing
from worker.cli.groups import CommandGroup

__all__ = ["mirror"]

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_RUN: Final = "run"
_ELSEWHERE: Final = {
    "cut-over": ("worker.cli.mirror.cut_over", "cut_over"),
    "deploy": ("worker.cli.mirror.deploy", "deploy"),
    "failback": ("worker.cli.mirror.moving", "failback"),
    "failover": ("worker.cli.mirror.moving", "failover"),
    "groups": ("worker.cli.mirror.moving", "groups"),
    "plan": ("worker.cli.mirror.plan", "plan"),
    "verify": ("worker.cli.mirror.verify", "verify"),
}
"""Commands in modules of their own, by module and name."""


class _Mirror(CommandGroup):
    """A group that runs the flows of a file if its first argument is a file."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _ELSEWHERE:
            module, name = _ELSEWHERE[cmd_name]
            command: click.Command = getattr(importlib.import_module(module), name)
            return command
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.list_commands(ctx) or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named or not args else [_RUN, *args])


@click.group(cls=_Mirror)
def mirror() -> None:
    """Mirror topics and groups between clusters.

    `sluice mirror FILE` is short for `sluice mirror run FILE`.
    """


@mirror.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", type=_FILE)
@click.option("--clusters", is_flag=True, help="Run only flows into the clusters whose aliases follow.")
@click.argument("targets", nargs=-1)
def run(file: Path, clusters: bool, targets: tuple[str, ...]) -> None:
    """Run the flows of FILE, MirrorMaker's mm2.properties, until SIGINT or SIGTERM.

    Each enabled flow has a worker, a process of its own attached to the cluster that it copies to. Several nodes with
    the same FILE share the work of each flow.

    Exit status: 0 stopped, 2 FILE is invalid or has no flow to run.
    """
    if targets and not clusters:
        raise click.UsageError(f"Got unexpected arguments ({' '.join(targets)}). Write --clusters before aliases.")
    if clusters and not targets:
        raise click.UsageError("--clusters needs the alias of a cluster.")
    with importing():
        from worker.app.mirror.driver import run_mirror  # noqa: PLC0415 - only this command needs it
        from worker.cli.main import leave, raise_limits  # noqa: PLC0415
        from worker.log import configure_logging  # noqa: PLC0415

    raise_limits()
    configure_logging()
    leave(run_mirror(file, [alias for text in targets for alias in text.split(",") if alias]))


@mirror.command("run-flow", hidden=True)
@click.argument("file", type=_FILE)
@click.argument("source")
@click.argument("target")
@click.option("--behind", help="Where the driver relays requests to this worker.")
@click.option("--public/--internal", help="Whether users may send requests, too.")
def run_flow(file: Path, source: str, target: str, behind: str | None, public: bool) -> None:
    """Run the worker of one flow, for the driver that holds the other end of standard input."""
    from worker.cli.main import begin, leave  # noqa: PLC0415 - only this command needs it

    begin()
    with importing():
        from worker.app.mirror.flow import Relay, run_flow  # noqa: PLC0415
        from worker.log import configure_logging  # noqa: PLC0415

    relay = None
    if behind is not None:
        place = urlsplit(behind)
        relay = Relay(place.scheme, place.hostname or "", place.port or 0, public)
    leave(run_flow(file, source, target, relay, configure_logging(place=f"{source}->{target}")))
