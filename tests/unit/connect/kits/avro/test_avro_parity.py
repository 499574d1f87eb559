"""Schemas and bytes as Java has them: recorded from a fork of Confluent's AvroData on Avro's Java library 1.12.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connect.data import Schema
from connect.kits.avro.avro_schema import parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.encode import encoder
from connect.kits.avro.from_connect import avro_from_connect
from connect.kits.avro.to_connect import connect_from_avro
from converters.json import JsonConverter, JsonConverterConfig

JSON = JsonConverter(JsonConverterConfig(replace_null_with_default=False))
VECTORS = [json.loads(line) for line in (Path(__file__).parent / "data" / "java.jsonl").read_text().split("\n") if line]


def described(schema: Schema | None) -> Any:
    """The schema as JSON."""
    assert schema is not None
    node = json.loads(JSON.from_connect("t", schema.as_optional(), None) or b"")["schema"]
    return node | {"optional": schema.optional}


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if "text" in vector])
def test_what_is_written(vector: Any) -> None:
    envelope = json.dumps({"schema": vector["schema"], "payload": vector["value"]}).encode()
    schema, value = JSON.to_connect("t", envelope)
    config = AvroDataConfig.parse(vector["options"])
    avro = avro_from_connect(schema, config)
    assert avro_text(avro) == vector["text"]
    assert encoder(schema, avro, 1, config)([value])[0][5:].hex() == vector["body"]


@pytest.mark.parametrize("vector", VECTORS)
def test_what_is_read(vector: Any) -> None:
    avro = parse_avro(vector.get("avro") or vector["text"])
    assert described(connect_from_avro(avro, AvroDataConfig.parse(vector["options"]))) == vector["back"]
