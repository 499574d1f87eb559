"""Measures the cost per record of a chain of InsertField, ReplaceField and Cast, by row and by column.

Run it with ``python bench/transforms.py``. The floor, for comparison, copies every value (a dict) three times and does
nothing else. In the runs with a predicate, it is true for a number of records and then false for as many; other runs
split the records into batches of that length.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from connect.config import Config
from connect.data import NO_HEADERS, Batch, Constant, Schema, SinkBatch, TimestampType, ValueColumn
from connect.internals.chain.steps import Step, apply_steps
from connect.transformation import Predicate
from connect.transforms.cast import Cast
from connect.transforms.insert_field import InsertField
from connect.transforms.replace_field import ReplaceField

RECORDS = 2_000
RUNS = (1, 2, 4, 8, 32)
ROUNDS = 40
FIELDS = {
    "id": Schema.int64(),
    "customer": Schema.string(),
    "amount": Schema.float64(),
    "currency": Schema.string(),
    "status": Schema.string(),
    "quantity": Schema.int32(),
    "note": Schema.string(optional=True),
    "internal": Schema.string(optional=True),
}
SCHEMA = Schema.struct(FIELDS, name="Order")
CHAIN = (
    (InsertField.Value, {"topic.field": "topic", "timestamp.field": "at", "static.field": "site", "static.value": "a"}),
    (ReplaceField.Value, {"exclude": "internal,note", "renames": "customer:client"}),
    (Cast.Value, {"spec": "quantity:string,amount:float32"}),
)


def batch(schema: Schema | None) -> SinkBatch:
    values = [
        {
            "id": number,
            "customer": f"c{number % 100}",
            "amount": number * 1.25,
            "currency": "EUR",
            "status": "new",
            "quantity": number % 7,
            "note": None,
            "internal": "x",
        }
        for number in range(RECORDS)
    ]
    return SinkBatch(
        topic="orders",
        key=ValueColumn(Constant(None, RECORDS)),
        value=ValueColumn(values, schema),
        partitions=Constant(0, RECORDS),
        timestamps=range(1_700_000_000_000, 1_700_000_000_000 + RECORDS),
        headers=Constant(NO_HEADERS, RECORDS),
        offsets=range(RECORDS),
        timestamp_types=Constant(TimestampType.CREATE_TIME, RECORDS),
        original_topic="orders",
        original_partitions=Constant(0, RECORDS),
        original_offsets=range(RECORDS),
    )


def by_column(chain: Sequence[Any], given: SinkBatch) -> None:
    batches = [given]
    for transformation in chain:
        batches = [new for old in batches for new in transformation.apply_batch(old)]


def by_row(chain: Sequence[Any], records: Sequence[Any]) -> None:
    for record in records:
        current = record
        for transformation in chain:
            current = transformation.apply(current)


class Alternating(Predicate[Config]):
    """True for a run of records, then false for a run of the same length."""

    def __init__(self, length: int) -> None:
        super().__init__(Config())
        self.length = length

    def test(self, record: Any) -> bool:
        return record.offset // self.length % 2 == 0

    def test_batch(self, batch: Batch[Any]) -> Sequence[bool]:
        return [offset // self.length % 2 == 0 for offset in batch.offsets]  # type: ignore[attr-defined]


def floor(given: SinkBatch) -> None:
    values = given.value.values()
    for _ in CHAIN:
        values = [value.copy() for value in values]


def report(name: str, run: Callable[[], None]) -> None:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    print(f"{name:<40} {best / RECORDS * 1e6:7.2f} us a record")


def main() -> None:
    for title, schema in (("with schema", SCHEMA), ("without schema", None)):
        given = batch(schema)
        records = list(given)
        chain = [transformation.configured(config) for transformation, config in CHAIN]
        print(f"{title}: {' > '.join(type(step).__qualname__ for step in chain)}, {RECORDS} records")
        report("floor: three copies of the dict", lambda given=given: floor(given))
        report("by column", lambda chain=chain, given=given: by_column(chain, given))
        for step in chain:
            report(f"  {type(step).__qualname__} alone", lambda step=step, given=given: by_column([step], given))
        report("by row", lambda chain=chain, records=records: by_row(chain, records))
        for length in RUNS:
            chosen = [Step(step, Alternating(length)) for step in chain]
            report(f"predicate, runs of {length}", lambda steps=chosen, given=given: apply_steps(steps, [given]))
        steps = [Step(step) for step in chain]
        for length in RUNS:
            parts = [given.slice(start, start + length) for start in range(0, RECORDS, length)]
            report(f"schemas, runs of {length}", lambda steps=steps, parts=parts: apply_steps(steps, parts))


if __name__ == "__main__":
    main()
