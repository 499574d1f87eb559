"""``sluice mirror verify``: compares the records of a flow at both ends."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from worker.cli.mirror.flow_file import FLOW_FILE, FlowFile
from worker.cli.output import Output, columns, output_option, print_document
from worker.formatting import utc_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from connectors.mirror.verification.comparison import PartitionReport

__all__ = ["verify"]

_SOURCE: Final = "MirrorSourceConnector"
_DIFFERENT: Final = 3


@click.command()
@click.argument("file", type=FLOW_FILE)
@click.argument("flow", required=False)
@click.option("--last", type=click.IntRange(1), help="Compare only this many of the newest offsets of each partition.")
@click.option("--kept", is_flag=True, help="Compare nothing; show when each partition was verified last.")
@output_option
def verify(file: Path, flow: str | None, last: int | None, kept: bool, output: Output) -> None:
    """Compare the records that FLOW, such as 'A->B', has mirrored with those of its source, while it runs.

    Keys, values, headers and timestamps are compared, and no record may be missing between those that were mirrored.
    The first difference of each partition is reported. The results are stored at the target. Without FLOW, the only
    enabled one is used.

    Exit status: 0 all records are equal, 1 a cluster does not answer, 3 differences.
    """
    from connect.errors import ConnectError  # noqa: PLC0415 - only this command needs it
    from connectors.mirror.verification.verifier import FlowVerifier  # noqa: PLC0415

    named = FlowFile.read(file).named(flow)
    if kept:
        _show_kept(named.connectors[_SOURCE], output)
        return
    try:
        reports = list(FlowVerifier(named.connectors[_SOURCE]).reports(last))
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    _keep(named.connectors[_SOURCE], reports, last)
    print_document([report.document() for report in reports], output, lambda: _text(reports))
    if any(report.difference is not None for report in reports):
        raise SystemExit(_DIFFERENT)


def _keep(props: Mapping[str, str], reports: Sequence[PartitionReport], last: int | None) -> None:
    """Store the results. A failure to do so does not affect them."""
    from connect.errors import ConnectError  # noqa: PLC0415 - only this command needs it
    from connectors.mirror.verification.results import Verified, VerifiedTopic  # noqa: PLC0415

    at = time.time_ns() // 1_000_000
    try:
        VerifiedTopic(props).keep(Verified.of(report, at, last) for report in reports)
    except ConnectError as error:
        click.echo(f"The results could not be stored: {error}", err=True)


def _show_kept(props: Mapping[str, str], output: Output) -> None:
    from connect.errors import ConnectError  # noqa: PLC0415 - only this command needs it
    from connectors.mirror.verification.results import VerifiedTopic  # noqa: PLC0415

    try:
        found = VerifiedTopic(props).kept()
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    rows = [
        (each.topic, each.partition, each.topic_there, utc_text(each.at / 1000), each.equal, each.last, each.difference)
        for each in found
    ]
    header = ("TOPIC", "PARTITION", "THERE", "VERIFIED", "EQUAL", "OF THE LAST", "FIRST DIFFERENCE")
    print_document([each.document() for each in found], output, lambda: columns(header, rows))


def _text(reports: Sequence[PartitionReport]) -> str:
    rows = [
        (
            report.topic,
            report.partition,
            report.topic_there,
            report.equal,
            report.expired,
            report.unknown,
            report.waiting,
            _first_difference(report),
        )
        for report in reports
    ]
    header = ("TOPIC", "PARTITION", "THERE", "EQUAL", "EXPIRED", "UNKNOWN", "WAITING", "FIRST DIFFERENCE")
    return columns(header, rows)


def _first_difference(report: PartitionReport) -> str:
    found = report.difference
    if found is None:
        return "none"
    there = "" if found.offset_there is None else f", {found.offset_there} there"
    return f"offset {found.offset}{there}: {found.what}"
