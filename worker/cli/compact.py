"""``sluice compact``: merges the small files of a sink's tables into a few large ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from worker.cli.options import client_of, refusals_shown, url_option
from worker.cli.output import Output, columns, output_option, print_document

__all__ = ["compact"]

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_FAILED: Final = 1
_DAY_SECONDS: Final = 86_400.0
_HEADER: Final = ("TABLE", "FILES", "BYTES", "FILES AFTER", "BYTES AFTER")


@click.command()
@click.argument("connector")
@click.option("--table", "tables", multiple=True, help="Only this table. [repeatable; default: all]")
@click.option("--worker", type=_FILE, help="The worker's properties file. [default: a worker with JSON converters]")
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=_DAY_SECONDS,
    show_default=True,
    help="Seconds after which to give up.",
)
@url_option
@output_option
def compact(
    connector: str, tables: tuple[str, ...], worker: Path | None, timeout: float, url: str, output: Output
) -> None:
    """Merge the small files of the tables of CONNECTOR, a file or the name of a deployed sink.

    A deployed connector must be stopped. This command merges its tables itself, so this machine must have access to
    them. For a file, make sure that no worker runs the connector: its task would fail, although no record would be
    lost. To compact without stopping, set compact.interval.ms in the connector's configuration.

    If the command is interrupted, finished merges stay, and no record is lost or doubled.

    Exit status: 0 done, 1 it cannot be done, 2 it could not be tried.
    """
    from worker.cli.offline_worker import OfflineWorker  # noqa: PLC0415 - only these commands need it
    from worker.messages import messages  # noqa: PLC0415

    config = _config_of(connector, url)
    done: list[dict[str, Any]] = []

    def note(part: messages.Report) -> None:
        assert isinstance(part, messages.TableCompacted)
        done.append({name: getattr(part, name) for name in part.__slots__})

    given = OfflineWorker.read(worker)
    inquiry = messages.CompactTables(config, given.props, list(tables) or None)
    report = given.ask(inquiry, f"The compaction of {connector}", timeout, note)
    if done or not isinstance(report, messages.Refused):
        print_document({"tables": done}, output, lambda: _text(done))
    if isinstance(report, messages.Refused):
        click.echo(f"Error: {report.message}", err=True)
        raise SystemExit(_FAILED)


def _config_of(connector: str, url: str) -> dict[str, str]:
    """Return the configuration in a file, or of a deployed connector, which must be stopped."""
    file = Path(connector)
    if file.is_file():
        from worker.cli.offline_worker import read_given  # noqa: PLC0415 - as above

        given = read_given(file)
        config = {key: value for key, value in given.config.items() if value is not None}
        return {"name": given.name, **config}
    client = client_of(url)
    with refusals_shown(client, connector):
        state = client.get(client.connector_path(connector, "status"))["connector"]["state"]
        if state != "STOPPED":
            raise click.ClickException(
                f"Connector {connector} is {state}: stop it first (`sluice connectors stop {connector}`), or set its "
                "compact.interval.ms, with which it compacts its tables itself while it runs."
            )
        config = client.get(client.connector_path(connector, "config"))
    return {"name": connector, **config}


def _text(done: list[dict[str, Any]]) -> str:
    if not done:
        return "There was nothing to merge."
    fields = ("table", "files_before", "bytes_before", "files_after", "bytes_after")
    return columns(_HEADER, [tuple(str(table[field]) for field in fields) for table in done])
