"""Defaults of columns, as the catalog writes them."""

from __future__ import annotations

import pytest

from connectors.cdc.postgresql.catalog import default_text
from connectors.cdc.postgresql.dialect import PgType

TEXT, NUMBER, TIME, TRUTH = PgType(25, "text"), PgType(23, "int4"), PgType(1184, "timestamptz"), PgType(16, "bool")


@pytest.mark.parametrize(
    ("expression", "kind", "text"),
    [
        ("'dd'::text", TEXT, b"dd"),
        ("'it''s'::character varying", TEXT, b"it's"),
        ("9", NUMBER, b"9"),
        ("'-1'::integer", NUMBER, b"-1"),
        ("(-1)", NUMBER, b"-1"),
        ("1.5", NUMBER, b"1.5"),
        ("true", TRUTH, b"t"),
        ("now()", TIME, b"1970-01-01 00:00:00+00"),
        ("CURRENT_TIMESTAMP", TIME, b"1970-01-01 00:00:00+00"),
        ("nextval('t_id_seq'::regclass)", NUMBER, None),
        ("NULL::timestamp with time zone", TIME, None),
        ("('a'::text || 'b'::text)", TEXT, None),
    ],
)
def test_defaults(expression: str, kind: PgType, text: bytes | None) -> None:
    assert default_text(expression, kind) == text
