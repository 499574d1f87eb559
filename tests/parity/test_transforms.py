"""Transformations and predicates answer as those of Kafka Connect do."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect.data import (
    Header,
    Headers,
    Record,
    Schema,
    SinkBatch,
    SinkRecord,
    SourceBatch,
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
from connect.data.numerals import float_text
from connect.errors import ConfigError, DataError
from connect.transforms.cast import Cast
from connect.transforms.drop_headers import DropHeaders
from connect.transforms.extract_field import ExtractField
from connect.transforms.fields.field_path import parse_field_path
from connect.transforms.filters import Filter
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
from equipment.vectors import (
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

# What is answered otherwise than by Kafka Connect, and why. Each has a test of its own below.
DELIBERATE = {
    ("timestamp_router", "bad pattern"): "a pattern that is none is refused in the config, not at the first record",
    ("cast", "castLogicalToPrimitive"): "a datetime ends with the year 9999; 9223372036854775807 ms is far later",
    ("timestamp_converter", "format_out_era"): "a datetime begins with the year 1; unix times are written all the same",
    ("header_from", "move with struct value / value / schemaless"): (
        "a dict in a map without schema has no schema of its own"
    ),
}
Apply = Callable[[Any, Record], Record | None]


def by_row(made: Any, record: Record) -> Record | None:
    return made.apply(record)


def by_column(made: Any, record: Record) -> Record | None:
    """The record as one of three in a batch, which must all become the same."""
    kind = SinkBatch if isinstance(record, SinkRecord) else SourceBatch
    (batch,) = kind.from_records([record, record, record])  # type: ignore[list-item]
    records = [new for part in made.apply_batch(batch) for new in part]
    assert len(records) in (0, 3)
    assert all(new == records[0] for new in records)
    return records[2] if records else None


PATHS = pytest.mark.parametrize("apply", [by_row, by_column])


def plugin_named(name: str) -> Any:
    """The class for ``org.apache.kafka.connect.transforms.Cast$Value`` or ``Cast$Value``."""
    simple, _, variant = name.rpartition(".")[2].partition("$")
    return getattr(PLUGINS[simple], variant) if variant else PLUGINS[simple]


# Of the fields that are not masked, and stay as they are, one is a Date with a time of day and one a Time with a date.
MADE_VALID = (
    *(
        f"testWithSchemaAndReplacement_{kind}"
        for kind in ("short", "byte", "int", "long", "double", "string", "decimal")
    ),
    *(f"testWithSchemaUnsupportedReplacementType_{kind}" for kind in ("time", "timestamp", "array")),
    "withDefault replaced",
    "missing field with schema ignored",
)


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
    return comparable(schema_of(pair["schema"])), canonical(pair["value"], schema_of(pair["schema"]))


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


@PATHS
@pytest.mark.parametrize(("suite", "case"), vector_cases())
def test_vector(suite: str, case: dict[str, Any], apply: Apply) -> None:
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
        # A column that fails is gone through by row, so its error may be any.
        with pytest.raises(DataError if apply is by_row else Exception):
            apply(made, record)
    elif case["op"] == "predicate":
        assert predicate_answers(made, record, apply) == [expected]
    elif expected is None:
        assert apply(made, record) is None
    else:
        assert_same(apply(made, record), expected)


def predicate_answers(made: Any, record: Record, apply: Apply) -> list[bool]:
    if apply is by_row:
        return [made.test(record)]
    kind = SinkBatch if isinstance(record, SinkRecord) else SourceBatch
    (batch,) = kind.from_records([record])  # type: ignore[list-item]
    return list(made.test_batch(batch))


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


def test_a_dict_in_a_map_without_schema_becomes_a_header_without_schema() -> None:
    case = next(case for case in cases("header_from") if case["name"].startswith("move with struct value / value / s"))
    made = HeaderFrom.Value.configured(case["config"])
    record = made.apply(record_of({**case["input"], "offset": 0}))
    assert record.headers[-1] == Header("inserted1", {"foo": "foo-value"}, None)
    assert record.value == {"field2": "field2-value"}


def test_only_the_dates_and_times_of_these_vectors_are_made_valid() -> None:
    changed = {
        (suite, case["name"])
        for suite in SUITES
        for case in cases(suite)
        if "input" in case and valid_record(case["input"]) != {"offset": 0, **case["input"]}
    }
    assert changed == {("mask_field", name) for name in MADE_VALID}


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


def payload(value: Any, schema: Schema | None) -> Any:
    """What the JSON converter writes; a single by its own digits."""
    match value:
        case dict() if schema is not None:
            return {field.name: payload(value.get(field.name), field.schema) for field in schema.fields}
        case dict():
            return {name: payload(item, None) for name, item in value.items()}
        case float() if schema is not None and schema.type is Type.FLOAT32:
            return float(float_text(value))
        case dt.datetime():
            return milliseconds_from_timestamp(value)
        case dt.date():
            return days_from_date(value)
        case dt.time():
            return milliseconds_from_time(value)
        case _:
            return value


def sorted_maps(value: Any) -> Any:
    """The value with every map in the order of its keys: those of Java have none."""
    return {name: sorted_maps(value[name]) for name in sorted(value)} if isinstance(value, dict) else value


def header_text(header: Header) -> str:
    return f"{header.key}={header.value}({schema_text(header.schema) or 'null'})"


@PATHS
@pytest.mark.parametrize("case", real_cases())
def test_real_record(case: dict[str, Any], apply: Apply) -> None:
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
        changed = apply(made, record)
        assert changed is not None
        assert changed.value_schema is None
    elif "error" in case:
        with pytest.raises(DataError if apply is by_row else Exception):
            apply(made, record)
    elif case.get("result") == "DROPPED":
        assert apply(made, record) is None
    else:
        changed = apply(made, record)
        assert changed is not None
        assert_like_real(changed, case)


def assert_like_real(record: Record, case: dict[str, Any]) -> None:
    for side in ("key", "value"):
        schema, value = getattr(record, f"{side}_schema"), getattr(record, side)
        text = case[side]
        assert schema_text(schema) == case[f"{side}_schema"]
        assert repr(sorted_maps(payload(value, schema))) == repr(
            sorted_maps(None if text is None else json.loads(text))
        )
    assert record.topic == case["topic"]
    assert record.partition == case["partition"]
    assert record.timestamp == case["timestamp"]
    assert [header_text(header) for header in record.headers] == case["headers"]
