"""Each validator: what it accepts, what it says of the rest, how it describes itself."""

from __future__ import annotations

from typing import Any

import pytest

from connect.config import (
    HIGH,
    Validator,
    all_of,
    at_least,
    at_most,
    between,
    list_size,
    list_values,
    matches,
    non_empty,
    non_empty_list,
    one_of,
    option,
    regex,
    regex_list,
    unique_aliases,
    unique_list,
    url_list,
)
from connect.errors import ConfigError

INVALID = "Invalid value {} for configuration k: {}"


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (at_least(1), 1),
        (at_most(2), 2),
        (between(0, 3), 3),
        (one_of("a", "b"), "b"),
        (one_of("a", ignore_case=True), "A"),
        (non_empty, " "),
        (non_empty, None),
        (regex, "a.*"),
        (regex_list, ("a.*", "b")),
        (matches("a+"), "aa"),
        (non_empty_list, ("a",)),
        (list_size(2), ("a", "b")),
        (unique_list, ("a", "b")),
        (unique_aliases("aliases"), ("a", "b")),
        (list_values("a", "b"), ("b", "b")),
        (url_list, ("http://:8083",)),
        (all_of(non_empty, one_of("a")), "a"),
        (all_of(), None),
    ],
)
def test_accepts(rule: Validator, value: Any) -> None:
    rule("k", value)


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        (at_least(1), 0, INVALID.format(0, "Value must be at least 1")),
        (at_least(1), None, INVALID.format("null", "Value must be non-null")),
        (at_most(2), 3, INVALID.format(3, "Value must be no more than 2")),
        (between(0.5, 1.0), 1.5, INVALID.format(1.5, "Value must be no more than 1.0")),
        (one_of("a", "b"), "A", INVALID.format("A", "String must be one of: a, b")),
        (one_of("a", "b"), None, INVALID.format("null", "String must be one of: a, b")),
        (
            one_of("a", "b", ignore_case=True),
            "c",
            INVALID.format("c", "String must be one of (case insensitive): A, B"),
        ),
        (non_empty, "", INVALID.format("", "String must be non-empty")),
        (matches("a+"), "b", INVALID.format("b", "Value must be a string matching a+")),
        (matches("a+", "row of a's"), "b", INVALID.format("b", "Value must be a row of a's")),
        (non_empty_list, (), INVALID.format("[]", "Empty list")),
        (list_size(1), ("a", "b"), INVALID.format("[a, b]", "exceeds maximum list size of [1].")),
        (unique_aliases("x"), ("a", "a"), INVALID.format("[a, a]", "Duplicate alias provided.")),
        (unique_list, ("a", "a"), "Configuration 'k' values must not be duplicated."),
        (unique_list, ("a", ""), "Configuration 'k' values must not be empty."),
        (list_values("a"), ("a", "c"), INVALID.format("c", "String must be one of: a")),
        (url_list, ("http://x", " "), "Empty URL found when parsing k list."),
        (all_of(non_empty, one_of("a")), "", INVALID.format("", "String must be non-empty")),
        (all_of(non_empty, one_of("a")), None, INVALID.format("null", "String must be one of: a")),
    ],
)
def test_refuses(rule: Validator, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        rule("k", value)
    assert str(refused.value) == message
    assert refused.value.key == "k"


@pytest.mark.parametrize(("rule", "value"), [(regex, "("), (regex_list, ("a", "("))])
def test_refuses_what_is_no_regex(rule: Validator, value: Any) -> None:
    with pytest.raises(ConfigError, match=r"Invalid value \( for configuration k: Invalid regex: .*"):
        rule("k", value)


def test_an_empty_list_of_urls_shows_an_example() -> None:
    with pytest.raises(ConfigError, match="Invalid value for k, at least one URL is expected, ex: http"):
        url_list("k", ())


@pytest.mark.parametrize(
    ("rule", "description"),
    [
        (at_least(1), "[1,...]"),
        (at_most(2), "[...,2]"),
        (between(0.5, 1.0), "[0.5,...,1.0]"),
        (one_of("a", "b"), "[a, b]"),
        (one_of("v1", "v2", ignore_case=True), "(case insensitive) [V1, V2]"),
        (all_of(non_empty, regex), "non-empty string, valid regex"),
        (list_size(3), "List containing maximum of 3 elements"),
        (unique_aliases("transformation aliases"), "unique transformation aliases"),
        (list_values("a", "b"), "list of [a, b]"),
    ],
)
def test_describes_itself(rule: Validator, description: str) -> None:
    assert str(rule) == rule.description == description
    assert description in repr(rule)


def test_a_plain_function_is_refused_where_the_option_is_declared() -> None:
    def absolute_path(key: str, value: str) -> None:
        """Looks like a validator, but does not say what it allows."""

    with pytest.raises(TypeError, match=r"validator=absolute_path .* decorate the function with @validator "):
        option(importance=HIGH, validator=absolute_path, doc="A path.")  # type: ignore[arg-type]
