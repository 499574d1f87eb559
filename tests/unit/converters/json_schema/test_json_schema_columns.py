"""JSON with a JSON Schema read by column is the same as by row: the same values, the same verdicts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from connect.data import Schema
from connect.data.arrow import to_array
from connect.errors import DataError
from converters.json_schema.columns import JsonColumns
from converters.json_schema.config import JsonSchemaConverterConfig
from converters.json_schema.converter import JsonSchemaFormat
from converters.json_schema.document import JsonSchema
from equipment.examples import examples

WHOLE: dict[str, Any] = {
    "type": "object",
    "title": "Whole",
    "properties": {
        "id": {"type": "integer"},
        "small": {"type": "integer", "connect.type": "int8"},
        "name": {"type": ["null", "string"]},
        "kind": {"enum": ["a", "b"]},
        "ratio": {"type": "number"},
        "note": {"type": ["null", "string"], "default": "none"},
        "flag": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
        "raw": {"type": "string", "connect.type": "bytes"},
        "price": {
            "type": "string",
            "title": "org.apache.kafka.connect.data.Decimal",
            "connect.type": "bytes",
            "connect.version": 1,
            "connect.parameters": {"scale": "2"},
        },
        "at": {
            "type": "integer",
            "title": "org.apache.kafka.connect.data.Timestamp",
            "connect.type": "int64",
            "connect.version": 1,
        },
        "tags": {"type": "array", "items": {"type": "string"}},
        "inner": {
            "oneOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"type": ["null", "number"]}}}],
        },
    },
}
GOOD: dict[str, Any] = {
    "id": 7,
    "small": -128,
    "name": "\u00e9\u2028",
    "kind": "a",
    "ratio": 0.1,
    "note": "x",
    "flag": True,
    "raw": "AP8=",
    "price": "MDk=",
    "at": 1_700_000_000_123,
    "tags": ["", "a"],
    "inner": {"x": 2.5},
}
UNUSUAL: tuple[dict[str, Any], ...] = (
    {"id": 3.0},
    {"id": 2**63},
    {"small": 128},
    {"name": None},
    {"name": 5},
    {"ratio": 3},
    {"ratio": "NaN"},
    {"ratio": -0.0},
    {"ratio": 2**70},
    {"note": None},
    {"flag": None},
    {"raw": "A"},
    {"price": 123.45},
    {"price": 1.005},
    {"at": 10**15},
    {"tags": [None]},
    {"tags": None},
    {"inner": None},
    {"inner": {}},
    {"inner": {"x": None, "y": 1}},
    {"more": {"deep": [1]}},
    {"kind": "c"},
)


class Pair:
    """Both decoders, and the messages that the one by column has left to the other."""

    def __init__(self, document: Any, **options: Any) -> None:
        config = JsonSchemaConverterConfig(schema_registry_url=("http://127.0.0.1:1",), **options)
        compiled = JsonSchema(json.dumps(document))
        reader = JsonSchemaFormat(config).reader(compiled, compiled, 1, b"\0\0\0\0\7")
        assert reader.schema is not None
        self.schema: Schema = reader.schema
        self.decode = reader.decode
        self.left = 0
        self.columns = JsonColumns(self.schema, config, self._by_row, 5)

    def _by_row(self, messages: Sequence[bytes]) -> list[Any]:
        self.left += len(messages)
        return self.decode(messages)

    def check(self, messages: Sequence[bytes]) -> int:
        """Compare the decoders; return how many messages were read by row."""
        self.left = 0
        expected = outcome(lambda: to_array(self.decode(messages), self.schema))
        assert outcome(lambda: self.columns.read(messages)) == expected
        left = self.left
        assert outcome(lambda: self.columns.read_array(pa.array(messages, pa.binary()))) == expected
        return left


def outcome(work: Callable[[], Any]) -> Any:
    """The values, or the error."""
    try:
        array = work()
    except DataError as error:
        return str(error)
    array.validate(full=True)
    return array.type, [repr(value) for value in array.to_pylist()]


def framed(text: str | bytes) -> bytes:
    return b"\0\0\0\0\7" + (text if isinstance(text, bytes) else text.encode())


def test_good_messages_are_read_together() -> None:
    pair = Pair(WHOLE)
    assert pair.check([framed(json.dumps({**GOOD, "id": number})) for number in range(100)]) == 0
    absent = {**GOOD}
    del absent["name"]
    assert pair.check([framed(json.dumps(GOOD)), framed(json.dumps(absent)), framed(json.dumps({**GOOD, "z": 1}))]) == 0


@pytest.mark.parametrize("ignores", [False, True])
def test_an_unusual_message_has_the_same_verdict(ignores: bool) -> None:
    pair = Pair(WHOLE, ignore_default_for_nullables=ignores)
    for change in UNUSUAL:
        text = json.dumps({**GOOD, **change})
        pair.check([framed(json.dumps(GOOD)), framed(text), framed(json.dumps(GOOD, indent=1))])
    for name in GOOD:
        text = json.dumps({key: value for key, value in GOOD.items() if key != name})
        pair.check([framed(json.dumps(GOOD)), framed(text)])
    for odd in (
        b"",
        b"null",
        b"[]",
        b"{}{}",
        b" {}",
        b'{"id":1,"id":2}',
        b'{"name":"\xff"}',
        b'{"id":01}',
        b'{"z":NaN}',
    ):
        pair.check([framed(json.dumps(GOOD)), framed(odd)])


def test_a_damaged_message_has_the_same_verdict() -> None:
    pair, rand = Pair(WHOLE), random.Random(5)
    good = json.dumps(GOOD).encode()
    for _ in range(examples(500)):
        body = bytearray(good)
        for _ in range(rand.choice((1, 1, 3))):
            if not body:
                break
            place = rand.randrange(len(body))
            match rand.randrange(4):
                case 0:
                    body[place] = rand.choice(b'"{}[],:0-.eE\\ntf\x00\xff')
                case 1:
                    del body[place]
                case 2:
                    body[place:place] = body[rand.randrange(place + 1) : place]
                case _:
                    del body[place:]
                    body += b"}"
        pair.check([framed(good), framed(bytes(body)), framed(good)])


@pytest.mark.parametrize(
    "part",
    [
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {},
        {"type": "object", "connect.type": "map", "additionalProperties": {"type": "string"}},
        {"type": "number", "connect.type": "float32"},
    ],
    ids=["union", "any", "map", "float32"],
)
def test_what_pyarrow_reads_otherwise_is_read_by_row(part: dict[str, Any]) -> None:
    pair = Pair({"type": "object", "properties": {"a": part}})
    texts = ['{"a":"x"}', '{"a":{"b":"c"}}', '{"a":1.00000005960464477539062500001}', '{"a":[1]}']
    for text in texts:
        assert pair.check([framed(text)] * 2) == 2


def test_a_validated_message_is_read_by_row() -> None:
    document = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}}}
    pair = Pair(document, json_fail_invalid_schema=True)
    assert pair.check([framed('{"a":"x"}'), framed('{"a":"xy"}')]) == 2
