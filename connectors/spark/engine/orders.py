"""The orders of the driver to the executors that run sink tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connect.chain.tolerance import ErrorPolicy
from connect.data import TopicPartition
from connect.offset_set import OffsetSet

__all__ = ["SinkOrders"]


@dataclass(frozen=True, slots=True)
class SinkOrders:
    """The orders for an executor; plain data, for they are sent there.

    ``chain`` is what the chain is made from, ``connector`` the name of the connector's class, and ``task`` the
    configuration of a task. ``firsts`` are the first offsets of the ranges; of the partitions that are ``settled`` the
    target need not be asked for its offsets. ``given_up`` are the bad records that are told of already.
    """

    connector: str
    chain: Mapping[str, str] = field(repr=False)
    task: Mapping[str, str] = field(repr=False)
    firsts: Mapping[TopicPartition, int] = field(default_factory=dict)
    settled: frozenset[TopicPartition] = frozenset()
    policy: ErrorPolicy = ErrorPolicy()  # noqa: RUF009 - it never changes
    reports: bool = False
    given_up: Mapping[TopicPartition, OffsetSet] = field(default_factory=dict)
