"""The failures of records that a load leaves out: executors describe them as rows, and the driver reads these back.

A pass over records only notes the offsets of the bad ones. If they are to be reported (to a log, a dead letter queue),
another pass goes over those alone, a few at a time, and describes each whole record with its error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Never

import pyarrow as pa
import pyarrow.compute as pc

from connect.bulk import BulkSinkTaskContext, FailuresOf
from connect.data import Schema, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.tolerance import Failure, RaisedElsewhere, Stage
from connect.offset_set import OffsetSet
from connectors.spark.decoding.decoder import DecodePlan, Decoder, Mode
from connectors.spark.decoding.raw_batch import RawBatch
from connectors.spark.decoding.report import TASK, Rejection, Report

__all__ = [
    "FAILURE_ROWS",
    "Examiner",
    "described_failures",
    "failure_row",
    "failures_of",
    "refuse_record",
    "size_of_row",
]

_PORTION: Final = 10_000
_END: Final = 2**63 - 1
_COLUMNS: Final[Mapping[str, Any]] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.int64(),
    "timestamp_type": pa.string(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "stage": pa.string(),
    "executing": pa.string(),
    "message": pa.string(),
    "error_class": pa.string(),
    "trace": pa.string(),
}
FAILURE_ROWS: Final = pa.schema(_COLUMNS)
_UNSTABLE: Final = (
    "the record failed during the load but not when it was examined again: a converter or transformation does "
    "not always give the same result"
)
_TRACE: Final = 20_000
_ROW: Final = 200


class Examiner:
    """Finds what is wrong with some records of one Spark partition, in an executor.

    It stops early once its rows reach ``budget`` bytes; the driver then requests the others again.
    """

    def __init__(
        self, plan: DecodePlan, tables: Mapping[str, Schema], offsets: Mapping[int, OffsetSet], budget: int
    ) -> None:
        self._topic = plan.topic
        self._offsets = offsets
        self._budget = budget
        self._report = _Errors(plan.topic)
        orders = [
            replace(plan, mode=Mode.FINAL, tables=frozenset(tables), table=name, schema=schema, by_row=True)
            for name, schema in tables.items()
        ]
        # Before the tables are known, only the steps before them can fail.
        orders = orders or [replace(plan, mode=Mode.SURVEY, by_row=True)]
        self._decoders = [Decoder(order, self._report) for order in orders]

    def examine(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield :data:`FAILURE_ROWS` for the requested records."""
        left = self._budget
        for columns in batches:
            rows: list[dict[str, Any]] = []
            for index in self._asked(columns):
                row = self._row(columns.slice(index, 1))
                rows.append(row)
                left -= size_of_row(row)
                if left <= 0:
                    break
            yield pa.RecordBatch.from_pylist(rows, schema=FAILURE_ROWS)
            if left <= 0:
                return

    def _asked(self, columns: pa.RecordBatch) -> list[int]:
        """Return the positions of the requested records."""
        if not columns.num_rows:
            return []
        raw = RawBatch(self._topic, columns)
        extent = pc.min_max(raw.offset_array)
        asked = self._offsets.get(raw.partition, OffsetSet()).between(extent["min"].as_py(), extent["max"].as_py() + 1)
        if not len(asked):
            return []
        places = pc.is_in(raw.offset_array, value_set=pa.array(asked, pa.int64()))
        found: list[int] = pc.indices_nonzero(places).to_pylist()
        return found

    def _row(self, columns: pa.RecordBatch) -> dict[str, Any]:
        raw = RawBatch(self._topic, columns).consumed(keys=True, headers=True).raw(0)
        stage, executing, error = self._error_of(columns)
        return failure_row(Failure(stage, executing, error, raw=raw))

    def _error_of(self, columns: pa.RecordBatch) -> tuple[Stage, str, Exception]:
        for decoder in self._decoders:
            self._report.errors.clear()
            for _ in decoder.decode(iter([columns])):
                pass
            if self._report.errors:
                return self._report.errors[0]
        return Stage.TASK_PUT, TASK, DataError(_UNSTABLE)


