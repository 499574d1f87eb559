"""The converters against what those of Apache Kafka Connect 4.3.1 wrote, read and refused."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from connect.data import Schema, ValueColumn
from connect.errors import ConfigError, DataError
from converters.byte_array import ByteArrayConverter
from converters.json import JsonConverter
from converters.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from converters.string import StringConverter
from converters.universal import UniversalConverter
from equipment.vectors import canonical, cases, encoded, schema_and_value_of, schema_of

CONVERTERS: dict[str, type[UniversalConverter[Any]]] = {
    kind.__name__: kind
    for kind in (
        JsonConverter,
        StringConverter,
        ByteArrayConverter,
        BooleanConverter,
        ShortConverter,
        IntegerConverter,
        LongConverter,
        FloatConverter,
        DoubleConverter,
    )
}
DEVIATIONS = {
    "extra wrong type int for long": "an int has no width in Python; it fits the schema",
    "extra time beyond day": "a datetime.time ends before 24:00",
}
"""The cases that are answered otherwise, each with the reason."""
REFUSED = {
    "extra bigint in int64": "it does not fit; Java keeps the low 64 bits, 7766279631452241919",
    "schemaless float": "1e400 fits no double; Java makes it infinite",
}
"""The cases that Java reads with another value than was written, and that are refused here."""

ALL = [case for suite in ("json_converter", "string_converter", "primitive_converters") for case in cases(suite)]
IDS = [f"{case['class'].rpartition('.')[2]}-{case['name']}" for case in ALL]
READS = [(case, name) for case, name in zip(ALL, IDS, strict=True) if case["op"] == "converter_to_connect"]
WRITES = [(case, name) for case, name in zip(ALL, IDS, strict=True) if case["op"] == "converter_from_connect"]


def converter_of(case: dict[str, Any]) -> UniversalConverter[Any]:
    props = {key: value for key, value in case["config"].items() if value is not None}
    kind = CONVERTERS[case["class"].rpartition(".")[2]]
    return kind.configured(props, is_key=case.get("is_key", False))


def bytes_of(document: Any) -> bytes | None:
    if isinstance(document, str):
        return document.encode()
    return None if document is None else base64.b64decode(document["b64"])


def param(case: dict[str, Any], name: str) -> Any:
    marks = [pytest.mark.xfail(reason=DEVIATIONS[case["name"]], strict=True)] if case["name"] in DEVIATIONS else []
    return pytest.param(case, id=name, marks=marks)


@pytest.mark.parametrize("case", [param(*pair) for pair in READS])
@pytest.mark.parametrize("by", ["row", "column", "header"])
def test_reads_as_java_does(case: dict[str, Any], by: str) -> None:
    expected, data = case["expect"], bytes_of(case["input"])

    def read() -> tuple[Schema | None, Any]:
        converter = converter_of(case)
        if by == "row":
            return converter.to_connect("topic", data)
        if by == "header":
            return converter.to_connect_header("topic", "key", data)
        first, *rest = converter.to_connect_column("topic", [data, data, data])
        assert not rest
        return first.schema, first[2]

    if "error" in expected or case["name"] in REFUSED:
        with pytest.raises(DataError):
            read()
        return
    schema, value = read()
    assert schema is schema_of(expected["schema"])
    assert encoded(value, schema) == canonical(expected["value"], schema)


@pytest.mark.parametrize("case", [param(*pair) for pair in WRITES])
@pytest.mark.parametrize("by", ["row", "column", "header"])
def test_writes_as_java_does(case: dict[str, Any], by: str) -> None:
    expected = case["expect"]

    def write() -> bytes | None:
        converter = converter_of(case)
        schema, value = schema_and_value_of(case["input"])
        if by == "row":
            return converter.from_connect("topic", schema, value)
        if by == "header":
            return converter.from_connect_header("topic", "key", schema, value)
        return converter.from_connect_column("topic", ValueColumn([value, value], schema))[1]

    if "error" in expected:
        refusal = ConfigError if expected["error"]["phase"] == "configure" else DataError
        with pytest.raises(refusal):
            write()
        return
    assert write() == bytes_of(expected["bytes"])
