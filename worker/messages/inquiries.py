"""Messages about plugins and tables: inquiries of a worker to a child process, and the answers.

They are part of :mod:`worker.messages.messages`, which encodes and decodes all messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from worker.messages.offsets import OffsetPairs

__all__ = [
    "ChoicesFound",
    "CompactTables",
    "CompactionEnded",
    "DescribePlugin",
    "FenceProducers",
    "Fenced",
    "FindChoices",
    "LookUpValues",
    "PluginDescribed",
    "PreviewConnector",
    "PreviewEnded",
    "Previewed",
    "Refused",
    "TableCompacted",
    "ValidateConfig",
    "Validated",
    "ValuesFound",
]


@dataclass(frozen=True, slots=True)
class ValidateConfig:
    """Validate a connector's configuration; the answer is :class:`Validated`. A null value is an error.

    ``connect`` asks the connector's system, too, if nothing is wrong otherwise.
    """

    config: dict[str, str | None]
    worker: dict[str, str]
    connect: bool = False


@dataclass(frozen=True, slots=True)
class FindChoices:
    """Ask a connector's system what ``key`` can name; the answer is :class:`ChoicesFound`.

    The configuration may be unfinished. A sink's ``topics`` are asked of its brokers.
    """

    config: dict[str, str]
    worker: dict[str, str]
    key: str


@dataclass(frozen=True, slots=True)
class DescribePlugin:
    """List the config keys of a plugin; the answer is :class:`PluginDescribed`."""

    kind: str
    name: str
    version: str
    worker: dict[str, str]


@dataclass(frozen=True, slots=True)
class PreviewConnector:
    """Show what a connector would do with its next ``records``, and change nothing.

    It ends after ``seconds`` or ``bytes`` of documents. Each record is a :class:`Previewed`, and
    :class:`PreviewEnded` is the last report. ``offsets`` are those that the worker stores; without them they are read
    from the worker's topic. ``from_beginning`` ignores them.
    """

    config: dict[str, str]
    worker: dict[str, str]
    records: int
    seconds: float
    bytes: int
    from_beginning: bool
    offsets: OffsetPairs | None


@dataclass(frozen=True, slots=True)
class LookUpValues:
    """Look up values of the worker's config provider, all of a path without ``keys``.

    The answer is :class:`ValuesFound`.
    """

    worker: dict[str, str]
    provider: str
    path: str
    keys: list[str] | None


@dataclass(frozen=True, slots=True)
class FenceProducers:
    """Fence the transactional producers of these tasks of a source connector; the answer is :class:`Fenced`."""

    config: dict[str, str]
    worker: dict[str, str]
    tasks: list[int]


@dataclass(frozen=True, slots=True)
class Validated:
    """The answer to :class:`ValidateConfig`: Kafka Connect's ``ConfigInfos``, the connector's type, and warnings.

    ``connection`` tells whether the connector's system was asked; ``None`` if that was not wanted. ``choices`` are the
    keys that :class:`FindChoices` can be asked for, each with what its values are.
    """

    infos: dict[str, Any]
    type: str
    warnings: list[str] = field(default_factory=list)
    connection: dict[str, Any] | None = None
    choices: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChoicesFound:
    """The answer to :class:`FindChoices`: the first ``values`` in order, and how many there are in all."""

    values: list[str]
    total: int


@dataclass(frozen=True, slots=True)
class Previewed:
    """One record of a preview with its steps, or one table, as a document."""

    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PreviewEnded:
    """The end of a preview: why there are no more records. A failure may have a ``trace``."""

    reason: str
    trace: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class PluginDescribed:
    """The answer to :class:`DescribePlugin`: a ``ConfigKeyInfo`` of Kafka Connect for each key."""

    keys: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ValuesFound:
    """The answer to :class:`LookUpValues`, and for how long it is valid. It is secret, and never logged."""

    values: dict[str, str] = field(repr=False)
    ttl_ms: int | None


@dataclass(frozen=True, slots=True)
class Fenced:
    """The answer to :class:`FenceProducers`: none of the producers can write any more."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to an inquiry that failed; ``invalid`` says whether the inquiry itself was wrong."""

    message: str
    invalid: bool


@dataclass(frozen=True, slots=True)
class CompactTables:
    """Merge the small files of a sink's tables; without ``tables``, of all of them.

    Each compacted table is a :class:`TableCompacted`, and :class:`CompactionEnded` is the last report.
    """

    config: dict[str, str]
    worker: dict[str, str]
    tables: list[str] | None


@dataclass(frozen=True, slots=True)
class TableCompacted:
    """A table whose files were merged."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class CompactionEnded:
    """All tables are compacted, or had nothing to merge."""
