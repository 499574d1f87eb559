"""``sluice mirror plan``: shows what flows would mirror, what they leave out and why, and what will not work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from worker.cli.mirror.flow_file import FLOW_FILE, FlowFile, surveyed
from worker.cli.output import Output, columns, output_option, print_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectors.mirror.plan import FlowPlan

__all__ = ["plan"]

_PROBLEMS: Final = 3


@click.command()
@click.argument("file", type=FLOW_FILE)
@click.option("--clusters", "targets", multiple=True, help="Plan only flows into this cluster. May be repeated.")
@output_option
def plan(file: Path, targets: tuple[str, ...], output: Output) -> None:
    """Show what the flows of FILE would mirror, what they leave out and why, and what will not work.

    The clusters are asked for their topics and groups. Nothing is changed. A key of FILE without effect is a problem,
    too.

    Exit status: 0 the flows can run as they are, 1 a mistake in FILE or a cluster that does not answer, 3 problems.
    """
    from connect.errors import ConnectError  # noqa: PLC0415 - only this command needs it
    from connectors.mirror.lost_keys import old_names_in  # noqa: PLC0415
    from connectors.mirror.plan import plan_flow, problems_between  # noqa: PLC0415

    given = FlowFile.read(file)
    flows = given.running(targets)
    surveys = surveyed(flows)
    try:
        plans = [plan_flow(flow, surveys[flow.source], surveys[flow.target]) for flow in flows]
        problems = [*given.lost, *problems_between(flows, plans, surveys)]
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    warnings = old_names_in(flows)
    document = {"flows": [planned.document() for planned in plans], "problems": problems, "warnings": warnings}
    print_document(document, output, lambda: _text(plans, problems, warnings))
    if problems or any(planned.problems for planned in plans):
        raise SystemExit(_PROBLEMS)


def _text(plans: Sequence[FlowPlan], problems: Sequence[str], warnings: Sequence[str]) -> str:
    parts = [_flow_text(planned) for planned in plans]
    problems_found = [*problems, *(f"{planned.flow}: {problem}" for planned in plans for problem in planned.problems)]
    if problems_found:
        parts.append("\n".join(["Problems", *(f"  {problem}" for problem in problems_found)]))
    if warnings:
        parts.append("\n".join(["Warnings", *(f"  {warning}" for warning in warnings)]))
    return "\n\n".join(parts)


def _flow_text(planned: FlowPlan) -> str:
    topics = [
        (topic.topic, topic.partitions, topic.remote, topic.reason or topic.remark or "") for topic in planned.topics
    ]
    groups = [(group.group, group.reason or "checkpoints") for group in planned.groups]
    parts = [f"Flow {planned.flow}", columns(("TOPIC", "PARTITIONS", "AT THE TARGET", "REMARK"), topics)]
    if groups:
        parts.append(columns(("GROUP", "REMARK"), groups))
    return "\n".join(parts)
