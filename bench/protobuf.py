"""Compares the CPU time of the Protobuf converter, by row and by column, with that of its library alone, in one run.

``python bench/protobuf.py [records]``. Shows CPU seconds per million records, the best of several rounds. No
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

from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

from connect.data import Schema
from connect.data.arrow import to_array
from converters.protobuf import ProtobufConverterConfig
from converters.protobuf.converter import ProtobufFormat


def measure(name: str, schema: Schema, values: Sequence[dict[str, Any]], records: int, form: Any) -> None:
    """Print one table."""
    written = form.written(schema)
    write = form.encoder(schema, written, written.parsed, 1, strict=False)
    messages = write(values)
    reader = form.reader(written.parsed, written.parsed, None, messages[0][:6])
    read, into_columns = reader.decode, reader.columns().read
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
    print(f"{'to Arrow':16}{seconds(lambda: to_array(read(messages), reader.schema), records):10.2f}   by way of dicts")
    print(f"{'into columns':16}{seconds(lambda: into_columns(messages), records):10.2f}")


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
