"""Filters and fields by JSON paths and by expressions."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from connect.data import Header, Headers, Schema, date_schema, decimal_schema, timestamp_schema
from connect.errors import ConfigError, DataError
from connect.transforms.expression import Expression
from connect.transforms.filters import ExpressionFilter, JsonPathFilter
from connect.transforms.predicates import ExpressionMatches


class TestJsonPathFilter:
    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        pytest.importorskip("jsonpath")

    @pytest.mark.parametrize(
        ("condition", "value", "kept"),
        [
            ("$[?(@.status == 'new')]", {"status": "new"}, True),
            ("$[?(@.status == 'new')]", {"status": "old"}, False),
            ("$[?(@.status == 'new')]", {}, False),
            ("$.[?(@.status == 'new')]", {"status": "new"}, True),
            ("$.key[?(@.n == \"a\" || @.n == 'b')]", {"key": {"n": "b"}}, True),
            ("$.lines[?(@.price > 10)]", {"lines": [{"price": 5}, {"price": 11}]}, True),
            ("$.lines[?(@.price > 10)].name", {"lines": [{"price": 11, "name": "x"}]}, True),
            ("$.lines[?(@.tags[0] == ']')]", {"lines": [{"tags": ["]"]}]}, True),
            ("$.status", {"status": "x"}, True),
            ("$..[?(@.n == 1)]", {"a": {"b": {"n": 1}}}, True),
            ("$[?(@.name =~ /a.*/)]", {"name": "ada"}, True),
        ],
    )
    def test_condition(self, condition: str, value: Any, kept: bool, record: Any) -> None:
        for kind in ("include", "exclude"):
            config = {"filter.condition": condition, "filter.type": kind}
            made = JsonPathFilter.Value.configured(config).apply(record(value))
            assert (made is not None) is (kept is (kind == "include"))

    @pytest.mark.parametrize("value", [None, {}, {"key": None}, 5])
    def test_what_is_missing(self, value: Any, record: Any) -> None:
        config = {"filter.condition": "$.key[?(@.n == 1)]", "filter.type": "include"}
        with pytest.raises(DataError, match="null, at"):
            JsonPathFilter.Value.configured(config).apply(record(value))
        for behavior in ("include", "exclude"):
            made = JsonPathFilter.Value.configured({**config, "missing.or.null.behavior": behavior})
            assert (made.apply(record(value)) is not None) is (behavior == "include")

    def test_the_key(self, record: Any) -> None:
        config = {"filter.condition": "$[?(@.id == 1)]", "filter.type": "include"}
        made = JsonPathFilter.Key.configured(config)
        assert made.apply(record(key={"id": 1})) is not None
        assert made.apply(record(key={"id": 2})) is None

    @pytest.mark.parametrize("condition", ["", "status", "$[", "$[?(@.a ==)]", "$[?(@.a == 'x'"])
    def test_what_is_no_path(self, condition: str) -> None:
        with pytest.raises(ConfigError, match=r"filter\.condition"):
            JsonPathFilter.Value.configured({"filter.condition": condition, "filter.type": "include"})


class TestExpressions:
    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        pytest.importorskip("cel")

    @pytest.mark.parametrize(
        ("expression", "answer"),
        [
            ("value.amount > 10.0 && value.address.city == 'Oslo'", True),
            ("has(value.nope)", False),
            ("value.opt == null", True),
            ("topic == 'orders' && partition == 2 && offset == 7", True),
            ("timestamp > timestamp('2023-01-01T00:00:00Z')", True),
            ("headers.h == 'last'", True),
            ("key == null", True),
            ("value.tags.exists(tag, tag.startsWith('b'))", True),
            ("value['amount'] == 12.5", True),
            ("'value.nope' == 'value.nope'", True),
            ("value.price == 1.5 && value.day == timestamp('2020-01-01T00:00:00Z')", True),
        ],
    )
    def test_answers(self, expression: str, answer: bool, record: Any) -> None:
        value = {
            "amount": 12.5,
            "address": {"city": "Oslo"},
            "opt": None,
            "tags": ["a", "b"],
            "price": Decimal("1.50"),
            "day": dt.date(2020, 1, 1),
            "unused": object(),
        }
        if "value['amount']" in expression:
            del value["unused"]
        given = record(value, headers=Headers([Header("h", "first"), Header("h", "last")]))
        assert ExpressionMatches.configured({"expression": expression}).test(given) is answer

    def test_a_field_that_a_dict_leaves_out_is_null_if_the_schema_has_it(self, record: Any) -> None:
        schema = Schema.struct({"a": Schema.int64(optional=True)})
        assert ExpressionMatches.configured({"expression": "value.a == null"}).test(record({}, schema))

    @pytest.mark.parametrize("expression", ["value.", "nope == 1", "1 +* 2", "os.system('x')"])
    def test_what_is_no_expression(self, expression: str) -> None:
        with pytest.raises(ConfigError, match="expression"):
            ExpressionMatches.configured({"expression": expression})

    @pytest.mark.parametrize(
        "expression",
        [
            "value.nope",
            "value.a + 'x' == 'y'",
            "value.a",
            "1 / 0 == 1",
            "value.__class__ == 1",
            "__import__('os') == 1",
        ],
    )
    def test_what_fails(self, expression: str, record: Any) -> None:
        with pytest.raises(DataError, match="Expression"):
            ExpressionMatches.configured({"expression": expression}).test(record({"a": 1}))

    def test_a_filter(self, record: Any) -> None:
        config = {"filter.condition": "value.n > 1", "filter.type": "include"}
        keep = ExpressionFilter.configured(config)
        assert keep.apply(record({"n": 2})) is not None
        assert keep.apply(record({"n": 1})) is None
        for missing in ({}, {"n": None}):
            with pytest.raises(DataError):
                keep.apply(record(missing))
            made = ExpressionFilter.configured({**config, "missing.or.null.behavior": "include"})
            assert made.apply(record(missing)) is not None
        with pytest.raises(DataError):
            made.apply(record({"n": "text"}))

    def test_a_computed_field(self, record: Any) -> None:
        schema = Schema.struct({"price": Schema.float64(), "n": Schema.int32()})
        value = {"price": 2.5, "n": 4}
        total = {"expression": "value.price * double(value.n)", "field": "total"}
        assert Expression.Value.configured(total).apply(record(value)).value == {**value, "total": 10.0}
        made = Expression.Value.configured({**total, "result.type": "float64"}).apply(record(value, schema))
        assert made.value == {**value, "total": 10.0}
        assert made.value_schema.field("total").schema is Schema.float64(optional=True)
        with pytest.raises(DataError, match=r"set result\.type"):
            Expression.Value.configured(total).apply(record(value, schema))

    def test_a_field_keeps_its_schema_and_what_does_not_fit_is_refused(self, record: Any) -> None:
        schema = Schema.struct({"n": Schema.int8()})
        double = Expression.Value.configured({"expression": "value.n * 2", "field": "n"})
        assert double.apply(record({"n": 2}, schema)).value_schema is schema
        with pytest.raises(DataError, match="n"):
            double.apply(record({"n": 100}, schema))

    def test_the_whole_key(self, record: Any) -> None:
        config = {"expression": "value.country + '-' + string(value.id)", "result.type": "string"}
        made = Expression.Key.configured(config).apply(
            record({"country": "no", "id": 7}, key=1, key_schema=Schema.int32())
        )
        assert (made.key, made.key_schema) == ("no-7", Schema.string(optional=True))

    def test_logical_types_are_exposed(self, record: Any) -> None:
        schema = Schema.struct({"d": date_schema(), "p": decimal_schema(2), "t": timestamp_schema()})
        value = {"d": dt.date(2020, 1, 1), "p": Decimal("1.50"), "t": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}
        same = ExpressionMatches.configured({"expression": "value.d == value.t && value.p == 1.5"})
        assert same.test(record(value, schema))
