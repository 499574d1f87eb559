"""The phases of a connector or task, and the events that lead from one to another: a table.

Nothing else decides which phase follows which. An event that the table does not list for a phase is a defect of the
runtime, and raises.
"""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["LIVE", "Event", "Phase", "next_phase"]


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


def next_phase(phase: Phase, event: Event) -> Phase:
    """Return the phase after ``event``. Raises ``ValueError`` if it cannot happen in ``phase``."""
    try:
        return _TABLE[phase, event]
    except KeyError:
        raise ValueError(f"a connector or task that is {phase.value} cannot be {event.value}") from None
