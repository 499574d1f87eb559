"""Regular expressions and replacements of Java."""

from __future__ import annotations

import re

import pytest

from connect.internals.java.regex import expand, regex_from_java


@pytest.mark.parametrize(
    ("regex", "matching", "other"),
    [
        ("(?<name>a+)-\\k<name>", "aa-aa", "aa-a"),
        ("(?i)foo", "FOO", "bar"),
        ("x(?i)foo|bar", "BAR", "XFOO"),
        ("a(b(?i)c)d", "abCd", "abCD"),
        ("\\Qa.b\\E", "a.b", "axb"),
        ("\\Qa.b", "a.b", "axb"),
        ("\\p{Alpha}\\p{Digit}+", "a12", "12"),
        ("[\\p{Upper}_]+", "A_B", "a"),
        ("\\P{Digit}", "a", "1"),
        ("\\x{61}\\x41", "aA", "bA"),
        ("(?>a+)b", "aab", "aa"),
        ("a*+b", "aab", "aa"),
        ("(?<=a)?b", "b", "a"),
        ("\\d\\w\\s", "1a ", "\u0661a "),
        ("[(|)]", "|", "a"),
        ("a\\z", "a", "b"),
        ("[\\h]", "\t", "a"),
    ],
)
def test_translation(regex: str, matching: str, other: str) -> None:
    compiled = regex_from_java(regex)
    assert compiled.fullmatch(matching)
    assert not compiled.fullmatch(other)


@pytest.mark.parametrize("regex", ["[", "*", "(", "[a-z&&[^b]]", "[a[b]]", "\\p{IsGreek}", "[\\H]"])
def test_what_cannot_be_told_to_python_is_refused(regex: str) -> None:
    with pytest.raises(re.error):
        regex_from_java(regex)


@pytest.mark.parametrize(
    ("replacement", "expanded"),
    [
        ("$1", "a"),
        ("${second}-$1", "b-a"),
        ("$12", "a2"),
        ("\\$1", "$1"),
        ("\\\\", "\\"),
        ("$0!", "ab!"),
        ("$3", ""),
        ("x", "x"),
    ],
)
def test_expand(replacement: str, expanded: str) -> None:
    match = regex_from_java("(a)(?<second>b)(c)?").fullmatch("ab")
    assert match is not None
    assert expand(replacement, match) == expanded


@pytest.mark.parametrize(
    ("replacement", "error"), [("$9", IndexError), ("${none}", IndexError), ("$", ValueError), ("a\\", ValueError)]
)
def test_what_is_no_replacement(replacement: str, error: type[Exception]) -> None:
    match = regex_from_java("(a)").fullmatch("a")
    assert match is not None
    with pytest.raises(error):
        expand(replacement, match)
