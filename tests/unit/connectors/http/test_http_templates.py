"""Templates: what they are filled in with, and what no value can do to them."""

from __future__ import annotations

import datetime as dt
import json
import xml.etree.ElementTree as ET
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.errors import DataError
from connectors.http.templates import Encoding, MissingValueError, Template, TemplateError, body_encoding
from equipment.growth import assert_grows_evenly

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


def rendered(text: str, encoding: Encoding = Encoding.TEXT, **names: Any) -> str:
    return Template(text, encoding).render(names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$ $x {x} }", "$ $x {x} }"),
        ("${a}", "1"),
        ("<${ a }>", "<1>"),
        ("${b.c}${b['d e']}${b[\"d e\"]}", "233"),
        ("${list[1]}", "y"),
        ("${none!'-'}|${none!}|${none!7}|${b.x!\"q\"}", "-||7|q"),
        ("${at?datetime.iso?long}", "1704164645123"),
        ("${at?datetime.iso?string['yyyy/MM/dd HH:mm']}", "2024/01/02 03:04"),
        ('${at?string("yyyy")}', "2024"),
        ("${at?seconds}", "1704164645"),
        ("${millis?string['yyyy-MM-dd']}", "2024-01-02"),
        ("${word?upper_case}${word?trim?lower_case}", " WORDword"),
        ("${exact}", "1234567890123456789012.50"),
        ("${moment}", "2024-01-02T03:04:05.000Z"),
        ("${flag}", "true"),
        ("${list}", '["x","y"]'),
        ("${bytes}", "text"),
    ],
)
def test_placeholders_are_filled_in(text: str, expected: str) -> None:
    names = {
        "a": 1,
        "b": {"c": 2, "d e": 3},
        "list": ["x", "y"],
        "none": None,
        "at": "2024-01-02T03:04:05.123Z",
        "millis": 1704164645123,
        "word": " Word",
        "exact": Decimal("1234567890123456789012.50"),
        "moment": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "flag": True,
        "bytes": b"text",
    }
    assert rendered(text, **names) == expected


@pytest.mark.parametrize(
    "text",
    ["${", "${}", "${ }", "${a", "${a b}", "${a?eval}", "${a?string['nonsense pattern']}", "<#if a>", "#{a}", "${1}"],
)
def test_malformed_templates_are_refused(text: str) -> None:
    with pytest.raises(TemplateError):
        Template(text, Encoding.TEXT)


def test_only_known_names_are_taken_where_they_are_given() -> None:
    with pytest.raises(TemplateError, match=r"\$\{other\} is not available here; use offset, page"):
        Template("${other}", Encoding.TEXT, ("page", "offset"))


def test_a_value_that_is_missing_is_told_with_its_remedy() -> None:
    with pytest.raises(MissingValueError, match=r"\$\{offset.id\} has no value here.*\$\{offset.id!'...'\}"):
        rendered("${offset.id}", offset={})


@pytest.mark.parametrize("url", ["http://${host}/", "${url}", "http://a${b}/", "http://a:${port}/", "http://a"])
def test_no_value_is_the_host(url: str) -> None:
    if "${" in url:
        with pytest.raises(TemplateError, match="must not contain"):
            Template(url, Encoding.URL)
    else:
        assert rendered(url, Encoding.URL) == url


@given(TEXTS, TEXTS)
def test_no_value_leaves_its_place_in_a_url(value: str, other: str) -> None:
    template = Template("https://api.example:8443/a/${v}/b?x=${w}&y=1", Encoding.URL)
    try:
        url = template.render({"v": value, "w": other})
    except DataError:
        assert value in ("", ".", "..")
        return
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "api.example:8443", "")
    assert [unquote(part) for part in parts.path.split("/")] == ["", "a", value, "b"]
    assert parse_qs(parts.query, keep_blank_values=True) == {"x": [other], "y": ["1"]}


@pytest.mark.parametrize(
    ("text", "value"), [("http://h/a/${v}", ".."), ("http://h/.${v}/x", "."), ("http://h/${v}", "")]
)
def test_no_value_is_another_folder(text: str, value: str) -> None:
    with pytest.raises(DataError):
        rendered(text, Encoding.URL, v=value)


@given(VALUES, TEXTS)
def test_json_stays_json_whatever_is_in_it(value: Any, text: str) -> None:
    body = rendered('{"a": ${v!"null"}, "b": "x ${t} \\" ${t}", "c": [1]}', Encoding.JSON, v=value, t=text)
    parsed = json.loads(body)
    assert parsed["b"] == f'x {text} " {text}'
    assert parsed["a"] == (value if value is not None else "null")
    assert parsed["c"] == [1]


@given(TEXTS)
def test_forms_headers_and_xml_keep_their_structure(value: str) -> None:
    assert parse_qs(rendered("a=${v}&b=2", Encoding.FORM, v=value), keep_blank_values=True) == {
        "a": [value],
        "b": ["2"],
    }
    try:
        header = rendered("x ${v}", Encoding.HEADER, v=value)
    except DataError:
        assert any(ord(character) < 32 or character == "\x7f" for character in value)
    else:
        assert "\r" not in header
        assert "\n" not in header
    if value.isprintable():
        tree = ET.fromstring(rendered("<a b='${v}'>${v}</a>", Encoding.XML, v=value))
        assert (tree.text or "", tree.get("b")) == (value, value)


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        (None, Encoding.JSON),
        ("application/vnd.api+json; charset=utf-8", Encoding.JSON),
        ("application/x-www-form-urlencoded", Encoding.FORM),
        ("text/xml", Encoding.XML),
        ("text/plain", Encoding.TEXT),
    ],
)
def test_the_type_of_a_body_says_how_it_is_encoded(kind: str | None, encoding: Encoding) -> None:
    assert body_encoding(kind) is encoding


@given(st.text("${}.?!'\"ab[]0 ", max_size=40))
def test_any_text_is_a_template_or_is_refused(text: str) -> None:
    try:
        template = Template(text, Encoding.TEXT)
        template.render({"a": {"b": 1}, "b": "x"})
    except (TemplateError, DataError):
        return


@pytest.mark.growth
@pytest.mark.parametrize("part", ["${", "${a?c?c?c", "${a.b.c.d", '"\\', "${a['"])
def test_parsing_takes_even_time(part: str) -> None:
    def parse(text: str) -> None:
        try:
            Template(text, Encoding.JSON)
        except TemplateError:
            return

    assert_grows_evenly(parse, lambda size: part * size, 5_000)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), Decimal("NaN")])
def test_what_json_has_no_form_for_is_refused(value: Any) -> None:
    with pytest.raises(DataError):
        rendered('{"a": ${v}}', Encoding.JSON, v=value)
