"""What stands for values that were not sent where the schema has no room for null."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from connect.data import Schema, decimal_schema, timestamp_schema, validate
from connect.kits.cdc.blanks import blank_fields
from connect.kits.cdc.semantic_types import VARIABLE_SCALE_DECIMAL, ZONED_TIMESTAMP


def test_each_type_has_a_zero_that_its_schema_takes() -> None:
    row = Schema.struct(
        {
            "optional": Schema.string(optional=True),
            "default": Schema.int32(default=5),
            "number": Schema.int64(),
            "real": Schema.float64(),
            "truth": Schema.boolean(),
            "text": Schema.string(),
            "data": Schema.bytes(),
            "exact": decimal_schema(2),
            "any": VARIABLE_SCALE_DECIMAL,
            "at": timestamp_schema(),
            "zoned": ZONED_TIMESTAMP,
            "many": Schema.array(Schema.string()),
        }
    )
    blanks = dict(blank_fields(row))
    assert blanks == {
        "number": 0,
        "real": 0.0,
        "truth": False,
        "text": "",
        "data": b"",
        "exact": Decimal("0.00"),
        "any": {"scale": 0, "value": b""},
        "at": dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        "zoned": "1970-01-01T00:00:00Z",
        "many": [],
    }
    for field in row.fields:
        if field.name in blanks:
            validate(field.schema, blanks[field.name], field.name)
