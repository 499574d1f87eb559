"""Records: replaced, never changed."""

from __future__ import annotations

import pickle

import pytest

from connect.data import Headers, Schema, SinkRecord, SourceRecord, TopicPartition


def test_replace_makes_the_next_record() -> None:
    record = SinkRecord("t", 1, Schema.int8(), "k", offset=5, original_topic="o", original_partition=2)
    changed = record.replace(topic="u", value=None, headers=Headers().add("a", 1))
    assert changed == SinkRecord(
        "u",
        None,
        Schema.int8(),
        "k",
        headers=Headers().add("a", 1),
        offset=5,
        original_topic="o",
        original_partition=2,
    )
    assert (record.topic, record.value, len(record.headers)) == ("t", 1, 0)
    assert changed.origin == TopicPartition("o", 2)


def test_replace_knows_the_attributes_of_the_class() -> None:
    assert SourceRecord("t").replace(source_offset={"line": 1}).source_offset == {"line": 1}
    with pytest.raises(TypeError, match="SourceRecord has no attribute 'offset'"):
        SourceRecord("t").replace(offset=1)


def test_records_are_pickled_with_the_same_schema() -> None:
    record = SourceRecord("t", {"a": 1}, Schema.struct({"a": Schema.int8()}), source_offset={"line": 1})
    again = pickle.loads(pickle.dumps(record))
    assert again == record
    assert again.value_schema is record.value_schema
