"""Compares the CPU time of the Protobuf converter, by row and by column, with that of its library alone, in one run.

``python bench/protobuf.py [records]``. Shows CPU seconds per million records, the best of several rounds. No
registry is contacted, because the schema is already known.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# When this file runs as a script, bench/converters.py would hide the package of the same name.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]

from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

from connect.data import Schema
from converters.protobuf import ProtobufConverterConfig
from converters.protobuf.converter import ProtobufFormat

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


def measure(name: str, schema: Schema, values: Sequence[dict[str, Any]], records: int, form: Any) -> None:
    """Print one table."""
    written = form.written(schema)
    write = form.encoder(schema, written, written.parsed, 1, strict=False)
    messages = write(values)
    read = form.reader(written.parsed, written.parsed, None, messages[0][:6]).decode
    assert read(messages) == list(values)
    made: Any = GetMessageClass(written.parsed.root)
    parsed = [made.FromString(message[6:]) for message in messages]
    shown = [MessageToDict(message) for message in parsed]
    print(f"\n{name}, {sum(map(len, messages)) / len(messages):.0f} bytes a message")
    print(f"{'':16}{'decode':>10}{'encode':>10}   CPU seconds for a million records")
    rows: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "bare messages": (
            lambda: [made.FromString(message[6:]) for message in messages],
            lambda: [b"\0\0\0\0\1\0" + message.SerializeToString() for message in parsed],
        ),
        "json_format": (
            lambda: [MessageToDict(made.FromString(message[6:])) for message in messages],
            lambda: [ParseDict(each, made()).SerializeToString() for each in shown],
        ),
        "row": (lambda: [read([each])[0] for each in messages], lambda: [write([each])[0] for each in values]),
        "column": (lambda: read(messages), lambda: write(values)),
    }
    for label, (reading, writing) in rows.items():
        print(f"{label:16}{seconds(reading, records):10.2f}{seconds(writing, records):10.2f}")


def main() -> None:
    """Measure both shapes."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    form = ProtobufFormat(
        ProtobufConverterConfig(schema_registry_url=("http://127.0.0.1:1",), optional_for_nullables=True)
    )
    for name, schema, make in (("flat", FLAT, flat), ("nested", NESTED, nested)):
        measure(name, schema, [make(number) for number in range(BATCH)], records, form)


if __name__ == "__main__":
    main()
