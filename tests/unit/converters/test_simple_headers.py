"""Text in a header is read as something else only if that is written back as the same text."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import Schema, SinkRecord, date_schema, decimal_schema, time_schema
from connect.data.numerals import single
from connect.transforms.insert_header import InsertHeader
from converters.simple_header import SimpleHeaderConverter

CONVERTER = SimpleHeaderConverter.configured({})
STRING = Schema.string()

STRIPPED = bytes(range(33))
BLANKS = re.compile(rb"[\x00-\x20]+")
LIKE_VALUES = st.one_of(
    st.text('0123456789+-.,:eEfxTZ_[]{}" \\\n', max_size=30),
    st.from_regex(r"[+-]?[0-9]{0,25}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)?.?", fullmatch=True),
    st.from_regex(r"[\[{]?(true|false|null|[0-9]{1,3}|\"a\"|[,:] ?){1,6}[\]}]?.?", fullmatch=True),
    st.text(),
)


@given(LIKE_VALUES)
def test_what_is_written_back_is_what_was_read(text: str) -> None:
    data = text.encode(errors="replace")
    read = CONVERTER.to_connect_header("t", "h", data)
    written = CONVERTER.from_connect_header("t", "h", read.schema, read.value)
    if isinstance(read.value, (list, dict)):
        assert BLANKS.sub(b"", written or b"") == BLANKS.sub(b"", data)
    elif read.value is not None:
        assert written == data
    else:
        assert data.strip(STRIPPED) in (b"null", b"")
    if isinstance(read.value, str):
        assert (read.schema, read.value) == (STRING, data.decode())


@pytest.mark.parametrize(
    "text",
    [
        *("1::2", "2001:db8::1", "fe80::1", "10:30", "12:30:45", "00:1A:2B:3C:4D:5E", "12,5", "2024-01-01,foo"),
        *("007", "-007", "+5", "1e5", "1E+5", " 5", "5 ", "5\n", "0x10", "1_000", "-0", "1.10", "1,2,3"),
        *("5:", "5]", "5}", '5"', "5\\", "1e400", "\N{ARABIC-INDIC DIGIT THREE}", "\N{FULLWIDTH DIGIT ONE}"),
        *("true!", "true ", " true", "truefalse", "false,true", "[1,2", "[1,2]x", "[1, 2]x", '{"a": 1},', "{a"),
        *("[007]", "[+5]", '{"a":1},2', '["a\\"b"]', "2019-02-31", "2019-13-32", "99:00:00.000Z", "14:34:54.346Z,"),
        *("2019-08-23T00:00:00.000Z", "2019-08-23T14:34:54.346Z+01:00"),
    ],
)
def test_text_with_something_more_stays_text(text: str) -> None:
    assert CONVERTER.to_connect_header("t", "h", text.encode()) == (STRING, text)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("7", Schema.int8(), 7),
        ("-2001", Schema.int16(), -2001),
        ("9223372036854775807", Schema.int64(), 9223372036854775807),
        ("18446744073709551615", decimal_schema(0), Decimal(18446744073709551615)),
        ("0.1", Schema.float32(), single(0.1)),
        ("1.0", Schema.float32(), 1.0),
        ("1.0E10", Schema.float32(), 1e10),
        ("123456.789", Schema.float64(), 123456.789),
        ("true", Schema.boolean(), True),
        ("2024-01-01", date_schema(), dt.date(2024, 1, 1)),
        ("10:30:00.000Z", time_schema(), dt.time(10, 30)),
        ("[1,2]", Schema.array(Schema.int8()), [1, 2]),
        ("[1, 2]", Schema.array(Schema.int8()), [1, 2]),
        ("null", None, None),
        ('{"a":1}', Schema.map(STRING, Schema.int8()), {"a": 1}),
    ],
)
def test_text_with_nothing_more_is_the_value(text: str, schema: Schema, value: Any) -> None:
    read = CONVERTER.to_connect_header("t", "h", text.encode())
    assert (read.schema, read.value) == (schema, value)


@pytest.mark.parametrize(
    ("literal", "schema", "value"),
    [
        ("10:30", STRING, "10:30"),
        ("007", STRING, "007"),
        ("[1, 2]x", STRING, "[1, 2]x"),
        ("[1, 2]", Schema.array(Schema.int8()), [1, 2]),
        ('{"a": 1} ', Schema.map(STRING, Schema.int8()), {"a": 1}),
        ("null", None, None),
        ("1.5", Schema.float32(), 1.5),
    ],
)
def test_a_literal_of_insert_header_is_not_cut_either(literal: str, schema: Schema | None, value: Any) -> None:
    inserted = InsertHeader.configured({"header": "h", "value.literal": literal}).apply(SinkRecord("t", 1))
    (header,) = inserted.headers
    assert (header.schema, header.value) == (schema, value)
