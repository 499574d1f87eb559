"""The transformations of a connector as steps of its chain, by column or by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final, Generic, TypeVar

from connect.data import SinkBatch, SinkRecord, SourceBatch, SourceRecord
from connect.errors import ConnectError
from connect.internals.chain.specs import TransformationSpec
from connect.internals.chain.tolerance import Stage, Tolerance
from connect.internals.plugins import PluginKind, PluginRegistry, class_name
from connect.transformation import Predicate, Transformation

__all__ = ["Step", "Steps", "apply_steps", "transformation_steps"]

R = TypeVar("R", SourceRecord, SinkRecord)
B = TypeVar("B", SourceBatch, SinkBatch)

_FEW: Final = 5
"""Shorter runs than this, on average, are processed by row: a batch costs as much as several rows
(``bench/transforms.py``)."""


@dataclass(frozen=True, slots=True)
class Step:
    """A transformation and the predicate that chooses its records. ``alias`` is its name in ``transforms``."""

    transformation: Transformation[Any]
    predicate: Predicate[Any] | None = None
    negate: bool = False
    alias: str | None = None

    def chooses(self, record: R) -> bool:
        """Return whether the step applies to the record."""
        return self.predicate is None or self.predicate.test(record) is not self.negate

    def apply(self, record: R) -> R | None:
        """Return the record after this step, or ``None`` if it is dropped."""
        if self.predicate is not None and not self.chooses(record):
            return record
        return self.transformation.apply(record)

    def apply_batch(self, batch: B) -> list[B]:
        """Return the batch after this step, in several parts if topics or schemas now differ."""
        if self.predicate is None:
            return list(self.transformation.apply_batch(batch))
        chosen = [test is not self.negate for test in self.predicate.test_batch(batch)]
        runs = [(applies, len(list(run))) for applies, run in groupby(chosen)]
        if len(batch) < _FEW * len(runs):
            apply = self.transformation.apply
            rows = [apply(row) if applies else row for row, applies in zip(batch, chosen, strict=True)]
            return type(batch).from_records(row for row in rows if row is not None)
        batches: list[B] = []
        start = 0
        for applies, length in runs:
            part = batch if length == len(batch) else batch.slice(start, start + length)
            batches += self.transformation.apply_batch(part) if applies else [part]
            start += length
        return batches

    def close(self) -> None:
        """Release the resources of the plugins."""
        self.transformation.close()
        if self.predicate is not None:
            self.predicate.close()


def apply_steps(steps: Sequence[Step], batches: Sequence[B]) -> list[B]:
    """Return the batches after all steps; once batches have become short, continue by row."""
    current = list(batches)
    for index, step in enumerate(steps):
        if sum(map(len, current)) < _FEW * len(current):
            return _apply_by_row(steps[index:], current)
        current = [new for batch in current for new in step.apply_batch(batch) if len(new)]
    return current


def _apply_by_row(steps: Sequence[Step], batches: Sequence[B]) -> list[B]:
    rows: list[Any] = [row for batch in batches for row in batch]
    for step in steps:
        rows = [new for row in rows if (new := step.apply(row)) is not None]
    return type(batches[0]).from_records(rows)


class Steps(Generic[B, R]):
    """All the transformations of a connector, in order."""

    def __init__(self, steps: Sequence[Step], tolerance: Tolerance) -> None:
        self._steps = tuple(steps)
        self._tolerance = tolerance

    def apply_batches(self, batches: Sequence[B]) -> list[B]:
        """Return the batches after all steps."""
        return apply_steps(self._steps, batches)

    def apply(self, record: R) -> R | None:
        """Return a record after all steps, or ``None`` if it is dropped; raise
        :class:`~connect.internals.chain.tolerance.StageError` if a step fails."""
        current: R | None = record
        for step in self._steps:
            if current is None:
                return None
            call: Callable[[], R | None] = partial(step.apply, current)
            name = class_name(step.transformation)
            current = self._tolerance.attempt(Stage.TRANSFORMATION, name, call, step.alias)
            if not isinstance(current, type(record) | None):
                raise ConnectError(
                    f"apply of {name} (transforms.{step.alias}) returned a value of type {type(current).__name__}; it "
                    "must return a record, or None to drop it."
                )
        return current

    def close(self) -> None:
        """Release the resources of the plugins."""
        for step in self._steps:
            step.close()


def transformation_steps(registry: PluginRegistry, specs: Iterable[TransformationSpec]) -> list[Step]:
    """Load the plugins of these specs from ``registry`` and return them as steps, in order."""
    return [_step(registry, spec) for spec in specs]


def _step(registry: PluginRegistry, spec: TransformationSpec) -> Step:
    transformation = registry.load(PluginKind.TRANSFORMATION, spec.type, spec.version)
    predicate: Predicate[Any] | None = None
    if spec.predicate is not None:
        chosen = registry.load(PluginKind.PREDICATE, spec.predicate.type, spec.predicate.version)
        predicate = chosen.configured(spec.predicate.props)
    return Step(transformation.configured(spec.props), predicate, spec.negate, spec.alias)
