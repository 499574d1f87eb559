"""Pages show configurations without secrets."""

from __future__ import annotations

import pytest

from equipment.growth import growth
from rest.ui.masking import masked, types_of

HIDDEN = "[hidden]"


@pytest.mark.parametrize(
    ("key", "value", "type_name", "shown"),
    [
        ("connection.password", "x", "PASSWORD", HIDDEN),
        ("anything", "x", "PASSWORD", HIDDEN),
        ("connection.password", "${file:/s:p}", "PASSWORD", "${file:/s:p}"),
        ("connection.password", "x${file:/s:p}", "PASSWORD", HIDDEN),
        ("producer.override.sasl.jaas.config", "x", None, HIDDEN),
        ("unknown.api_key", "x", None, HIDDEN),
        ("fetch.max.tokens", "5", "INT", "5"),
        ("topics", "a,b", None, "a,b"),
        ("url", "https://ann:x@host/a", "STRING", f"https://{HIDDEN}@host/a"),
        ("url", "https://host/?a=1&api_key=x&b=2", "STRING", f"https://host/?a=1&api_key={HIDDEN}&b=2"),
        ("connection.password", "", "PASSWORD", ""),
    ],
)
def test_what_is_hidden(key: str, value: str, type_name: str | None, shown: str) -> None:
    types = {} if type_name is None else {key: type_name}
    assert masked({key: value}, types) == {key: shown}


def test_types_are_those_of_a_validation() -> None:
    infos = {"configs": [{"definition": {"name": "a", "type": "INT"}, "value": {}}, {"definition": None, "value": {}}]}
    assert types_of(infos) == {"a": "INT"}
    assert types_of({}) == {}


@pytest.mark.growth
@pytest.mark.parametrize("text", ["://a", "?password", "?a.key", "a@"])
def test_long_values_take_linear_time(text: str) -> None:
    growth(lambda size: masked({"url": text * size}, {}), 20_000)
