"""Messages about plugins and tables: inquiries of a worker to a child process, and the answers.

They are part of :mod:`worker.supervisor.messages.messages`, which encodes and decodes all messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from worker.supervisor.messages.offsets import OffsetPairs

__all__ = [
    "CompactTables",
    "CompactionEnded",
    "DescribePlugin",
    "FenceProducers",
    "Fenced",
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
    """Check a connector's configuration; the answer is :class:`Validated`. A value may be null, which is a mistake."""

    config: dict[str, str | None]
    worker: dict[str, str]


@dataclass(frozen=True, slots=True)
class DescribePlugin:
    """Tell the keys of a plugin; the answer is :class:`PluginDescribed`."""

    kind: str
    name: str
    version: str
    worker: dict[str, str]


@dataclass(frozen=True, slots=True)
class PreviewConnector:
    """Show what a connector would do with its next ``records``, within ``seconds`` and so many bytes of documents, and
    change nothing.

    Each is a :class:`Previewed`, and :class:`PreviewEnded` comes after the last. ``offsets`` are those that the worker
    keeps; without them they are read from the worker's topic. ``from_beginning`` leaves them aside.
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
    """Ask a config provider of the worker's for values, all of a path without ``keys``; the answer is
    :class:`ValuesFound`.
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
    """The outcome of :class:`ValidateConfig`: Kafka Connect's ``ConfigInfos``, and what the worker must
    know of them.
    """

    infos: dict[str, Any]
    type: str
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Previewed:
    """One record of a preview, with all that became of it, or a table of it, as a document."""

    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PreviewEnded:
    """The end of a preview: why there are no more records; if that is a failure, ``trace`` may tell more of it."""

    reason: str
    trace: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class PluginDescribed:
    """The outcome of :class:`DescribePlugin`: Kafka Connect's ``ConfigKeyInfo``, one a key."""

    keys: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ValuesFound:
    """The outcome of :class:`LookUpValues`, and for how long it holds. It is secret, and never logged."""

    values: dict[str, str] = field(repr=False)
    ttl_ms: int | None


@dataclass(frozen=True, slots=True)
class Fenced:
    """The outcome of :class:`FenceProducers`: none of them can write any more."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to an inquiry that failed; ``invalid`` says whether the question itself was wrong."""

    message: str
    invalid: bool


@dataclass(frozen=True, slots=True)
class CompactTables:
    """Merge the small files of a sink's tables, of all of them without ``tables``.

    Each that is done is a :class:`TableCompacted`, and :class:`CompactionEnded` comes after the last.
    """

    config: dict[str, str]
    worker: dict[str, str]
    tables: list[str] | None


@dataclass(frozen=True, slots=True)
class TableCompacted:
    """One table whose files were merged."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class CompactionEnded:
    """All tables are done, or had nothing to merge."""
