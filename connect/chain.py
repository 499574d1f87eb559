"""The plugins between a connector and the bytes on a topic: converters and transformations, made from a configuration.

The worker's loops and the executors of Spark stand on the same parts, so that a configuration means the same in both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, Final, TypeVar

from connect.data import Column, SinkBatch, SinkRecord, SourceBatch, SourceRecord
from connect.errors import DataError
from connect.plugins import PluginKind, PluginRegistry
from connect.transformation import Predicate, Transformation

__all__ = ["Step", "aligned", "apply_steps", "converter_plugin", "converter_props", "transformation_steps"]

R = TypeVar("R", SourceRecord, SinkRecord)
B = TypeVar("B", SourceBatch, SinkBatch)

_FEW: Final = 5
"""Shorter runs than this, on average, go by row: a batch costs as much as some rows do (``bench/transforms.py``)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One transformation, and the predicate that chooses its records."""

    transformation: Transformation[Any]
    predicate: Predicate[Any] | None = None
    negate: bool = False

    def apply(self, record: R) -> R | None:
        """The record after this step; ``None`` if it is dropped."""
        if self.predicate is not None and self.predicate.test(record) is self.negate:
            return record
        return self.transformation.apply(record)

    def apply_batch(self, batch: B) -> list[B]:
        """The batch after this step, in pieces where topics or schemas now differ."""
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
        """Release what the plugins hold."""
        self.transformation.close()
        if self.predicate is not None:
            self.predicate.close()


def apply_steps(steps: Sequence[Step], batches: Sequence[B]) -> list[B]:
    """The batches after all steps, in order; by row from where they have become short."""
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


def transformation_steps(registry: PluginRegistry, props: Mapping[str, str]) -> list[Step]:
    """The transformations that ``transforms`` lists in a connector's configuration, in order.

    The configuration is one that was validated: what is missing in it is a ``KeyError``.
    """
    return [_step(registry, props, alias) for alias in _aliases(props.get("transforms", ""))]


def converter_plugin(registry: PluginRegistry, props: Mapping[str, str], role: str) -> Any:
    """The converter for ``role`` (``key``, ``value`` or ``header``) that a configuration names, with its own keys."""
    kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
    given = {} if role == "header" else {"is_key": role == "key"}
    return registry.load(kind, props[f"{role}.converter"]).configured(converter_props(props, role), **given)


def converter_props(props: Mapping[str, str], role: str) -> dict[str, str]:
    """The keys of the converter for ``role``, without their prefix."""
    return {**_below(props, f"{role}.converter."), "converter.type": role}


def aligned(keys: Sequence[Column], values: Sequence[Column]) -> Iterator[tuple[int, int, Column, Column]]:
    """Runs over which both the key schema and the value schema stay the same, with their parts of the columns.

    Raises :class:`~connect.errors.DataError` if a converter did not give a value for every record.
    """
    key_ends, value_ends = [list(accumulate(map(len, columns))) for columns in (keys, values)]
    if key_ends[-1] != value_ends[-1]:
        raise DataError("The converters gave columns of different lengths; they must give a value for every record.")
    start = 0
    for stop in sorted({*key_ends, *value_ends} - {0}):
        yield start, stop, _part(keys, key_ends, start, stop), _part(values, value_ends, start, stop)
        start = stop


def _part(columns: Sequence[Column], ends: Sequence[int], start: int, stop: int) -> Column:
    index = bisect_left(ends, stop)
    begin = ends[index] - len(columns[index])
    if (start, stop) == (begin, ends[index]):
        return columns[index]
    return columns[index].slice(start - begin, stop - begin)


def _step(registry: PluginRegistry, props: Mapping[str, str], alias: str) -> Step:
    own = _below(props, f"transforms.{alias}.")
    transformation = registry.load(PluginKind.TRANSFORMATION, own.pop("type"))
    chosen_by, negate = own.pop("predicate", None), own.pop("negate", "false").lower() == "true"
    predicate: Predicate[Any] | None = None
    if chosen_by is not None:
        its = _below(props, f"predicates.{chosen_by}.")
        predicate = registry.load(PluginKind.PREDICATE, its.pop("type")).configured(its)
    return Step(transformation.configured(own), predicate, negate)


def _below(props: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in props.items() if name.startswith(prefix)}


def _aliases(text: str) -> list[str]:
    return [alias.strip() for alias in text.split(",") if alias.strip()]
