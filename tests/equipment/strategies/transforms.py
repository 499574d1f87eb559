"""Every transformation with any options, and records with any names and values, valid or not."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

from hypothesis import strategies as st

from connect.data import (
    NO_HEADERS,
    Header,
    Headers,
    Record,
    Schema,
    SinkRecord,
    SourceRecord,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from connect.errors import ConfigError
from connect.transforms.cast import Cast
from connect.transforms.community.change_case import ChangeCase
from connect.transforms.community.concat_fields import ConcatFields
from connect.transforms.community.drop import Drop
from connect.transforms.community.hash import Hash
from connect.transforms.community.key_to_value import KeyToValue
from connect.transforms.community.make_tombstone import MakeTombstone
from connect.transforms.debezium.header_to_value import HeaderToValue
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
from connect.transforms.predicates import ExpressionMatches, HasHeaderKey, RecordIsTombstone, TopicNameMatches
from connect.transforms.regex_router import RegexRouter
from connect.transforms.replace_field import ReplaceField
from connect.transforms.set_schema_metadata import SetSchemaMetadata
from connect.transforms.timestamp_converter import TimestampConverter
from connect.transforms.timestamp_router import TimestampRouter
from connect.transforms.tombstone_handler import TombstoneHandler
from connect.transforms.value_to_key import ValueToKey

NAMES = ["a", "b", "a.b", "\N{GRINNING FACE}", "\x00", "\n", "\x7f", '"', "\\", "`", "\u2028", " ", "op", "after"]
KEYS = [*NAMES, ""]

__all__ = ["OPTIONS", "PREDICATES", "nested", "odd", "runs", "transformations"]

# -- values ----------------------------------------------------------------------------------------------------------

TIMES = [
    dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
    dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))),
    dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-5))),
    dt.datetime(2024, 1, 1),  # noqa: DTZ001 - without a zone it is no value of Kafka Connect's
    dt.date.min,
    dt.date.max,
    dt.time(23, 59, 59, 999999),
]
NUMBERS = [0, 1, -1, 300, 2**31, 2**63, -(2**63) - 1, 0.1, -0.0, 1e300, float("inf"), float("nan")]
DECIMALS = [Decimal("1.50"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), Decimal("1e400"), Decimal("1e-400")]
TEXTS = ["", "a", "12", "0x1p5000", "-0x1p5000", "1e400", "NaN", "true", "\ud800", "9" * 5000, "2024-02-29", "\x00"]
ODD: list[Any] = [None, True, *NUMBERS, *DECIMALS, *TEXTS, b"", b"\xff", *TIMES, ..., {1, 2}, 1j]


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


odd = st.sampled_from(ODD) | st.recursive(
    st.sampled_from(ODD),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS) | st.integers(0, 2), inner, max_size=3)
    ),
    max_leaves=4,
)

LEAVES: list[tuple[Callable[..., Schema], list[Any]]] = [
    (Schema.int8, [1, -128]),
    (Schema.int32, [1, 70_000]),
    (Schema.int64, [1, 1_700_000_000_000]),
    (Schema.float32, [1.5, 0.10000000149011612]),
    (Schema.float64, [1.5, 0.1]),
    (Schema.boolean, [True, False]),
    (Schema.string, ["a", "12", "2024-02-29"]),
    (Schema.bytes, [b"x"]),
    (date_schema, [dt.date(2024, 2, 29)]),
    (time_schema, [dt.time(1, 2, 3)]),
    (timestamp_schema, [TIMES[0]]),
    (lambda **attributes: decimal_schema(2, **attributes), [Decimal("1.50")]),
]


@st.composite
def typed(draw: st.DrawFn, depth: int = 2) -> tuple[Schema, st.SearchStrategy[Any]]:
    """A schema, and values that mostly fit it."""
    optional = draw(st.booleans())
    kind = draw(st.integers(0, 3)) if depth else 0
    values: st.SearchStrategy[Any]
    if kind == 0:
        make, known = draw(st.sampled_from(LEAVES))
        default = draw(st.sampled_from([None, known[0]]))
        schema, values = make(optional=optional, default=default), st.sampled_from(known)
    elif kind == 1:
        element, inner = draw(typed(depth=depth - 1))
        default = draw(st.sampled_from([None, []]))
        schema, values = Schema.array(element, optional=optional, default=default), st.lists(inner, max_size=2)
    elif kind == 2:
        element, inner = draw(typed(depth=depth - 1))
        schema = Schema.map(Schema.string(), element, optional=optional, default=draw(st.sampled_from([None, {}])))
        values = st.dictionaries(st.sampled_from(KEYS), inner, max_size=2)
    else:
        return draw(structs(depth - 1))
    nulls = st.none() if optional or schema.default is not None else st.nothing()
    return schema, st.one_of(values, nulls)


@st.composite
def structs(draw: st.DrawFn, depth: int = 1) -> tuple[Schema, st.SearchStrategy[Any]]:
    """A schema of structs, and structs: whole, with fields missing, or with values that do not fit."""
    members = {
        name: draw(typed(depth=depth)) for name in draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    }
    name = draw(st.sampled_from([None, "N", "x.Envelope"]))
    optional = draw(st.booleans())
    schema = Schema.struct({name: kind for name, (kind, _) in members.items()}, optional=optional, name=name)
    whole = st.fixed_dictionaries({name: values for name, (_, values) in members.items()})
    parts = st.fixed_dictionaries({}, optional={name: values | odd for name, (_, values) in members.items()})
    return schema, st.one_of(whole, whole, parts, st.none() if optional else st.nothing())


SCHEMALESS = st.dictionaries(st.sampled_from(KEYS), odd, max_size=4) | odd
EITHER = structs() | typed()


@st.composite
def sides(draw: st.DrawFn) -> tuple[Schema | None, st.SearchStrategy[Any]]:
    """A schema for the keys or values of a run of records, or none, and the values."""
    if draw(st.booleans()):
        return None, SCHEMALESS
    schema, values = draw(EITHER)
    return schema, values | values | odd


HEADERS = st.sampled_from(
    [
        NO_HEADERS,
        Headers([Header("a", "x", Schema.string())]),
        Headers([Header("\n", 1), Header("a", None), Header("a", 2)]),
    ]
)


@st.composite
def runs(draw: st.DrawFn) -> list[Record]:
    """Records of one topic with one schema, as in a batch."""
    (key_schema, keys), (schema, values) = draw(sides()), draw(sides())
    sink = draw(st.booleans())
    records: list[Record] = []
    for offset in range(draw(st.integers(1, 3))):
        shared: dict[str, Any] = {
            "topic": "orders",
            "value": copy.deepcopy(draw(values)),
            "value_schema": schema,
            "key": copy.deepcopy(draw(keys)),
            "key_schema": key_schema,
            "partition": draw(st.sampled_from([0, 1])) if sink else None,
            "timestamp": draw(st.sampled_from([None, 0, 1_700_000_000_123, -(2**63), 2**63 - 1])),
            "headers": draw(HEADERS),
        }
        if sink:
            records.append(SinkRecord(**shared, offset=offset, original_topic="orders", original_offset=offset))
        else:
            records.append(SourceRecord(**shared, source_offset={"at": offset}))
    return records


# -- transformations -------------------------------------------------------------------------------------------------

NAME = st.sampled_from([*NAMES, "a.a", "nope"])
LIST = st.lists(NAME.filter(lambda name: "," not in name and name.strip() == name), min_size=1, max_size=3, unique=True)
NAME_LIST = LIST.map(",".join)
BOOLEAN = st.sampled_from(["true", "false"])
COMMON = {"replace.null.with.default": BOOLEAN, "field.syntax.version": st.sampled_from(["V1", "V2"])}
CASES = ["LOWER_HYPHEN", "LOWER_UNDERSCORE", "LOWER_CAMEL", "UPPER_CAMEL", "UPPER_UNDERSCORE"]
TARGETS = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"]
MARKED = st.tuples(NAME, st.sampled_from(["", "!", "?"])).map("".join)
LITERALS = st.sampled_from(["1", "0.1", "[1,2]", '{"a":[]}', "x", "2024-02-29", "[0.1,true]"])


def pairs(right: list[str]) -> st.SearchStrategy[str]:
    item = st.tuples(NAME.filter(lambda name: name.strip() == name and name), st.sampled_from(right)).map(":".join)
    return st.lists(item, min_size=1, max_size=3).map(",".join)


Options = st.SearchStrategy[dict[str, str]]


def options(
    required: Mapping[str, Any], optional: Mapping[str, Any] | None = None
) -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries(dict(required), optional=dict(optional or {}))


OPTIONS: dict[str, tuple[list[Any], Options]] = {
    "Cast": ([Cast.Key, Cast.Value], options({"spec": pairs(TARGETS) | st.sampled_from(TARGETS)}, COMMON)),
    "ChangeCase": (
        [ChangeCase.Key, ChangeCase.Value],
        options({"from": st.sampled_from(CASES), "to": st.sampled_from(CASES)}, {"passthrough.fields": NAME_LIST}),
    ),
    "ConcatFields": (
        [ConcatFields.Key, ConcatFields.Value],
        options({"field.names": NAME_LIST, "output.field.name": NAME.filter(bool)}, {"delimiter": NAME}),
    ),
    "Drop": (
        [Drop.Key, Drop.Value],
        options({"schema.behavior": st.sampled_from(["nullify", "retain", "validate", "force_optional"])}),
    ),
    "DropHeaders": ([DropHeaders], options({"headers": NAME_LIST})),
    "ExtractField": ([ExtractField.Key, ExtractField.Value], options({"field": NAME}, COMMON)),
    "ExtractTimestamp": (
        [ExtractTimestamp.Key, ExtractTimestamp.Value],
        options({"field.name": NAME}, {"timestamp.resolution": st.sampled_from(["seconds", "milliseconds"])}),
    ),
    "ExtractTopic": (
        [ExtractTopic.Key, ExtractTopic.Value, ExtractTopic.Header],
        options({}, {"field": NAME, "skip.missing.or.null": BOOLEAN}),
    ),
    "Filter": ([Filter], options({})),
    "Flatten": ([Flatten.Key, Flatten.Value], options({}, {"delimiter": st.sampled_from([".", "", "\x00"])})),
    "HeaderFrom": (
        [HeaderFrom.Key, HeaderFrom.Value],
        st.lists(st.tuples(NAME, NAME), min_size=1, max_size=3).flatmap(
            lambda found: options(
                {
                    "fields": st.just(",".join(field for field, _ in found)),
                    "headers": st.just(",".join(header for _, header in found)),
                    "operation": st.sampled_from(["move", "copy"]),
                },
                COMMON,
            )
        ),
    ),
    "Hash": (
        [Hash.Key, Hash.Value],
        options({"function": st.sampled_from(["md5", "sha1"])}, {"field.name": NAME, "skip.missing.or.null": BOOLEAN}),
    ),
    "HeaderToValue": (
        [HeaderToValue],
        st.tuples(NAME.filter(bool), NAME.filter(bool)).flatmap(
            lambda found: options(
                {
                    "headers": st.just(found[0]),
                    "fields": st.just(found[1]),
                    "operation": st.sampled_from(["move", "copy"]),
                }
            )
        ),
    ),
    "KeyToValue": ([KeyToValue], options({"key.fields": st.just("*") | NAME_LIST})),
    "MakeTombstone": ([MakeTombstone], options({})),
    "HoistField": ([HoistField.Key, HoistField.Value], options({"field": NAME})),
    "InsertField": (
        [InsertField.Key, InsertField.Value],
        options(
            {"static.value": LITERALS},
            {
                "topic.field": MARKED,
                "partition.field": MARKED,
                "offset.field": MARKED,
                "timestamp.field": MARKED,
                "static.field": MARKED,
                "replace.null.with.default": BOOLEAN,
            },
        ),
    ),
    "InsertHeader": ([InsertHeader], options({"header": NAME, "value.literal": LITERALS})),
    "MaskField": (
        [MaskField.Key, MaskField.Value],
        options({"fields": NAME_LIST}, {"replacement": LITERALS, **COMMON}),
    ),
    "RegexRouter": (
        [RegexRouter],
        options(
            {"regex": st.sampled_from(["(.*)s", ".*", "x"]), "replacement": st.sampled_from(["$1", "$2", "y", "$"])}
        ),
    ),
    "ReplaceField": (
        [ReplaceField.Key, ReplaceField.Value],
        options({}, {"exclude": NAME_LIST, "include": NAME_LIST, "renames": pairs(KEYS), **COMMON}),
    ),
    "SetSchemaMetadata": (
        [SetSchemaMetadata.Key, SetSchemaMetadata.Value],
        options({"schema.name": NAME}, {"schema.version": st.just("7"), "replace.null.with.default": BOOLEAN}),
    ),
    "TimestampConverter": (
        [TimestampConverter.Key, TimestampConverter.Value],
        options(
            {"target.type": st.sampled_from(["string", "unix", "Date", "Time", "Timestamp"])},
            {
                "field": NAME,
                "format": st.sampled_from(["yyyy-MM-dd", "G yy MMM"]),
                "unix.precision": st.sampled_from(["nanoseconds", "seconds"]),
                **COMMON,
            },
        ),
    ),
    "TimestampRouter": ([TimestampRouter], options({"timestamp.format": st.sampled_from(["yyyyMMdd", "yyyy G HH"])})),
    "TombstoneHandler": ([TombstoneHandler], options({"behavior": st.sampled_from(["ignore", "fail"])})),
    "ValueToKey": ([ValueToKey], options({"fields": NAME_LIST}, COMMON)),
    "DebeziumUnwrap": (
        [DebeziumUnwrap],
        options(
            {
                "delete.tombstone.handling.mode": st.sampled_from(
                    ["drop", "tombstone", "rewrite", "delete-to-tombstone"]
                )
            },
            {
                "add.fields": NAME_LIST,
                "add.headers": NAME_LIST,
                "route.by.field": NAME,
                "drop.fields.header.name": st.just("a"),
                "replace.null.with.default": BOOLEAN,
            },
        ),
    ),
}
PREDICATES: list[Any] = [
    HasHeaderKey.configured({"name": "a"}),
    RecordIsTombstone.configured({}),
    TopicNameMatches.configured({"pattern": "ord.*"}),
]
if find_spec("cel"):
    EXPRESSION = st.sampled_from(["value.a", "[value]", "size(key) > 1", "value == key", "1", "0.5", "headers"])
    BEHAVIOUR = {"missing.or.null.behavior": st.sampled_from(["fail", "include"])}
    OPTIONS["Expression"] = (
        [Expression.Key, Expression.Value],
        options(
            {"expression": EXPRESSION}, {"field": NAME, "result.type": st.sampled_from(["int8", "float32", "string"])}
        ),
    )
    CONDITION = {"filter.condition": EXPRESSION, "filter.type": st.just("include")}
    OPTIONS["ExpressionFilter"] = ([ExpressionFilter], options(CONDITION, BEHAVIOUR))
    PREDICATES.append(ExpressionMatches.configured({"expression": "value.a == 1"}))
if find_spec("jsonpath"):
    PATHS = st.sampled_from(["$.a", "$..a", "$[?(@.a == 1)]", "$.a[?(@ =~ /1/)]"])
    OPTIONS["JsonPathFilter"] = (
        [JsonPathFilter.Key, JsonPathFilter.Value],
        options({"filter.condition": PATHS, "filter.type": st.just("include")}),
    )


@st.composite
def transformations(draw: st.DrawFn, name: str) -> Any:
    variants, config = OPTIONS[name]
    variant = draw(st.sampled_from(variants))
    try:
        return variant.configured(draw(config))
    except ConfigError:
        return None
