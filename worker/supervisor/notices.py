"""What the supervisor tells the herder: what became of units, what they report, and the answers to inquiries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from worker.metrics.histograms import BOUNDS
from worker.metrics.snapshot import ClientSeen, OwnSeries, OwnValue, own_values
from worker.supervisor.lifecycle import Phase
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Report
from worker.unit import Unit

__all__ = [
    "Answered",
    "AnsweredInPart",
    "Changed",
    "ClientMeasured",
    "Expires",
    "Hangs",
    "Launched",
    "Loaded",
    "Measured",
    "Notice",
    "OwnershipAsked",
    "Published",
    "Rested",
    "TopicsUsed",
    "noticed",
]


@dataclass(frozen=True, slots=True)
class Changed:
    """A unit entered a phase. ``trace`` says why it failed."""

    unit: Unit
    phase: Phase
    trace: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class Published:
    """A connector said which tasks it wants."""

    connector: str
    configs: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class Launched:
    """A process has been started for a unit."""

    unit: Unit
    pid: int


@dataclass(frozen=True, slots=True)
class Rested:
    """A connector goes on without a process, since it watches nothing."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class Measured:
    """A unit reported its numbers: for statuses, for scrapes, histograms, and what changed of the plugin's own."""

    unit: Unit
    values: dict[str, float]
    details: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, tuple[float, ...]] = field(default_factory=dict)
    own: dict[OwnSeries, OwnValue | None] = field(default_factory=dict)

    @classmethod
    def of(cls, unit: Unit, report: messages.Metrics) -> Measured:
        """What a report says. What is no number, as a source may say of what remains, is left out."""
        histograms = {
            name: tuple(map(float, kept))
            for name, kept in report.histograms.items()
            if name in BOUNDS and len(kept) == len(BOUNDS[name]) + 2
        }
        return cls(unit, _numbers(report.values), _numbers(report.details), histograms, own_values(report.own))


@dataclass(frozen=True, slots=True)
class ClientMeasured:
    """A Kafka client of a unit has told its statistics."""

    unit: Unit
    client: ClientSeen

    @classmethod
    def of(cls, unit: Unit, report: messages.ClientMetrics) -> ClientMeasured:
        """What a report says."""
        lags = tuple((str(topic), int(partition), int(lag)) for topic, partition, lag in report.lags)
        return cls(unit, ClientSeen(str(report.kind), str(report.client_id), _numbers(report.values), lags))


@dataclass(frozen=True, slots=True)
class Hangs:
    """A call of a unit's plugin hangs, or goes on: then ``hanging`` is ``None``."""

    unit: Unit
    hanging: messages.Hanging | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A bulk sink has begun a load, is further with it, or has ended it."""

    unit: Unit
    loads: messages.Loads


@dataclass(frozen=True, slots=True)
class TopicsUsed:
    """A task said which topics it writes to or reads from."""

    unit: Unit
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expires:
    """A unit said for how many seconds the values from its config providers hold."""

    unit: Unit
    seconds: float


@dataclass(frozen=True, slots=True)
class OwnershipAsked:
    """The process of a unit asks whether the unit is still this worker's; ``confirm``, from any thread, says yes."""

    unit: Unit
    confirm: Callable[[], None]


@dataclass(frozen=True, slots=True)
class AnsweredInPart:
    """A part of the answer to an inquiry, which comes before it."""

    request: int
    report: Report


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of an inquiry: the report that answers it, or a ``Failed`` if its process could not finish."""

    request: int
    report: Report


Notice: TypeAlias = (
    Launched
    | Rested
    | Changed
    | Published
    | Measured
    | ClientMeasured
    | Loaded
    | Hangs
    | TopicsUsed
    | Expires
    | OwnershipAsked
    | AnsweredInPart
    | Answered
)


def noticed(
    unit: Unit,
    report: messages.Metrics | messages.ClientMetrics | messages.Loads | messages.ActiveTopics | messages.ConfigExpires,
) -> Notice:
    """What to tell of a report that only passes through."""
    match report:
        case messages.Metrics():
            return Measured.of(unit, report)
        case messages.ClientMetrics():
            return ClientMeasured.of(unit, report)
        case messages.Loads():
            return Loaded(unit, report)
        case messages.ActiveTopics(topics):
            return TopicsUsed(unit, tuple(topics))
        case messages.ConfigExpires(ttl_ms):
            return Expires(unit, ttl_ms / 1000)


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}
