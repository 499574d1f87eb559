"""Compares the CPU time of the Avro converter, by row and by column, with that of plain fastavro, in one run.

``python bench/avro.py [records]``; needs fastavro. Shows CPU seconds per million records, the best of several rounds.
No registry is contacted, because the schema is already known.
"""

from __future__ import annotations

import datetime as dt
import gc
import io
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# When this file runs as a script, bench/converters.py would hide the package of the same name.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]

import fastavro

from connect.data import Schema, timestamp_schema
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import decoder
from connect.kits.avro.encode import encoder
from connect.kits.avro.from_connect import avro_from_connect

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
        "placed": timestamp_schema(),
        "lines": Schema.array(Schema.struct({"sku": Schema.string(), "n": Schema.int32()}, name="bench.Line")),
        "tags": Schema.map(Schema.string(), Schema.string()),
        "flag": Schema.boolean(),
    },
    name="bench.Nested",
)


def flat(number: int) -> dict[str, Any]:
    """Return a record of five fields, some 40 bytes as Avro."""
    note = None if number % 3 else "some text of a note"
    return {"id": number, "name": f"customer {number}", "amount": number / 3, "count": number % 1000, "note": note}


def nested(number: int) -> dict[str, Any]:
    """Return a record with an array, a map and a timestamp."""
    placed = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=number)
    lines = [{"sku": f"sku-{number}-{line}", "n": line} for line in range(3)]
    return {"id": number, "placed": placed, "lines": lines, "tags": {"a": "b", "c": "d"}, "flag": number % 2 == 0}


def seconds(work: Callable[[], object], records: int) -> float:
    """Return the minimum CPU time of several rounds, in seconds per million records."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time()
        for _ in range(records // BATCH):
            work()
        best = min(best, time.process_time() - start)
    return best / records * 1_000_000


def measure(name: str, schema: Schema, values: Sequence[dict[str, Any]], records: int) -> None:
    """Print one table."""
    config = AvroDataConfig()
    avro = avro_from_connect(schema, config)
    parsed = fastavro.parse_schema(json.loads(avro_text(avro)))
    write, read = encoder(schema, avro, 1, config), decoder(avro, avro, schema, config)
    messages = write(values)
    assert read(messages) == list(values)

    def bare_write() -> None:
        for value in values:
            out = io.BytesIO()
            out.write(b"\0\0\0\0\1")
            fastavro.schemaless_writer(out, parsed, value)
            out.getvalue()

    def bare_read() -> None:
        for message in messages:
            fastavro.schemaless_reader(io.BytesIO(message[5:]), parsed, None)

    rows: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "bare fastavro": (bare_read, bare_write),
        "row": (lambda: [read([message])[0] for message in messages], lambda: [write([value])[0] for value in values]),
        "column": (lambda: read(messages), lambda: write(values)),
    }
    print(f"\n{name}, {sum(map(len, messages)) / len(messages):.0f} bytes a message")
    print(f"{'':16}{'decode':>10}{'encode':>10}   CPU seconds for a million records")
    for label, (reading, writing) in rows.items():
        print(f"{label:16}{seconds(reading, records):10.2f}{seconds(writing, records):10.2f}")


def main() -> None:
    """Measure both shapes."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for name, schema, make in (("flat", FLAT, flat), ("nested", NESTED, nested)):
        measure(name, schema, [make(number) for number in range(BATCH)], records)


if __name__ == "__main__":
    main()
