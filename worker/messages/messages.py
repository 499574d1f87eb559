"""The messages between a worker and its child processes.

Messages are plain data, written as JSON: no class of a plugin ever crosses into the worker (invariant I7).
Commands go down to a child, reports come up from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias

import orjson

from connect.errors import ConnectError
from worker.messages.dead_letters import (
    DeadLetterRead,
    DeadLetterRepaired,
    DeadLetterSelection,
    DeadLettersListed,
    DeadLettersReplayed,
    ListDeadLetters,
    ReadDeadLetter,
    RepairDeadLetter,
    ReplayDeadLetters,
)
from worker.messages.hangs import Hanging, HangOver, Silent, Watched
from worker.messages.inquiries import (
    ChoicesFound,
    CompactionEnded,
    CompactTables,
    DescribePlugin,
    Fenced,
    FenceProducers,
    FindChoices,
    LookUpValues,
    PluginDescribed,
    PreviewConnector,
    Previewed,
    PreviewEnded,
    Refused,
    TableCompacted,
    ValidateConfig,
    Validated,
    ValuesFound,
)
from worker.messages.offsets import (
    AlterSinkOffsets,
    AlterSourceOffsets,
    DedicatedOffsets,
    OffsetPairs,
    OffsetsAltered,
    ReadDedicatedOffsets,
    ReadSinkLag,
    ReadSinkOffsets,
    ResetSinkOffsets,
    SinkLag,
    SinkOffsets,
    SinkOffsetsReset,
    SourceOffsetsAllowed,
    SourceOffsetsWritten,
    WriteSourceOffsets,
)
from worker.messages.source_requests import (
    CommitOffsets,
    ConfirmOwnership,
    OffsetsCommitted,
    OffsetsRead,
    OwnershipConfirmed,
    ReadOffsets,
    SignalTaken,
    TakeSignal,
)

__all__ = [
    "PARTIAL",
    "ActiveTopics",
    "Addressed",
    "AlterSinkOffsets",
    "AlterSourceOffsets",
    "ChoicesFound",
    "ClientMetrics",
    "Command",
    "CommitOffsets",
    "CompactTables",
    "CompactionEnded",
    "ConfigExpires",
    "ConfirmOwnership",
    "DeadLetterRead",
    "DeadLetterRepaired",
    "DeadLetterSelection",
    "DeadLettersListed",
    "DeadLettersReplayed",
    "Declined",
    "DedicatedOffsets",
    "DescribePlugin",
    "Drain",
    "Drained",
    "Ended",
    "Fail",
    "Failed",
    "FenceProducers",
    "Fenced",
    "FindChoices",
    "HangOver",
    "Hanging",
    "Idle",
    "Inquiry",
    "ListDeadLetters",
    "Lives",
    "Loads",
    "LogRecord",
    "LookUpValues",
    "Metrics",
    "NeedsProcess",
    "OffsetPairs",
    "OffsetsAltered",
    "OffsetsCommitted",
    "OffsetsRead",
    "OwnershipConfirmed",
    "Pause",
    "Paused",
    "PluginDescribed",
    "PreviewConnector",
    "PreviewEnded",
    "Previewed",
    "ReadDeadLetter",
    "ReadDedicatedOffsets",
    "ReadOffsets",
    "ReadSinkLag",
    "ReadSinkOffsets",
    "Reconfigure",
    "Refused",
    "RepairDeadLetter",
    "ReplayDeadLetters",
    "Report",
    "ResetSinkOffsets",
    "Rest",
    "Resume",
    "Resumed",
    "RunConnector",
    "RunTask",
    "RunUnits",
    "SetLogLevel",
    "SignalTaken",
    "Silent",
    "SinkLag",
    "SinkOffsets",
    "SinkOffsetsReset",
    "Skipped",
    "SourceOffsetsAllowed",
    "SourceOffsetsWritten",
    "Started",
    "Stop",
    "TableCompacted",
    "TakeConfig",
    "TakeSignal",
    "TaskConfigs",
    "Unchanged",
    "ValidateConfig",
    "Validated",
    "ValuesFound",
    "Waiting",
    "Watched",
    "WriteSourceOffsets",
    "decode",
    "encode",
]


# -- commands: from the worker to a child ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunConnector:
    """Run a connector, and publish its task configs: the first command of its process."""

    connector: str
    config: dict[str, str]
    worker: dict[str, str]


@dataclass(frozen=True, slots=True)
class RunTask:
    """Run a task: the first command of its process. ``config`` is its own, ``connector_config`` its connector's."""

    connector: str
    task: int
    config: dict[str, str]
    connector_config: dict[str, str]
    worker: dict[str, str]
    paused: bool


