"""Notices of the supervisor to the herder: phases and reports of units, and answers to inquiries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from worker.messages import messages
from worker.messages.messages import Report
from worker.metrics.snapshot import BOUNDS, ClientSeen, OwnSeries, OwnValue, own_values
from worker.supervisor.lifecycle import Phase
from worker.unit import Unit

__all__ = [
    "Answered",
    "AnsweredInPart",
    "Changed",
    "ClientMeasured",
    "Expires",
    "Hangs",
    "JvmLaunched",
    "Launched",
    "Loaded",
    "Measured",
    "Noted",
    "Notice",
    "OwnershipAsked",
    "PassedUp",
    "Published",
    "Rested",
    "SignalAnswered",
    "StillMeasured",
    "TopicsUsed",
    "noticed",
]


@dataclass(frozen=True, slots=True)
class Changed:
    """A unit has entered a phase. ``trace`` says why it failed."""

    unit: Unit
    phase: Phase
    trace: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class Published:
    """A connector has published its task configs."""

    connector: str
    configs: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class Launched:
    """A unit was started in this process."""

    unit: Unit
    pid: int


@dataclass(frozen=True, slots=True)
class JvmLaunched:
    """The process with this id has a JVM."""

    pid: int
    jvm: int


@dataclass(frozen=True, slots=True)
class Rested:
    """A connector rests without a process, since it watches nothing."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class Measured:
    """A unit has reported its metrics: for statuses, for scrapes, histograms, and the changed ones of its plugin.

    The next report is due in ``pause`` seconds.
    """

    unit: Unit
    values: dict[str, float]
    details: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, tuple[float, ...]] = field(default_factory=dict)
    own: dict[OwnSeries, OwnValue | None] = field(default_factory=dict)
    pause: float = 0.0

    @classmethod
    def of(cls, unit: Unit, report: messages.Metrics) -> Measured:
        """Return the notice of a report, without values that are not numbers."""
        histograms = {
            name: tuple(map(float, kept))
            for name, kept in report.histograms.items()
            if name in BOUNDS and len(kept) == len(BOUNDS[name]) + 2
        }
        own, pause = own_values(report.own), float(report.pause)
        return cls(unit, _numbers(report.values), _numbers(report.details), histograms, own, pause)


@dataclass(frozen=True, slots=True)
class StillMeasured:
    """The metrics of a unit are those of its last report; the next one is due in ``pause`` seconds."""

    unit: Unit
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientMeasured:
    """A Kafka client of a unit has reported its statistics."""

    unit: Unit
    client: ClientSeen

    @classmethod
    def of(cls, unit: Unit, report: messages.ClientMetrics) -> ClientMeasured:
        """Return the notice of a report."""
        lags = tuple((str(topic), int(partition), int(lag)) for topic, partition, lag in report.lags)
        return cls(unit, ClientSeen(str(report.kind), str(report.client_id), _numbers(report.values), lags))


@dataclass(frozen=True, slots=True)
class Hangs:
    """A call of a unit's plugin hangs; ``hanging`` is ``None`` once it goes on."""

    unit: Unit
    hanging: messages.Hanging | None


@dataclass(frozen=True, slots=True)
class Noted:
    """A task waits for something to exist, goes on, or has left out records."""

    unit: Unit
    note: messages.Waiting | messages.Skipped


@dataclass(frozen=True, slots=True)
class Loaded:
    """A bulk sink has begun or ended a load, or made progress with it."""

    unit: Unit
    loads: messages.Loads


@dataclass(frozen=True, slots=True)
class TopicsUsed:
    """A task has reported which topics it writes to or reads from."""

    unit: Unit
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expires:
    """A unit has reported for how many seconds the values of its config providers are valid."""

    unit: Unit
    seconds: float


@dataclass(frozen=True, slots=True)
class OwnershipAsked:
    """The process of a unit asks whether it still owns the unit; ``confirm``, from any thread, answers yes."""

    unit: Unit
    confirm: Callable[[], None]


@dataclass(frozen=True, slots=True)
class SignalAnswered:
    """A task has taken a signal over, or it was refused."""

    unit: Unit
    request: int
    refused: str | None


@dataclass(frozen=True, slots=True)
class AnsweredInPart:
    """A part of the answer to an inquiry, before the answer itself."""

    request: int
    report: Report


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to an inquiry, or a ``Failed`` if its process could not finish."""

    request: int
    report: Report


Notice: TypeAlias = (
    Launched
    | JvmLaunched
    | Rested
    | Changed
    | Published
    | Measured
    | StillMeasured
    | ClientMeasured
    | Loaded
    | Hangs
    | Noted
    | TopicsUsed
    | Expires
    | OwnershipAsked
    | SignalAnswered
    | AnsweredInPart
    | Answered
)


PassedUp: TypeAlias = (
    messages.Metrics
    | messages.Unchanged
    | messages.ClientMetrics
    | messages.Loads
    | messages.ActiveTopics
    | messages.ConfigExpires
    | messages.Waiting
    | messages.Skipped
    | messages.SignalTaken
)
"""The reports that the supervisor only passes on."""


def noticed(unit: Unit, report: PassedUp) -> Notice:  # noqa: PLR0911 - one for each kind
    """Return the notice of a report that the supervisor only passes on."""
    match report:
        case messages.Metrics():
            return Measured.of(unit, report)
        case messages.Unchanged():
            return StillMeasured(unit, float(report.pause))
        case messages.ClientMetrics():
            return ClientMeasured.of(unit, report)
        case messages.Loads():
            return Loaded(unit, report)
        case messages.Waiting() | messages.Skipped():
            return Noted(unit, report)
        case messages.SignalTaken(request, refused):
            return SignalAnswered(unit, request, refused)
        case messages.ActiveTopics(topics):
            return TopicsUsed(unit, tuple(topics))
        case messages.ConfigExpires(ttl_ms):
            return Expires(unit, ttl_ms / 1000)


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}
