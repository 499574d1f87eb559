"""What the benches of converters with a registry share: two shapes of records, and how the CPU time is taken."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from connect.data import Schema

BATCH = 10_000
ROUNDS = 5
FLAT = Schema.struct(
    {
        "id": Schema.int64(),
        "name": Schema.string(),
        "amount": Schema.float64(optional=True),
        "count": Schema.int32(),
        "note": Schema.string(optional=True),
    },
    name="bench.Flat",
)
NESTED = Schema.struct(
    {
        "id": Schema.int64(),
        "lines": Schema.array(Schema.struct({"sku": Schema.string(), "n": Schema.int32()}, name="bench.Line")),
        "tags": Schema.map(Schema.string(), Schema.string()),
        "flag": Schema.boolean(),
    },
    name="bench.Nested",
)


def flat(number: int) -> dict[str, Any]:
    """Return a record of five fields."""
    note = None if number % 3 else "some text of a note"
    return {"id": number, "name": f"customer {number}", "amount": number / 3, "count": number % 1000, "note": note}


def nested(number: int) -> dict[str, Any]:
    """Return a record with an array and a map."""
    lines = [{"sku": f"sku-{number}-{line}", "n": line} for line in range(3)]
    return {"id": number, "lines": lines, "tags": {"a": "b", "c": "d"}, "flag": number % 2 == 0}


def seconds(work: Callable[[], object], records: int) -> float:
    """Return the minimum CPU time of several rounds, in seconds per million records."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time()
        for _ in range(max(records // BATCH, 1)):
            work()
        best = min(best, time.process_time() - start)
    return best / (max(records // BATCH, 1) * BATCH) * 1_000_000