@dataclass(frozen=True, slots=True)
class RunUnits:
    """Run several units: the first command of a shared process. All that follow are :class:`Addressed` to units."""


@dataclass(frozen=True, slots=True)
class SetLogLevel:
    """Set the level of a logger and of those below it; ``root`` is every logger."""

    logger: str
    level: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop moving data, and keep the assignment."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Move data again."""


@dataclass(frozen=True, slots=True)
class Reconfigure:
    """Compute the task configs again (connectors only)."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail with this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Drain:
    """Deliver the records that the topics hold now, report :class:`Drained` and wait (sinks only)."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Commit what can be committed and exit."""


@dataclass(frozen=True, slots=True)
class TakeConfig:
    """Go on with this task config, which has a larger share; a task that cannot reports :class:`Declined`."""

    config: dict[str, str]


@dataclass(frozen=True, slots=True)
class Rest:
    """Stop the connector and exit, though it counts as running: its task configs are known (connectors only)."""


Inquiry: TypeAlias = (
    ValidateConfig
    | FindChoices
    | DescribePlugin
    | PreviewConnector
    | CompactTables
    | LookUpValues
    | AlterSourceOffsets
    | ReadDedicatedOffsets
    | WriteSourceOffsets
    | AlterSinkOffsets
    | ReadSinkOffsets
    | ResetSinkOffsets
    | ReadSinkLag
    | ListDeadLetters
    | ReadDeadLetter
    | RepairDeadLetter
    | ReplayDeadLetters
    | FenceProducers
)
"""A question that a new process answers once; the answer to an invalid one is :class:`Refused`."""


@dataclass(frozen=True, slots=True)
class Addressed:
    """A command to one of the units that share a process, or a report from it; ``seat`` is the number of the unit.

    Seats are numbered from 1 in the order in which units come, and never used again.
    """

    seat: int
    message: Any


Command: TypeAlias = (
    RunConnector
    | RunTask
    | RunUnits
    | ValidateConfig
    | FindChoices
    | DescribePlugin
    | PreviewConnector
    | CompactTables
    | LookUpValues
    | AlterSourceOffsets
    | ReadDedicatedOffsets
    | WriteSourceOffsets
    | AlterSinkOffsets
    | ReadSinkOffsets
    | ResetSinkOffsets
    | ReadSinkLag
    | ListDeadLetters
    | ReadDeadLetter
    | RepairDeadLetter
    | ReplayDeadLetters
    | FenceProducers
    | SetLogLevel
    | Pause
    | Resume
    | Reconfigure
    | TakeConfig
    | TakeSignal
    | Rest
    | Fail
    | Drain
    | Stop
    | OffsetsRead
    | OffsetsCommitted
    | OwnershipConfirmed
    | Addressed
)


# -- reports: from a child to the worker --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """The plugin's ``start`` has returned; data moves unless the task was started paused.

    ``needs_process`` says that the plugin cannot share a process.
    """

    version: str
    needs_process: bool = False


@dataclass(frozen=True, slots=True)
class Paused:
    """No data moves any more."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Data moves again."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The plugin or the runtime has failed; the process ends."""

    trace: str


@dataclass(frozen=True, slots=True)
class Drained:
    """All data is delivered and committed; the process waits for :class:`Stop`."""


@dataclass(frozen=True, slots=True)
class ConfigExpires:
    """Values of config providers expire in this many milliseconds, when the process has to be restarted."""

    ttl_ms: int


@dataclass(frozen=True, slots=True)
class NeedsProcess:
    """The plugin cannot share a process; the unit ends without having started."""


@dataclass(frozen=True, slots=True)
class Lives:
    """A unit of a shared process runs in this thread (its ``threading.get_ident``)."""

    thread: int


@dataclass(frozen=True, slots=True)
class RunsJvm:
    """The process of the unit has a JVM, a process of its own, whose memory and CPU time count with it."""

    pid: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A unit of a shared process has ended, and none of its threads is left: its last report."""


