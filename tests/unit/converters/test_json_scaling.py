"""What hostile input costs the JSON converter: twice as much of it costs twice as much, by row and by column."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from connect.data import Schema, StructColumn, ValueColumn
from connect.errors import DataError
from converters.json import JsonConverter, JsonConverterConfig
from equipment.growth import assert_grows_evenly

TRIES = 6
ORDER = Schema.struct({"id": Schema.int64(), "tags": Schema.array(Schema.string(), optional=True)})
ORDER_JSON = (
    '{"type":"struct","fields":[{"type":"int64","field":"id"},'
    '{"type":"array","items":{"type":"string"},"optional":true,"field":"tags"}]}'
)


def converter(**options: Any) -> JsonConverter:
    return JsonConverter(JsonConverterConfig(**options))


def attempt(work: Callable[[], object]) -> None:
    """Do something; that it is refused is an answer, too."""
    with suppress(DataError):
        work()


def seconds(work: Callable[[], object]) -> float:
    """CPU time."""
    start = time.process_time()
    attempt(work)
    return time.process_time() - start


def best(work: Callable[[], object]) -> float:
    """CPU time, the best of some tries."""
    return min(seconds(work) for _ in range(TRIES))


def truncated_json_in_json(size: int) -> str:
    text = json.dumps({"body": json.dumps([{"sku": "A"}] * size)})
    return text[: len(text) * 9 // 10]


PAYLOADS: dict[str, Callable[[int], str]] = {
    "truncated JSON within JSON": truncated_json_in_json,
    "a string of quotes without an end": lambda size: '["' + '\\"' * size,
    "strings without an end": lambda size: '["a' + '","a' * size,
    "the word payload": lambda size: json.dumps(['"payload":'] * size),
    "members called payload": lambda size: "[" + '{"payload":1},' * size + "1]",
    "members called payload, truncated": lambda size: '{"payload":' * 50 + '[{"payload":1},' * size,
    "members called schema": lambda size: "[" + '{"schema":1},' * size + "1]",
    "zeros before numbers": lambda size: "[" + "007," * size + "0]",
    "zeros before numbers, truncated": lambda size: "[" + "007," * size + '"',
    "zeros alone": lambda size: "0" * size + "x",
    "digits": lambda size: "[" + "9" * (10 * size),
    "digits in text": lambda size: '["' + "9" * (10 * size) + '",5.0]',
    "long fractions": lambda size: "[" + "0.12345678901234567890," * size + "5.0]",
    "white space": lambda size: " " * (10 * size) + "1" + "\n" * (10 * size),
    "brackets": lambda size: "[" * size + "]" * size,
    "brackets in text": lambda size: json.dumps(["[{", "\\", '"[['] * size),
    "shallow brackets": lambda size: "[" + "[[[]]]," * size + "0]",
    "one name again and again": lambda size: "{" + '"a":[0],' * size + '"a":0}',
    "surrogates": lambda size: '["' + "\\ud83d\\ude00" * size + '"]',
    "half surrogates": lambda size: '["' + "\\ud83d" * size + '"]',
    "control characters": lambda size: '["' + "\\u0001" * size + '"]',
    "text after the value": lambda size: "{}" + " {}" * size,
    "commas": lambda size: "[" + "," * (10 * size),
    "minus signs": lambda size: "[" + "-" * (10 * size),
    "exponents": lambda size: "[" + "1e-300," * size + "1]",
}
READERS: dict[str, Callable[[str], tuple[JsonConverter, bytes]]] = {
    "plain": lambda text: (converter(schemas_enable=False), text.encode()),
    "envelope": lambda text: (converter(), f'{{"schema":null,"payload":{text}}}'.encode()),
    "payload first": lambda text: (converter(), f'{{"payload":{text},"schema":null}}'.encode()),
    "an unknown field": lambda text: (
        converter(),
        f'{{"schema":{ORDER_JSON},"payload":{{"id":1.0,"other":{text}}}}}'.encode(),
    ),
}


@pytest.mark.growth
@pytest.mark.parametrize("kind", PAYLOADS)
@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("by", ["row", "column"])
def test_hostile_text_is_read_in_linear_time(kind: str, form: str, by: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        json_converter, message = READERS[form](PAYLOADS[kind](size))
        if by == "row":
            return lambda: json_converter.to_connect("t", message)
        return lambda: json_converter.to_connect_column("t", [message] * 4)

    assert_grows_evenly(attempt, reading, 2000)


@pytest.mark.parametrize("enveloped", [True, False])
def test_a_truncated_message_of_json_in_json_costs_little(enveloped: bool) -> None:
    sound = json.dumps({"body": json.dumps([{"sku": "A"}] * 4000)}).encode()
    plain, json_converter = converter(schemas_enable=False), converter(schemas_enable=enveloped)
    least = best(lambda: plain.to_connect("t", sound))
    assert best(lambda: json_converter.to_connect("t", sound[:83000])) < 100 * least
    assert best(lambda: json_converter.to_connect_column("t", [sound[:83000]])) < 100 * least


@pytest.mark.growth
def test_schemas_that_differ_in_every_message_are_read_in_linear_time() -> None:
    def messages(size: int) -> list[bytes]:
        names = ",".join(f'"p{index}":"\\"payload\\":"' for index in range(20))
        schema = '{{"type":"int32","version":{},"parameters":{{{}}}}}'
        return [f'{{"schema":{schema.format(version, names)},"payload":{version}}}'.encode() for version in range(size)]

    def reading(size: int) -> Callable[[], object]:
        data = messages(size)
        return lambda: converter(schemas_cache_size=8).to_connect_column("t", data)

    assert_grows_evenly(attempt, reading, 50)


def deep(size: int) -> Any:
    value: Any = 1
    for _ in range(size):
        value = [value]
    return value


VALUES: dict[str, Callable[[int], Any]] = {
    "characters beyond 16 bits": lambda size: ["\U0001f600" * size],
    "control characters": lambda size: ["\x01" * size],
    "quotes": lambda size: {'"' * size: '"' * size},
    "names beyond 16 bits": lambda size: {f"\U0001f600{index}": index for index in range(size)},
    "numbers for names": lambda size: dict.fromkeys(range(size), 1),
    "many kinds": lambda size: [None, 1, 1.5, "x", True, [1], {"a": 1}] * size,
    "floats in scientific notation": lambda size: [1e-10] * size,
    "depth": deep,
    "depth and width": lambda size: [deep(400)] * (size // 400),
    "a bad value at the end": lambda size: [[1] * size, {1, 2}],
}


@pytest.mark.growth
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("by", ["row", "column"])
def test_odd_values_are_written_in_linear_time(kind: str, by: str) -> None:
    json_converter = converter()

    def writing(size: int) -> Callable[[], object]:
        value = VALUES[kind](size)
        if by == "row":
            return lambda: json_converter.from_connect("t", None, value)
        column = ValueColumn([value] * 3)
        return lambda: json_converter.from_connect_column("t", column)

    assert_grows_evenly(attempt, writing, 2000)


@pytest.mark.growth
@pytest.mark.parametrize("text", ["\U0001f600", "\x01", '",\n  "', "\\", "},{"])
def test_odd_text_of_a_schema_is_written_in_linear_time(text: str) -> None:
    json_converter = converter()

    def values(size: int) -> ValueColumn:
        return ValueColumn([{"id": 1, "tags": [text] * size}] * 3, ORDER)

    def by_row(size: int) -> Callable[[], object]:
        column = values(size)
        return lambda: [json_converter.from_connect("t", ORDER, value) for value in column]

    def by_column(size: int) -> Callable[[], object]:
        column = values(size)
        return lambda: json_converter.from_connect_column("t", column)

    def by_field(size: int) -> Callable[[], object]:
        column = StructColumn({"id": [1] * 3, "tags": [[text] * size] * 3}, ORDER)
        return lambda: json_converter.from_connect_column("t", column)

    for work_of in (by_row, by_column, by_field):
        assert_grows_evenly(attempt, work_of, 1000)


def test_a_schema_that_uses_its_parts_twice_a_level_is_refused_before_it_fills_the_memory() -> None:
    schema = Schema.int32()
    for _ in range(60):
        schema = Schema.struct({"a": schema, "b": schema})
    for json_converter in (converter(), converter(schemas_enable=False)):
        with pytest.raises(DataError, match="parts"):
            json_converter.from_connect("t", schema, {})
        with pytest.raises(DataError, match="parts"):
            json_converter.from_connect_column("t", ValueColumn([{}], schema))


DECIMAL_KEYS = (
    '{"type":"map","keys":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal",'
    '"parameters":{"scale":"0"}},"values":{"type":"int32"}}'
)
PRIME = 2**61 - 1
"""The numbers that are so far apart have one hash."""
KEYS: dict[str, tuple[str, Callable[[int], list[object]]]] = {
    "one key over and over": (
        '{"type":"map","keys":{"type":"int32"},"values":{"type":"int32"}}',
        lambda size: [7] * size,
    ),
    "one decimal over and over": (DECIMAL_KEYS, lambda size: [7] * size),
    "many decimals": (DECIMAL_KEYS, lambda size: list(range(size))),
    "decimals of one hash": (DECIMAL_KEYS, lambda size: [PRIME * number for number in range(1, size)]),
    "decimals of two hashes": (DECIMAL_KEYS, lambda size: [PRIME * number + number % 2 for number in range(1, size)]),
}


def map_message(schema: str, keys: list[object]) -> bytes:
    return f'{{"schema":{schema},"payload":{json.dumps([[key, 1] for key in keys])}}}'.encode()


@pytest.mark.growth
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("by", ["row", "column"])
def test_maps_are_read_in_linear_time(kind: str, by: str) -> None:
    schema, keys = KEYS[kind]
    json_converter = converter(decimal_format="NUMERIC")

    def reading(size: int) -> Callable[[], object]:
        message = map_message(schema, keys(size))
        if by == "row":
            return lambda: json_converter.to_connect("t", message)
        return lambda: json_converter.to_connect_column("t", [message] * 2)

    assert_grows_evenly(attempt, reading, 1500)


def test_decimals_of_one_hash_make_no_map() -> None:
    keys: list[object] = [PRIME * number for number in range(1, 400)]
    json_converter = converter()
    with pytest.raises(DataError, match="more than 100 different keys with the same hash"):
        json_converter.to_connect("t", map_message(DECIMAL_KEYS, keys))
    assert len(json_converter.to_connect("t", map_message(DECIMAL_KEYS, keys[:100])).value) == 100
    assert len(json_converter.to_connect("t", map_message(DECIMAL_KEYS, keys[:1] * 400)).value) == 1
