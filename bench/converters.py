"""Measures the cost of the converters per record, compared with orjson alone on the payload in the same run.

    python bench/converters.py [records]

Nanoseconds of CPU time per record, the best of seven rounds, in one thread. "row" is a call of to_connect or
from_connect for each record, "column" one call for a batch of 10,000, "arrow" the column as an Arrow array.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

# When this file runs as a script, it would hide the package of the same name.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]

import orjson

from connect.data import Schema, ValueColumn, decimal_schema, timestamp_schema
from converters.byte_array import ByteArrayConverter
from converters.json import JsonConverter
from converters.numbers import LongConverter
from converters.string import StringConverter

ROUNDS = 7
BATCH = 10_000

FLAT = Schema.struct(
    {
        "id": Schema.int64(),
        "name": Schema.string(),
        "quantity": Schema.int32(),
        "price": Schema.float64(),
        "paid": Schema.boolean(),
        "city": Schema.string(optional=True),
        "code": Schema.string(),
        "total": Schema.int64(),
        "ratio": Schema.float64(),
        "note": Schema.string(optional=True),
    },
    name="shop.Order",
)
RICH = Schema.struct(
    {
        "id": Schema.int64(),
        "at": timestamp_schema(),
        "amount": decimal_schema(2),
        "image": Schema.bytes(optional=True),
        "customer": Schema.struct({"name": Schema.string(), "age": Schema.int16(optional=True)}),
        "tags": Schema.array(Schema.string()),
        "scores": Schema.map(Schema.string(), Schema.float32()),
    },
    name="shop.Event",
)


def flat(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"some name {number}",
        "quantity": number % 50,
        "price": number % 1000 + 0.75,
        "paid": number % 2 == 0,
        "city": "Lisbon" if number % 3 else None,
        "code": "AB-1234",
        "total": 99887766 + number,
        "ratio": 0.125,
        "note": None,
    }


def rich(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "at": dt.datetime(2025, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=number),
        "amount": Decimal(number).scaleb(-2),
        "image": b"\x00\x01\x02\x03" * 4,
        "customer": {"name": "Ana", "age": 40},
        "tags": ["a", "b"],
        "scores": {"x": 0.5, "y": 1.5},
    }


def cost(work: Callable[[], object], records: int) -> float:
    """Return the nanoseconds of CPU time per record."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        work()
        best = min(best, time.process_time_ns() - start)
    return best / records


def by_row(method: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> Callable[[], object]:
    return lambda: [method("topic", *item) for item in items]


def report(title: str, base: float, costs: dict[str, float]) -> None:
    print(f"{title}\n  {'orjson on the payload alone':34}{base:8.0f} ns")
    for name, value in costs.items():
        print(f"  {name:34}{value:8.0f} ns   {value / base:5.2f} x")


def measure(
    title: str, converter: Any, schema: Schema | None, values: list[Any], payloads: list[bytes], nodes: list[Any]
) -> None:
    """Print the cost of reading and writing these values; ``payloads`` and ``nodes`` are for orjson alone."""
    count = len(values)
    column = ValueColumn(values, schema)
    messages = list(converter.from_connect_column("topic", column))

    def arrow() -> object:
        return [part.to_arrow() for part in converter.to_connect_column("topic", messages)]

    reads = {
        "row": by_row(converter.to_connect, [(message,) for message in messages]),
        "column": lambda: converter.to_connect_column("topic", messages),
        "column, then Arrow": arrow,
    }
    if hasattr(converter, "to_connect_arrow"):
        reads["straight to Arrow"] = lambda: [
            part.to_arrow() for part in converter.to_connect_arrow("topic", messages, schema)
        ]
    if schema is None:
        del reads["column, then Arrow"]
        reads.pop("straight to Arrow", None)
    writes = {
        "row": by_row(converter.from_connect, [(schema, value) for value in values]),
        "column": lambda: converter.from_connect_column("topic", column),
    }
    loads = cost(lambda: [orjson.loads(payload) for payload in payloads], count)
    report(f"{title}: read", loads, {name: cost(work, count) for name, work in reads.items()})
    dumps = cost(lambda: [b"" + orjson.dumps(node) + b"}" for node in nodes], count)
    report(f"{title}: write", dumps, {name: cost(work, count) for name, work in writes.items()})


def odd_forms(messages: Sequence[bytes]) -> dict[str, list[bytes]]:
    """Return envelopes in the formats of other producers, made from those that the converter writes."""
    marks = [message.rindex(b',"payload":') for message in messages]
    halves = [
        (m[len(b'{"schema":') : at], m[at + len(b',"payload":') : -1]) for m, at in zip(messages, marks, strict=True)
    ]
    return {
        "a line each": [message + b"\n" for message in messages],
        "payload first": [b'{"payload":%b,"schema":%b}' % (payload, schema) for schema, payload in halves],
        "sorted, with spaces": [json.dumps(json.loads(m), sort_keys=True).encode() for m in messages],
        "1.0 for 1": [re.sub(rb'"payload":\{"id":(\d+)', rb'"payload":{"id":\1.0', m) for m in messages],
        "a number of 20 digits": [
            re.sub(rb'"payload":\{"id":(\d+)', rb'"payload":{"id":\1.00000000000000000000', m) for m in messages
        ],
    }


def measure_forms(title: str, schema: Schema, values: list[Any], payloads: list[bytes]) -> None:
    """Print the cost of reading envelopes in formats other than the converter's own."""
    count, column = len(values), ValueColumn(values, schema)
    forms = odd_forms(list(JsonConverter.configured({}).from_connect_column("topic", column)))
    numeric = JsonConverter.configured({"decimal.format": "NUMERIC"})
    forms["decimal.format=NUMERIC"] = list(numeric.from_connect_column("topic", column))
    costs = {}
    for name, messages in forms.items():
        converter = JsonConverter.configured({})
        costs[f"{name}, row"] = cost(by_row(converter.to_connect, [(message,) for message in messages]), count)
        costs[f"{name}, column"] = cost(lambda c=converter, m=messages: c.to_connect_column("topic", m), count)
    report(title, cost(lambda: [orjson.loads(payload) for payload in payloads], count), costs)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else BATCH
    plain = JsonConverter.configured({"schemas.enable": "false"})
    enveloped = JsonConverter.configured({})
    for name, schema, make in (("flat struct of 10", FLAT, flat), ("rich struct of 7", RICH, rich)):
        values = [make(number) for number in range(count)]
        payloads = list(plain.from_connect_column("topic", ValueColumn(values, schema)))
        nodes = [orjson.loads(payload) for payload in payloads]
        size = sum(map(len, payloads)) // count
        given = f"{name}, {size} bytes of payload"
        measure(f"JSON with schema, {given}", enveloped, schema, values, payloads, nodes)
        measure_forms(f"JSON with schema, {name}, in other forms: read", schema, values, payloads)
        measure(f"JSON without schema, {given}", plain, None, nodes, payloads, nodes)
    texts = [f"some text of record {number}" for number in range(count)]
    numbers = list(range(count))
    scalars: tuple[tuple[str, Any, Schema, list[Any]], ...] = (
        ("String", StringConverter.configured({}), Schema.string(), texts),
        ("Bytes", ByteArrayConverter.configured({}), Schema.bytes(), [text.encode() for text in texts]),
        ("Long", LongConverter.configured({}), Schema.int64(), numbers),
    )
    for title, converter, schema, items in scalars:
        jsons = texts if title == "Bytes" else items
        measure(title, converter, schema, items, [orjson.dumps(item) for item in jsons], jsons)


if __name__ == "__main__":
    main()
