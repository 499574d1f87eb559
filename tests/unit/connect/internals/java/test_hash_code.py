"""Hash codes are Java's, so that records go to the partitions that Java chooses."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from connect.data import Schema, decimal_schema
from connect.errors import DataError
from connect.internals.java.hash_code import hash_code


@pytest.mark.parametrize(
    ("value", "schema", "code"),
    [
        ("", None, 0),
        ("hello", None, 99162322),
        ("Aa", None, 2112),
        ("BB", None, 2112),
        ("polygenelubricants", None, -(2**31)),
        ("\U0001f600", None, 31 * 0xD83D + 0xDE00),
        (True, None, 1231),
        (False, None, 1237),
        (-1, Schema.int32(), -1),
        (-1, Schema.int64(), 0),
        (-1, None, 0),
        (2**32, Schema.int64(), 1),
        (300, Schema.int16(), 300),
        (1.0, Schema.float64(), 1072693248),
        (1.0, Schema.float32(), 1065353216),
        (-0.0, Schema.float64(), -(2**31)),
        (Decimal("1.50"), decimal_schema(2), 4652),
        (Decimal("-1.50"), decimal_schema(2), -4648),
        (Decimal(2**40), decimal_schema(0), 31 * (31 * 2**8)),
        (Decimal("0.00"), decimal_schema(2), 2),
        (b"\x01\x02", Schema.bytes(), 1024),
        (b"\xff", Schema.bytes(), 30),
        (["a", None], Schema.array(Schema.string(optional=True)), 31 * (31 + 97)),
        (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), None, 1000),
        (dt.date(1970, 1, 2), None, 86_400_000),
        (dt.time(0, 0, 2), None, 2000),
    ],
)
def test_hash_codes_are_those_of_java(value: Any, schema: Schema | None, code: int) -> None:
    assert hash_code(value, schema) == code


@pytest.mark.parametrize("value", [{"a": 1}, None, object()])
def test_what_has_no_hash_code_of_its_value_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="no hash code as in Java"):
        hash_code(value, None)
