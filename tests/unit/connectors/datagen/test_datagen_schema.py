"""Which values the datagen source makes of a schema, and which schemas it refuses."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
import uuid
import warnings
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connect.data import Schema, Type, date_schema, decimal_schema, timestamp_schema, validate
from connect.errors import ConnectError, DataError, SchemaError
from connectors.datagen.quickstarts import QUICKSTARTS
from connectors.datagen.stream import RecordStream, RecordType
from equipment.examples import examples
from equipment.growth import assert_grows_evenly


def schema_of(field: Any, **more: Any) -> str:
    return json.dumps({"type": "record", "name": "t.row", "fields": [{"name": "x", "type": field, **more}]})


def annotated(kind: Any, **annotations: Any) -> dict[str, Any]:
    given = kind if isinstance(kind, dict) else {"type": kind}
    return {**given, "arg.properties": annotations}


def values(field: Any, count: int = 500, *, seed: int = 1, **more: Any) -> list[Any]:
    """The first values of a field, each of which fits its schema."""
    made = RecordType(schema_of(field, **more))
    stream = RecordStream(made, seed, 0)
    found: list[Any] = []
    while len(found) < count:
        found += stream.columns(len(found), count - len(found))["x"]
    for value in found:
        validate(made.schema, {"x": value})
    return found


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("int", -5, 5), ("long", 2**40, 2**62), ("double", -0.5, 0.5), ("float", 1.0, 1.5)]
)
def test_a_number_is_from_min_up_to_max_which_is_not_reached(kind: str, low: float, high: float) -> None:
    found = values(annotated(kind, range={"min": low, "max": high}), 5000)
    assert all(low <= value < high for value in found)
    assert min(found) < low + (high - low) / 10
    assert max(found) > high - (high - low) / 4


@pytest.mark.parametrize(("kind", "low", "high"), [("int", -(2**31), 2**31), ("long", -(2**63), 2**63)])
def test_without_a_range_every_number_of_the_type_may_come(kind: str, low: int, high: int) -> None:
    found = values(kind, 2000)
    assert min(found) < low * 0.9
    assert max(found) > high * 0.9


def test_every_value_is_as_likely_as_the_others() -> None:
    counts = Counter(values(annotated("int", range={"min": 0, "max": 10}), 20_000))
    assert counts.keys() == set(range(10))
    assert max(counts.values()) < 1.2 * min(counts.values())


@pytest.mark.parametrize(
    ("iteration", "expected"),
    [
        ({"start": 1}, [1, 2, 3, 4, 5]),
        ({"start": 0, "restart": 3}, [0, 1, 2, 0, 1]),
        ({"start": 0, "restart": 10, "step": 4}, [0, 4, 8, 2, 6]),
        ({"start": 0, "restart": 10, "step": 5, "initial": 7}, [7, 2, 7, 2, 7]),
        ({"start": 3, "restart": 0}, [3, 2, 1, 3, 2]),
        ({"start": 5, "step": -2}, [5, 3, 1, -1, -3]),
    ],
)
@pytest.mark.parametrize("kind", ["int", "long", "double", "float"])
def test_a_series_goes_on_and_begins_again(kind: str, iteration: dict[str, int], expected: list[int]) -> None:
    assert values(annotated(kind, iteration=iteration), 5) == expected


def test_a_series_at_the_end_of_its_type_begins_again() -> None:
    assert values(annotated("int", iteration={"start": 2**31 - 2}), 4) == [2**31 - 2, 2**31 - 1] * 2


def test_series_of_booleans_texts_and_instants() -> None:
    assert values(annotated("boolean", iteration={"start": False}), 3) == [False, True, False]
    assert values(annotated("string", iteration={"start": 7}, prefix="a-", suffix="!"), 2) == ["a-7!", "a-8!"]
    instant = annotated({"type": "long", "logicalType": "timestamp-millis"}, iteration={"start": 0, "step": 500})
    assert values(instant, 2)[1] == dt.datetime(1970, 1, 1, 0, 0, 0, 500_000, dt.UTC)


def test_texts_are_as_long_as_they_should_be() -> None:
    assert {len(value) for value in values("string")} == set(range(8, 16))
    assert {len(value) for value in values(annotated("string", length=3))} == {3}
    assert {len(value) for value in values(annotated("bytes", length={"min": 0, "max": 3}))} == {0, 1, 2}
    assert {len(value) for value in values(annotated("string", length={"min": 2}))} == {2, 3, 4}
    named = values(annotated("string", length=1, prefix="<", suffix=">"))
    assert all(re.fullmatch("<.>", value) for value in named)


def test_options_are_chosen_from() -> None:
    assert set(values(annotated("string", options=["a", "b"], prefix="p"))) == {"pa", "pb"}
    assert set(values(annotated("boolean", options=[True]))) == {True}
    pair = {"type": "record", "name": "pair", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]}
    assert {value["a"] for value in values(annotated(pair, options=[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]))} == {1, 2}
    numbers = annotated({"type": "array", "items": "int"}, options=[[1], [2, 3]])
    assert {tuple(value) for value in values(numbers)} == {(1,), (2, 3)}
    enum = annotated({"type": "enum", "name": "e", "symbols": ["A", "B", "C"]}, options=["A", "C"])
    assert set(values(enum)) == {"A", "C"}


def test_nested_values_have_the_lengths_and_parts_they_should_have() -> None:
    numbers = {"type": "array", "items": annotated("int", range={"min": 0, "max": 3})}
    found = values(annotated(numbers, length={"min": 0, "max": 3}))
    assert {len(value) for value in found} == {0, 1, 2}
    assert {item for value in found for item in value} == {0, 1, 2}
    mapped = values(annotated({"type": "map", "values": "boolean"}, length=2, keys={"options": ["k", "l"]}))
    assert {frozenset(value) for value in mapped} == {frozenset("k"), frozenset("l"), frozenset("kl")}


def test_unions_are_chosen_by_weight() -> None:
    assert Counter(value is None for value in values(["null", "int"], 4000))[True] in range(1800, 2200)
    rare = [annotated("null", odds=0.1), "int"]
    assert Counter(value is None for value in values(rare, 4000))[True] in range(300, 500)
    several = values(["null", "int", "string"], 3000)
    assert {tuple(value) if value else None for value in several} == {("int", "string"), None}
    weighed = values(
        ["null", "int", "string"], 3000, **{"arg.properties": {"distribution": {"null": 0, "int": 0.25, "2": 0.75}}}
    )
    assert Counter(value["int"] is None for value in weighed)[True] in range(2000, 2500)
    assert all((value["int"] is None) != (value["string"] is None) for value in weighed)


def test_logical_types_are_made_within_what_they_can_hold() -> None:
    assert all(isinstance(value, dt.date) for value in values({"type": "int", "logicalType": "date"}))
    assert all(isinstance(value, dt.time) for value in values({"type": "int", "logicalType": "time-millis"}))
    assert all(value.tzinfo for value in values({"type": "long", "logicalType": "timestamp-millis"}))
    assert all(uuid.UUID(value).version == 4 for value in values({"type": "string", "logicalType": "uuid"}))
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    assert max(values(price, 5000)) <= decimal.Decimal("99.99")
    found = values(annotated(price, range={"min": 0.05, "max": 0.08}))
    assert set(found) == {decimal.Decimal("0.05"), decimal.Decimal("0.06"), decimal.Decimal("0.07")}
    assert {len(value) for value in values({"type": "fixed", "name": "f", "size": 5})} == {5}


PATTERNS = [
    "User_[1-9]{0,1}",
    "[A-Z]{2}-[0-9]{4}",
    r"\d+\.\d?",
    "(ab|c|)*d+",
    "a{2,}b{3}",
    "[^a-z0-9]",
    r"(?:10|192)\.[1-9]\d?",
    r"[\w.-]+@x\.org",
    r".\\\.",
    "",
    "abc?",
    "[ab]+?c{1,2}?d??",
    "(a(b(c|d){2}){1,3}|\\s\\S\\W\\D)",
]


@pytest.mark.parametrize("regex", PATTERNS)
def test_texts_match_their_regex(regex: str) -> None:
    found = values(annotated("string", regex=regex))
    assert all(re.fullmatch(regex, value) for value in found)
    if "[" in regex or "|" in regex:
        assert len(set(found)) > 1


@given(st.text(alphabet="ab[](){}|*+?.^$\\-,019d", max_size=30))
@settings(max_examples=examples(300), deadline=None)
@example("[^]a]")
@example("a+?")
@example("a{2}*")
def test_any_text_is_a_regex_that_is_followed_or_refused(regex: str) -> None:
    try:
        found = values(annotated("string", regex=regex), 20)
        with warnings.catch_warnings():
            # Python plans to give [[ another meaning.
            warnings.simplefilter("ignore", FutureWarning)
            compiled = re.compile(regex)
    except (SchemaError, re.error):
        return
    assert all(compiled.fullmatch(value) for value in found)


@pytest.mark.parametrize(
    "regex",
    [
        "(",
        ")",
        "[",
        "[]",
        "[^]",
        "a**",
        "a+*",
        "a{2}{3}",
        "a{2,1}",
        "a{99999}",
        "(a{100}){200}",
        "*",
        r"\b",
        "(?=a)",
        "a{",
        "^a",
        "\\",
        "x{1,y}",
    ],
)
def test_a_regex_that_is_not_known_is_refused(regex: str) -> None:
    with pytest.raises(SchemaError, match="No texts can be made of the regex"):
        values(annotated("string", regex=regex))


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (annotated("int", range={"min": 5, "max": 5}), "min must be less than max"),
        (annotated("int", range={"max": 2**31 + 1}), "both must be between -2147483648 and 2147483648"),
        (annotated("int", range={"min": 0.1, "max": 0.2}), "there is no number between"),
        (annotated("int", range=3), "give an object with the numbers min and max"),
        (
            annotated("int", iteration={"start": 0, "restart": 0}),
            "step must not be 0, and restart must differ from start",
        ),
        (
            annotated("int", iteration={"start": 0, "restart": 5, "step": -1}),
            "step must not be 0, and restart must differ from start",
        ),
        (annotated("int", iteration={"start": 0, "restart": 5, "initial": 5}), "initial must be start or between"),
        (annotated("int", iteration={"restart": 5}), "give an object with the number start"),
        (annotated("int", iteration={"start": 0.5}), "its numbers must be integers"),
        (annotated("int", iteration={"start": 2**31}), "step must not be 0, and restart must differ from start"),
        ({"type": "array", "items": annotated("int", iteration={"start": 0})}, "it cannot be in an array or a map"),
        (annotated("int", options=[]), "give a list with at least one value"),
        (annotated("int", options=["a"]), "'a' is not of the type int32"),
        (annotated("int", options=[2**31]), "is not between"),
        (annotated("int", options=[None]), "null used for required field"),
        (annotated({"type": "fixed", "name": "f", "size": 2}, options=["abc"]), "they must have 2 bytes"),
        (annotated("double", iteration={"start": 0, "step": 10**400}), "is too large"),
        (
            annotated("string", options={"file": "/etc/passwd", "encoding": "json"}),
            "reading options from a file is not supported",
        ),
        (annotated("string", length=-1), "give a whole number from 0"),
        (annotated("string", length={"min": 3, "max": 3}), "max greater than min"),
        (annotated("string", length=10**9), "the maximum is 100000"),
        (annotated("boolean", odds=2), "give a number from 0 to 1"),
        (annotated("int", **{"malformed.rate": 0.1}), "malformed.rate, which is not supported"),
        ({"type": "int", "arg.properties": []}, "must be an object"),
        ({"type": "enum", "name": "e", "symbols": []}, "has no symbols"),
        (["null"], "no type other than null"),
        ("null", "null"),
        ({"type": "fixed", "name": "f", "size": 10**9}, "longer than 100000 bytes"),
        ({"type": "bytes", "logicalType": "decimal"}, "needs a precision from 1 to 18"),
    ],
)
def test_annotations_that_cannot_be_followed_are_refused(field: Any, reason: str) -> None:
    with pytest.raises(DataError) as refused:
        values(field)
    assert reason in str(refused.value)


NODES = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 5, 2.5, 1e308, -1e308, 2**31, 2**63, 10**400, "a", "", "1", "[ab]", "null", "int"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["min", "max", "start", "restart", "step", "initial", "options"]), inner, max_size=4
        )
    ),
    max_leaves=6,
)
NAMES = ["options", "iteration", "range", "length", "regex", "prefix", "keys", "odds", "distribution"]
TYPES = [
    *("int", "long", "float", "double", "string", "bytes", "boolean"),
    {"type": "int", "logicalType": "date"},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
    {"type": "array", "items": "int"},
    {"type": "map", "values": "string"},
    {"type": "enum", "name": "e", "symbols": ["a", "b"]},
    {"type": "fixed", "name": "f", "size": 1},
    {"type": "record", "name": "inner", "fields": [{"name": "min", "type": "int"}]},
]


@given(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(NAMES), NODES, min_size=1, max_size=2))
@settings(deadline=None, max_examples=examples(150))
def test_any_annotations_are_followed_or_refused(kind: Any, annotations: dict[str, Any]) -> None:
    for field in (annotated(kind, **annotations), ["null", annotated(kind, **annotations)]):
        try:
            RecordType(schema_of(field, **{"arg.properties": annotations}))
        except ConnectError:
            continue
        values(field, 20, **{"arg.properties": annotations})


@pytest.mark.parametrize(
    "field",
    [
        annotated("string", options=["x" * 100_000]),
        annotated("string", prefix="x" * 100_000),
        {"type": "enum", "name": "e", "symbols": ["x" * 100_000]},
        {"type": "record", "name": "n", "fields": [{"name": "x" * 100_000, "type": "int"}]},
        annotated({"type": "map", "values": "int"}, keys={"options": ["x" * 50_000]}, length=2),
    ],
    ids=range(5),
)
def test_long_texts_make_small_blocks(field: Any) -> None:
    assert RecordType(schema_of(field)).block_size < 20


def test_what_is_not_known_is_named() -> None:
    made = RecordType(schema_of(annotated("int", optoins=[1])))
    assert made.unknown == ["optoins of t.row.x"]


# -- schemas that were made to be costly ---------------------------------------------------------------------------


def nested(depth: int) -> Any:
    kind: Any = "int"
    for _ in range(depth):
        kind = {"type": "array", "items": kind, "arg.properties": {"length": 1}}
    return kind


def doubling(depth: int) -> str:
    """A record of two fields, each a record of two fields, and so on: 2**depth values."""
    kind: Any = "int"
    for number in range(depth):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"r{number - 1}" if number else "int"}]
        kind = {"type": "record", "name": f"r{number}", "fields": fields}
    return json.dumps(kind)


@pytest.mark.parametrize(
    "text",
    [
        schema_of(nested(500)),
        "[" * 100_000,
        '{"type":' * 50_000,
        doubling(30),
        doubling(100),
        json.dumps({"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "r"]}]}),
        schema_of(
            annotated(
                {"type": "array", "items": annotated({"type": "array", "items": "int"}, length=1000)}, length=1000
            )
        ),
        schema_of(annotated({"type": "map", "values": annotated("string", length=100_000)}, length=100)),
        schema_of([{"type": "record", "name": f"m{i}", "fields": [{"name": "a", "type": "int"}]} for i in range(3000)]),
        schema_of(annotated("string", regex="(" * 10_000)),
        schema_of(annotated("string", regex="((((a{9}){9}){9}){9}){9}")),
        schema_of(annotated("string", regex="[ab]" * 5_000)),
        json.dumps({"type": "record", "name": "r", "fields": []}),
        '"int"',
        " " * 2_000_000,
        "",
    ],
    ids=range(16),
)
def test_a_schema_that_would_cost_too_much_is_refused(text: str) -> None:
    with pytest.raises(ConnectError):
        RecordType(text)


def test_what_a_block_holds_is_limited() -> None:
    wide = RecordType(schema_of(annotated({"type": "array", "items": "int"}, length=40_000)))
    assert wide.block_size == 2
    assert len(RecordStream(wide, 0, 0).columns(0, 100)["x"]) == 2


@pytest.mark.growth
def test_refusing_a_schema_takes_time_in_proportion_to_its_size() -> None:
    def members(count: int) -> str:
        return schema_of([{"type": "fixed", "name": f"m{number}", "size": 1} for number in range(count)])

    def made(text: str) -> None:
        with pytest.raises(ConnectError):
            RecordType(text)

    assert_grows_evenly(made, members, 2_500)
    assert_grows_evenly(made, lambda count: schema_of(annotated("string", regex="(a|b)" * count)), 20_000)
    assert_grows_evenly(made, lambda count: schema_of(annotated("string", regex="[a-" * count)), 20_000)


# -- quickstarts ---------------------------------------------------------------------------------------------------

FIELDS = {
    "clickstream": "ip userid remote_user time _time request status bytes referrer agent",
    "orders": "ordertime orderid itemid orderunits address",
    "pageviews": "viewtime userid pageid",
    "purchases": "id item_type quantity price_per_unit",
    "ratings": "rating_id user_id stars route_id rating_time channel message",
    "stock_trades": "side quantity symbol price account userid",
    "users": "registertime userid regionid gender",
    "users_": "registertime userid regionid gender interests contactinfo",
}


def test_there_are_the_usual_quickstarts() -> None:
    assert len(QUICKSTARTS) == 38
    for name, fields in FIELDS.items():
        assert RecordType(QUICKSTARTS[name].text).schema.field_names == tuple(fields.split())


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_a_quickstart_makes_records_of_its_schema(name: str) -> None:
    made = RecordType(QUICKSTARTS[name].text)
    columns = RecordStream(made, 1, 0).columns(0, 100)
    for row in zip(*columns.values(), strict=True):
        validate(made.schema, dict(zip(columns, row, strict=True)))
    assert QUICKSTARTS[name].key_field in columns
    assert made.unknown == []


def test_the_schemas_of_quickstarts_are_those_that_people_know() -> None:
    orders = RecordType(QUICKSTARTS["orders"].text).schema
    assert orders.name == "ksql.orders"
    assert [field.schema.type for field in orders.fields] == [
        Type.INT64,
        Type.INT32,
        Type.STRING,
        Type.FLOAT64,
        Type.STRUCT,
    ]
    price = RecordType(QUICKSTARTS["purchases"].text).schema.field("price_per_unit")
    assert price is not None
    assert price.schema.name == decimal_schema(2).name
    day = RecordType(QUICKSTARTS["pizza_orders"].text).schema.field("date")
    assert day is not None
    assert day.schema is date_schema()
    instant = RecordType(QUICKSTARTS["shoe_orders"].text).schema.field("ts")
    assert instant is not None
    assert instant.schema is timestamp_schema()
    assert RecordType(QUICKSTARTS["users"].text).schema.field("userid").schema is Schema.string()  # type: ignore[union-attr]
