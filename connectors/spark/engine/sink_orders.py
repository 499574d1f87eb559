"""The driver's orders to executors that run sink tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.internals.chain.tolerance import ErrorPolicy
from connect.offset_set import OffsetSet

__all__ = ["SinkOrders", "shares_of"]


@dataclass(frozen=True, slots=True)
class SinkOrders:
    """The orders for an executor; plain data, sent to it.

    ``chain`` is the configuration of the chain, ``connector`` the name of the connector's class, and ``task`` the
    configuration of a task. ``shares`` are the ranges of each task, which it reads with a consumer that has these
    ``settings``, up to ``most`` records at a time. For ``settled`` partitions, the target need not be asked for its
    offsets. ``given_up`` are the bad records that were already reported.

    What a task itself publishes goes to Kafka through a producer with the settings ``producer`` if its topic is among
    the existing ``topics``; otherwise to the driver, which creates the topic.
    """

    connector: str
    chain: Mapping[str, str] = field(repr=False)
    task: Mapping[str, str] = field(repr=False)
    settings: Mapping[str, str | int | bool] = field(repr=False)
    most: int = 10_000
    shares: Sequence[Sequence[OffsetRange]] = ()
    settled: frozenset[TopicPartition] = frozenset()
    policy: ErrorPolicy = ErrorPolicy()  # noqa: RUF009 - it never changes
    reports: bool = False
    given_up: Mapping[TopicPartition, OffsetSet] = field(default_factory=dict)
    producer: Mapping[str, str | int | bool] = field(default_factory=dict, repr=False)
    topics: frozenset[str] = frozenset()


def shares_of(ranges: Iterable[OffsetRange], most: int) -> list[list[OffsetRange]]:
    """Divide ranges among at most this many tasks, with about equal numbers of records."""
    shares: list[list[OffsetRange]] = []
    sizes: list[int] = []
    for item in sorted(ranges, key=lambda item: (-len(item), item)):
        if len(shares) < most:
            shares.append([])
            sizes.append(0)
        least = sizes.index(min(sizes))
        shares[least].append(item)
        sizes[least] += len(item)
    return shares
