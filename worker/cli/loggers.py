"""The commands ``sluice loggers``: shows and sets log levels while workers run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import click

from worker.cli.groups import CommandGroup
from worker.cli.options import client_of, refusals_shown, url_option
from worker.cli.output import Output, columns, output_option, print_document

__all__ = ["loggers"]

_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")


@click.group(cls=CommandGroup)
def loggers() -> None:
    """Show and set log levels of workers, connectors and tasks while they run.

    \b
    Examples:
      sluice loggers list
      sluice loggers set connectors.jdbc DEBUG --cluster
    """


@loggers.command("list")
@url_option
@output_option
def list_loggers(url: str, output: Output) -> None:
    """List the loggers of a worker with their levels, and when these were set."""
    client = client_of(url)
    with refusals_shown(client):
        levels: dict[str, dict[str, Any]] = client.get("/admin/loggers")
    rows = [(name, item["level"], _time(item.get("last_modified"))) for name, item in sorted(levels.items())]
    print_document(levels, output, lambda: columns(("LOGGER", "LEVEL", "SET AT"), rows))


@loggers.command("set")
@click.argument("logger")
@click.argument("level", type=click.Choice(_LEVELS, case_sensitive=False))
@click.option("--cluster", is_flag=True, help="On every worker of the cluster, not on this one alone.")
@url_option
def set_level(logger: str, level: str, cluster: bool, url: str) -> None:
    """Set the LEVEL of LOGGER and of those below it; root is all of them. It lasts until the worker is restarted."""
    from rest.http.paths import escaped  # noqa: PLC0415 - only this command needs it

    client = client_of(url)
    scope = {"scope": "cluster"} if cluster else {}
    with refusals_shown(client):
        changed = client.put(f"/admin/loggers/{escaped(logger)}", {"level": level.upper()}, **scope)
    where = "on every worker" if cluster else f"for {len(changed or [])} loggers of this worker"
    click.echo(f"{logger} logs {level.upper()} {where}.")


def _time(milliseconds: int | None) -> str | None:
    return None if not milliseconds else datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
