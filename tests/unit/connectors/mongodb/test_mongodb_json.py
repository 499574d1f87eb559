"""Documents as JSON: written in three forms, and read."""

from __future__ import annotations

import json
from typing import Any

import bson
import pytest
from bson.binary import Binary
from bson.code import Code
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

from connect.errors import DataError
from connect.kits.mongodb.extended_json import parse_array, parse_document
from connect.kits.mongodb.json_forms import json_format
from connectors.mongodb.sink.documents import LOSSLESS

OID = ObjectId("0123456789ab0123456789ab")
VALUES: list[tuple[Any, str, str, str]] = [
    (1, "1", '{"$numberInt": "1"}', "1"),
    (Int64(1), '{"$numberLong": "1"}', '{"$numberLong": "1"}', "1"),
    (1.5, "1.5", '{"$numberDouble": "1.5"}', "1.5"),
    (float("nan"), "NaN", '{"$numberDouble": "NaN"}', '{"$numberDouble": "NaN"}'),
    (Decimal128("1.50"), '{"$numberDecimal": "1.50"}', '{"$numberDecimal": "1.50"}', '"1.50"'),
    (True, "true", "true", "true"),
    (None, "null", "null", "null"),
    ("ä\n", '"ä\\n"', '"ä\\n"', '"ä\\n"'),
    (OID, f'{{"$oid": "{OID}"}}', f'{{"$oid": "{OID}"}}', f'"{OID}"'),
    (DatetimeMS(1100), '{"$date": 1100}', '{"$date": {"$numberLong": "1100"}}', '"1970-01-01T00:00:01.1Z"'),
    (DatetimeMS(0), '{"$date": 0}', '{"$date": {"$numberLong": "0"}}', '"1970-01-01T00:00:00Z"'),
    (b"\x01", '{"$binary": "AQ==", "$type": "00"}', '{"$binary": {"base64": "AQ==", "subType": "00"}}', '"AQ=="'),
    (
        Binary(b"\x01", 5),
        '{"$binary": "AQ==", "$type": "05"}',
        '{"$binary": {"base64": "AQ==", "subType": "05"}}',
        '"AQ=="',
    ),
    (Timestamp(7, 1), *['{"$timestamp": {"t": 7, "i": 1}}'] * 3),
    (
        Regex("^a", "im"),
        '{"$regex": "^a", "$options": "im"}',
        *['{"$regularExpression": {"pattern": "^a", "options": "im"}}'] * 2,
    ),
    (MinKey(), *['{"$minKey": 1}'] * 3),
    (MaxKey(), *['{"$maxKey": 1}'] * 3),
    (Code("f()"), *['{"$code": "f()"}'] * 3),
    (
        [1, {"a": Int64(2)}],
        '[1, {"a": {"$numberLong": "2"}}]',
        '[{"$numberInt": "1"}, {"a": {"$numberLong": "2"}}]',
        '[1, {"a": 2}]',
    ),
]


@pytest.mark.parametrize(("value", "strict", "extended", "simplified"), VALUES)
def test_the_three_forms(value: Any, strict: str, extended: str, simplified: str) -> None:
    assert [json_format(f"{name}Json").text_of(value) for name in ("Default", "Extended", "Simplified")] == [
        strict,
        extended,
        simplified,
    ]


@pytest.mark.parametrize("name", ["DefaultJson", "ExtendedJson"])
def test_what_is_written_is_read_again(name: str) -> None:
    # As BSON, in which NaN equals itself.
    document = {f"v{number}": value for number, (value, *_) in enumerate(VALUES)}
    data = bson.encode(document)
    form = json_format(name)
    assert bson.encode(parse_document(form.text(form.decoded(data))), codec_options=LOSSLESS) == data


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"v": 12345678901234567890}', 12345678901234567890),
        ('{"v": 123456789012345678901}', 123456789012345678901),
        ('{"v": {"\\u0024oid": "0123456789ab0123456789ab"}}', OID),
        ('{"v": {"$date": "2024-01-02T03:04:05.579+01:00"}}', DatetimeMS(1704161045579)),
        ('{"v": {"$ref": "c", "$id": 1}}', {"$ref": "c", "$id": 1}),
        ('{"v": {"$set": 1}}', {"$set": 1}),
        (b'{"v": "\xc3\xa4"}', "ä"),
    ],
)
def test_reading(text: str | bytes, value: Any) -> None:
    assert parse_document(text) == {"v": value}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"{}"',
        '{"v": {"$oid": "x"}}',
        '{"v": {"$numberLong": "many"}}',
        b"\xff",
        "{'a': 1}",
        "[" * 100_000,
    ],
)
def test_what_is_no_document(text: str | bytes) -> None:
    with pytest.raises(DataError):
        parse_document(text)


def test_arrays() -> None:
    assert parse_array('[{"$match": {"_id": {"$oid": "0123456789ab0123456789ab"}}}]') == [{"$match": {"_id": OID}}]
    with pytest.raises(DataError):
        parse_array("{}")
    assert json.loads("[]") == parse_array("[]")
