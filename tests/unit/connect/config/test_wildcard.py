"""Patterns in which * is any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.config.validators import matches_wildcard
from equipment.growth import assert_grows_evenly

SHORT = st.text("ab.*", max_size=8)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("acme.*", "acme.a.B", True),
        ("acme.*", "acme.", True),
        ("acme.*", "acme", False),
        ("acme.*", "xacme.a", False),
        ("*", "", True),
        ("", "", True),
        ("", "a", False),
        ("a*a", "a", False),
        ("a.B", "a.B", True),
        ("a.B", "axB", False),
    ],
)
def test_a_star_is_any_text_and_all_else_is_itself(pattern: str, text: str, matches: bool) -> None:
    assert matches_wildcard(pattern, text) is matches


@given(SHORT, st.text("ab.", max_size=12))
def test_it_is_what_a_regular_expression_would_say(pattern: str, text: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
    assert matches_wildcard(pattern, text) is expected


def test_many_stars_and_a_long_text_take_no_more_than_their_length() -> None:
    def judge(given: tuple[str, str]) -> None:
        assert not matches_wildcard(*given)

    assert_grows_evenly(judge, lambda length: ("*a" * length + "b", "a" * 2 * length), 100_000)
