"""The chain by column and by row, with transformations that behave and some that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.config import Config
from connect.data import (
    NO_HEADERS,
    Batch,
    Constant,
    Headers,
    Schema,
    SinkBatch,
    SourceBatch,
    SourceRecord,
    TimestampType,
)
from connect.errors import ConnectError, DataError
from connect.internals.chain.converters import Converters
from connect.internals.chain.raw_records import ConsumedBatch, EncodedBatch
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.source import SourceChain
from connect.internals.chain.steps import Step, Steps
from connect.internals.chain.tolerance import ErrorPolicy, Failure, Stage, Tolerance
from connect.transformation import Predicate, Transformation
from converters.json import JsonConverter
from converters.simple_header import SimpleHeaderConverter
from converters.string import StringConverter


class Upper(Transformation[Config]):
    """Upper case; refuses ``bad``, drops ``drop`` and sends ``other`` to another topic."""

    def apply(self, record: Any) -> Any:
        if record.value == "bad":
            raise DataError("bad value")
        if record.value == "drop":
            return None
        topic = "elsewhere" if record.value == "other" else record.topic
        return record.replace(value=record.value.upper(), topic=topic)


class Broken(Transformation[Config]):
    """Works by row only."""

    def apply(self, record: Any) -> Any:
        return record

    def apply_batch(self, batch: Any) -> Sequence[Any]:
        raise RuntimeError("the column path is broken")


class Long(Predicate[Config]):
    """Chooses values of more than three letters."""

    def test(self, record: Any) -> bool:
        return len(record.value) > 3


class Account:
    def __init__(self) -> None:
        self.failures: list[Failure] = []

    def report(self, failure: Failure) -> None:
        self.failures.append(failure)

    def flush(self) -> None:
        pass


def tolerance(mode: str, account: Account) -> Tolerance:
    return Tolerance(ErrorPolicy(tolerates_errors=mode == "all"), [account], lambda seconds: True)


def converters(value: Any = None) -> Converters:
    header = SimpleHeaderConverter.configured({"converter.type": "header"})
    key = StringConverter.configured({"converter.type": "key"}, is_key=True)
    return Converters(key, value or StringConverter.configured({"converter.type": "value"}), header)


def source_chain(steps: list[Step], account: Account, mode: str = "all") -> SourceChain:
    given_up = tolerance(mode, account)
    return SourceChain(Steps(steps, given_up), converters(), given_up)


def source_batch(values: list[str]) -> SourceBatch:
    records = [
        SourceRecord("t", value, Schema.string(), source_partition={"f": 1}, source_offset={"p": index})
        for index, value in enumerate(values)
    ]
    return SourceBatch.from_records(records)[0]


def values_by_topic(batches: Sequence[EncodedBatch]) -> list[tuple[str, bytes | None]]:
    return [(batch.topic, value) for batch in batches for value in batch.values]


def test_records_go_through_in_order_and_batches_split_by_topic() -> None:
    account = Account()
    chain = source_chain([Step(Upper(Config()))], account)
    encoded = chain.process(source_batch(["a", "other", "drop", "b"]))
    assert values_by_topic(encoded) == [("t", b"A"), ("elsewhere", b"OTHER"), ("t", b"B")]
    assert account.failures == []


def test_a_bad_record_is_reported_alone() -> None:
    account = Account()
    encoded = source_chain([Step(Upper(Config()))], account).process(source_batch(["a", "bad", "b"]))
    assert values_by_topic(encoded) == [("t", b"A"), ("t", b"B")]
    [failure] = account.failures
    assert failure.stage is Stage.TRANSFORMATION
    assert failure.executing.endswith("Upper")
    assert failure.record is not None
    assert failure.record.value == "bad"


def test_without_tolerance_a_bad_record_fails_the_batch() -> None:
    with pytest.raises(ConnectError, match=r"bad value \(transforms\.loud\)"):
        source_chain([Step(Upper(Config()), alias="loud")], Account(), "none").process(source_batch(["a", "bad"]))


class Wrong(Transformation[Config]):
    """Returns what is no record."""

    def apply(self, record: Any) -> Any:
        return [record]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_what_is_no_record_is_blamed_on_its_transformation(tolerance: str) -> None:
    account = Account()
    wrong = r"apply of .*Wrong \(transforms\.odd\) returned a value of type list"
    with pytest.raises(ConnectError, match=wrong):
        source_chain([Step(Wrong(Config()), alias="odd")], account, tolerance).process(source_batch(["a"]))
    assert account.failures == []


def test_a_broken_column_path_falls_back_to_the_rows() -> None:
    account = Account()
    encoded = source_chain([Step(Broken(Config())), Step(Upper(Config()))], account).process(source_batch(["a", "b"]))
    assert values_by_topic(encoded) == [("t", b"A"), ("t", b"B")]
    assert account.failures == []


words = st.lists(st.sampled_from(["a", "word", "other", "drop", "bad", "longer"]), min_size=1)


@given(words, st.booleans(), st.booleans())
def test_columns_and_rows_agree(values: list[str], chosen: bool, negate: bool) -> None:
    predicate = Long(Config()) if chosen else None
    upper = Step(Upper(Config()), predicate, negate and chosen)
    by_column, by_row = Account(), Account()
    columns = source_chain([upper], by_column).process(source_batch(values))
    rows = source_chain([Step(Broken(Config())), upper], by_row).process(source_batch(values))
    assert values_by_topic(columns) == values_by_topic(rows)
    assert [failure.record for failure in by_column.failures] == [failure.record for failure in by_row.failures]


def test_headers_are_converted_both_ways() -> None:
    account = Account()
    record = SourceRecord("t", "v", headers=Headers().add("n", 5, Schema.int32()).add("s", "x", Schema.string()))
    [encoded] = source_chain([], account).process(SourceBatch.from_records([record])[0])
    assert list(encoded.headers) == [[("n", b"5"), ("s", b"x")]]
    [batch] = sink_chain([], account).process(consumed([b"v"], headers=[[("n", b"5")]]))
    [sunk] = list(batch)
    assert [(header.key, header.value) for header in sunk.headers] == [("n", 5)]


def consumed(values: list[bytes | None], headers: list[Any] | None = None) -> ConsumedBatch:
    length = len(values)
    return ConsumedBatch(
        topic="t",
        keys=[None] * length,
        values=values,
        partitions=[2] * length,
        offsets=list(range(100, 100 + length)),
        timestamps=[5] * length,
        timestamp_types=[TimestampType.CREATE_TIME] * length,
        headers=headers or [None] * length,
    )


def sink_chain(steps: list[Step], account: Account, value: Any = None, mode: str = "all") -> SinkChain:
    given_up = tolerance(mode, account)
    return SinkChain(Steps(steps, given_up), converters(value), given_up)


def rows_of(batches: Sequence[Batch[Any]]) -> list[Any]:
    return [record for batch in batches for record in batch]


def test_a_sink_is_given_records_with_their_origin() -> None:
    batches = sink_chain([Step(Upper(Config()))], Account()).process(consumed([b"a", b"other"]))
    first, second = rows_of(batches)
    assert (first.value, first.topic, first.offset, first.original_partition) == ("A", "t", 100, 2)
    assert (second.topic, second.original_topic, second.original_offset) == ("elsewhere", "t", 101)
    assert first.headers is NO_HEADERS


def test_what_has_no_keys_is_as_if_each_were_null() -> None:
    value = JsonConverter.configured({"converter.type": "value"})
    one = b'{"schema":{"type":"int32","optional":false},"payload":1}'
    two = b'{"schema":{"type":"string","optional":false},"payload":"x"}'
    batch = consumed([one, two, one])
    with_keys = rows_of(sink_chain([], Account(), value).process(batch))
    without = rows_of(sink_chain([], Account(), value).process(replace(batch, keys=Constant(None, 3))))
    assert without == with_keys
    assert [record.value for record in without] == [1, "x", 1]


def test_bytes_that_cannot_be_converted_are_reported_raw() -> None:
    account = Account()
    value = JsonConverter.configured({"converter.type": "value", "schemas.enable": "false"})
    batches = sink_chain([], account, value).process(consumed([b'{"a":1}', b"{half", b'{"a":2}']))
    assert [record.value for record in rows_of(batches)] == [{"a": 1}, {"a": 2}]
    [failure] = account.failures
    assert failure.stage is Stage.VALUE_CONVERTER
    assert failure.raw is not None
    assert (failure.raw.value, failure.raw.offset) == (b"{half", 101)


def test_batches_split_where_the_schema_changes() -> None:
    value = JsonConverter.configured({"converter.type": "value"})
    one = b'{"schema":{"type":"int32","optional":false},"payload":1}'
    two = b'{"schema":{"type":"string","optional":false},"payload":"x"}'
    batches = sink_chain([], Account(), value).process(consumed([one, one, two, one]))
    assert [(batch.value_schema, list(batch.value)) for batch in batches] == [
        (Schema.int32(), [1, 1]),
        (Schema.string(), ["x"]),
        (Schema.int32(), [1]),
    ]
    assert all(isinstance(batch, SinkBatch) for batch in batches)
    assert [record.offset for record in rows_of(batches)] == [100, 101, 102, 103]