@dataclass(frozen=True, slots=True)
class TaskConfigs:
    """The task configs of the connector."""

    configs: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class ActiveTopics:
    """Topics that the task has written to or read from since its last report of topics."""

    topics: list[str]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A line of the child's log; ``text`` includes the traceback. ``in_place`` is that of the status line."""

    logger: str
    level: int
    created: float
    text: str
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Idle:
    """The connector has published its task configs and watches nothing, so that it needs no process for now."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The task cannot take a new configuration while it runs, and has to be started again with it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The task waits until something exists, for this reason; ``None`` once it goes on."""

    reason: str | None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The records that the task has left out since it started, and how many of them are dead letters.

    ``since`` and ``last`` are the times of the start of the task and of the last record that was left out, in seconds
    since 1970, and ``reason`` is why the last one was; empty if that is unknown.
    """

    records: int
    dead_letters: int
    since: float
    last: float
    reason: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counters and gauges of a task by name; counters only grow while the process lives.

    ``values`` are shown in statuses, ``details`` only in scrapes; ``histograms`` have a sum and the counts of the
    buckets (:mod:`worker.metrics.snapshot`). ``own`` has the changed measurements of the plugin: the name, labels and
    their values alternately, the help, and the number or ``None`` if it is gone. ``cpu`` are the CPU seconds of the
    task's threads since its start. ``pause`` is in how many seconds the next report is due.
    """

    values: dict[str, float]
    details: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, list[float]] = field(default_factory=dict)
    own: list[tuple[str, list[str], str, float | None]] = field(default_factory=list)
    cpu: float = 0.0
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The metrics of a task are those of its last report; ``cpu`` and ``pause`` are as in :class:`Metrics`."""

    cpu: float
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientMetrics:
    """The statistics of a Kafka client: its kind, its values, and the lag by topic and partition."""

    kind: str
    client_id: str
    values: dict[str, float]
    lags: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Loads:
    """The current load of a bulk sink, if any, and the last ones, newest first, as documents.

    ``retry`` says when a failed load is tried again.
    """

    current: dict[str, Any] | None
    last: list[dict[str, Any]]
    retry: dict[str, Any] | None


Report: TypeAlias = (
    Started
    | Paused
    | Resumed
    | Failed
    | Watched
    | Hanging
    | HangOver
    | Silent
    | Drained
    | Declined
    | ConfigExpires
    | Idle
    | NeedsProcess
    | Lives
    | RunsJvm
    | Ended
    | TaskConfigs
    | Validated
    | ChoicesFound
    | Previewed
    | PreviewEnded
    | TableCompacted
    | CompactionEnded
    | PluginDescribed
    | ValuesFound
    | OffsetsAltered
    | SourceOffsetsAllowed
    | SourceOffsetsWritten
    | DedicatedOffsets
    | SinkOffsets
    | SinkOffsetsReset
    | SinkLag
    | DeadLetterRead
    | DeadLetterRepaired
    | DeadLettersListed
    | DeadLettersReplayed
    | Fenced
    | Refused
    | ActiveTopics
    | ReadOffsets
    | CommitOffsets
    | ConfirmOwnership
    | SignalTaken
    | Metrics
    | Unchanged
    | ClientMetrics
    | Loads
    | Waiting
    | Skipped
    | LogRecord
    | Addressed
)

PARTIAL: Final = (Previewed, TableCompacted)
"""The reports that may come before the answer to an inquiry."""

_TYPES: Final[dict[str, type[Any]]] = {
    kind.__name__: kind for kind in (*Command.__args__, *Report.__args__) if kind is not Addressed
}


def encode(message: Command | Report) -> bytes:
    """Encode a message for a pipe."""
    bare = message.message if isinstance(message, Addressed) else message
    kind = type(bare)
    whole: list[Any] = [kind.__name__, {field.name: getattr(bare, field.name) for field in fields(kind)}]
    return orjson.dumps([*whole, message.seat] if isinstance(message, Addressed) else whole)


def decode(data: bytes) -> Any:
    """Decode the bytes of :func:`encode`. Raises :class:`~connect.errors.ConnectError` if they are no message."""
    try:
        name, values, *seat = orjson.loads(data)
        message = _TYPES[name](**values)
        return Addressed(int(*seat), message) if seat else message
    except (orjson.JSONDecodeError, ValueError, KeyError, TypeError) as error:
        raise ConnectError(f"A process of this worker sent {len(data)} bytes that are not a message.") from error
