"""Topics and timestamps out of records, and tombstones."""

from __future__ import annotations

import datetime as dt
import logging
from importlib.util import find_spec
from typing import Any

import pytest

from connect.data import Header, Headers, Schema, SinkBatch
from connect.errors import ConfigError, DataError
from connect.transforms.extract_timestamp import ExtractTimestamp
from connect.transforms.extract_topic import ExtractTopic
from connect.transforms.timestamp_converter import TimestampConverter
from connect.transforms.timestamp_router import TimestampRouter
from connect.transforms.tombstone_handler import TombstoneHandler


@pytest.mark.parametrize(("value", "topic"), [("a", "a"), (5, "5"), (True, "true"), (1.0, "1.0")])
def test_a_topic_out_of_a_field(value: Any, topic: str, record: Any) -> None:
    for config in ({"field": "to"}, {"field.name": "to"}):
        assert ExtractTopic.Value.configured(config).apply(record({"to": value})).topic == topic


def test_a_topic_out_of_the_whole_key_and_out_of_a_header(record: Any) -> None:
    given = record(key="k", headers=Headers([Header("to", "x"), Header("to", "h", Schema.string())]))
    assert ExtractTopic.Key.configured({}).apply(given).topic == "k"
    assert ExtractTopic.Header.configured({"field": "to"}).apply(given).topic == "h"


@pytest.mark.parametrize("value", [None, {}, {"to": None}, {"to": ""}])
def test_a_record_that_names_no_topic(value: Any, record: Any) -> None:
    with pytest.raises(DataError, match="missing, null or empty"):
        ExtractTopic.Value.configured({"field": "to"}).apply(record(value))
    skipping = ExtractTopic.Value.configured({"field": "to", "skip.missing.or.null": "true"})
    assert skipping.apply(record(value)).topic == "orders"


def test_a_topic_is_not_made_of_a_map(record: Any) -> None:
    with pytest.raises(DataError, match="of type dict"):
        ExtractTopic.Value.configured({"field": "to", "skip.missing.or.null": "true"}).apply(record({"to": {}}))


def test_a_batch_is_divided_by_topic(record: Any) -> None:
    (batch,) = SinkBatch.from_records([record({"to": to}) for to in ("a", "a", "b", "a")])
    made = ExtractTopic.Value.configured({"field": "to"}).apply_batch(batch)
    assert [(part.topic, len(part)) for part in made] == [("a", 2), ("b", 1), ("a", 1)]


def test_the_options_of_extract_topic() -> None:
    with pytest.raises(ConfigError, match="not both"):
        ExtractTopic.Value.configured({"field": "a", "field.name": "b"})
    with pytest.raises(ConfigError, match='Missing required configuration "field"'):
        ExtractTopic.Header.configured({})


@pytest.mark.skipif(not find_spec("jsonpath"), reason="the extra jsonpath is not installed")
def test_a_topic_by_a_json_path(record: Any) -> None:
    extract = ExtractTopic.Value.configured({"field": '$["f1"]["f3"]', "field.format": "JSON_PATH"})
    assert extract.apply(record({"f1": {"f3": "t"}})).topic == "t"
    with pytest.raises(DataError):
        extract.apply(record({"f1": {}}))


def test_a_timestamp_of_a_class_of_its_own_is_looked_at_once(record: Any) -> None:
    """A ``range`` compares such a number with each of its own, which are 2**64."""

    class Moment(int):
        pass

    extract = ExtractTimestamp.Value.configured({"field.name": "at"})
    assert extract.apply(record({"at": Moment(5)})).timestamp == 5


@pytest.mark.parametrize(
    ("value", "config", "timestamp"),
    [
        (5, {}, 5),
        (5, {"timestamp.resolution": "seconds"}, 5000),
        (dt.datetime(1970, 1, 1, 0, 0, 1, 999, dt.UTC), {"timestamp.resolution": "seconds"}, 1000),
    ],
)
def test_a_timestamp_out_of_a_field(value: Any, config: dict[str, str], timestamp: int, record: Any) -> None:
    extract = ExtractTimestamp.Value.configured({"field.name": "at", **config})
    assert extract.apply(record({"at": value})).timestamp == timestamp


@pytest.mark.parametrize("value", [None, 5, {}, {"at": None}, {"at": "1970"}, {"at": True}])
def test_what_is_no_timestamp(value: Any, record: Any) -> None:
    with pytest.raises(DataError):
        ExtractTimestamp.Value.configured({"field.name": "at"}).apply(record(value))


@pytest.mark.parametrize(
    ("behavior", "level"),
    [("warn", "WARNING"), ("drop_warn", "WARNING"), ("ignore", "DEBUG"), ("DROP_SILENT", "DEBUG")],
)
def test_tombstones_are_dropped_and_told(
    behavior: str, level: str, record: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    handler = TombstoneHandler.configured({"behavior": behavior})
    assert handler.apply(record(None)) is None
    assert handler.apply(record("")) is not None
    assert [entry.levelname for entry in caplog.records] == [level]
    (batch,) = SinkBatch.from_records([record(value) for value in (None, "a", None)])
    assert [list(part.value) for part in handler.apply_batch(batch)] == [["a"]]
    assert "2 tombstone" in caplog.records[-1].getMessage()


def test_tombstones_may_fail(record: Any) -> None:
    with pytest.raises(DataError, match="Tombstone"):
        TombstoneHandler.configured({"behavior": "fail"}).apply(record(None))


def test_a_batch_is_divided_by_day(record: Any) -> None:
    day = 86_400_000
    (batch,) = SinkBatch.from_records([record(n, timestamp=n * day // 2) for n in range(4)])
    made = TimestampRouter.configured({}).apply_batch(batch)
    assert [(part.topic, list(part.value)) for part in made] == [
        ("orders-19700101", [0, 1]),
        ("orders-19700102", [2, 3]),
    ]


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 12345678901234567890123])
def test_a_number_of_more_than_64_bits_is_no_timestamp(value: int, record: Any) -> None:
    converted = TimestampConverter.Value.configured({"field": "at", "target.type": "string", "format": "yyyy"})
    with pytest.raises(DataError, match="more than 64 bits"):
        converted.apply(record({"at": value}))
