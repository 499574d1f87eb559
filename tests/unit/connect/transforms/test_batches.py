"""By column every transformation and predicate answers as by row."""

from __future__ import annotations

import datetime as dt
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.data import (
    NO_HEADERS,
    Header,
    Headers,
    Record,
    Schema,
    SinkBatch,
    SinkRecord,
    SourceBatch,
    SourceRecord,
    Type,
    date_schema,
    decimal_schema,
    timestamp_schema,
)
from connect.errors import DataError
from connect.transforms.cast import Cast
from connect.transforms.debezium_unwrap import DebeziumUnwrap
from connect.transforms.drop_headers import DropHeaders
from connect.transforms.expression import Expression
from connect.transforms.extract_field import ExtractField
from connect.transforms.extract_timestamp import ExtractTimestamp
from connect.transforms.extract_topic import ExtractTopic
from connect.transforms.filters import ExpressionFilter, Filter, JsonPathFilter
from connect.transforms.flatten import Flatten
from connect.transforms.header_from import HeaderFrom
from connect.transforms.hoist_field import HoistField
from connect.transforms.insert_field import InsertField
from connect.transforms.insert_header import InsertHeader
from connect.transforms.mask_field import MaskField
from connect.transforms.predicates import (
    ExpressionMatches,
    HasHeaderKey,
    RecordIsTombstone,
    TopicNameMatches,
)
from connect.transforms.regex_router import RegexRouter
from connect.transforms.replace_field import ReplaceField
from connect.transforms.set_schema_metadata import SetSchemaMetadata
from connect.transforms.timestamp_converter import TimestampConverter
from connect.transforms.timestamp_router import TimestampRouter
from connect.transforms.tombstone_handler import TombstoneHandler
from connect.transforms.value_to_key import ValueToKey
from equipment.examples import examples

V2 = {"field.syntax.version": "V2"}
TRANSFORMATIONS: list[tuple[Any, dict[str, str]]] = [
    (Cast.Value, {"spec": "id:string,amount:int8,name:boolean"}),
    (Cast.Value, {"spec": "inner.x:string,when:int64", **V2}),
    (Cast.Value, {"spec": "string"}),
    (Cast.Key, {"spec": "int8", "replace.null.with.default": "false"}),
    (DropHeaders, {"headers": "a"}),
    (ExtractField.Value, {"field": "name"}),
    (ExtractField.Value, {"field": "inner.x", **V2}),
    (Filter, {}),
    (Flatten.Value, {"delimiter": "_"}),
    (HeaderFrom.Value, {"fields": "id,inner", "headers": "h1,h2", "operation": "move"}),
    (HeaderFrom.Value, {"fields": "name", "headers": "h1", "operation": "copy"}),
    (HoistField.Value, {"field": "line"}),
    (HoistField.Key, {"field": "k"}),
    (InsertField.Value, {"topic.field": "t!", "partition.field": "p", "timestamp.field": "ts?"}),
    (InsertField.Value, {"offset.field": "o", "static.field": "s", "static.value": "v"}),
    (InsertField.Value, {"partition.field": "p", "offset.field": "p", "static.field": "p", "static.value": "v"}),
    (InsertField.Value, {"static.field": "s", "static.value": "v", "timestamp.field": "s"}),
    (Cast.Value, {"spec": "nope:int8"}),
    (InsertHeader, {"header": "h", "value.literal": "5"}),
    (MaskField.Value, {"fields": "id,name,amount"}),
    (MaskField.Value, {"fields": "name", "replacement": "***"}),
    (RegexRouter, {"regex": "(.*)s", "replacement": "$1"}),
    (ReplaceField.Value, {"exclude": "name", "renames": "id:key"}),
    (ReplaceField.Value, {"include": "id,inner.x", "renames": "inner.x:y", **V2}),
    (SetSchemaMetadata.Value, {"schema.name": "N", "schema.version": "2"}),
    (TimestampConverter.Value, {"field": "when", "target.type": "string", "format": "yyyy-MM-dd"}),
    (TimestampConverter.Value, {"field": "id", "target.type": "Timestamp"}),
    (TimestampRouter, {"timestamp.format": "yyyyMMddHH"}),
    (ValueToKey, {"fields": "id,name"}),
    (TombstoneHandler, {"behavior": "ignore"}),
    (ExtractTopic.Value, {"field": "name", "skip.missing.or.null": "true"}),
    (ExtractTopic.Header, {"field": "a", "skip.missing.or.null": "true"}),
    (ExtractTimestamp.Value, {"field.name": "id", "timestamp.resolution": "seconds"}),
    (DebeziumUnwrap, {"add.fields": "op,source.lsn"}),
    (DebeziumUnwrap, {"add.headers": "op", "delete.tombstone.handling.mode": "rewrite-with-tombstone"}),
]
PREDICATES: list[tuple[Any, dict[str, str]]] = [
    (HasHeaderKey, {"name": "a"}),
    (RecordIsTombstone, {}),
    (TopicNameMatches, {"pattern": "ord.*"}),
]
if find_spec("cel"):
    TRANSFORMATIONS += [
        (Expression.Value, {"expression": "value.id + 1", "field": "id"}),
        (
            ExpressionFilter,
            {
                "filter.condition": "value.id > 3 && topic == 'orders'",
                "filter.type": "include",
                "missing.or.null.behavior": "exclude",
            },
        ),
    ]
    PREDICATES.append((ExpressionMatches, {"expression": "has(value.id) && value.id % 2 == 0"}))
