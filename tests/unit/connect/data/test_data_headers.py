"""Headers: an ordered multimap that never changes."""

from __future__ import annotations

import pickle

from connect.data import NO_HEADERS, Header, Headers, Schema


def some_headers() -> Headers:
    return Headers().add("a", 1, Schema.int8()).add("b", "x").add("a", 2)


def test_in_order_with_repetition() -> None:
    headers = some_headers()
    assert [(header.key, header.value) for header in headers] == [("a", 1), ("b", "x"), ("a", 2)]
    assert len(headers) == 3
    assert headers[0] == Header("a", 1, Schema.int8())
    assert headers[1:] == Headers([Header("b", "x"), Header("a", 2)])


def test_adding_makes_new_headers() -> None:
    headers = some_headers()
    assert headers.add("c", None) != headers
    assert len(headers) == 3
    assert Headers() == NO_HEADERS


def test_by_key() -> None:
    headers = some_headers()
    assert [header.value for header in headers.all_with_key("a")] == [1, 2]
    assert headers.last_with_key("a") == Header("a", 2)
    assert headers.last_with_key("z") is None
    assert headers.all_with_key("z") == ()


def test_removing() -> None:
    assert some_headers().remove("a") == Headers([Header("b", "x")])
    assert some_headers().remove("z") == some_headers()


def test_retaining_the_latest() -> None:
    headers = some_headers().add("b", "y")
    assert [header.value for header in headers.retain_latest()] == [2, "y"]
    assert [header.value for header in headers.retain_latest("a")] == ["x", 2, "y"]


def test_applying_a_change() -> None:
    changed = some_headers().apply(lambda header: None if header.key == "b" else Header("c", header.value))
    assert [(header.key, header.value) for header in changed] == [("c", 1), ("c", 2)]


def test_equal_hashable_and_pickled() -> None:
    headers = some_headers().add("list", [1])
    again = pickle.loads(pickle.dumps(headers))
    assert again == headers
    assert hash(again) == hash(headers)
    assert again[0].schema is Schema.int8()
    assert headers != [Header("a", 1)]
