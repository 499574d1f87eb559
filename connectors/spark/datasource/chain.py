"""Runs a connector's transformations, and logs the records that are skipped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from connect.data import SinkBatch, SinkRecord, SourceBatch, SourceRecord
from connect.internals.chain.steps import Step, Steps
from connect.internals.chain.tolerance import ErrorPolicy, Failure, StageError, Tolerance
from connectors.spark.datasource.contexts import sleep

__all__ = ["RecordChain", "logging_tolerance"]

_log = logging.getLogger(__name__)

R = TypeVar("R", SourceRecord, SinkRecord)
B = TypeVar("B", SourceBatch, SinkBatch)


class RecordChain(Generic[B, R]):
    """The transformations, without converters: by column, and record by record where that fails."""

    def __init__(self, steps: Sequence[Step], tolerance: Tolerance) -> None:
        self._steps: Steps[B, R] = Steps(steps, tolerance)
        self._tolerance = tolerance

    def process(self, batch: B) -> list[B]:
        """Return the batch after all transformations, without filtered and skipped records."""
        try:
            return self._steps.apply_batches([batch])
        except Exception:
            return self._by_row(batch)

    def close(self) -> None:
        """Release what the plugins hold."""
        self._steps.close()

    def _by_row(self, batch: B) -> list[B]:
        rows: list[Any] = []
        apply: Callable[[Any], Any] = self._steps.apply
        for record in batch:
            try:
                new: Any = apply(record)
                if new is not None:
                    rows.append(new)
            except StageError as error:
                self._tolerance.give_up(Failure.of_stage(error, record=record))
        return type(batch).from_records(rows)


class _Logged:
    """Logs the records that are skipped."""

    def __init__(self, policy: ErrorPolicy) -> None:
        self._policy = policy

    def report(self, failure: Failure) -> None:
        """Log a record, unless the error that follows reports it."""
        if self._policy.tolerates_errors:
            topic = failure.record.topic if failure.record is not None else "?"
            stage, executing = failure.stage.value, failure.executing
            _log.warning("A record of %s is left out (%s by %s): %s", topic, stage, executing, failure.error)

    def flush(self) -> None:
        """Do nothing: log lines are written immediately."""


def logging_tolerance(policy: ErrorPolicy) -> Tolerance:
    """Return the error handling for a policy; it logs the records that it skips."""
    return Tolerance(policy, [_Logged(policy)], sleep)