if find_spec("jsonpath"):
    condition = {"filter.condition": "$[?(@.name == 'a')]", "missing.or.null.behavior": "include"}
    TRANSFORMATIONS.append((JsonPathFilter.Value, {**condition, "filter.type": "exclude"}))

INNER = Schema.struct({"x": Schema.int32(optional=True)}, optional=True)
ROW = {
    "id": Schema.int64(),
    "name": Schema.string(optional=True, default="nobody"),
    "amount": Schema.float64(optional=True),
    "when": timestamp_schema(optional=True),
    "inner": INNER,
}
SOURCE = Schema.struct({"lsn": Schema.int64()})
SCHEMAS = [
    None,
    Schema.struct(ROW, name="Order", version=3),
    Schema.struct(ROW, optional=True),
    Schema.struct({"id": Schema.int32(), "price": decimal_schema(2), "day": date_schema(optional=True)}),
    Schema.struct(
        {
            "before": Schema.struct(ROW, optional=True),
            "after": Schema.struct(ROW, optional=True),
            "op": Schema.string(),
            "source": SOURCE,
        },
        name="db.orders.Envelope",
    ),
    Schema.string(optional=True),
    Schema.int64(),
]
TIME = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
TIMES = st.datetimes(timezones=st.just(dt.UTC))
PRIMITIVES: dict[Type, st.SearchStrategy[Any]] = {
    Type.INT32: st.integers(-100, 100),
    Type.INT64: st.integers(-(2**40), 2**40),
    Type.FLOAT64: st.floats(-1e6, 1e6),
    Type.STRING: st.sampled_from(["a", "b", "true", "12", ""]),
}


def values(schema: Schema | None) -> st.SearchStrategy[Any]:
    if schema is None:
        return st.one_of(st.none(), st.just(5), values(SCHEMAS[1]), values(SCHEMAS[4]))
    made: st.SearchStrategy[Any]
    if schema.type is Type.STRUCT:
        made = st.fixed_dictionaries({field.name: values(field.schema) for field in schema.fields})
    elif schema.name is not None and schema.name.endswith("Timestamp"):
        made = TIMES
    elif schema.name is not None and schema.name.endswith("Date"):
        made = st.dates()
    elif schema.name is not None and schema.name.endswith("Decimal"):
        made = st.decimals(-1000, 1000, places=2)
    else:
        made = PRIMITIVES[schema.type]
    return st.one_of(st.none(), made) if schema.optional else made


HEADERS = st.sampled_from(
    [NO_HEADERS, Headers([Header("a", "x", Schema.string())]), Headers([Header("b", 1), Header("a", None)])]
)


