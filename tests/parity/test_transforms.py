"""Transformations and predicates answer as those of Kafka Connect do."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from connect.data import (
    Header,
    Headers,
    Record,
    Schema,
    SinkRecord,
    SourceRecord,
    Type,
    timestamp_schema,
)
from connect.data.logical import (
    DATE_NAME,
    TIME_NAME,
    days_from_date,
    milliseconds_from_time,
    milliseconds_from_timestamp,
)
from connect.data.numerals import single
from connect.errors import ConfigError, DataError
from connect.transforms.cast import Cast
from connect.transforms.drop_headers import DropHeaders
from connect.transforms.extract_field import ExtractField
from connect.transforms.field_path import parse_field_path
from connect.transforms.filter import Filter
from connect.transforms.flatten import Flatten
from connect.transforms.header_from import HeaderFrom
from connect.transforms.hoist_field import HoistField
from connect.transforms.insert_field import InsertField
from connect.transforms.insert_header import InsertHeader
from connect.transforms.mask_field import MaskField
from connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from connect.transforms.regex_router import RegexRouter
from connect.transforms.replace_field import ReplaceField
from connect.transforms.set_schema_metadata import SetSchemaMetadata
from connect.transforms.timestamp_converter import TimestampConverter
from connect.transforms.timestamp_router import TimestampRouter
from connect.transforms.value_to_key import ValueToKey
from parity.vectors import (
    DATA,
    UnrepresentableError,
    canonical,
    cases,
    encoded,
    record_of,
    schema_of,
)

PLUGINS: dict[str, Any] = {
    plugin.__name__: plugin
    for plugin in (
        Cast,
        DropHeaders,
        ExtractField,
        Filter,
        Flatten,
        HasHeaderKey,
        HeaderFrom,
        HoistField,
        InsertField,
        InsertHeader,
        MaskField,
        RecordIsTombstone,
        RegexRouter,
        ReplaceField,
        SetSchemaMetadata,
        TimestampConverter,
        TimestampRouter,
        TopicNameMatches,
        ValueToKey,
    )
}
SUITES = (
    "cast",
    "drop_headers",
    "extract_field",
    "filter_predicates",
    "flatten",
    "header_from",
    "hoist_field",
    "insert_field",
    "insert_header",
    "mask_field",
    "regex_router",
    "replace_field",
    "set_schema_metadata",
    "timestamp_converter",
    "timestamp_router",
    "value_to_key",
)
DAY_MS = 86_400_000

# What is answered otherwise than by Kafka Connect, and why.
DELIBERATE = {
    ("timestamp_router", "bad pattern"): "a pattern that is none is refused in the config, not at the first record",
    ("cast", "castLogicalToPrimitive"): "a datetime ends with the year 9999; 9223372036854775807 ms is far later",
    ("timestamp_converter", "format_out_era"): "a datetime begins with the year 1; unix times are written all the same",
    ("header_from", "move with struct value / value / schemaless"): (
        "a dict in a map without schema has no schema of its own"
    ),
}


def plugin_named(name: str) -> Any:
    """The class for ``org.apache.kafka.connect.transforms.Cast$Value`` or ``Cast$Value``."""
    simple, _, variant = name.rpartition(".")[2].partition("$")
    return getattr(PLUGINS[simple], variant) if variant else PLUGINS[simple]


def made_valid(document: Any) -> Any:
    """Some vectors hold a Date with a time of day or a Time with a date, which no Date and Time can have."""
    if not isinstance(document, dict) or not isinstance(document.get("schema"), dict):
        return document
    schema, value = document["schema"], document["value"]
    if isinstance(value, dict) and value["t"] == "struct":
        fields = {field["name"]: field["schema"] for field in schema["fields"]}
        inner = {
            name: made_valid({"schema": fields.get(name), "value": item})["value"] for name, item in value["v"].items()
        }
        return {**document, "value": {**value, "v": inner}}
    if isinstance(value, dict) and value["t"] == "date":
        rest = value["ms"] % DAY_MS
        ms = {DATE_NAME: value["ms"] - rest, TIME_NAME: rest}.get(schema.get("name"), value["ms"])
        return {**document, "value": {**value, "ms": ms}}
    return document


def valid_record(document: dict[str, Any]) -> dict[str, Any]:
    return {"offset": 0, **document, "key": made_valid(document["key"]), "value": made_valid(document["value"])}


def vector_cases() -> list[Any]:
    return [
        pytest.param(suite, case, id=f"{suite}: {case['name']}")
        for suite in SUITES
        for case in cases(suite)
        if (suite, case["name"]) not in DELIBERATE
    ]


def form(pair: dict[str, Any]) -> tuple[Any, Any]:
    return comparable(schema_of(pair["schema"])), canonical(pair["value"])


def comparable(schema: Schema | None) -> Schema | None:
    """The schema with a default that names all fields: whether it names those that are null is all the same."""
    if schema is None or not isinstance(schema.default, dict):
        return schema
    return schema.replace(default={name: schema.default.get(name) for name in schema.field_names})


def assert_same(record: Record | None, expected: dict[str, Any]) -> None:
    assert record is not None
    expected = valid_record(expected)
    assert record.topic == expected["topic"]
    assert record.partition == expected.get("partition")
    assert record.timestamp == expected.get("timestamp")
    assert (comparable(record.key_schema), encoded(record.key, record.key_schema)) == form(expected["key"])
    assert (comparable(record.value_schema), encoded(record.value, record.value_schema)) == form(expected["value"])
    headers = [(header.key, header.schema, encoded(header.value, header.schema)) for header in record.headers]
    assert headers == [(header["key"], *form(header)) for header in expected.get("headers", [])]
    if isinstance(record, SinkRecord):
        assert record.offset == expected.get("offset", -1)


@pytest.mark.parametrize(("suite", "case"), vector_cases())
def test_vector(suite: str, case: dict[str, Any]) -> None:
    plugin, expected = plugin_named(case["class"]), case["expect"]
    failure = expected.get("error") if isinstance(expected, dict) else None
    if failure and failure["phase"] == "configure":
        with pytest.raises(ConfigError):
            plugin.configured(case["config"])
        return
    made = plugin.configured(case["config"])
    if "input" not in case:
        return
    record = record_of(valid_record(case["input"]))
    if failure:
        with pytest.raises(DataError):
            made.apply(record)
    elif case["op"] == "predicate":
        assert made.test(record) is expected
    elif expected is None:
        assert made.apply(record) is None
    else:
        assert_same(made.apply(record), expected)


def test_a_bad_date_pattern_is_refused_in_the_config() -> None:
    with pytest.raises(ConfigError, match="Illegal pattern character 'b'"):
        TimestampRouter.configured({"timestamp.format": "bad-format"})


@pytest.mark.parametrize(
    ("suite", "name"), [("cast", "castLogicalToPrimitive"), ("timestamp_converter", "format_out_era")]
)
def test_what_a_datetime_cannot_carry(suite: str, name: str) -> None:
    case = next(case for case in cases(suite) if case["name"] == name)
    with pytest.raises((UnrepresentableError, OverflowError)):
        record_of(case["input"])


def test_deliberate_differences_name_cases_that_exist() -> None:
    named = {(suite, case["name"]) for suite in SUITES for case in cases(suite)}
    assert DELIBERATE.keys() <= named


@pytest.mark.parametrize("case", cases("field_path"), ids=lambda case: case["name"])
def test_field_path(case: dict[str, Any]) -> None:
    if "error" in case["expect"]:
        with pytest.raises(ConfigError) as caught:
            parse_field_path(case["input"], case["version"])
        assert str(caught.value) == case["expect"]["error"]["message"]
    else:
        assert list(parse_field_path(case["input"], case["version"]).steps) == case["expect"]["path"]


# -- transformations of real records -------------------------------------------------------------------------------

MAP = {"id": 1, "s": "42", "f": 3.7, "ok": True, "ts": 1760000000123, "opt": None, "in": {"x": 5}}
INSTANT = dt.datetime(2025, 10, 9, 8, 53, 20, 123000, dt.UTC)
REC = Schema.struct(
    {
        "id": Schema.int32(),
        "s": Schema.string(),
        "f": Schema.float64(),
        "ok": Schema.boolean(),
        "ts": Schema.int64(),
        "t2": timestamp_schema(),
        "opt": Schema.string(optional=True),
        "in": Schema.struct({"x": Schema.int32()}),
    },
    name="Rec",
)
INPUTS: dict[str, tuple[Schema | None, Any]] = {
    "struct": (REC, {**MAP, "t2": INSTANT}),
    "map": (None, MAP),
    "string": (Schema.string(), "123"),
    "null": (None, None),
}


def real_cases() -> list[Any]:
    lines = (Path(DATA) / "records" / "transforms.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        pytest.param(case, id=f"{number} {case['transform']} {case.get('input', 'configure')}")
        for number, case in enumerate(map(json.loads, lines))
    ]


def schema_text(schema: Schema | None) -> str | None:
    if schema is None:
        return None
    text = schema.type.name
    text += f" name={schema.name}" if schema.name is not None else ""
    text += f" v={schema.version}" if schema.version is not None else ""
    text += " optional" if schema.optional else ""
    if schema.type is Type.STRUCT:
        text += "{" + "".join(f"{field.name}:{schema_text(field.schema)};" for field in schema.fields) + "}"
    return text


def payload(value: Any) -> Any:
    match value:
        case dict():
            return {name: payload(item) for name, item in value.items()}
        case float():
            # A schemaless float32 is a Python float, whose digits are those of the double.
            return single(value)
        case dt.datetime():
            return milliseconds_from_timestamp(value)
        case dt.date():
            return days_from_date(value)
        case dt.time():
            return milliseconds_from_time(value)
        case _:
            return value


def in_order(value: Any, schema: Schema | None) -> Any:
    """A struct with the fields of its schema in their order, as a converter would write it."""
    if schema is None or schema.type is not Type.STRUCT or value is None:
        return value
    return {field.name: in_order(value.get(field.name), field.schema) for field in schema.fields}


def header_text(header: Header) -> str:
    return f"{header.key}={header.value}({schema_text(header.schema) or 'null'})"


@pytest.mark.parametrize("case", real_cases())
def test_real_record(case: dict[str, Any]) -> None:
    plugin = plugin_named(case["transform"])
    if "configure_error" in case:
        with pytest.raises(ConfigError):
            plugin.configured(case["config"])
        return
    schema, value = INPUTS[case["input"]]
    record = SourceRecord(
        topic="my-src",
        partition=3,
        key="key",
        key_schema=Schema.string(),
        value=value,
        value_schema=schema,
        timestamp=1760000000123,
        headers=Headers([Header("h1", "v1", Schema.string())]),
    )
    made = plugin.configured(case["config"])
    if "does not have corresponding schema type" in case.get("error", ""):
        # It was the JSON converter after the transformation that could not write a date without schema.
        assert made.apply(record).value_schema is None
    elif "error" in case:
        with pytest.raises(DataError):
            made.apply(record)
    elif case.get("result") == "DROPPED":
        assert made.apply(record) is None
    else:
        assert_like_real(made.apply(record), case)


def assert_like_real(record: Record, case: dict[str, Any]) -> None:
    for side in ("key", "value"):
        schema, value = getattr(record, f"{side}_schema"), getattr(record, side)
        text = case[side]
        assert schema_text(schema) == case[f"{side}_schema"]
        assert json.dumps(payload(in_order(value, schema)), sort_keys=True) == json.dumps(
            None if text is None else payload(json.loads(text)), sort_keys=True
        )
    assert record.topic == case["topic"]
    assert record.partition == case["partition"]
    assert record.timestamp == case["timestamp"]
    assert [header_text(header) for header in record.headers] == case["headers"]
