"""Protobuf as Confluent's converter has it: recordings of its version 7.0.16 on the Java runtime, both ways.

A line that has ``write`` gives a value as the JSON converter has it, the text that Java registers and the message's
bytes; another gives a schema, the bytes of a message and the value that Java makes of it, in the same form. What later
versions of the original do otherwise is left out: messages of wrappers are scalars in that version.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.data import SchemaAndValue
from converters.json import JsonConverter
from converters.protobuf import ProtobufConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving

RECORDINGS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data/protobuf/java.jsonl").read_text(encoding="utf-8").splitlines()
]
READ = [each for each in RECORDINGS if "connect" in each and "message" not in each]
WRITTEN = [each for each in RECORDINGS if "write" in each and "bytes" in each]


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryRegistry]:
    """A registry for all recordings."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


@pytest.fixture(scope="module")
def envelopes() -> JsonConverter:
    """The JSON converter that shows values with their schemas."""
    return JsonConverter.configured({"schemas.enable": "true"})


def converter(memory: MemoryRegistry, recorded: dict[str, Any]) -> ProtobufConverter:
    """A converter with the options of a recording."""
    return ProtobufConverter.configured({"schema.registry.url": memory.url, **(recorded.get("config") or {})})


@pytest.mark.parametrize("number", range(len(READ)))
def test_messages_are_read_as_java_reads_them(memory: MemoryRegistry, envelopes: JsonConverter, number: int) -> None:
    recorded = READ[number]
    schema_id = memory.add(f"read-{number}-value", recorded["proto"], schemaType="PROTOBUF")
    message = b"\0" + schema_id.to_bytes(4, "big") + b"\0" + base64.b64decode(recorded["bytes"])
    found = converter(memory, recorded).to_connect(f"read-{number}", message)
    shown = envelopes.from_connect("t", found.schema, found.value)
    assert shown is not None
    assert json.loads(shown) == recorded["connect"]


@pytest.mark.parametrize("number", range(len(WRITTEN)))
def test_values_are_written_as_java_writes_them(memory: MemoryRegistry, envelopes: JsonConverter, number: int) -> None:
    recorded = WRITTEN[number]
    given = envelopes.to_connect("t", json.dumps(recorded["write"]).encode())
    ours = converter(memory, recorded)
    message = ours.from_connect(f"write-{number}", given.schema, given.value)
    assert message is not None
    body = base64.b64decode(recorded["bytes"])
    assert message.endswith(body)
    # What Java registers for the same values reads the same message, and so do we.
    schema_id = memory.add(f"java-{number}-value", recorded["proto"], schemaType="PROTOBUF")
    theirs = b"\0" + schema_id.to_bytes(4, "big") + message[5:]
    assert plain(ours.to_connect(f"java-{number}", theirs)) == plain(ours.to_connect(f"write-{number}", message))


def plain(found: SchemaAndValue) -> Any:
    """The value, and of the schema the names and types of its fields."""
    schema = found.schema
    assert schema is not None
    return found.value, schema.type, schema.name, [(field.name, field.schema.type) for field in schema.fields]
