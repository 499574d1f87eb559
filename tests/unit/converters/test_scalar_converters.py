"""The string, byte array and number converters, for keys, values and headers."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.converter import Converter, HeaderConverter
from connect.data import Schema, ValueColumn
from connect.errors import ConfigError, DataError
from connect.internals.java.value_text import value_text
from converters.byte_array import ByteArrayConverter
from converters.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from converters.string import StringConverter
from converters.universal import UniversalConverter
from equipment.strategies.values import texts

NUMBERS: list[tuple[type[UniversalConverter[Any]], int]] = [
    (ShortConverter, 16),
    (IntegerConverter, 32),
    (LongConverter, 64),
]


def rows(converter: Any, data: list[bytes | None]) -> list[tuple[Any, Any]] | type[DataError]:
    try:
        return [tuple(converter.to_connect("t", item)) for item in data]
    except DataError:
        return DataError


def columns(converter: Any, data: list[bytes | None]) -> list[tuple[Any, Any]] | type[DataError]:
    try:
        return [(column.schema, value) for column in converter.to_connect_column("t", data) for value in column]
    except DataError:
        return DataError


def written(converter: Any, values: list[Any], schema: Schema | None) -> list[bytes | None] | type[DataError]:
    try:
        return [converter.from_connect("t", schema, value) for value in values]
    except DataError:
        return DataError


def written_column(converter: Any, values: list[Any], schema: Schema | None) -> list[bytes | None] | type[DataError]:
    try:
        return list(converter.from_connect_column("t", ValueColumn(values, schema)))
    except DataError:
        return DataError


ALL = [StringConverter, ByteArrayConverter, BooleanConverter, FloatConverter, DoubleConverter]
ALL += [kind for kind, _ in NUMBERS]


@settings(deadline=None)
@given(
    st.sampled_from(ALL), st.lists(st.none() | st.binary(max_size=9) | st.binary(min_size=4, max_size=4), max_size=5)
)
def test_columns_are_read_as_rows(kind: type[UniversalConverter[Any]], data: list[bytes | None]) -> None:
    assert repr(columns(kind.configured({}), data)) == repr(rows(kind.configured({}), data))


ANYTHING = st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | texts() | st.binary(max_size=4)


@settings(deadline=None)
@given(
    st.sampled_from(ALL), st.lists(ANYTHING, max_size=4) | st.lists(st.integers(-9, 9)) | st.lists(st.floats(width=32))
)
def test_columns_are_written_as_rows(kind: type[UniversalConverter[Any]], values: list[Any]) -> None:
    converter = kind.configured({})
    assert written_column(converter, values, None) == written(converter, values, None)


@settings(deadline=None)
@given(st.data())
def test_numbers_are_read_back(data: st.DataObject) -> None:
    kind, bits = data.draw(st.sampled_from(NUMBERS))
    number = data.draw(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    converter = kind.configured({}, is_key=True)
    assert converter.to_connect("t", converter.from_connect("t", None, number)).value == number
    assert converter.to_connect_header("t", "h", converter.from_connect_header("t", "h", None, number)).value == number


@pytest.mark.parametrize(("kind", "bits"), NUMBERS)
def test_numbers_too_large_are_refused(kind: type[UniversalConverter[Any]], bits: int) -> None:
    with pytest.raises(DataError, match="Failed to serialize"):
        kind.configured({}).from_connect("t", None, 2 ** (bits - 1))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (FloatConverter, 1e39),
        (FloatConverter, 2**24 + 1),
        (DoubleConverter, 2**53 + 1),
        (DoubleConverter, 2**2000),
        (LongConverter, True),
        (LongConverter, 1.0),
        (DoubleConverter, Decimal(1)),
        (BooleanConverter, 1),
    ],
)
def test_what_a_number_cannot_hold_is_refused(kind: type[UniversalConverter[Any]], value: Any) -> None:
    with pytest.raises(DataError):
        kind.configured({}).from_connect("t", None, value)
    with pytest.raises(DataError):
        kind.configured({}).from_connect_column("t", ValueColumn([value]))


def test_whole_numbers_are_floats_where_they_fit() -> None:
    assert FloatConverter.configured({}).from_connect("t", None, 2**24) == struct.pack(">f", 2**24)


@pytest.mark.parametrize("kind", ALL)
def test_one_class_serves_values_and_headers(kind: type[UniversalConverter[Any]]) -> None:
    assert issubclass(kind, Converter)
    assert issubclass(kind, HeaderConverter)
    assert kind.configured({}, is_key=True).is_key


class TestStringConverter:
    @pytest.mark.parametrize("encoding", ["UTF-8", "utf8", "UTF-16", "UTF-16LE", "UTF-32"])
    def test_text_is_read_back(self, encoding: str) -> None:
        converter = StringConverter.configured({"converter.encoding": encoding})
        assert converter.to_connect("t", converter.from_connect("t", None, "Zoë 😀")).value == "Zoë 😀"

    def test_utf_16_is_read_in_the_order_of_its_mark(self) -> None:
        converter = StringConverter.configured({"converter.encoding": "UTF-16"})
        for data in (b"\xff\xfea\x00", b"\xfe\xff\x00a", b"\x00a"):
            assert converter.to_connect("t", data).value == "a"

    def test_texts_are_made_when_they_are_read(self) -> None:
        class Data(list[bytes | None]):
            """Messages that count how often they are read."""

            times = 0

            def __iter__(self) -> Iterator[bytes | None]:
                self.times += 1
                return super().__iter__()

        data = Data([b"a", b"b"])
        (column,) = StringConverter.configured({}).to_connect_column("t", data)
        assert (len(column), data.times) == (2, 0)
        assert [*column] == [*column.slice(0, 2)] == ["a", "b"]
        assert data.times == 1

    @pytest.mark.parametrize("encoding", ["no such", "base64", "\x00"])
    def test_an_unknown_character_set_is_refused(self, encoding: str) -> None:
        with pytest.raises(ConfigError, match=r"converter\.encoding"):
            StringConverter.configured({"converter.encoding": encoding})

    @pytest.mark.parametrize(("encoding", "text"), [("ISO-8859-1", "€"), ("UTF-8", "\ud800")])
    def test_what_the_character_set_lacks_is_refused(self, encoding: str, text: str) -> None:
        converter = StringConverter.configured({"converter.encoding": encoding})
        with pytest.raises(DataError, match=encoding):
            converter.from_connect("t", None, text)
        with pytest.raises(DataError, match=encoding):
            converter.from_connect_column("t", ValueColumn(["a", text]))


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, 1e10, "1.0E10"),
        (Schema.float32(), 0.1, "0.1"),
        (None, dt.date(2026, 11, 21), "Sat Nov 21 00:00:00 UTC 2026"),
        (None, dt.time(1, 2, 3), "Thu Jan 01 01:02:03 UTC 1970"),
        (None, dt.datetime(2025, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))), "Tue Dec 31 23:00:00 UTC 2024"),
        (Schema.struct({"a": Schema.int8(optional=True)}), {"a": None}, "Struct{}"),
        (Schema.map(Schema.int8(), Schema.float32()), {1: 1e-5}, "{1=1.0E-5}"),
        (None, [b"hi", None, (1,)], "[aGk=, null, [1]]"),
        (None, {"a": {"b": False}}, "{a={b=false}}"),
    ],
)
def test_values_are_shown_as_java_shows_them(schema: Schema | None, value: Any, text: str) -> None:
    assert value_text(schema, value) == text


def test_an_object_of_no_type_has_no_text() -> None:
    with pytest.raises(DataError):
        value_text(None, object())
