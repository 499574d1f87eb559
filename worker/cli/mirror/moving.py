"""``sluice mirror failover`` and ``failback``: move a consumer group to the other cluster of a flow, and back.

``sluice mirror groups`` shows beforehand what that would mean for each group.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from worker.cli.mirror.flow_file import FLOW_FILE, FlowFile
from worker.cli.output import Output, columns, output_option, print_document
from worker.formatting import utc_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from connectors.mirror.failover import Move

__all__ = ["failback", "failover", "groups", "moves_text", "unknown_text"]

_CHECKPOINT: Final = "MirrorCheckpointConnector"
_SOURCE: Final = "MirrorSourceConnector"
_NO_GROUP: Final = "No group has committed an offset in a topic of this flow."
_CHANGES: Final = 3
_SHOWN: Final = 5
_HEADER: Final = ("TOPIC", "PARTITION", "OFFSET", "THERE", "OFFSET THERE", "READ AGAIN", "REMARK")


@click.command()
@click.argument("file", type=FLOW_FILE)
@click.argument("group")
@click.argument("flow", required=False)
@click.option(
    "--from-checkpoints", is_flag=True, help="Use the last checkpoints instead of asking the source, which is down."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be committed.")
@output_option
def failover(file: Path, group: str, flow: str | None, from_checkpoints: bool, dry_run: bool, output: Output) -> None:
    """Let the consumer GROUP continue at the target of FLOW, such as 'A->B', where it stopped at the source.

    Stop the group first; one with members at the source is refused. Its offsets are translated, exactly where the
    mirror has kept runs, and committed at the target; none is moved back there. Without FLOW, the only enabled one is
    used.

    Exit status: 0 done, or nothing to do; 1 a cluster does not answer or refuses, or it is unknown where the group
    continues in a partition; 3 a dry run has found changes.
    """
    _move(file, group, flow, "failover", output, from_checkpoints=from_checkpoints, dry_run=dry_run)


@click.command()
@click.argument("file", type=FLOW_FILE)
@click.argument("group")
@click.argument("flow", required=False)
@click.option("--dry-run", is_flag=True, help="Only show what would be committed.")
@output_option
def failback(file: Path, group: str, flow: str | None, dry_run: bool, output: Output) -> None:
    """Bring the progress that the consumer GROUP made on mirrored topics at the target of FLOW back to the source.

    Stop the group first. Its offsets of A.topic at the target become offsets of topic at the source; none is moved back
    there. To bring back what the group has read of the target's own topics, fail over the flow in the other direction.

    Exit status: 0 done, or nothing to do; 1 a cluster does not answer or refuses, or it is unknown where the group
    continues in a partition; 3 a dry run has found changes.
    """
    _move(file, group, flow, "failback", output, from_checkpoints=False, dry_run=dry_run)


@click.command()
@click.argument("file", type=FLOW_FILE)
@click.argument("flow", required=False)
@output_option
def groups(file: Path, flow: str | None, output: Output) -> None:
    """Show how many records each group would read again if it failed over now, by FLOW, such as 'A->B'.

    Each partition also shows when it was last compared by `sluice mirror verify`. Nothing is changed. Groups that have
    read nothing the flow mirrors are left out. Without FLOW, the only enabled one is used.

    Exit status: 0 done, 1 a cluster does not answer.
    """
    from connect.errors import ConnectError  # noqa: PLC0415 - only these commands need it
    from connectors.mirror.failover import (  # noqa: PLC0415
        Direction,
        GroupMover,
        read_again,
    )

    named = FlowFile.read(file).named(flow)
    try:
        moves = GroupMover(named.connectors[_CHECKPOINT], Direction.OVER).planned_for_all()
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
    verified = _verified(named.connectors[_SOURCE]) if moves else {}
    document = [
        {
            "group": group,
            "read_again": read_again(rows),
            "partitions": [{**row.document(), "verified": verified.get(_place(row))} for row in rows],
        }
        for group, rows in moves.items()
    ]
    print_document(document, output, lambda: _groups_text(moves, verified))


def moves_text(moves: Mapping[str, Sequence[Move]]) -> str:
    """Return a table of the partitions of several groups."""
    if not moves:
        return _NO_GROUP
    rows = [(group, *_row(move)) for group, each in moves.items() for move in each]
    return columns(("GROUP", *_HEADER), rows)


def unknown_text(moves: Mapping[str, Sequence[Move]]) -> str:
    """Return the partitions in which it is unknown where a group continues, and what to do; empty if there are none."""
    unknown = [(group, move.origin) for group, rows in moves.items() for move in rows if move.found is None]
    if not unknown:
        return ""
    shown = ", ".join(f"{group} in {place.topic}-{place.partition}" for group, place in unknown[:_SHOWN])
    return (
        f"It is unknown where these groups continue: {shown}{', ...' if len(unknown) > _SHOWN else ''}. Let the flow "
        "run until it has mirrored these partitions; or have the group commit a later offset in them, or delete the "
        "offset there."
    )


def _verified(props: Mapping[str, str]) -> dict[tuple[str, int], str]:
    """Return when partitions of the source were last verified. A failure merely leaves that out."""
    from connect.errors import ConnectError  # noqa: PLC0415 - only this command needs it
    from connectors.mirror.verification.results import VerifiedTopic  # noqa: PLC0415

    try:
        kept = VerifiedTopic(props).kept()
    except ConnectError as error:
        click.echo(f"The times of the last verifications cannot be read: {error}", err=True)
        return {}
    return {(each.topic, each.partition): utc_text(each.at / 1000) for each in kept}


def _groups_text(moves: Mapping[str, Sequence[Move]], verified: Mapping[tuple[str, int], str]) -> str:
    if not moves:
        return _NO_GROUP
    rows = [(group, *_row(move), verified.get(_place(move), "never")) for group, each in moves.items() for move in each]
    return columns(("GROUP", *_HEADER, "VERIFIED"), rows)


def _place(move: Move) -> tuple[str, int]:
    return move.origin.topic, move.origin.partition


def _move(
    file: Path, group: str, flow: str | None, way: str, output: Output, *, from_checkpoints: bool, dry_run: bool
) -> None:
    from connect.errors import ConnectError  # noqa: PLC0415 - only these commands need it
    from connectors.mirror.failover import Direction, GroupMover  # noqa: PLC0415

    named = FlowFile.read(file).named(flow)
    try:
        mover = GroupMover(named.connectors[_CHECKPOINT], Direction(way))
        if not (dry_run or from_checkpoints):
            mover.check_stopped(group)
        moves = mover.planned_by_checkpoints(group) if from_checkpoints else mover.planned(group)
        if not dry_run:
            mover.commit(group, moves)
    except ConnectError as error:
        raise click.ClickException(f"{error}{_hint(way, from_checkpoints)}") from error
    print_document([move.document() for move in moves], output, lambda: _text(group, moves))
    if unknown := unknown_text({group: moves}):
        raise click.ClickException(f"{unknown}{'' if dry_run else ' All other offsets are committed.'}")
    if dry_run and any(move.is_due for move in moves):
        raise SystemExit(_CHANGES)


def _hint(way: str, from_checkpoints: bool) -> str:
    if way == "failback" or from_checkpoints:
        return ""
    return "\nIf the source is down, --from-checkpoints uses the last checkpoints of the group at the target."


def _text(group: str, moves: Sequence[Move]) -> str:
    if not moves:
        return f"The group {group} has committed no offset in a topic of this flow."
    return columns(_HEADER, [_row(move) for move in moves])


def _row(move: Move) -> tuple[object, ...]:
    origin, found = move.origin, move.found
    there = None if found is None else found.offset
    return origin.topic, origin.partition, origin.offset, move.topic, there, move.read_again, move.remark
