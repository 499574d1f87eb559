"""The messages between a worker and its child processes.

Messages are plain data, written as JSON: no class of a plugin ever crosses into the worker (invariant I7).
Commands go down to a child, reports come up from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias

import orjson

from connect.errors import ConnectError
from worker.supervisor.messages.dead_letters import (
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
from worker.supervisor.messages.hangs import Hanging, HangOver, Silent, Watched
from worker.supervisor.messages.inquiries import (
    CompactionEnded,
    CompactTables,
    DescribePlugin,
    Fenced,
    FenceProducers,
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
from worker.supervisor.messages.offsets import (
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
from worker.supervisor.messages.source_requests import (
    CommitOffsets,
    ConfirmOwnership,
    OffsetsCommitted,
    OffsetsRead,
    OwnershipConfirmed,
    ReadOffsets,
)

__all__ = [
    "PARTIAL",
    "ActiveTopics",
    "Addressed",
    "AlterSinkOffsets",
    "AlterSourceOffsets",
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
    "Silent",
    "SinkLag",
    "SinkOffsets",
    "SinkOffsetsReset",
    "SourceOffsetsAllowed",
    "SourceOffsetsWritten",
    "Started",
    "Stop",
    "TableCompacted",
    "TakeConfig",
    "TaskConfigs",
    "ValidateConfig",
    "Validated",
    "ValuesFound",
    "Watched",
    "WriteSourceOffsets",
    "decode",
    "encode",
]


# -- commands: from the worker to a child ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunConnector:
    """The first command of a connector's process: run it, and publish its task configs."""

    connector: str
    config: dict[str, str]
    worker: dict[str, str]


@dataclass(frozen=True, slots=True)
class RunTask:
    """The first command of a task's process. ``config`` is the task's own, ``connector_config`` its connector's."""

    connector: str
    task: int
    config: dict[str, str]
    connector_config: dict[str, str]
    worker: dict[str, str]
    paused: bool


@dataclass(frozen=True, slots=True)
class RunUnits:
    """The first command of a process that several units share; those that follow are :class:`Addressed` to them."""


@dataclass(frozen=True, slots=True)
class SetLogLevel:
    """Log from this level on in this logger and below; ``root`` is every logger."""

    logger: str
    level: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Move no data for now, and keep what was assigned."""


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
    """Deliver what the topics hold by now, report :class:`Drained` and wait (sinks only)."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Commit what can be committed and exit."""


@dataclass(frozen=True, slots=True)
class TakeConfig:
    """Go on with this task config, which has a larger share; a task that cannot says :class:`Declined`."""

    config: dict[str, str]


@dataclass(frozen=True, slots=True)
class Rest:
    """Stop the connector and exit: it counts as running, and its task configs are known (connectors only)."""


Inquiry: TypeAlias = (
    ValidateConfig
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
"""A question that a process is started to answer once; the answer to a wrong one is :class:`Refused`."""


@dataclass(frozen=True, slots=True)
class Addressed:
    """A command to one of the units that share a process, or a report from it; ``seat`` is the unit's number there.

    Seats are numbered from 1 in the order in which units come, and none is given twice.
    """

    seat: int
    message: Any


Command: TypeAlias = (
    RunConnector
    | RunTask
    | RunUnits
    | ValidateConfig
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

    ``needs_process`` says that it cannot share a process.
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
    """The plugin or the runtime gave up; the process ends."""

    trace: str


@dataclass(frozen=True, slots=True)
class Drained:
    """All data is delivered and committed; the process waits for :class:`Stop`."""


@dataclass(frozen=True, slots=True)
class ConfigExpires:
    """The values of config providers hold for so many milliseconds, after which the process is to be restarted."""

    ttl_ms: int


@dataclass(frozen=True, slots=True)
class NeedsProcess:
    """The plugin cannot share a process with others; the unit has not begun, and ends."""


@dataclass(frozen=True, slots=True)
class Lives:
    """A unit in a process that several share lives in this thread of it (its ``threading.get_ident``)."""

    thread: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A unit in a process that several share has ended, and left no thread behind. Nothing comes after this."""


@dataclass(frozen=True, slots=True)
class TaskConfigs:
    """The task configs a connector wants."""

    configs: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class ActiveTopics:
    """Topics that the task has written to or read from since its last report of them."""

    topics: list[str]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A line of the child's log; ``text`` holds the traceback, too."""

    logger: str
    level: int
    created: float
    text: str


@dataclass(frozen=True, slots=True)
class Idle:
    """All that the connector has to say is said, and it watches nothing: its process is of no use for now."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The task does not take a new configuration while it runs, and is to be started anew with it."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counters and gauges of a task by name; counters only grow while the process lives.

    ``values`` are shown in statuses, ``details`` only to who scrapes; ``histograms`` have a sum and the counts of the
    buckets (:mod:`worker.metrics.buckets`). ``own`` is what has changed of the plugin's own: of each a name, its labels
    by turns with their values, a sentence about it, and the number; ``None`` if it is there no longer. ``cpu`` is how
    many seconds of a core the task's threads have taken since it began.
    """

    values: dict[str, float]
    details: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, list[float]] = field(default_factory=dict)
    own: list[tuple[str, list[str], str, float | None]] = field(default_factory=list)
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientMetrics:
    """What the statistics of a Kafka client say: its kind, its values, and the lag by topic and partition."""

    kind: str
    client_id: str
    values: dict[str, float]
    lags: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Loads:
    """The load of a bulk sink that is under way, if any, and the last ones, the newest first, as documents.

    ``retry`` tells when one that has failed is tried again.
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
    | Ended
    | TaskConfigs
    | Validated
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
    | Metrics
    | ClientMetrics
    | Loads
    | LogRecord
    | Addressed
)

PARTIAL: Final = (Previewed, TableCompacted)
"""The reports that come before the answer to an inquiry."""

_TYPES: Final[dict[str, type[Any]]] = {
    kind.__name__: kind for kind in (*Command.__args__, *Report.__args__) if kind is not Addressed
}


def encode(message: Command | Report) -> bytes:
    """One message as bytes for a pipe."""
    bare = message.message if isinstance(message, Addressed) else message
    kind = type(bare)
    whole: list[Any] = [kind.__name__, {field.name: getattr(bare, field.name) for field in fields(kind)}]
    return orjson.dumps([*whole, message.seat] if isinstance(message, Addressed) else whole)


def decode(data: bytes) -> Any:
    """The message that :func:`encode` made; :class:`~connect.errors.ConnectError` if there is no such message."""
    try:
        name, values, *seat = orjson.loads(data)
        message = _TYPES[name](**values)
        return Addressed(int(*seat), message) if seat else message
    except (orjson.JSONDecodeError, ValueError, KeyError, TypeError) as error:
        raise ConnectError(f"A process of this worker sent {len(data)} bytes, which is not a message.") from error
