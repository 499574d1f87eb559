"""Steps of a chain do the same to batches as to rows, be their runs long or short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from connect.config import Config
from connect.data import NO_HEADERS, Batch, Record, Schema, SinkBatch, SinkRecord, ValueColumn
from connect.internals.chain.sink import aligned
from connect.internals.chain.steps import Step, apply_steps
from connect.transformation import Predicate
from connect.transforms.cast import Cast
from connect.transforms.filters import Filter
from connect.transforms.insert_field import InsertField
from equipment.growth import assert_grows_evenly

NARROW, WIDE = Schema.struct({"a": Schema.int32()}), Schema.struct({"a": Schema.int64()})


class Alternating(Predicate[Config]):
    """True for a run of records, then false for one as long."""

    def __init__(self, length: int) -> None:
        super().__init__(Config())
        self.length = length

    def test(self, record: Record) -> bool:
        assert isinstance(record, SinkRecord)
        return record.offset // self.length % 2 == 0

    def test_batch(self, batch: Batch[Any]) -> Sequence[bool]:
        return [self.test(record) for record in batch]


def records(count: int, *schemas: Schema | None) -> list[SinkRecord]:
    return [
        SinkRecord("t", {"a": n}, schemas[n % len(schemas)], None, None, 0, 5, NO_HEADERS, n, original_topic="t")
        for n in range(count)
    ]


@pytest.mark.parametrize("length", [1, 2, 4, 5, 9, 40])
@pytest.mark.parametrize("schemas", [(None,), (NARROW,), (NARROW, WIDE), (NARROW, None)])
@pytest.mark.parametrize("last", [Cast.Value.configured({"spec": "a:string"}), Filter.configured({})])
def test_batches_become_what_rows_become(length: int, schemas: tuple[Schema | None, ...], last: Any) -> None:
    insert = InsertField.Value.configured({"topic.field": "topic", "timestamp.field": "at"})
    steps = [Step(insert, Alternating(length)), Step(last, Alternating(length), negate=True)]
    expected: list[SinkRecord] = []
    for record in records(40, *schemas):
        current: SinkRecord | None = record
        for step in steps:
            current = current and step.apply(current)
        if current is not None:
            expected.append(current)
    made = apply_steps(steps, SinkBatch.from_records(records(40, *schemas)))
    assert [record for batch in made for record in batch] == expected
    assert all(len(batch) for batch in made)


def test_short_runs_of_one_schema_stay_one_batch() -> None:
    step = Step(Cast.Value.configured({"spec": "a:int8"}), Alternating(1))
    made = apply_steps([step, step], SinkBatch.from_records(records(100, None)))
    assert [len(batch) for batch in made] == [100]


def test_no_batch_is_none_afterwards() -> None:
    step = Step(Filter.configured({}))
    assert apply_steps([step, step], SinkBatch.from_records(records(10, None))) == []
    empty: list[SinkBatch] = []
    assert apply_steps([step], empty) == []


@pytest.mark.growth
def test_schemas_that_alternate_are_aligned_evenly() -> None:
    def columns(count: int) -> tuple[list[ValueColumn], list[ValueColumn]]:
        return [ValueColumn([None] * count)], [ValueColumn([n], (NARROW, WIDE)[n % 2]) for n in range(count)]

    assert_grows_evenly(lambda both: list(aligned(*both)), columns, 4000)
