"""``sluice doctor``: looks for everything that keeps a worker or a cluster from its work, and says what repairs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from worker.cli.options import client_of
from worker.cli.output import Output, output_option, print_document

if TYPE_CHECKING:
    from worker.cli.doctor.findings import Finding

__all__ = ["doctor"]

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOUND: Final = 3


@click.command()
@click.option("--worker", type=_FILE, help="The worker's properties file, to look at its brokers, topics and machine.")
@click.option("--url", envvar="SLUICE_URL", help="Address of a worker's REST API, to look at its cluster's connectors.")
@click.option("--repair", is_flag=True, help="Repair what can be repaired safely.")
@output_option
def doctor(worker: Path | None, url: str | None, repair: bool, output: Output) -> None:
    """Look for what keeps a worker or its connectors from their work, and say what repairs it.

    With --worker: brokers and rights, internal topics, plugins, converters and their schema registry, clock, disks and
    open files of this machine. With --url: the worker's health and each connector, whose system is asked, too. With
    both, all of it. Nothing is changed without --repair, which gives internal topics the cleanup policy they need.

    \b
    Examples:
      sluice doctor --worker worker.properties
      sluice doctor --url http://connect:8083 -o json

    Exit status: 0 nothing is wrong but warnings, 2 wrong usage, 3 something is wrong.
    """
    from worker.cli.doctor.findings import Level, findings_text, worst  # noqa: PLC0415 - only this command needs it

    if worker is None and url is None:
        raise click.UsageError("Name the worker's file with --worker, or a worker's address with --url, or both.")
    found = [_mended(finding) if repair else finding for finding in _findings(worker, url)]
    print_document([finding.document() for finding in found], output, lambda: findings_text(found))
    if worst(found) is Level.ERROR:
        raise SystemExit(_FOUND)


def _findings(worker: Path | None, url: str | None) -> Iterator[Finding]:
    if worker is not None:
        yield from _of_worker(worker)
    if url is not None:
        from worker.cli.doctor.cluster import cluster_findings, spark_users  # noqa: PLC0415 - see above
        from worker.cli.doctor.machine import java_findings  # noqa: PLC0415

        client = client_of(url)
        yield from cluster_findings(client, f" --url {url}")
        if worker is not None:
            yield from java_findings(spark_users(client))


def _of_worker(file: Path) -> Iterator[Finding]:
    import logging  # noqa: PLC0415 - see above

    from connect.errors import ConnectError  # noqa: PLC0415
    from worker.app.worker import WorkerProperties, parsed  # noqa: PLC0415
    from worker.cli.doctor.brokers import broker_findings  # noqa: PLC0415
    from worker.cli.doctor.findings import Finding, Level  # noqa: PLC0415
    from worker.cli.doctor.machine import machine_findings, plugin_findings  # noqa: PLC0415
    from worker.config.worker import DistributedConfig, StandaloneConfig, WorkerConfig  # noqa: PLC0415
    from worker.log import configure_logging  # noqa: PLC0415

    configure_logging(logging.CRITICAL)
    kind: type[WorkerConfig] = StandaloneConfig
    try:
        props = WorkerProperties.read(file)
        kind = DistributedConfig if props.resolved.get("group.id") else StandaloneConfig
        config = parsed(kind, props)
    except ConnectError as error:
        yield Finding("worker's file", Level.ERROR, str(error), f"Correct {file}.")
        return
    yield Finding("worker's file", Level.FINE, f"{file} is right.")
    for finding in (
        *broker_findings(props.resolved, config),
        *plugin_findings(props.resolved, config),
        *machine_findings(config),
    ):
        yield _hidden(finding, props.redaction.redacted)


def _hidden(finding: Finding, redact: Callable[[str], str]) -> Finding:
    return replace(finding, told=redact(finding.told))


def _mended(finding: Finding) -> Finding:
    from worker.cli.doctor.findings import Level  # noqa: PLC0415 - see above

    if finding.mend is None:
        return finding
    try:
        finding.mend()
    except Exception as error:
        return replace(finding, told=f"{finding.told} It could not be repaired: {error}", mend=None)
    return replace(finding, level=Level.FINE, told=f"{finding.told} This is repaired now.", repair=None, mend=None)
