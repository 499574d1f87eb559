"""``sluice mirror cut-over``: waits until everything is mirrored, and moves the groups to the target or back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from worker.cli.mirror.flow_file import FLOW_FILE, FlowFile
from worker.cli.mirror.moving import moves_text, unknown_text
from worker.cli.output import Output, columns, output_option, print_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connect.data import TopicPartition
    from connectors.mirror.failover import Move

__all__ = ["cut_over"]

_SOURCE: Final = "MirrorSourceConnector"
_CHECKPOINT: Final = "MirrorCheckpointConnector"
_CHANGES: Final = 3
_LOOK_SECONDS: Final = 0.5
_SHOWN: Final = 5


@click.command("cut-over")
@click.argument("file", type=FLOW_FILE)
@click.argument("flow", required=False)
@click.option("--back", is_flag=True, help="Move the groups back to the source, without waiting.")
@click.option(
    "--seconds", type=click.IntRange(0), default=60, show_default=True, help="How long to wait for the mirror."
)
@click.option("--dry-run", is_flag=True, help="Only show what is left to mirror and what would be committed.")
@output_option
def cut_over(file: Path, flow: str | None, back: bool, seconds: int, dry_run: bool, output: Output) -> None:
    """Move everything that reads the topics of FLOW, such as 'A->B', to the target.

    Stop the producers and the consumers at the source first, and keep the flow running. The command waits until every
    record is mirrored; then it translates the offsets of all groups and commits them at the target, as failover does.
    To return, --back moves the groups back to the source, as failback does.

    Exit status: 0 done; 1 records are left, a group has members, it is unknown where a group continues in a partition,
    or a cluster does not answer or refuses; 3 a dry run has found something to do.
    """
    from connect.errors import ConnectError  # noqa: PLC0415 - only this command needs it
    from connectors.mirror.failover import Direction, GroupMover  # noqa: PLC0415

    named = FlowFile.read(file).named(flow)
    try:
        left = {} if back else _drained(named.connectors[_SOURCE], 0 if dry_run else seconds)
        if left and not dry_run:
            raise click.ClickException(_unmirrored(left, seconds))
        mover = GroupMover(named.connectors[_CHECKPOINT], Direction.BACK if back else Direction.OVER)
        moves = mover.planned_for_all()
        unknown = unknown_text(moves)
        if not dry_run:
            if unknown:
                raise click.ClickException(f"{unknown} No offset was committed.")
            if used := mover.in_use(moves):
                raise click.ClickException(
                    f"These groups still have members: {', '.join(used)}. Stop them first. No offset was committed."
                )
            for group, rows in moves.items():
                mover.commit(group, rows)
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    document = {
        "left": [
            {"topic": place.topic, "partition": place.partition, "records": count} for place, count in left.items()
        ],
        "groups": [{"group": group, "partitions": [row.document() for row in rows]} for group, rows in moves.items()],
    }
    print_document(document, output, lambda: _text(left, moves))
    if unknown:
        raise click.ClickException(unknown)
    if dry_run and (left or any(row.is_due for rows in moves.values() for row in rows)):
        raise SystemExit(_CHANGES)


def _drained(props: Mapping[str, str], seconds: float) -> Mapping[TopicPartition, int]:
    """Return the records left to mirror after this many seconds, or as soon as there are none."""
    from connectors.mirror.verification.drain import Drain  # noqa: PLC0415 - only this command needs it

    deadline = time.monotonic() + seconds
    with Drain(props) as drain:
        while (left := drain.left()) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
    return left


def _unmirrored(left: Mapping[TopicPartition, int], seconds: int) -> str:
    shown = ", ".join(f"{count} of {place.topic}-{place.partition}" for place, count in list(left.items())[:_SHOWN])
    return (
        f"After {seconds} s some records are not mirrored: {shown}{', ...' if len(left) > _SHOWN else ''}. "
        "Check that the flow runs and that nobody produces to the source any more, or wait longer with --seconds. "
        "No offset was committed."
    )


def _text(left: Mapping[TopicPartition, int], moves: Mapping[str, list[Move]]) -> str:
    rows = [(place.topic, place.partition, count) for place, count in left.items()]
    parts = [columns(("TOPIC", "PARTITION", "LEFT TO MIRROR"), rows)] if rows else []
    return "\n\n".join([*parts, moves_text(moves)])