@st.composite
def runs(draw: st.DrawFn) -> list[Record]:
    """Records of one topic with one schema, as in a batch; from a sink, or sometimes from a source."""
    schema = draw(st.sampled_from(SCHEMAS))
    key_schema = draw(st.sampled_from([None, Schema.int64(optional=True), SCHEMAS[2]]))
    sink = draw(st.booleans())
    records: list[Record] = []
    for offset in range(draw(st.integers(1, 5))):
        shared = {
            "topic": "orders",
            "value": draw(values(schema)),
            "value_schema": schema,
            "key": draw(values(key_schema)),
            "key_schema": key_schema,
            "partition": draw(st.sampled_from([0, 1])) if sink else None,
            "timestamp": draw(st.one_of(st.none(), st.integers(0, 2_000_000_000_000))),
            "headers": draw(HEADERS),
        }
        if sink:
            records.append(SinkRecord(**shared, offset=offset, original_topic="orders", original_offset=offset))
        else:
            records.append(SourceRecord(**shared, source_offset={"at": offset}))
    return records


def batch_of(records: list[Record]) -> Any:
    kind = SinkBatch if isinstance(records[0], SinkRecord) else SourceBatch
    (batch,) = kind.from_records(records)  # type: ignore[arg-type]
    return batch


def outcome(run: Any, failure: type[Exception] = Exception) -> Any:
    """What was made, or that it failed: a batch that fails is done again by row, so how does not matter."""
    try:
        return run()
    except failure:
        return "failed"


@settings(max_examples=examples(80), deadline=None)
@given(records=runs())
def test_batches_are_transformed_as_their_records_are_and_records_stay_as_they_were(
    records: list[Record],
) -> None:
    batch, before = batch_of(records), repr(records)
    for transformation, config in TRANSFORMATIONS:
        made = transformation.configured(config)
        by_row = outcome(
            lambda made=made: [new for record in records if (new := made.apply(record)) is not None], DataError
        )
        by_column = outcome(lambda made=made: [record for new in made.apply_batch(batch) for record in new])
        assert by_column == by_row, (transformation, config)
        assert repr(records) == before, (transformation, config)


@settings(max_examples=examples(50), deadline=None)
@given(records=runs())
@pytest.mark.parametrize(
    "config",
    [
        {"static.field": "s", "static.value": "v", "timestamp.field": "ts", "topic.field": "t!"},
        {"partition.field": "p", "offset.field": "o"},
        {"static.field": "line", "static.value": "there is one already"},
    ],
)
def test_fields_are_inserted_into_what_was_hoisted_as_by_row(config: dict[str, str], records: list[Record]) -> None:
    hoist, insert = HoistField.Value.configured({"field": "line"}), InsertField.Value.configured(config)
    by_row = outcome(lambda: [insert.apply(hoist.apply(record)) for record in records], DataError)
    by_column = outcome(
        lambda: [
            record
            for new in hoist.apply_batch(batch_of(records))
            for part in insert.apply_batch(new)
            for record in part
        ]
    )
    assert by_column == by_row


@settings(max_examples=examples(50), deadline=None)
@given(records=runs())
def test_batches_are_tested_as_their_records_are(records: list[Record]) -> None:
    batch = batch_of(records)
    for predicate, config in PREDICATES:
        made = predicate.configured(config)
        by_row = outcome(lambda made=made: [made.test(record) for record in records], DataError)
        assert outcome(lambda made=made: list(made.test_batch(batch))) == by_row, (predicate, config)


@pytest.mark.parametrize(("transformation", "config"), TRANSFORMATIONS, ids=str)
def test_no_configuration_fails_for_every_record(transformation: Any, config: dict[str, str]) -> None:
    order = {"id": 5, "name": "b", "amount": 1.5, "when": TIME, "inner": {"x": 1}}
    event = {"before": None, "after": order, "op": "c", "source": {"lsn": 3}}
    known = [(SCHEMAS[1], order), (SCHEMAS[4], event), (SCHEMAS[5], "a"), (None, order)]
    made = transformation.configured(config)
    outcomes = [
        outcome(lambda schema=schema, value=value: [made.apply(sink_record(schema, value))], DataError)
        for schema, value in known
    ]
    assert outcomes != ["failed"] * len(known)


def sink_record(schema: Schema | None, value: Any) -> SinkRecord:
    headers = Headers([Header("a", "x", Schema.string())])
    return SinkRecord("orders", value, schema, 5, Schema.int64(), 0, 1_700_000_000_000, headers, 3)
