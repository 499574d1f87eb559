"""Bad records of a load: they fail the load, or are left out once the log, the dead letter queue and the tolerance have
recorded them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from connect.bulk import BulkSinkTaskContext, OffsetRange
from connect.data import Schema, TopicPartition
from connect.internals.chain.tolerance import ErrorPolicy, Failure
from connect.offset_set import OffsetSet
from connectors.spark.decoding.failures import described_failures, refuse_record
from connectors.spark.decoding.report import Rejection
from connectors.spark.sink.loading.request import Loaded, LoadRequest

__all__ = ["BadRecords", "Examine"]

logger = logging.getLogger(__name__)

_NAMED_FAILURES: Final = 3
_BYTES: Final = 32 * 1024 * 1024
_LATE: Final = "the record came after its window was written (sql.window.late=dead-letter)"

Examine = Callable[[Sequence[OffsetRange], Mapping[str, Schema], Mapping[int, OffsetSet], int], pa.Table]
"""Reads records of ranges again; returns rows that describe the failures at these offsets, up to a number of bytes."""


class BadRecords:
    """Handles the bad records of one topic's load according to ``errors.tolerance``.

    Used only by the task's thread.
    """

    def __init__(
        self, request: LoadRequest, context: BulkSinkTaskContext, policy: ErrorPolicy, examine: Examine
    ) -> None:
        self._topic = request.topic
        self._ranges = request.ranges
        self._context = context
        self._policy = policy
        self._examine = examine
        self._late: Mapping[int, OffsetSet] = {}

    def refuse(self, rejections: Sequence[Rejection], tables: Mapping[str, Schema]) -> None:
        """Fail the load because of its first bad record, unless bad records are left out."""
        if not rejections or self._policy.tolerates_errors:
            return
        refuse_record(self._context, rejections[0], partial(self._failures, tables))

    def give_up(self, loaded: Loaded) -> Mapping[int, OffsetSet]:
        """Leave out the bad records of a load; when this returns, the log, the dead letter queue and the tolerance have
        recorded them.

        Late records are handled in the same step: everything a load leaves out is reported at once, because separate
        steps might report it twice.
        """
        bad: dict[int, OffsetSet] = {}
        for reports in loaded.reports.values():
            for partition, offsets in reports.rejected.items():
                bad[partition] = bad.get(partition, OffsetSet()) | offsets
        if bad:
            _log_rejections(loaded, bad)
        out = dict(bad)
        for partition, offsets in loaded.late.items():
            out[partition] = out.get(partition, OffsetSet()) | offsets
        if out:
            named = {TopicPartition(self._topic, partition): offsets for partition, offsets in sorted(out.items())}
            self._late = loaded.late
            self._context.leave_out(named, partial(self._failures, loaded.records or loaded.tables))
        return bad

    def _failures(self, tables: Mapping[str, Schema], asked: Mapping[TopicPartition, OffsetSet]) -> Iterator[Failure]:
        """Yield the failure of each of these records."""
        left = {tp.partition: offsets for tp, offsets in asked.items()}
        return described_failures(self._topic, left, partial(self._examined, tables))

    def _examined(self, tables: Mapping[str, Schema], offsets: Mapping[int, OffsetSet]) -> Any:
        """Return rows that describe bad records, for each partition in the order of its offsets."""
        spans = {partition: list(asked.spans()) for partition, asked in offsets.items()}
        asked = [
            replace(item, first=spans[item.partition][0][0], end=spans[item.partition][-1][1])
            for item in self._ranges
            if item.partition in spans
        ]
        rows = self._examine(asked, tables, offsets, _BYTES // len(asked))
        return _with_late(rows, self._late) if self._late else rows


def _with_late(rows: Any, late: Mapping[int, OffsetSet]) -> Any:
    """Set the message of the rows that describe late records, which have no other fault."""
    described: list[dict[str, Any]] = rows.to_pylist()
    for row in described:
        if row["offset"] in late.get(row["partition"], OffsetSet()):
            row |= {"message": _LATE, "trace": f"{row['error_class']}: {_LATE}"}
    return pa.Table.from_pylist(described, schema=rows.schema)


def _log_rejections(loaded: Loaded, bad: Mapping[int, OffsetSet]) -> None:
    every = [rejection for reports in loaded.reports.values() for rejection in reports.rejections()]
    read = max(sum(report.read for report in reports) for reports in loaded.reports.values())
    first = "; ".join(map(str, every[:_NAMED_FAILURES]))
    count = sum(map(len, bad.values()))
    logger.warning("Left out %d of %d records (errors.tolerance=all). First one: %s", count, read, first)
