"""``sluice mirror failover`` and ``failback``: a consumer group moved to the other cluster of a flow, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from worker.cli.mirror.flow_file import FLOW_FILE, FlowFile
from worker.cli.output import Output, columns, output_option, print_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectors.mirror.moves import Move

__all__ = ["failback", "failover"]

_CHECKPOINT: Final = "MirrorCheckpointConnector"
_CHANGES: Final = 3


@click.command()
@click.argument("file", type=FLOW_FILE)
@click.argument("group")
@click.argument("flow", required=False)
@click.option(
    "--from-checkpoints", is_flag=True, help="Do not ask the source, which is away: take the last checkpoints."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be committed.")
@output_option
def failover(file: Path, group: str, flow: str | None, from_checkpoints: bool, dry_run: bool, output: Output) -> None:
    """Have the consumer GROUP continue at the target of FLOW, as in 'A->B', where it has stopped at the source.

    Stop the group first. Its offsets are translated, exactly where the mirror has kept runs, and committed at the
    target; none is moved back there. Without FLOW it is the only one that is enabled.

    Exit status: 0 done, or nothing to do; 1 a cluster does not answer, or refuses; 3 a dry run has found changes.
    """
    _move(file, group, flow, "failover", output, from_checkpoints=from_checkpoints, dry_run=dry_run)


@click.command()
@click.argument("file", type=FLOW_FILE)
@click.argument("group")
@click.argument("flow", required=False)
@click.option("--dry-run", is_flag=True, help="Only show what would be committed.")
@output_option
def failback(file: Path, group: str, flow: str | None, dry_run: bool, output: Output) -> None:
    """Bring home what the consumer GROUP has read of mirrored topics at the target of FLOW.

    Stop the group first. Its offsets of A.topic at the target become offsets of topic at the source; none is moved back
    there. What the group has read of the target's own topics comes home by a failover of the flow the other way.

    Exit status: 0 done, or nothing to do; 1 a cluster does not answer, or refuses; 3 a dry run has found changes.
    """
    _move(file, group, flow, "failback", output, from_checkpoints=False, dry_run=dry_run)


def _move(
    file: Path, group: str, flow: str | None, way: str, output: Output, *, from_checkpoints: bool, dry_run: bool
) -> None:
    from connect.errors import ConnectError  # noqa: PLC0415 - only these commands need it
    from connectors.mirror.moving import Direction, GroupMover  # noqa: PLC0415

    named = FlowFile.read(file).named(flow)
    try:
        mover = GroupMover(named.connectors[_CHECKPOINT], Direction(way))
        moves = mover.planned_by_checkpoints(group) if from_checkpoints else mover.planned(group)
        if not dry_run:
            mover.commit(group, moves)
    except ConnectError as error:
        raise click.ClickException(f"{error}{_hint(way, from_checkpoints)}") from error
    print_document([move.document() for move in moves], output, lambda: _text(group, moves))
    if dry_run and any(move.is_due for move in moves):
        raise SystemExit(_CHANGES)


def _hint(way: str, from_checkpoints: bool) -> str:
    if way == "failback" or from_checkpoints:
        return ""
    return "\nIf the source is away, --from-checkpoints takes what was last told of the group at the target."


def _text(group: str, moves: Sequence[Move]) -> str:
    if not moves:
        return f"The group {group} has committed no offset that this flow translates."
    rows = [
        (
            move.origin.topic,
            move.origin.partition,
            move.origin.offset,
            move.topic,
            None if move.found is None else move.found.offset,
            move.read_again,
            move.remark,
        )
        for move in moves
    ]
    return columns(("TOPIC", "PARTITION", "OFFSET", "THERE", "OFFSET THERE", "READ AGAIN", "REMARK"), rows)
