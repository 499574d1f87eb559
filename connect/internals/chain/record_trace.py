"""The trace of one record through a chain, for a preview: the input and the output of each stage.

The record is processed by row, which is the specification of what batches do. Nothing is retried or skipped.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from connect.data import SinkRecord, SourceRecord
from connect.internals.chain.raw_records import ConsumedBatch, RawHeaders
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.source import SourceChain
from connect.internals.chain.steps import Step
from connect.internals.chain.tolerance import Stage, StageError, Tolerance
from connect.internals.plugins import class_name

__all__ = ["EncodedRecord", "SinkTrace", "SourceTrace", "TracedStep", "trace_sink", "trace_source"]

R = TypeVar("R", SourceRecord, SinkRecord)


@dataclass(frozen=True, slots=True)
class TracedStep(Generic[R]):
    """The result of one transformation for a record.

    ``after`` is ``None`` if the record was dropped or if there is an ``error``; ``chosen`` is whether the predicate
    chose the record.
    """

    transformation: str
    chosen: bool
    after: R | None
    error: StageError | None = None


@dataclass(frozen=True, slots=True)
class EncodedRecord:
    """A record as bytes, as it would be produced."""

    topic: str
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: RawHeaders


@dataclass(frozen=True, slots=True)
class SourceTrace:
    """The trace of a polled record; ``encoded`` is ``None`` if it is not produced, or not converted."""

    polled: SourceRecord
    steps: tuple[TracedStep[SourceRecord], ...]
    encoded: EncodedRecord | None = None
    error: StageError | None = None


@dataclass(frozen=True, slots=True)
class SinkTrace:
    """The trace of a consumed record; if ``converted`` is ``None``, the ``error`` is a converter's."""

    converted: SinkRecord | None
    steps: tuple[TracedStep[SinkRecord], ...]
    error: StageError | None = None


def trace_source(
    record: SourceRecord, steps: Sequence[Step], encoder: SourceChain | None, tolerance: Tolerance
) -> SourceTrace:
    """Trace a polled record; without an ``encoder`` it is not converted."""
    traced = _trace_steps(steps, record, tolerance)
    last = traced[-1].after if traced else record
    if last is None or encoder is None:
        return SourceTrace(record, traced)
    try:
        key, value, headers = encoder.encode(last)
    except StageError as error:
        return SourceTrace(record, traced, error=error)
    return SourceTrace(
        record, traced, EncodedRecord(last.topic, last.partition, last.timestamp, key, value, headers or ())
    )


def trace_sink(
    batch: ConsumedBatch, index: int, steps: Sequence[Step], decoder: SinkChain, tolerance: Tolerance
) -> SinkTrace:
    """Trace a consumed record."""
    try:
        record = decoder.decode(batch, index)
    except StageError as error:
        return SinkTrace(None, (), error)
    return SinkTrace(record, _trace_steps(steps, record, tolerance))


def _trace_steps(steps: Sequence[Step], record: R, tolerance: Tolerance) -> tuple[TracedStep[R], ...]:
    """Apply each step to the record until it is dropped or a step fails."""
    traced: list[TracedStep[R]] = []
    current: R | None = record
    for step in steps:
        if current is None:
            break
        # A copy: a transformation may modify its input, and the trace shows the record as it was before.
        given, name = copy.deepcopy(current), class_name(step.transformation)
        try:
            chosen, current = tolerance.attempt(Stage.TRANSFORMATION, name, partial(_taken, step, given))
        except StageError as error:
            traced.append(TracedStep(name, True, None, error))
            break
        traced.append(TracedStep(name, chosen, current))
    return tuple(traced)


def _taken(step: Step, record: R) -> tuple[bool, R | None]:
    """Return whether the step applies to the record, and its result."""
    if not step.chooses(record):
        return False, record
    return True, step.transformation.apply(record)
