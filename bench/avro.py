"""Compares the CPU time of the Avro converter, by row, by column and into Arrow, with plain fastavro in one run.

``python bench/avro.py [records]``; needs fastavro and pyarrow. Shows CPU seconds per million records, the best of some
rounds. No registry is contacted, because the schema is already known.
"""

from __future__ import annotations

import datetime as dt
import gc
import io
import json
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

# When this file runs as a script, bench/converters.py would hide the package of the same name.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]

import fastavro
import pyarrow as pa

from connect.data import Schema, date_schema, decimal_schema, timestamp_schema
from connect.data.arrow import arrow_type, to_array, to_values
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.columns import column_decoder
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import decoder
from connect.kits.avro.encode import encoder
from connect.kits.avro.from_connect import avro_from_connect

BATCH = 10_000
ROUNDS = 5
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
LINE = Schema.struct({"sku": Schema.string(), "n": Schema.int32()}, name="bench.Line")
SMALL = Schema.struct(
    {
        "id": Schema.int64(),
        "name": Schema.string(),
        "amount": Schema.float64(optional=True),
        "count": Schema.int32(),
        "note": Schema.string(optional=True),
    },
    name="bench.Small",
)
NESTED = Schema.struct(
    {
        "id": Schema.int64(),
        "placed": timestamp_schema(),
        "lines": Schema.array(LINE),
        "tags": Schema.map(Schema.string(), Schema.string()),
        "flag": Schema.boolean(),
    },
    name="bench.Nested",
)
FLAT = Schema.struct(
    {
        **{f"int_{number}": Schema.int32() for number in range(4)},
        **{f"long_{number}": Schema.int64() for number in range(4)},
        **{f"text_{number}": Schema.string() for number in range(4)},
        **{f"double_{number}": Schema.float64() for number in range(3)},
        **{f"flag_{number}": Schema.boolean() for number in range(2)},
        "note": Schema.string(optional=True),
        "rate": Schema.float64(optional=True),
        "parent": Schema.int64(optional=True),
    },
    name="bench.Flat",
)
RICH = Schema.struct(
    {
        **{f"long_{number}": Schema.int64() for number in range(4)},
        **{f"text_{number}": Schema.string() for number in range(4)},
        "amount": decimal_schema(2),
        "day": date_schema(),
        "placed": timestamp_schema(),
        "raw": Schema.bytes(),
        "tags": Schema.map(Schema.string(), Schema.string()),
        "lines": Schema.array(LINE),
        "address": Schema.struct(
            {"street": Schema.string(), "zip": Schema.int32()}, name="bench.Address", optional=True
        ),
        "weight": Schema.float64(),
        "rate": Schema.float64(optional=True),
        "flag": Schema.boolean(),
        "note": Schema.string(optional=True),
        "count": Schema.int32(),
    },
    name="bench.Rich",
)


def small(number: int) -> dict[str, Any]:
    """Return a record of five fields, some 40 bytes as Avro."""
    note = None if number % 3 else "some text of a note"
    return {"id": number, "name": f"customer {number}", "amount": number / 3, "count": number % 1000, "note": note}


def nested(number: int) -> dict[str, Any]:
    """Return a record with an array, a map and a timestamp."""
    lines = [{"sku": f"sku-{number}-{line}", "n": line} for line in range(3)]
    placed = START + dt.timedelta(milliseconds=number)
    return {"id": number, "placed": placed, "lines": lines, "tags": {"a": "b", "c": "d"}, "flag": number % 2 == 0}


def flat(number: int) -> dict[str, Any]:
    """Return a record of twenty fields of plain types."""
    return {
        **{f"int_{field}": number * field - 5000 for field in range(4)},
        **{f"long_{field}": number * 10**field * 1000 for field in range(4)},
        **{f"text_{field}": f"text {number * field}" for field in range(4)},
        **{f"double_{field}": number / (field + 3) for field in range(3)},
        **{f"flag_{field}": number % (field + 2) == 0 for field in range(2)},
        "note": None if number % 3 else f"note {number}",
        "rate": number / 7 if number % 2 else None,
        "parent": number if number % 5 else None,
    }


