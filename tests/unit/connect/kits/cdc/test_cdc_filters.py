"""Filters, masks and keys by Java's expressions."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from connect.data import Schema
from connect.kits.cdc.conversion import Conversion
from connect.kits.cdc.filters import ColumnRules, KeyRules, NameFilter, masks_of
from connect.kits.cdc.tables import Column, Table, TableId

ORDERS = TableId("shop", "public", "orders")
TEXT = Conversion(Schema.string(), str)


@pytest.mark.parametrize(
    ("included", "excluded", "name", "passes"),
    [
        ((), (), "public.orders", True),
        (("public.orders",), (), "public.orders", True),
        (("public.orders",), (), "PUBLIC.Orders", True),
        (("orders",), (), "public.orders", False),
        ((r"public\..*",), (), "public.orders", True),
        ((), (r".*\.orders",), "public.orders", False),
        ((), (r".*\.orders",), "public.lines", True),
    ],
)
def test_names(included: tuple[str, ...], excluded: tuple[str, ...], name: str, *, passes: bool) -> None:
    assert NameFilter.of(included, excluded)(name) is passes


def masked(key: str, value: str, *, length: int | None = None) -> Any:
    """Return what becomes of a value of the column public.orders.name."""
    rules = ColumnRules(masks=tuple(masks_of({key: "public.orders.name"})))
    return rules.masked(ORDERS, Column("name", "text", length), TEXT).convert(value)


def test_masks() -> None:
    assert masked("column.mask.with.3.chars", "secret") == "***"
    assert masked("column.truncate.to.4.chars", "longer") == "long"
    assert masked("column.mask.hash.v2.SHA-256.with.salt.S", "v") == hashlib.sha256(b"Sv").hexdigest()
    assert masked("column.mask.hash.v2.SHA-256.with.salt.S", "v", length=8) == hashlib.sha256(b"Sv").hexdigest()[:8]


def test_the_first_version_of_the_hash_is_of_javas_serialization() -> None:
    """ObjectOutputStream writes a header, the tag of a string, its length, and modified UTF-8."""
    header = bytes.fromhex("aced000574")

    assert masked("column.mask.hash.SHA-256.with.salt.S", "ab") == (
        hashlib.sha256(b"S" + header + b"\x00\x02ab").hexdigest()
    )
    assert masked("column.mask.hash.SHA-256.with.salt.S", "\0\U0001f600") == (
        hashlib.sha256(b"S" + header + b"\x00\x08\xc0\x80\xed\xa0\xbd\xed\xb8\x80").hexdigest()
    )


def test_numbers_are_not_masked() -> None:
    rules = ColumnRules(masks=tuple(masks_of({"column.mask.with.3.chars": ".*"})))
    number = Conversion(Schema.int32(), int)

    assert rules.masked(ORDERS, Column("n", "int4"), number) is number


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", ("id",)),
        ("public.orders:name", ("name",)),
        (r"(.*).orders:name,id;public.lines:id", ("name", "id")),
        ("public.lines:name", ("id",)),
    ],
)
def test_keys(text: str, keys: tuple[str, ...]) -> None:
    table = Table(ORDERS, (Column("id", "int4"), Column("name", "text")), ("id",))

    assert KeyRules.of(text).key_columns(table) == keys


@pytest.mark.parametrize("text", ["orders", "orders:", ":id"])
def test_keys_that_say_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="write TABLE:COLUMN,COLUMN"):
        KeyRules.of(text)
