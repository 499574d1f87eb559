"""The modes of snapshots: what a task does at its start, decided from its offset and from the database's log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from connect.config import MEDIUM, Config, option

__all__ = ["Begin", "Known", "ModeOptions", "SnapshotMode", "SnapshotPlan", "decide"]


class SnapshotMode(StrEnum):
    """The values of ``snapshot.mode``, without those of Java classes."""

    ALWAYS = "always"
    INITIAL = "initial"
    INITIAL_ONLY = "initial_only"
    NO_DATA = "no_data"
    WHEN_NEEDED = "when_needed"
    CONFIGURATION_BASED = "configuration_based"
    RECOVERY = "recovery"


class ModeOptions(Config):
    """What the mode ``configuration_based`` does."""

    snapshot_mode_configuration_based_snapshot_data: bool = option(
        default=False,
        importance=MEDIUM,
        doc="With snapshot.mode=configuration_based: whether the rows of the tables are read at every start.",
    )
    snapshot_mode_configuration_based_snapshot_schema: bool = option(
        default=False,
        importance=MEDIUM,
        doc="With snapshot.mode=configuration_based: whether the tables' schemas are read at every start.",
    )
    snapshot_mode_configuration_based_start_stream: bool = option(
        default=False,
        importance=MEDIUM,
        doc="With snapshot.mode=configuration_based: whether changes are read after the snapshot.",
    )
    snapshot_mode_configuration_based_snapshot_on_schema_error: bool = option(
        default=False,
        importance=MEDIUM,
        doc="With snapshot.mode=configuration_based: whether the schemas are read again if they are not known.",
    )
    snapshot_mode_configuration_based_snapshot_on_data_error: bool = option(
        default=False,
        importance=MEDIUM,
        doc="With snapshot.mode=configuration_based: whether the rows are read again if the log no longer reaches back "
        "to the offset.",
    )


class Known(StrEnum):
    """What the stored offset says about the snapshot."""

    NOTHING = "there is no offset"
    UNDER_WAY = "a snapshot was under way"
    DONE = "the snapshot is done, or there was none"


class Begin(StrEnum):
    """How a task begins."""

    SNAPSHOT = "with a snapshot"
    RESUME = "with the rest of the snapshot that was under way"
    STREAM = "with the changes"


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """What a task does: how it begins, and whether it goes on with changes. ``lost`` is why it must fail instead."""

    begin: Begin
    streams: bool
    lost: bool = False


def decide(mode: SnapshotMode, known: Known, *, log_reaches: bool, options: ModeOptions | None = None) -> SnapshotPlan:
    """Return what a task does in a mode.

    ``log_reaches`` is whether the database still has its log from the offset on. A snapshot that was under way is
    resumed if it has; otherwise it is begun anew, as one that has not sent the changes since may.
    """
    reads, streams, heals = _wishes(mode, known, options)
    if known is Known.UNDER_WAY and reads:
        return SnapshotPlan(Begin.RESUME if log_reaches else Begin.SNAPSHOT, streams)
    if known is not Known.NOTHING and not log_reaches and streams and not reads:
        return SnapshotPlan(Begin.SNAPSHOT, streams) if heals else SnapshotPlan(Begin.STREAM, streams, lost=True)
    return SnapshotPlan(Begin.SNAPSHOT if reads else Begin.STREAM, streams)


def _wishes(mode: SnapshotMode, known: Known, options: ModeOptions | None) -> tuple[bool, bool, bool]:
    """Return whether the mode reads rows now, whether it streams, and whether it reads them if the log is gone."""
    is_first = known is not Known.DONE
    match mode:
        case SnapshotMode.ALWAYS:
            return True, True, True
        case SnapshotMode.INITIAL:
            return is_first, True, False
        case SnapshotMode.INITIAL_ONLY:
            return is_first, False, False
        case SnapshotMode.WHEN_NEEDED:
            return is_first, True, True
        case SnapshotMode.NO_DATA | SnapshotMode.RECOVERY:
            return False, True, False
    of = options or ModeOptions()
    return (
        of.snapshot_mode_configuration_based_snapshot_data,
        of.snapshot_mode_configuration_based_start_stream,
        of.snapshot_mode_configuration_based_snapshot_on_data_error,
    )
