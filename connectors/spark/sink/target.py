"""Targets: where a connector's loads go, and what keeps the offsets together with the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from connect.bulk import OffsetRange
from connect.data import Schema, TopicPartition
from connect.errors import ConnectError

if TYPE_CHECKING:
    from connectors.spark.decoding.row_limits import RowLimits
    from connectors.spark.partitioner import Partitioner
    from connectors.spark.sink.loading.loader import Loader

__all__ = ["CLIENTS", "FencedError", "Target", "TargetContents"]

CLIENTS: Final = {"s3": ("boto3",), "gcs": ("google.cloud.storage",), "azure": ("azure.storage.blob",)}
"""The packages that executors need to write files themselves, by kind of store."""


class FencedError(ConnectError):
    """Another driver has taken over the target. This one has lost its load and must stop."""


@dataclass(frozen=True, slots=True)
class TargetContents:
    """The contents of a target: table schemas, schemas of rows before a query, offsets, the locations of tables, and
    what their rows may not have.
    """

    tables: Mapping[str, Schema] = field(default_factory=dict)
    records: Mapping[str, Schema] = field(default_factory=dict)
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    partitioner: Partitioner | None = None
    place: Callable[[str], str] = str
    limits: Callable[[str, Schema], RowLimits | None] | None = None


class Target(Protocol):
    """The tables of one connector in one store, with the offsets up to which they hold the records.

    A target belongs to the driver that called :meth:`open` last. An earlier driver can no longer commit: its next
    commit fails with :class:`FencedError`.
    """

    @property
    def packages(self) -> Sequence[str]:
        """The packages that executors need in addition to what every load needs."""

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The next offset of every partition that was loaded before."""

    @property
    def topics(self) -> Mapping[str, str]:
        """The topic ids the offsets belong to, as far as known."""

    def peek(self) -> TargetContents:
        """Return the contents, for a driver that has not opened the target. Writes nothing and fences nobody."""

    def open(self) -> None:
        """Finish or delete the loads that an earlier driver left behind, and fence it if it is still running."""

    def recover(self) -> None:
        """Finish or delete what a failed load of this driver left behind; called before each load."""

    def load(self, ranges: Sequence[OffsetRange], loader: Loader) -> None:
        """Write the records of these ranges and commit them with their offsets.

        When this returns, readers see the records exactly once and the offsets count. When it raises or the driver is
        killed,
        either all of the ranges are committed or readers see no change at all. The ranges are sorted, not empty, and
        begin at
        :attr:`offsets`.
        """

    def skip(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue from these offsets, which are later than the target's."""
