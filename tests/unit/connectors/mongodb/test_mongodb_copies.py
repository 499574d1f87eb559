"""Copied documents become the same records together as one by one."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from bson import Decimal128, Int64, ObjectId, Regex, Timestamp, decode, encode
from bson.binary import Binary

from connectors.mongodb.source.config import MongoSourceConfig
from connectors.mongodb.source.copying import CopiedBatch, Namespace
from connectors.mongodb.source.positions import position_of
from connectors.mongodb.source.records import RecordMaker
from equipment.growth import assert_grows_evenly

IDS: list[Any] = [
    7,
    Int64(7),
    1.5,
    True,
    'a "text" with ü',
    ObjectId("0123456789abcdef01234567"),
    Binary(b"\x00\x01"),
    Binary.from_uuid(uuid.UUID(int=1)),
    {"a": 1, "b": "x"},
    dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    Decimal128("1.10"),
    Timestamp(1, 2),
    Regex("x", 2),
    float("nan"),
    None,
]
FORMATS = ("DefaultJson", "ExtendedJson", "SimplifiedJson")
PACKAGE = "com.mongodb.kafka.connect.source.json.formatter."


def batch(*documents: Mapping[str, Any]) -> CopiedBatch:
    given = [encode(each) for each in documents]
    return CopiedBatch(Namespace("shop", 'or"ders', True), b"".join(given), given, '{"_data": "82"}', False, True)


def maker(**props: str) -> RecordMaker:
    given = {key.replace("_", "."): value for key, value in props.items()}
    return RecordMaker(MongoSourceConfig.parse({"name": "c", **given}), {"ns": "x"})


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("value", ["json", "bson"])
@pytest.mark.parametrize("key", ["json", "bson"])
@pytest.mark.parametrize("full", ["true", "false"])
@pytest.mark.parametrize("document_key", ["true", "false"])
def test_records_are_those_of_the_events(form: str, value: str, key: str, full: str, document_key: str) -> None:
    made = maker(
        output_format_value=value,
        output_format_key=key,
        output_json_formatter=PACKAGE + form,
        publish_full_document_only=full,
        change_stream_document_key_as_key=document_key,
    )
    given = batch(*({"_id": identity, "n": number, "x": 0.5} for number, identity in enumerate(IDS)))
    together = made.copied(given)
    assert together is not None
    one_by_one = [made.record(given.event_at(index), given.offset_at(index)) for index in range(len(IDS))]
    assert list(together) == one_by_one


def test_documents_without_an_id_in_the_first_place_are_found() -> None:
    given = batch({"n": 1, "_id": 7}, {"n": 2})
    events = [decode(given.event_at(index)) for index in range(2)]
    assert [event["_id"] for event in events] == [{"_id": 7, "copyingData": True}, {"copyingData": True}]
    assert [event["documentKey"] for event in events] == [{"_id": 7}, {}]
    assert maker().copied(given) is None


def test_reading_goes_on_after_any_document_and_with_the_stream_after_the_last() -> None:
    given = batch({"_id": ObjectId("0123456789abcdef01234567")}, {"_id": "x"})
    offsets = [given.offset_at(index) for index in range(2)]
    assert [position_of(offset).copied for offset in offsets] == [
        position_of(offset).copied for offset in (offsets[0], given.offset_at(-1))
    ]
    copied = position_of(offsets[0]).copied
    assert copied is not None
    assert (copied.namespace, copied.identity) == ('shop.or"ders', ObjectId("0123456789abcdef01234567"))
    together = maker().copied(given)
    assert together is not None
    assert [*together.source_offsets] == offsets
    assert together.slice(1, 2).source_offsets[0] == offsets[1]


def test_copies_grow_evenly() -> None:
    assert_grows_evenly(maker().copied, lambda size: batch(*({"_id": number} for number in range(size))), 1000)
