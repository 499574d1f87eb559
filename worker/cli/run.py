"""``sluice run --preview``: what a connector would do with its next records, without doing it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from worker.cli.options import begin_option
from worker.cli.output import Output, output_option, print_document

__all__ = ["run"]

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_FAILED: Final = 1
# Time for starting the process and for the plugin's own connections, in addition to the time that it polls.
_START_SECONDS: Final = 60.0
# Practically unlimited for a terminal.
_MOST_BYTES: Final = 1 << 30


@click.command()
@click.argument("connector", type=_FILE)
@click.option("--preview", "records", type=click.IntRange(1, 10_000), required=True, help="How many records to show.")
@click.option("--worker", type=_FILE, help="The worker's properties file. [default: JSON converters, localhost:9092]")
@begin_option
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=15.0, show_default=True, help="Seconds to wait for them."
)
@output_option
def run(connector: Path, records: int, worker: Path | None, begin: str, timeout: float, output: Output) -> None:
    """Show the next records of CONNECTOR, a file, before and after each transformation.

    Nothing is changed: no record is produced or written, no offset is committed, no topic is created, and no consumer
    group is joined. A source is started and polled after the offsets that the worker of --worker has stored. For a
    sink, records are read from its topics after its group's committed offsets, and its task is not started. For a Spark
    sink, the output also shows what its next load would write: the rows of each table after its query, the columns and
    the folders.

    To run a connector, use `sluice standalone`.

    Exit status: 0 shown, 1 a mistake, or a record or the connector would fail, 2 it could not be tried.
    """
    from worker.cli.mistakes import mistakes_text  # noqa: PLC0415
    from worker.cli.offline_worker import OfflineWorker, read_given  # noqa: PLC0415 - only this command needs it
    from worker.cli.preview_text import end_text, has_failed, record_text, table_text  # noqa: PLC0415
    from worker.messages import messages  # noqa: PLC0415

    given = OfflineWorker.read(worker)
    wanted = read_given(connector)
    found = given.validated(wanted, str(connector))
    for warning in found.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if found.mistakes:
        click.echo(f"Error: {connector} has mistakes:\n{mistakes_text(found.mistakes)}", err=True)
        raise SystemExit(_FAILED)
    shown: list[dict[str, Any]] = []
    tables: list[dict[str, Any]] = []

    def show(part: messages.Report) -> None:
        assert isinstance(part, messages.Previewed)
        if "table" in part.record:
            tables.append(part.record)
            if output is Output.TABLE:
                click.echo(table_text(part.record) + "\n")
            return
        shown.append(part.record)
        if output is Output.TABLE:
            click.echo(record_text(len(shown), part.record) + "\n")

    config = {key: value for key, value in wanted.config.items() if value is not None}
    beginning = begin == "beginning"
    offsets = None if beginning else given.offsets_of(wanted.name)
    inquiry = messages.PreviewConnector(config, given.props, records, timeout, _MOST_BYTES, beginning, offsets)
    report = given.ask(inquiry, f"The preview of {connector}", timeout + _START_SECONDS, show)
    if isinstance(report, messages.Refused):
        raise click.ClickException(report.message)
    assert isinstance(report, messages.PreviewEnded)
    document = {
        "records": shown,
        "tables": tables,
        "end": report.reason,
        "failed": report.failed,
        "trace": report.trace,
    }
    print_document(document, output, lambda: end_text(document))
    if has_failed(document):
        raise SystemExit(_FAILED)
