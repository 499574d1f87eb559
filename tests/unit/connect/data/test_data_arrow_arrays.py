"""Values made into Arrow arrays: nothing is coerced in silence, though pyarrow alone would."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict, defaultdict
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from connect.data import Constant, Lazy, Schema, date_schema, decimal_schema, time_schema, timestamp_schema, validate
from connect.data.arrow import arrow_type, to_array, to_values
from connect.errors import DataError

NAIVE = dt.datetime(2020, 1, 1)  # noqa: DTZ001
AWARE = NAIVE.replace(tzinfo=dt.UTC)
PAIR = Schema.struct({"a": Schema.int8(), "b": Schema.string(optional=True)})

PYARROW_TAKES = [
    (Schema.int64(), 1.5),
    (Schema.int64(), 1.0),
    (Schema.float64(), True),
    (Schema.float32(), 1e300),
    (Schema.string(), b"x"),
    (Schema.bytes(), "x"),
    (timestamp_schema(), NAIVE),
    (timestamp_schema(), 5),
    (date_schema(), AWARE),
    (date_schema(), 5),
    (time_schema(), 5),
    (time_schema(), dt.time(1, tzinfo=dt.UTC)),
    (decimal_schema(2), Decimal("1.5")),
    (decimal_schema(2), 1),
    (Schema.array(Schema.string()), "ab"),
    (Schema.array(Schema.int8()), {1, 2}),
    (PAIR, {"a": 1, "c": 2}),
    (PAIR, {"b": "x"}),
    (PAIR, {"a": None}),
    (PAIR, [("a", 1)]),
    (Schema.map(Schema.string(), Schema.int8()), [("a", 1)]),
    (Schema.int8(), None),
    (Schema.array(Schema.int8()), [None]),
]
PYARROW_REFUSES = [
    (Schema.int8(), 128),
    (Schema.int64(), 2**63),
    (Schema.int8(), True),
    (Schema.boolean(), 1),
    (Schema.float64(), 2**53 + 1),
    (Schema.float32(), 2**24 + 1),
    (Schema.float64(), 10**400),
    (Schema.string(), 1),
    (timestamp_schema(), dt.date(2020, 1, 1)),
    (decimal_schema(2), Decimal("1.555")),
    (decimal_schema(2), Decimal("NaN")),
    (Schema.array(Schema.int8()), {1: 2}),
]


@pytest.mark.parametrize(("schema", "value"), PYARROW_TAKES)
def test_refuses_what_pyarrow_takes(schema: Schema, value: Any) -> None:
    assert len(pa.array([value], arrow_type(schema))) == 1
    with pytest.raises(DataError):
        to_array([value], schema)
    with pytest.raises(DataError):
        validate(schema, value)


@pytest.mark.parametrize(("schema", "value"), PYARROW_REFUSES)
def test_refuses_what_the_schema_refuses(schema: Schema, value: Any) -> None:
    with pytest.raises(DataError):
        to_array([value], schema)
    with pytest.raises(DataError):
        validate(schema, value)


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (Schema.struct({"s": Schema.string()}), {"s": "\ud800"}, '"s".*surrogates'),
        (decimal_schema(0), Decimal("1" * 39), "does not fit"),
        (decimal_schema(1, parameters={"connect.decimal.precision": "2"}), Decimal("99.9"), r"decimal128\(2, 1\)"),
        (Schema.map(Schema.string(optional=True), Schema.int8()), {None: 1}, "key is null"),
    ],
)
def test_refuses_what_arrow_cannot_hold(schema: Schema, value: Any, message: str) -> None:
    validate(schema, value)
    with pytest.raises(DataError, match=message):
        to_array([value], schema)


def test_names_the_path_of_the_bad_value() -> None:
    line = Schema.struct({"price": Schema.float64()})
    order = Schema.struct({"lines": Schema.array(line), "stock": Schema.map(Schema.string(), Schema.int8())})
    good = {"lines": [{"price": 1.0}], "stock": {}}
    with pytest.raises(DataError, match=r'"lines\[1\]\.price"'):
        to_array([good, {"lines": [{"price": 1.0}, {"price": "2"}], "stock": {}}], order)
    with pytest.raises(DataError, match=r"stock\['x'\]"):
        to_array([good, {"lines": [], "stock": {"x": 500}}], order)


@pytest.mark.parametrize(
    ("schema", "value", "arrow"),
    [
        (Schema.float64(), 1, 1.0),
        (Schema.float64(), 2**53, 2.0**53),
        (Schema.float32(), float("inf"), float("inf")),
        (Schema.bytes(), bytearray(b"a"), b"a"),
        (Schema.bytes(), memoryview(b"a"), b"a"),
        (Schema.array(Schema.int8()), (1, 2), [1, 2]),
        (PAIR, OrderedDict(a=1), {"a": 1, "b": None}),
        (PAIR, defaultdict(int, a=1), {"a": 1, "b": None}),
    ],
)
def test_takes_what_the_schema_allows(schema: Schema, value: Any, arrow: Any) -> None:
    validate(schema, value)
    assert to_array([value], schema).to_pylist() == [arrow]


def test_instants_of_any_zone_and_rounded_down() -> None:
    east = dt.timezone(dt.timedelta(hours=2))
    values = [dt.datetime(2020, 1, 1, 2, tzinfo=east), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)]
    assert to_array(values, timestamp_schema()).cast(pa.int64()).to_pylist() == [1_577_836_800_000, -1]


def test_defaults() -> None:
    schema = Schema.struct(
        {
            "missing": Schema.int8(default=5),
            "optional": Schema.int8(optional=True, default=6),
            "nested": Schema.struct({"a": Schema.int8()}, default={"a": 7}),
        }
    )
    rows: list[dict[str, Any]] = [{}, {"missing": None, "optional": None, "nested": None}]
    assert to_array(rows, schema).to_pylist() == [
        {"missing": 5, "optional": 6, "nested": {"a": 7}},
        {"missing": 5, "optional": None, "nested": {"a": 7}},
    ]
    assert to_array([None, 2], Schema.int8(default=1)).to_pylist() == [1, 2]


def test_required_fields_of_a_null_struct() -> None:
    schema = Schema.struct({"a": Schema.int8(), "b": Schema.array(Schema.string())}, optional=True)
    array = to_array([None, {"a": 1, "b": ["x"]}], schema)
    array.validate(full=True)
    assert array.to_pylist() == [None, {"a": 1, "b": ["x"]}]
    with pytest.raises(DataError, match='"a"'):
        to_array([None, {"a": None, "b": []}], schema)


def test_any_sequence_of_values() -> None:
    assert to_array(Constant("x", 2), Schema.string()).to_pylist() == ["x", "x"]
    assert to_array(Lazy(2, lambda: (1, 2)), Schema.int64()).to_pylist() == [1, 2]
    assert to_array([], PAIR).type == arrow_type(PAIR)


# -- values without a schema -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        ([], pa.null()),
        ([None, None], pa.null()),
        (["a", None], pa.string()),
        ([1, 2**62], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([True], pa.bool_()),
        ([b"a", bytearray(b"b")], pa.binary()),
        ([Decimal("1.50"), Decimal("2.00")], pa.decimal128(38, 2)),
        ([dt.date(2020, 1, 1)], pa.date32()),
        ([dt.time(1, 2, 3, 4000)], pa.time32("ms")),
        ([AWARE], pa.timestamp("ms", "UTC")),
        ([[1], [], None, [None]], pa.list_(pa.int64())),
        ([[], []], pa.list_(pa.string())),
        ([{"a": 1}, {"b": [{"c": "x"}]}], None),
        ([{1: "a"}, {2: "b"}], None),
    ],
)
def test_infers_a_type_that_loses_nothing(values: list[Any], data_type: pa.DataType | None) -> None:
    array = to_array(values, None)
    assert data_type is None or array.type == data_type
    read = to_values(array, None)
    for value, again in zip(values, read, strict=True):
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            assert value == {key: item for key, item in again.items() if item is not None}
        else:
            assert value == again


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ([1, "a"], '"value".*int, str'),
        ([1, True], "bool, int"),
        ([2**53 + 1, 0.5], "not be exact|outside"),
        ([2**63], "value"),
        ([{"a": {"b": 1}}, {"a": {"b": "x"}}], '"a.b"'),
        ([{"a": [1, "x"]}], r'"a\[\]"'),
        ([Decimal("1.5"), Decimal("1.50")], "differ in scale"),
        ([Decimal("NaN")], "differ in scale"),
        ([AWARE.replace(microsecond=1)], "finer than a millisecond"),
        ([NAIVE], "no time zone"),
        ([object()], "object"),
        ([{1: "a", "b": "c"}], r'"\{key\}"'),
    ],
)
def test_refuses_values_with_no_type_in_common(values: list[Any], path: str) -> None:
    with pytest.raises(DataError, match=path):
        to_array(values, None)
