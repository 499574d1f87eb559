"""The phases of a connector or task and of its process, and the events that lead from one to another: two tables.

Nothing else decides which phase follows which. An event that a table does not list for a phase is a defect of the
runtime, and raises. Users see the phase of the unit, which goes on while its process is replaced by another.
"""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["LIVE", "Event", "Phase", "ProcessEvent", "ProcessPhase", "next_phase", "next_process_phase"]


class Phase(enum.Enum):
    """The phase that a connector or task is in."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DRAINED = "DRAINED"
    FAILED = "FAILED"
    STOPPING = "STOPPING"
    GONE = "GONE"


class Event(enum.Enum):
    """Something that happens to a connector or task."""

    STARTED = "started"
    PAUSED = "paused"
    RESUMED = "resumed"
    DRAINED = "drained"
    FAILED = "failed"
    STOP_ASKED = "stop asked"
    EXITED = "exited"
    MOVED = "moved"


class ProcessPhase(enum.Enum):
    """What the process of a connector or task does for it."""

    SERVING = "serving"
    """It runs the unit."""
    MOVING = "moving"
    """It is to end, and the unit is to start again in another."""
    RETIRING = "retiring"
    """It is to end, since its connector watches nothing and can rest without a process."""
    CLEARING = "clearing"
    """It is to end, and its failed unit is then removed."""
    RESTING = "resting"
    """It has ended, and its connector rests."""
    ENDED = "ended"
    """It has ended. A unit that is still live starts again, or fails, once its commits are over."""


class ProcessEvent(enum.Enum):
    """Something that happens to the process of a connector or task."""

    MOVE_ASKED = "asked to move"
    REST_ASKED = "asked to rest"
    CLEAR_ASKED = "asked to be cleared"
    RESTED = "laid to rest"
    ENDED = "ended"
    REPLACED = "replaced"


LIVE: Final = (Phase.STARTING, Phase.RUNNING, Phase.PAUSED, Phase.DRAINED)
"""The phases of units that should keep running."""

_TABLE: Final[dict[tuple[Phase, Event], Phase]] = {
    (Phase.STARTING, Event.STARTED): Phase.RUNNING,
    (Phase.STARTING, Event.PAUSED): Phase.PAUSED,
    (Phase.RUNNING, Event.PAUSED): Phase.PAUSED,
    (Phase.PAUSED, Event.PAUSED): Phase.PAUSED,
    (Phase.PAUSED, Event.RESUMED): Phase.RUNNING,
    (Phase.RUNNING, Event.RESUMED): Phase.RUNNING,
    (Phase.RUNNING, Event.DRAINED): Phase.DRAINED,
    (Phase.PAUSED, Event.DRAINED): Phase.DRAINED,
    (Phase.DRAINED, Event.PAUSED): Phase.DRAINED,
    (Phase.DRAINED, Event.RESUMED): Phase.DRAINED,
    **{(phase, Event.FAILED): Phase.FAILED for phase in LIVE},
    **{(phase, Event.STOP_ASKED): Phase.STOPPING for phase in LIVE},
    # The unit starts again in another process.
    **{(phase, Event.MOVED): Phase.STARTING for phase in LIVE},
    # A process that ends without a report has failed; one that was asked to stop, or reported that it failed, is gone.
    **{(phase, Event.EXITED): Phase.FAILED for phase in LIVE},
    (Phase.FAILED, Event.EXITED): Phase.FAILED,
    (Phase.FAILED, Event.STOP_ASKED): Phase.GONE,
    (Phase.STOPPING, Event.EXITED): Phase.GONE,
    # Changes that were under way when the stop was asked for may still be reported.
    **{
        (Phase.STOPPING, event): Phase.STOPPING
        for event in (
            Event.STARTED,
            Event.PAUSED,
            Event.RESUMED,
            Event.DRAINED,
            Event.FAILED,
            Event.STOP_ASKED,
        )
    },
}

_PROCESS_TABLE: Final[dict[tuple[ProcessPhase, ProcessEvent], ProcessPhase]] = {
    (ProcessPhase.SERVING, ProcessEvent.MOVE_ASKED): ProcessPhase.MOVING,
    # It may turn out that a unit needs its own process when it moves already.
    (ProcessPhase.MOVING, ProcessEvent.MOVE_ASKED): ProcessPhase.MOVING,
    (ProcessPhase.SERVING, ProcessEvent.REST_ASKED): ProcessPhase.RETIRING,
    (ProcessPhase.RETIRING, ProcessEvent.RESTED): ProcessPhase.RESTING,
    **{
        (phase, ProcessEvent.CLEAR_ASKED): ProcessPhase.CLEARING
        for phase in (ProcessPhase.SERVING, ProcessPhase.MOVING, ProcessPhase.RETIRING, ProcessPhase.CLEARING)
    },
    **{
        (phase, ProcessEvent.ENDED): ProcessPhase.ENDED
        for phase in (ProcessPhase.SERVING, ProcessPhase.MOVING, ProcessPhase.RETIRING, ProcessPhase.CLEARING)
    },
    (ProcessPhase.ENDED, ProcessEvent.REPLACED): ProcessPhase.SERVING,
}


def next_phase(phase: Phase, event: Event) -> Phase:
    """Return the phase after ``event``. Raises ``ValueError`` if it cannot happen in ``phase``."""
    try:
        return _TABLE[phase, event]
    except KeyError:
        raise ValueError(f"a connector or task that is {phase.value} cannot be {event.value}") from None


def next_process_phase(phase: ProcessPhase, event: ProcessEvent) -> ProcessPhase:
    """Return the phase of a process after ``event``. Raises ``ValueError`` if it cannot happen in ``phase``."""
    try:
        return _PROCESS_TABLE[phase, event]
    except KeyError:
        raise ValueError(f"a process that is {phase.value} cannot be {event.value}") from None
