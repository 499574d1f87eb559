"""Rules for fields of documents: which are left out and renamed, in documents and in what updates tell."""

from __future__ import annotations

import pytest

from connect.errors import DataError
from connectors.cdc.mongodb.fields import FieldRules, parse_exclusion, parse_rename


def rules(*exclusions: str, renames: tuple[str, ...] = ()) -> FieldRules:
    return FieldRules([*map(parse_exclusion, exclusions), *map(parse_rename, renames)], "shop", "orders")


def test_paths_lead_through_documents_and_arrays() -> None:
    made = rules("shop.orders.a.b", "*.ord*.c", "other.orders.d", renames=("shop.*.e.f:g", "shop.orders.e:h"))
    document = {"a": {"b": 1, "x": 2}, "c": [1], "d": 3, "e": [{"f": 4}, 5, {"f": {"b": 6}}]}
    assert made.document(document) == {"a": {"x": 2}, "d": 3, "h": [{"g": 4}, 5, {"g": {"b": 6}}]}


def test_changes_name_items_of_arrays_by_their_place() -> None:
    made = rules("shop.orders.a.b", "shop.orders.c", renames=("shop.orders.e.f:g",))
    changes = {"a.0.b": 1, "a.0.x": 2, "a.b.c": 3, "c.d": 4, "e.1": {"f": 5}, "e.1.f.2": 6, "7": 8}
    assert made.changes(changes) == {"a.0.x": 2, "e.1": {"g": 5}, "e.1.g.2": 6, "7": 8}
    assert made.names(["a.b", "e.f", "x"]) == ["e.g", "x"]


def test_a_collection_without_rules_has_none() -> None:
    assert rules("shop.other.a").is_empty
    assert not rules("*.*.a").is_empty


@pytest.mark.parametrize("text", ["a.b", "a..b", "", "a.b."])
def test_exclusions_that_name_no_field(text: str) -> None:
    with pytest.raises(DataError, match=r"must be DATABASE\.COLLECTION\.FIELD"):
        parse_exclusion(text)


@pytest.mark.parametrize("text", ["a.b.c", "a.b.c:", "a.b.c:d.e", "a.b:c"])
def test_renames_without_a_name(text: str) -> None:
    with pytest.raises(DataError, match=r"must be DATABASE\.COLLECTION\.FIELD"):
        parse_rename(text)
