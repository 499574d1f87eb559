"""What is changed of a dead letter, and what of that is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from connect.config import HIDDEN
from connect.internals.chain.raw_records import RawRecord
from equipment.growth import assert_grows_evenly
from worker.errors import BadRequestError
from worker.runtime.dead_letters.repair import Edit, changes_of
from worker.security.redaction import Redaction

MARK = ("__connect.dlq.replayed", b"q:0:5")


def record(
    value: bytes | None, headers: Sequence[tuple[str, bytes | None]] = (MARK,), key: bytes | None = b"k"
) -> RawRecord:
    return RawRecord("orders", 3, 77, 1000, "CreateTime", key, value, headers)


def changes(before: bytes | None, after: bytes | None) -> list[tuple[str, str | None, str | None]]:
    told = changes_of(record(before), record(after), str)
    return [(str(item["key"]), item["before"], item["after"]) for item in told]


def test_what_is_not_named_stays() -> None:
    assert Edit.read({}).applied(record(b"v"), {}) == record(b"v")
    assert Edit.read({"key": None}).applied(record(b"v"), {}) == record(b"v", key=None)


def test_headers_are_replaced_but_for_the_mark_of_the_replay() -> None:
    given = [{"key": "a", "value": {"text": "1"}}, {"key": "a", "value": None}]
    edited = Edit.read({"headers": given}).applied(record(b"v", [("b", b"2"), MARK]), {})
    assert list(edited.headers) == [("a", b"1"), ("a", None), MARK]


@pytest.mark.parametrize("name", ["__connect.errors.topic", "__connect.dlq.replayed"])
def test_the_worker_s_own_headers_cannot_be_given(name: str) -> None:
    with pytest.raises(BadRequestError, match=f"headers: {name}"):
        Edit.read({"headers": [{"key": name, "value": None}]}).applied(record(b"v"), {})


def test_members_of_json_are_told_one_by_one() -> None:
    before = b'{"id": 1, "tags": ["a", "b"], "to": {"city": "Bonn"}, "amount": 1.10}'
    after = b'{"id": 1, "tags": ["a", "c", "d"], "to": {"city": "K\xc3\xb6ln"}, "amount": 1.2, "new": null}'
    assert changes(before, after) == [
        ("value.tags[1]", "b", "c"),
        ("value.tags[2]", None, "d"),
        ("value.to.city", "Bonn", "Köln"),
        ("value.amount", "1.10", "1.2"),
        ("value.new", None, "null"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (b"v", b"v", []),
        (b"bad", b"good", [("value", "bad", "good")]),
        (b"bad", None, [("value", "bad", "null")]),
        (b"\xff", b"1", [("value", "base64:/w==", "1")]),
        (b'{"a": 1}', b'{"a":1}', [("value", '{"a": 1}', '{"a":1}')]),
        (b'{"a": 1}', b'{"a": true}', [("value.a", "1", "true")]),
        (b"[1]", b'{"a": 1}', [("value", "[1]", '{"a": 1}')]),
    ],
)
def test_other_values_are_told_whole(
    before: bytes | None, after: bytes | None, told: list[tuple[str, str, str]]
) -> None:
    shown = [(key, None if old is None else old.strip('"'), new) for key, old, new in changes(before, after)]
    assert shown == told


def test_secrets_are_hidden_by_name_and_by_what_is_known() -> None:
    redaction = Redaction()
    redaction.add(["hunter2"])
    before, after = b'{"api_key": "a", "note": "x"}', b'{"api_key": "b", "note": "hunter2", "login": {"password": "c"}}'
    told = changes_of(record(before), record(after), redaction.redacted)
    assert told == [
        {"key": "value.api_key", "before": HIDDEN, "after": HIDDEN},
        {"key": "value.note", "before": "x", "after": HIDDEN},
        {"key": "value.login.password", "before": HIDDEN, "after": HIDDEN},
    ]
    assert "hunter2" not in json.dumps(told)


def test_headers_are_told_by_name() -> None:
    before, after = record(b"v", [("a", b"1"), ("a", b"2"), ("gone", b"x"), MARK]), record(b"v", [("a", b"1"), MARK])
    assert changes_of(before, after, str) == [
        {"key": "headers.a", "before": "2", "after": None},
        {"key": "headers.gone", "before": "x", "after": None},
    ]


def test_what_is_told_is_bounded() -> None:
    many = json.dumps({str(number): number for number in range(500)}).encode()
    told = changes(b"{}", many)
    assert (len(told), told[-1]) == (101, ("and more", None, None))
    ((_, _, long),) = changes(b"x", b"y" * 100_000)
    assert long is not None
    assert (len(long) < 600, long.endswith("(100000 characters)")) == (True, True)


@pytest.mark.growth
@pytest.mark.parametrize("value", [lambda n: b"[" * n, lambda n: b'{"a":' * n, lambda n: b"[" + b"1," * n + b"1]"])
def test_hostile_values_cost_what_they_are_long(value: Callable[[int], bytes]) -> None:
    assert_grows_evenly(lambda pair: changes_of(*pair, str), lambda size: (record(value(size)), record(b"[]")), 20_000)