def rich(number: int) -> dict[str, Any]:
    """Return a record of twenty fields of many types."""
    return {
        **{f"long_{field}": number * 1000 + field for field in range(4)},
        **{f"text_{field}": f"text {number}" for field in range(4)},
        "amount": Decimal(number * 37 - 100_000).scaleb(-2),
        "day": START.date() + dt.timedelta(days=number % 300),
        "placed": START + dt.timedelta(milliseconds=number),
        "raw": bytes([number % 256] * 5),
        "tags": {"a": f"tag {number}", "b": "c"},
        "lines": [{"sku": f"sku-{number}", "n": line} for line in range(number % 4)],
        "address": None if number % 2 else {"street": f"street {number}", "zip": number},
        "weight": number * 1.5,
        "rate": None if number % 3 else 2.5,
        "flag": number % 2 == 0,
        "note": None if number % 7 else "a note",
        "count": number,
    }


def seconds(work: Callable[[], object] | None, records: int) -> str:
    """Return the minimum CPU time of several rounds, in seconds per million records."""
    if work is None:
        return ""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time()
        for _ in range(records // BATCH):
            work()
        best = min(best, time.process_time() - start)
    return f"{best / records * 1_000_000:.2f}"


def measure(name: str, schema: Schema, values: Sequence[dict[str, Any]], records: int) -> None:
    """Print one table."""
    config = AvroDataConfig()
    avro = avro_from_connect(schema, config)
    parsed = fastavro.parse_schema(json.loads(avro_text(avro)))
    write, read = encoder(schema, avro, 1, config), decoder(avro, avro, schema, config)
    columns = column_decoder(avro, avro, schema, config, read)
    messages = write(values)
    assert read(messages) == list(values)
    assert columns.is_fast
    assert columns.read(messages).equals(to_array(read(messages), schema))
    data_type: Any = arrow_type(schema)

    def bare_write() -> None:
        for value in values:
            out = io.BytesIO()
            out.write(b"\0\0\0\0\1")
            fastavro.schemaless_writer(out, parsed, value)
            out.getvalue()

    def bare_read() -> list[Any]:
        return [fastavro.schemaless_reader(io.BytesIO(message[5:]), parsed, None) for message in messages]

    def by_field() -> list[Any]:
        array = columns.read(messages)
        return [to_values(array.field(field.name), field.schema) for field in schema.fields]

    rows: dict[str, tuple[Callable[[], object], Callable[[], object] | None, Callable[[], object] | None]] = {
        "bare fastavro": (bare_read, lambda: pa.array(bare_read(), data_type), bare_write),
        "row": (
            lambda: [read([message])[0] for message in messages],
            None,
            lambda: [write([value])[0] for value in values],
        ),
        "column": (lambda: read(messages), lambda: to_array(read(messages), schema), lambda: write(values)),
        "Arrow": (lambda: columns.read(messages).to_pylist(), lambda: columns.read(messages), None),
        # As sinks with columns read them.
        "fields": (by_field, None, None),
    }
    print(f"\n{name}, {sum(map(len, messages)) / len(messages):.0f} bytes a message")
    print(f"{'':16}{'decode':>10}{'to Arrow':>10}{'encode':>10}   CPU seconds for a million records")
    for label, works in rows.items():
        print(f"{label:16}{''.join(f'{seconds(work, records):>10}' for work in works)}", flush=True)


def main() -> None:
    """Measure all shapes."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    shapes: list[tuple[str, Schema, Callable[[int], dict[str, Any]]]] = [
        ("five fields", SMALL, small),
        ("array, map, timestamp", NESTED, nested),
        ("twenty plain fields", FLAT, flat),
        ("twenty fields of many types", RICH, rich),
    ]
    for name, schema, make in shapes:
        measure(name, schema, [make(number) for number in range(BATCH)], records)


if __name__ == "__main__":
    main()
