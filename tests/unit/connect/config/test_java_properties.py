"""Properties files are read as Java reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.config import PropertiesError, parse_properties, read_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a = b c ", {"a": "b c "}),
        ("a:b=c", {"a": "b=c"}),
        ("a b", {"a": "b"}),
        ("a\t:\f b", {"a": "b"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("# x=y\n  ! x=y\n\n \ta=b#c", {"a": "b#c"}),
        ("# x \\\na=b", {"a": "b"}),
        ("a=b\\\n   c\\\r\n\td", {"a": "bcd"}),
        ("a=b\\\n# c", {"a": "b# c"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        (r"a\=b\:c\ d=e", {"a=b:c d": "e"}),
        (r"a=\t\n\r\f\q\"\\", {"a": '\t\n\r\fq"\\'}),
        (r"a=\u0041\u00e9", {"a": "Aé"}),
        (r"a=\uD83D\uDE00", {"a": "😀"}),
        (r"a=\ ${file:/x:y}", {"a": " ${file:/x:y}"}),
        ("a=caf\u00e9 \u2603\u2028x", {"a": "café ☃\u2028x"}),
    ],
)
def test_reads(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


@pytest.mark.parametrize(("text", "line"), [("a=\\u00g0", 1), ("x=1\n\n#\na=b\\\n\\u12", 4), ("\\u=1", 1)])
def test_a_malformed_escape_is_told_with_its_line(text: str, line: int) -> None:
    with pytest.raises(PropertiesError, match=f"encoding in line {line}: give four hexadecimal digits") as refused:
        parse_properties(text)
    assert refused.value.line == line


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if c < " " else f"\\{c}" if c in " =:#!\\" else c for c in text)


@given(st.dictionaries(st.text(" =:#!\\\t\n\rau0é", min_size=1), st.text(" =:#!\\\t\n\rau0é"), max_size=4))
def test_what_is_escaped_comes_back(properties: dict[str, str]) -> None:
    text = "".join(f"{escaped(key)}={escaped(value)}\n" for key, value in properties.items())
    assert parse_properties(text) == properties


@given(st.text(" =:#!\\\t\n\ra", max_size=12))
def test_any_text_without_unicode_escapes_is_properties(text: str) -> None:
    assert all(isinstance(value, str) for value in parse_properties(text).values())


def test_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "worker.properties"
    path.write_bytes("\ufeffname=caf\u00e9\r\n".encode())
    assert read_properties(path) == read_properties(str(path)) == {"name": "café"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PropertiesError, match=r"Cannot read the properties file .*nowhere: No such file"):
        read_properties(tmp_path / "nowhere")
    (tmp_path / "latin").write_bytes(b"a=\xe9")
    with pytest.raises(PropertiesError, match="latin is not UTF-8"):
        read_properties(tmp_path / "latin")
    (tmp_path / "bad").write_text("\n\na=\\u1")
    with pytest.raises(PropertiesError, match=r"bad: Malformed .* in line 3") as refused:
        read_properties(tmp_path / "bad")
    assert refused.value.line == 3
