"""Compares the CPU time of the JSON Schema converter, by row and by column, with that of orjson alone, in one run.

``python bench/json_schema.py [records]``. Shows CPU seconds per million records, the best of several rounds. No
registry is contacted, because the schema is already known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from schema_shapes import BATCH, FLAT, NESTED, flat, nested, seconds

# When this file runs as a script, bench/converters.py would hide the package of the same name.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]

import orjson

from connect.data import Schema
from connect.data.arrow import to_array
from converters.json_schema import JsonSchemaConverterConfig
from converters.json_schema.converter import JsonSchemaFormat


def measure(name: str, schema: Schema, values: Sequence[dict[str, Any]], records: int, form: Any, careful: Any) -> None:
    """Print one table."""
    written = form.written(schema)
    write = form.encoder(schema, written, written.parsed, 1, strict=False)
    valid = form.encoder(schema, written, written.parsed, 1, strict=True)
    messages = write(values)
    reader = form.reader(written.parsed, written.parsed, None, messages[0][:5])
    read, into_columns = reader.decode, reader.columns().read
    read_valid = careful.reader(written.parsed, written.parsed, None, messages[0][:5]).decode
    assert read(messages) == list(values)
    print(f"\n{name}, {sum(map(len, messages)) / len(messages):.0f} bytes a message")
    print(f"{'':16}{'decode':>10}{'encode':>10}   CPU seconds for a million records")
    rows: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "bare orjson": (
            lambda: [orjson.loads(message[5:]) for message in messages],
            lambda: [b"\0\0\0\0\1" + orjson.dumps(value) for value in values],
        ),
        "row": (lambda: [read([each])[0] for each in messages], lambda: [write([each])[0] for each in values]),
        "column": (lambda: read(messages), lambda: write(values)),
        "validated": (lambda: read_valid(messages), lambda: valid(values)),
    }
    for label, (reading, writing) in rows.items():
        print(f"{label:16}{seconds(reading, records):10.2f}{seconds(writing, records):10.2f}")
    print(f"{'to Arrow':16}{seconds(lambda: to_array(read(messages), reader.schema), records):10.2f}   by way of dicts")
    print(f"{'into columns':16}{seconds(lambda: into_columns(messages), records):10.2f}")


def main() -> None:
    """Measure both shapes."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    form, careful = (
        JsonSchemaFormat(
            JsonSchemaConverterConfig(schema_registry_url=("http://127.0.0.1:1",), json_fail_invalid_schema=validates)
        )
        for validates in (False, True)
    )
    for name, schema, make in (("flat", FLAT, flat), ("nested", NESTED, nested)):
        measure(name, schema, [make(number) for number in range(BATCH)], records, form, careful)


if __name__ == "__main__":
    main()
