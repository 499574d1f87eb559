"""Targets: where a connector's loads go, and what keeps the offsets together with the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connectors.spark.config import SparkSinkConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.loading.loader import Loader
    from connectors.spark.preview import TargetContents

__all__ = ["Target", "make_target"]


class Target(Protocol):
    """The tables of one connector in one store, with the offsets up to which they hold the records.

    A target belongs to the driver that called :meth:`open` last. An earlier driver can no longer commit: its next
    commit fails with :class:`~connectors.spark.ledger.ledger.FencedError`.
    """

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


def make_target(config: SparkSinkConfig, connector: str, spark: Callable[[], SparkSession]) -> Target:
    """Return a connector's target. ``spark`` returns its session, for targets that are reached through Spark."""
    if config.table_format == "iceberg":
        from connectors.spark.iceberg.target import IcebergTarget  # noqa: PLC0415 - brings pyarrow

        return IcebergTarget(config, connector, spark)
    if config.table_format == "delta":
        from connectors.spark.delta.target import DeltaTarget  # noqa: PLC0415 - brings pyspark

        return DeltaTarget(config, connector, spark)
    from connectors.spark.ledger.target import FilesTarget  # noqa: PLC0415 - brings pyarrow

    return FilesTarget(config, connector, spark)
