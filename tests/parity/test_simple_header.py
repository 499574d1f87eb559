"""Headers are written and read as by Kafka Connect's ``SimpleHeaderConverter``."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from data_vectors import schema_or_none

from converters.simple_header import SimpleHeaderConverter
from equipment.vectors import canonical, cases, encoded, value_of


@pytest.fixture
def converter() -> SimpleHeaderConverter:
    made: SimpleHeaderConverter = SimpleHeaderConverter.configured({})
    return made


def cases_of(op: str) -> list[dict[str, Any]]:
    return [case for case in cases("simple_header_converter") if case["op"] == op]


def as_bytes(spec: Any) -> bytes | None:
    if isinstance(spec, dict):
        return base64.b64decode(spec["b64"])
    return None if spec is None else spec.encode()


@pytest.mark.parametrize("case", cases_of("header_from_connect"), ids=lambda case: case["name"])
def test_writes(case: dict[str, Any], converter: SimpleHeaderConverter) -> None:
    schema = schema_or_none(case["input"]["schema"])
    value = value_of(case["input"]["value"], schema)
    assert converter.from_connect_header("t", "h", schema, value) == as_bytes(case["expect"]["bytes"])


@pytest.mark.parametrize("case", cases_of("header_to_connect"), ids=lambda case: case["name"])
def test_reads(case: dict[str, Any], converter: SimpleHeaderConverter) -> None:
    read = converter.to_connect_header("t", "h", as_bytes(case["input"]))
    schema = schema_or_none(case["expect"]["schema"])
    assert read.schema is schema
    assert encoded(read.value, schema) == canonical(case["expect"]["value"], schema)


def test_null_stays_null(converter: SimpleHeaderConverter) -> None:
    assert converter.from_connect_header("t", "h", None, None) is None
    assert converter.to_connect_header("t", "h", None) == (None, None)