class _Errors(Report):
    """Keeps the errors themselves, one record at a time."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.errors: list[tuple[Stage, str, Exception]] = []

    def reject(self, offset: int, error: Exception, stage: Stage = Stage.TASK_PUT, executing: str = TASK) -> None:  # noqa: ARG002
        self.errors.append((stage, executing, error))


def failure_row(failure: Failure) -> dict[str, Any]:
    """Return the row of :data:`FAILURE_ROWS` for a failure."""
    raw = failure.raw
    assert raw is not None
    return {
        "topic": raw.topic,
        "partition": raw.partition,
        "offset": raw.offset,
        "timestamp": raw.timestamp,
        "timestamp_type": raw.timestamp_type,
        "key": raw.key,
        "value": raw.value,
        "headers": [{"key": name, "value": value} for name, value in raw.headers],
        "stage": failure.stage.value,
        "executing": failure.executing,
        "message": str(failure.error),
        "error_class": failure.error_class,
        "trace": failure.trace[-_TRACE:],
    }


def size_of_row(row: Mapping[str, Any]) -> int:
    """Return the approximate size of such a row in bytes."""
    headers = sum(len(header["key"]) + len(header["value"] or b"") for header in row["headers"] or ())
    texts = sum(len(row[name] or b"") for name in ("key", "value", "message", "trace"))
    return headers + texts + _ROW


def failures_of(rows: pa.Table) -> Iterator[Failure]:
    """Yield the failures that rows of :data:`FAILURE_ROWS` describe."""
    return map(_failure, rows.to_pylist())


def _failure(row: Mapping[str, Any]) -> Failure:
    raw = RawRecord(
        row["topic"],
        row["partition"],
        row["offset"],
        row["timestamp"],
        row["timestamp_type"],
        row["key"],
        row["value"],
        [(header["key"], header["value"]) for header in row["headers"] or ()],
    )
    return Failure(
        Stage(row["stage"]),
        row["executing"],
        DataError(row["message"]),
        raw=raw,
        raised=RaisedElsewhere(row["error_class"], row["trace"]),
    )


def described_failures(
    topic: str, left: Mapping[int, OffsetSet], examined: Callable[[Mapping[int, OffsetSet]], pa.Table]
) -> Iterator[Failure]:
    """Yield the failures of these records of a topic, in batches that fit into memory (invariant I9).

    ``examined`` returns rows that describe some of the records, for each partition in the order of its offsets; the
    first ones if all are too large.
    """
    while left:
        portion = {partition: offsets.least(_PORTION // len(left) + 1) for partition, offsets in left.items()}
        rows: Any = examined(portion)
        yield from failures_of(rows)
        rest = dict(left)
        for partition in portion:
            described = rows.filter(pc.equal(rows["partition"], pa.scalar(partition, pa.int32())))["offset"]
            if not len(described):
                raise ConnectError(
                    f"Bad records of topic {topic}, partition {partition} can no longer be read to report "
                    "them: retention or compaction has removed them in the meantime. Nothing of the load is "
                    "committed."
                )
            rest[partition] = left[partition].between(described[-1].as_py() + 1, _END)
        left = {partition: offsets for partition, offsets in rest.items() if len(offsets)}


def refuse_record(context: BulkSinkTaskContext, first: Rejection, failures: FailuresOf) -> Never:
    """Fail a load because of its first bad record, after sending that to the log and the dead letter queue."""
    bad = {TopicPartition(first.topic, first.partition): OffsetSet.of([first.offset])}
    refusal = DataError(
        f"Bad record in {str(first).rstrip('.')}. Correct it at its source, or set errors.tolerance=all to leave such "
        "records out."
    )
    try:
        context.leave_out(bad, failures)
    except RetriableError:
        raise
    except ConnectError as error:
        raise refusal from error
    raise refusal
