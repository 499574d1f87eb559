"""The way of one record through a chain, stage by stage, for a preview: what each stage was given and what it made.

The record goes by row, which is the specification of what batches do. Nothing is tried again, and nothing given up.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from connect.chain.raw_records import ConsumedBatch, RawHeaders
from connect.chain.sink import SinkChain
from connect.chain.source import SourceChain
from connect.chain.steps import Step
from connect.chain.tolerance import Stage, StageError, Tolerance
from connect.data import SinkRecord, SourceRecord
from connect.plugins import class_name

__all__ = ["EncodedRecord", "SinkTrace", "SourceTrace", "TracedStep", "trace_sink", "trace_source"]

R = TypeVar("R", SourceRecord, SinkRecord)


@dataclass(frozen=True, slots=True)
class TracedStep(Generic[R]):
    """The outcome of one transformation for a record.

    ``after`` is ``None`` if it was dropped, or if there is an ``error``; ``chosen`` says whether the predicate let the
    transformation have it.
    """

    transformation: str
    chosen: bool
    after: R | None
    error: StageError | None = None


@dataclass(frozen=True, slots=True)
class EncodedRecord:
    """A record as bytes, as it is to be produced."""

    topic: str
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: RawHeaders


@dataclass(frozen=True, slots=True)
class SourceTrace:
    """The way of a polled record; ``encoded`` is ``None`` if it is not produced, or not converted."""

    polled: SourceRecord
    steps: tuple[TracedStep[SourceRecord], ...]
    encoded: EncodedRecord | None = None
    error: StageError | None = None


@dataclass(frozen=True, slots=True)
class SinkTrace:
    """The way of a consumed record; without ``converted`` the ``error`` is a converter's."""

    converted: SinkRecord | None
    steps: tuple[TracedStep[SinkRecord], ...]
    error: StageError | None = None


def trace_source(
    record: SourceRecord, steps: Sequence[Step], encoder: SourceChain | None, tolerance: Tolerance
) -> SourceTrace:
    """The way of a record that was polled; without an ``encoder`` it is not converted."""
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
    """The way of a record that was consumed."""
    try:
        record = decoder.decode(batch, index)
    except StageError as error:
        return SinkTrace(None, (), error)
    return SinkTrace(record, _trace_steps(steps, record, tolerance))


def _trace_steps(steps: Sequence[Step], record: R, tolerance: Tolerance) -> tuple[TracedStep[R], ...]:
    """The record in each step, until it is dropped or one fails."""
    traced: list[TracedStep[R]] = []
    current: R | None = record
    for step in steps:
        if current is None:
            break
        # A copy: a transformation may change what it is given, which is shown as it was before.
        given, name = copy.deepcopy(current), class_name(step.transformation)
        try:
            chosen, current = tolerance.attempt(Stage.TRANSFORMATION, name, partial(_taken, step, given))
        except StageError as error:
            traced.append(TracedStep(name, True, None, error))
            break
        traced.append(TracedStep(name, chosen, current))
    return tuple(traced)


def _taken(step: Step, record: R) -> tuple[bool, R | None]:
    """Whether the step takes the record, and what follows it."""
    if not step.chooses(record):
        return False, record
    return True, step.transformation.apply(record)
